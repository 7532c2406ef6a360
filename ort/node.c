// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A node of a graph of ONNX Runtime's, as a gcap model of one node.
//
// Locking: none. A model is made by one thread, and only read afterwards.

#include "ort/node.h"

#include <stdlib.h>
#include <string.h>

// --- Values ---------------------------------------------------------------------------------------------------------

static gcap_status_t read_constant(const gcap_ort_host_t* host, const gcap_ort_value_info_t* info,
                                   gcap_value_t* value) {
  bool constant = false;
  const gcap_ort_value_t* content = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, ValueInfo_IsConstantInitializer(info, &constant)));
  if (constant) GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, ValueInfo_GetInitializerValue(info, &content)));
  if (content == NULL) return NULL;
  return GCAP_ORT_CALL(host, GetTensorData(content, &value->host_data));
}

// Reads the values of a node of a graph. Those that are left out at the end do not count.
static gcap_status_t read_values(const gcap_ort_host_t* host, const gcap_ort_value_info_t** infos, size_t count,
                                 gcap_value_t* values, int* out_count, gcap_ort_reason_t* out_why) {
  while (count > 0 && infos[count - 1] == NULL) --count;
  *out_count = (int)count;
  for (size_t i = 0; i < count && gcap_ort_reason_is_empty(out_why); ++i) {
    if (infos[i] == NULL) {
      gcap_ort_value_leave_out(&values[i]);
      continue;
    }
    const gcap_ort_type_info_t* type = NULL;
    GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetValueInfoName(infos[i], &values[i].name)));
    GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetValueInfoTypeInfo(infos[i], &type)));
    GCAP_RETURN_IF_ERROR(gcap_ort_value_read(host, type, &values[i], out_why));
    if (gcap_ort_reason_is_empty(out_why)) GCAP_RETURN_IF_ERROR(read_constant(host, infos[i], &values[i]));
  }
  return NULL;
}

static gcap_status_t read_inputs_and_outputs(const gcap_ort_host_t* host, const gcap_ort_node_t* node,
                                             gcap_ort_node_model_t* m, gcap_ort_reason_t* out_why) {
  const gcap_ort_value_info_t* infos[GCAP_ORT_MAX_VALUES];
  size_t num_inputs = 0, num_outputs = 0;
  int inputs = 0, outputs = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Node_GetNumInputs(node, &num_inputs)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Node_GetNumOutputs(node, &num_outputs)));
  if (num_inputs + num_outputs > GCAP_ORT_MAX_VALUES) {
    gcap_ort_reason_set(out_why, "%zu inputs and outputs, at most %d", num_inputs + num_outputs, GCAP_ORT_MAX_VALUES);
    return NULL;
  }
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Node_GetInputs(node, infos, num_inputs)));
  GCAP_RETURN_IF_ERROR(read_values(host, infos, num_inputs, m->values, &inputs, out_why));
  if (!gcap_ort_reason_is_empty(out_why)) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Node_GetOutputs(node, infos, num_outputs)));
  GCAP_RETURN_IF_ERROR(read_values(host, infos, num_outputs, m->values + inputs, &outputs, out_why));
  gcap_ort_node_complete(m, inputs, outputs);
  return NULL;
}

// --- Attributes -----------------------------------------------------------------------------------------------------

static gcap_status_t no_memory(const gcap_ort_node_model_t* m) {
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the attributes of node '%s'", m->name);
}

// What ONNX Runtime calls the kind; UNDEFINED for none.
static gcap_ort_attr_type_t type_of(gcap_attribute_kind_t kind) {
  switch (kind) {
    case GCAP_ATTRIBUTE_INT: return GCAP_ORT_ATTR_INT;
    case GCAP_ATTRIBUTE_FLOAT: return GCAP_ORT_ATTR_FLOAT;
    case GCAP_ATTRIBUTE_INTS: return GCAP_ORT_ATTR_INTS;
    case GCAP_ATTRIBUTE_STRING: return GCAP_ORT_ATTR_STRING;
    default: return GCAP_ORT_ATTR_UNDEFINED;
  }
}

static const gcap_ort_attribute_t* listed(const gcap_ort_factory_t* factory, const char* name) {
  const gcap_ort_attribute_t* a = factory->plugin->attributes;
  while (a->name != NULL && strcmp(a->name, name) != 0) ++a;
  return a->name != NULL ? a : NULL;
}

// Texts and lists are of any length: asks how long, then reads.
static gcap_status_t read_long(const gcap_ort_host_t* host, const gcap_ort_op_attr_t* from, gcap_ort_attr_type_t type,
                               const gcap_ort_node_model_t* m, void** out_data, size_t* out_bytes) {
  *out_bytes = 0;
  gcap_ort_status_t* asked = host->api->ReadOpAttr(from, type, NULL, 0, out_bytes);  // fails, and says how long
  if (asked != NULL) host->api->ReleaseStatus(asked);
  *out_data = calloc(1, *out_bytes + 1);
  if (*out_data == NULL) return no_memory(m);
  if (*out_bytes == 0) return NULL;
  gcap_status_t status = GCAP_ORT_CALL(host, ReadOpAttr(from, type, *out_data, *out_bytes, out_bytes));
  if (status != NULL) free(*out_data);
  return status;
}

// The texts of a list come one behind the other, each with its zero. They become one, with commas between.
static void join(char* texts, size_t bytes) {
  for (size_t i = 0; i + 1 < bytes; ++i) {
    if (texts[i] == 0) texts[i] = ',';
  }
}

// Whether an attribute of ONNX Runtime's type can be read as one of the kind: a number may be a tensor, and a text a
// list of texts.
static bool has_kind(gcap_ort_attr_type_t type, gcap_attribute_kind_t kind) {
  return type_of(kind) == type || (type == GCAP_ORT_ATTR_TENSOR && kind == GCAP_ATTRIBUTE_FLOAT) ||
         (type == GCAP_ORT_ATTR_STRINGS && kind == GCAP_ATTRIBUTE_STRING);
}

static gcap_status_t read_tensor(const gcap_ort_host_t* host, const gcap_ort_op_attr_t* from,
                                 const gcap_ort_attribute_t* as, gcap_ort_node_model_t* m, gcap_ort_reason_t* out_why) {
  gcap_attribute_t* item = &m->items[m->attributes.count];
  *item = (gcap_attribute_t){.name = as->name};
  gcap_ort_value_t* tensor = NULL;
  bool is_number = false;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, OpAttr_GetTensorAttributeAsOrtValue(from, &tensor)));
  gcap_status_t status = gcap_ort_number_read(host, tensor, item, &is_number);
  host->api->ReleaseValue(tensor);
  if (is_number) ++m->attributes.count;
  if (!is_number) gcap_ort_reason_set(out_why, "the attribute %s, no number of one of gcap's types", as->name);
  return status;
}

static gcap_status_t read_attribute(const gcap_ort_host_t* host, const gcap_ort_op_attr_t* from,
                                    gcap_ort_attr_type_t type, const gcap_ort_attribute_t* as,
                                    gcap_ort_node_model_t* m) {
  gcap_attribute_t* item = &m->items[m->attributes.count];
  *item = (gcap_attribute_t){.name = as->name, .kind = as->kind};
  size_t bytes = 0;
  if (as->kind == GCAP_ATTRIBUTE_INT) {
    GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, ReadOpAttr(from, type, &item->i, sizeof(item->i), &bytes)));
  } else if (as->kind == GCAP_ATTRIBUTE_FLOAT) {
    GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, ReadOpAttr(from, type, &item->f, sizeof(item->f), &bytes)));
  } else {
    void* data = NULL;
    GCAP_RETURN_IF_ERROR(read_long(host, from, type, m, &data, &bytes));
    if (as->kind == GCAP_ATTRIBUTE_INTS) item->ints = data;
    if (as->kind == GCAP_ATTRIBUTE_INTS) item->count = bytes / sizeof(int64_t);
    if (as->kind == GCAP_ATTRIBUTE_STRING) item->string = data;
    if (type == GCAP_ORT_ATTR_STRINGS) join(data, bytes);
  }
  ++m->attributes.count;
  return NULL;
}

static gcap_status_t read_attributes(const gcap_ort_factory_t* factory, const gcap_ort_op_attr_t** from, size_t count,
                                     gcap_ort_node_model_t* m, gcap_ort_reason_t* out_why) {
  const gcap_ort_host_t* host = &factory->host;
  for (size_t i = 0; i < count; ++i) {
    const char* name = NULL;
    gcap_ort_attr_type_t type = GCAP_ORT_ATTR_UNDEFINED;
    GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, OpAttr_GetName(from[i], &name)));
    GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, OpAttr_GetType(from[i], &type)));
    const gcap_ort_attribute_t* as = listed(factory, name);
    if (as == NULL || !has_kind(type, as->kind)) {
      gcap_ort_reason_set(out_why, "the attribute %s%s", name, as != NULL ? ", of another kind" : "");
      return NULL;
    }
    GCAP_RETURN_IF_ERROR(type == GCAP_ORT_ATTR_TENSOR ? read_tensor(host, from[i], as, m, out_why)
                                                      : read_attribute(host, from[i], type, as, m));
    if (!gcap_ort_reason_is_empty(out_why)) return NULL;
  }
  return NULL;
}

// --- A node of a graph ----------------------------------------------------------------------------------------------

static gcap_status_t read_node(const gcap_ort_factory_t* factory, const gcap_ort_op_t* op, const gcap_ort_node_t* node,
                               size_t num_attributes, const gcap_ort_op_attr_t** attributes,
                               gcap_ort_node_model_t** out_model, gcap_ort_reason_t* out_why) {
  const gcap_ort_host_t* host = &factory->host;
  const char* name = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Node_GetName(node, &name)));
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, Node_GetAttributes(node, attributes, num_attributes)));
  gcap_ort_node_model_t* m = NULL;
  GCAP_RETURN_IF_ERROR(gcap_ort_node_create(name, op, num_attributes, &m));
  gcap_status_t status = read_inputs_and_outputs(host, node, m, out_why);
  if (status == NULL && gcap_ort_reason_is_empty(out_why)) {
    status = read_attributes(factory, attributes, num_attributes, m, out_why);
  }
  if (status == NULL && gcap_ort_reason_is_empty(out_why)) {
    *out_model = m;
    return NULL;
  }
  gcap_ort_node_free(m);
  return status;
}

gcap_status_t gcap_ort_node_read(const gcap_ort_factory_t* factory, const gcap_ort_op_t* op,
                                 const gcap_ort_node_t* node, gcap_ort_node_model_t** out_model,
                                 gcap_ort_reason_t* out_why) {
  *out_model = NULL;
  *out_why = (gcap_ort_reason_t){""};
  size_t num_attributes = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(&factory->host, Node_GetNumAttributes(node, &num_attributes)));
  const gcap_ort_op_attr_t** attributes = calloc(num_attributes + 1, sizeof(*attributes));
  if (attributes == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a node's attributes");
  gcap_status_t status = read_node(factory, op, node, num_attributes, attributes, out_model, out_why);
  free(attributes);
  return status;
}
