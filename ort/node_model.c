// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A gcap model of one node: its making and its end, and types and shapes of its values.
//
// Locking: none. A model is made by one thread, and only read afterwards.

#include "ort/node_model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/kernels/half.h"

// As gcap_node_t has the operator.
static char* full_op_type(const gcap_ort_op_t* op) {
  const char* op_type = op->as != NULL ? op->as : op->op_type;
  if (op->domain == NULL || op->domain[0] == 0) return strdup(op_type);
  const size_t bytes = strlen(op->domain) + strlen(op_type) + 2;
  char* text = malloc(bytes);
  if (text != NULL) snprintf(text, bytes, "%s.%s", op->domain, op_type);
  return text;
}

gcap_status_t gcap_ort_node_create(const char* name, const gcap_ort_op_t* op, size_t max_attributes,
                                   gcap_ort_node_model_t** out_model) {
  gcap_ort_node_model_t* m = calloc(1, sizeof(*m));
  if (m != NULL) m->items = calloc(max_attributes + 1, sizeof(*m->items));
  if (m != NULL) m->name = strdup(name[0] != 0 ? name : op->op_type);
  if (m != NULL) m->op_type = full_op_type(op);
  if (m == NULL || m->items == NULL || m->name == NULL || m->op_type == NULL) {
    gcap_ort_node_free(m);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", name);
  }
  for (int i = 0; i < GCAP_ORT_MAX_VALUES; ++i) m->indices[i] = i;
  m->node.op_type = m->op_type;
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

void gcap_ort_node_copy(const gcap_ort_node_model_t* from, gcap_ort_node_model_t* to) {
  *to = *from;
  to->model.values = to->values;
  to->model.nodes = &to->node;
}

bool gcap_ort_node_has_any_rank(const gcap_ort_node_model_t* m) {
  bool any = false;
  for (int i = 0; !any && i < m->model.num_values; ++i) any = m->values[i].rank == GCAP_ORT_ANY_RANK;
  return any;
}

void gcap_ort_node_free(gcap_ort_node_model_t* m) {
  if (m == NULL) return;
  for (size_t i = 0; i < m->attributes.count; ++i) {
    if (m->items[i].kind == GCAP_ATTRIBUTE_INTS) free((void*)m->items[i].ints);
    if (m->items[i].kind == GCAP_ATTRIBUTE_STRING) free((void*)m->items[i].string);
  }
  free(m->items);
  free(m->name);
  free(m->op_type);
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
    case GCAP_ORT_INT8: *out_dtype = GCAP_DTYPE_I8; return true;
    case GCAP_ORT_UINT8: *out_dtype = GCAP_DTYPE_U8; return true;
    default: return false;
  }
}

// --- Attributes -----------------------------------------------------------------------------------------------------

static void put_float(gcap_attribute_t* item, float value) {
  item->kind = GCAP_ATTRIBUTE_FLOAT;
  item->f = value;
}

static void put_int(gcap_attribute_t* item, int64_t value) {
  item->kind = GCAP_ATTRIBUTE_INT;
  item->i = value;
}

static void put_element(gcap_dtype_t dtype, const void* element, gcap_attribute_t* item) {
  switch (dtype) {
    case GCAP_DTYPE_F32: put_float(item, *(const float*)element); break;
    case GCAP_DTYPE_F16: put_float(item, gcap_f16_to_f32(*(const uint16_t*)element)); break;
    case GCAP_DTYPE_BF16: put_float(item, gcap_bf16_to_f32(*(const uint16_t*)element)); break;
    case GCAP_DTYPE_I64: put_int(item, *(const int64_t*)element); break;
    case GCAP_DTYPE_I32: put_int(item, *(const int32_t*)element); break;
    case GCAP_DTYPE_I8: put_int(item, *(const int8_t*)element); break;
    case GCAP_DTYPE_U8: put_int(item, *(const uint8_t*)element); break;
    case GCAP_DTYPE_BOOL: put_int(item, *(const uint8_t*)element != 0); break;
  }
}

gcap_status_t gcap_ort_number_read(const gcap_ort_host_t* host, const gcap_ort_value_t* tensor, gcap_attribute_t* item,
                                   bool* out_read) {
  *out_read = false;
  gcap_ort_element_type_t type = GCAP_ORT_UNDEFINED;
  gcap_dtype_t dtype = GCAP_DTYPE_F32;
  const int64_t* shape = NULL;
  const void* data = NULL;
  size_t rank = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetTensorElementTypeAndShapeDataReference(tensor, &type, &shape, &rank)));
  bool is_one = gcap_ort_dtype(type, &dtype);
  for (size_t i = 0; i < rank; ++i) is_one = is_one && shape[i] == 1;
  if (!is_one) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetTensorData(tensor, &data)));
  put_element(dtype, data, item);
  *out_read = true;
  return NULL;
}

// --- Types ----------------------------------------------------------------------------------------------------------

void gcap_ort_reason_set(gcap_ort_reason_t* reason, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason->text, sizeof(reason->text), format, arguments);
  va_end(arguments);
}

// ONNX's names of the types that gcap lacks, by ONNX Runtime's number.
static const char* const foreign_types[] = {
    [4] = "uint16",  [5] = "int16",   [8] = "string",     [11] = "double",
    [12] = "uint32", [13] = "uint64", [14] = "complex64", [15] = "complex128",
};

static void refuse_type(gcap_ort_element_type_t type, gcap_ort_reason_t* out_why) {
  const size_t number = (size_t)type;
  const bool is_named = number < sizeof(foreign_types) / sizeof(foreign_types[0]) && foreign_types[number] != NULL;
  if (is_named) {
    gcap_ort_reason_set(out_why, "a value of type %s", foreign_types[number]);
  } else {
    gcap_ort_reason_set(out_why, "a value of ONNX Runtime's type %zu", number);
  }
}

void gcap_ort_value_leave_out(gcap_value_t* value) { *value = (gcap_value_t){.name = "", .rank = 1, .shape = {0}}; }

gcap_status_t gcap_ort_value_read(const gcap_ort_host_t* host, const gcap_ort_type_info_t* type, gcap_value_t* value,
                                  gcap_ort_reason_t* out_why) {
  *out_why = (gcap_ort_reason_t){""};
  const gcap_ort_tensor_info_t* tensor = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, CastTypeInfoToTensorInfo(type, &tensor)));
  if (tensor == NULL) gcap_ort_reason_set(out_why, "a value that is no tensor");
  if (tensor == NULL) return NULL;
  gcap_ort_element_type_t element = GCAP_ORT_UNDEFINED;
  size_t rank = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetTensorElementType(tensor, &element)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetDimensionsCount(tensor, &rank)));
  if (!gcap_ort_dtype(element, &value->dtype)) {
    refuse_type(element, out_why);
  } else if (rank > GCAP_MAX_RANK) {
    gcap_ort_reason_set(out_why, "a value of rank %zu, at most %d", rank, GCAP_MAX_RANK);
  }
  if (!gcap_ort_reason_is_empty(out_why)) return NULL;
  value->rank = GCAP_ORT_ANY_RANK;
  if (!host->api->TensorTypeAndShape_HasShape(tensor)) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetDimensions(tensor, value->shape, rank)));
  value->rank = (int)rank;
  for (size_t i = 0; i < rank; ++i) {
    if (value->shape[i] < 0) value->shape[i] = GCAP_DIM_INFERRED;
  }
  return NULL;
}
