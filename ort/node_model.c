// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A gcap model of one node: its making and its end, and types and shapes of its values.

#include "ort/node_model.h"

#include <stdlib.h>
#include <string.h>

gcap_status_t gcap_ort_node_create(const char* name, const char* op_type, size_t max_attributes,
                                   gcap_ort_node_model_t** out_model) {
  gcap_ort_node_model_t* m = calloc(1, sizeof(*m));
  if (m != NULL) m->items = calloc(max_attributes + 1, sizeof(*m->items));
  if (m != NULL) m->name = strdup(name[0] != 0 ? name : op_type);
  if (m == NULL || m->items == NULL || m->name == NULL) {
    gcap_ort_node_free(m);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", name);
  }
  for (int i = 0; i < GCAP_ORT_MAX_VALUES; ++i) m->indices[i] = i;
  m->node.op_type = op_type;
  m->node.name = m->name;
  *out_model = m;
  return NULL;
}

void gcap_ort_node_complete(gcap_ort_node_model_t* m, int num_inputs, int num_outputs) {
  m->attributes.items = m->items;
  m->node.inputs = m->indices;
  m->node.num_inputs = num_inputs;
  m->node.outputs = m->indices + num_inputs;
  m->node.num_outputs = num_outputs;
  m->node.attributes = &m->attributes;
  m->model = (gcap_model_t){.values = m->values,
                            .num_values = num_inputs + num_outputs,
                            .nodes = &m->node,
                            .num_nodes = 1,
                            .inputs = m->node.inputs,
                            .num_inputs = num_inputs,
                            .outputs = m->node.outputs,
                            .num_outputs = num_outputs};
}

void gcap_ort_node_free(gcap_ort_node_model_t* m) {
  if (m == NULL) return;
  for (size_t i = 0; i < m->attributes.count; ++i) {
    if (m->items[i].kind == GCAP_ATTRIBUTE_INTS) free((void*)m->items[i].ints);
    if (m->items[i].kind == GCAP_ATTRIBUTE_STRING) free((void*)m->items[i].string);
  }
  free(m->items);
  free(m->name);
  free(m);
}

// --- Values ---------------------------------------------------------------------------------------------------------

bool gcap_ort_dtype(gcap_ort_element_type_t type, gcap_dtype_t* out_dtype) {
  switch (type) {
    case GCAP_ORT_FLOAT: *out_dtype = GCAP_DTYPE_F32; return true;
    case GCAP_ORT_FLOAT16: *out_dtype = GCAP_DTYPE_F16; return true;
    case GCAP_ORT_BFLOAT16: *out_dtype = GCAP_DTYPE_BF16; return true;
    case GCAP_ORT_INT64: *out_dtype = GCAP_DTYPE_I64; return true;
    case GCAP_ORT_INT32: *out_dtype = GCAP_DTYPE_I32; return true;
    case GCAP_ORT_BOOL: *out_dtype = GCAP_DTYPE_BOOL; return true;
    default: return false;
  }
}

gcap_status_t gcap_ort_value_read(const gcap_ort_host_t* host, const gcap_ort_type_info_t* type, gcap_value_t* value,
                                  bool* out_fits) {
  *out_fits = false;
  const gcap_ort_tensor_info_t* tensor = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, CastTypeInfoToTensorInfo(type, &tensor)));
  if (tensor == NULL || !host->api->TensorTypeAndShape_HasShape(tensor)) return NULL;
  gcap_ort_element_type_t element = GCAP_ORT_UNDEFINED;
  size_t rank = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetTensorElementType(tensor, &element)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetDimensionsCount(tensor, &rank)));
  if (rank > GCAP_MAX_RANK || !gcap_ort_dtype(element, &value->dtype)) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetDimensions(tensor, value->shape, rank)));
  value->rank = (int)rank;
  for (size_t i = 0; i < rank; ++i) {
    if (value->shape[i] < 0) value->shape[i] = GCAP_DIM_INFERRED;
  }
  *out_fits = true;
  return NULL;
}
