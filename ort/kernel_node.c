// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The node that a kernel is made for, as a gcap model of one node. ONNX Runtime describes it by other functions than a
// node of a graph: attributes are asked for by name, and what is not there is an error.
//
// Locking: none. A model is made by one thread, and only read afterwards.

#include "ort/kernel_node.h"

#include <stdlib.h>
#include <string.h>

#include "ort/devices.h"

// True if the call went well; what is not there is no failure.
static bool is_there(const gcap_ort_host_t* host, gcap_ort_status_t* status) {
  if (status != NULL) host->api->ReleaseStatus(status);
  return status == NULL;
}

static gcap_status_t no_memory(const gcap_ort_node_model_t* m) {
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the attributes of node '%s'", m->name);
}

static gcap_status_t read_ints(const gcap_ort_host_t* host, const gcap_ort_kernel_info_t* info,
                               gcap_ort_node_model_t* m, gcap_attribute_t* item, bool* out_there) {
  *out_there = is_there(host, host->api->KernelInfoGetAttributeArray_int64(info, item->name, NULL, &item->count));
  if (!*out_there) return NULL;
  int64_t* ints = calloc(item->count + 1, sizeof(*ints));
  if (ints == NULL) return no_memory(m);
  item->ints = ints;
  if (item->count == 0) return NULL;
  gcap_status_t status = GCAP_ORT_CALL(host, KernelInfoGetAttributeArray_int64(info, item->name, ints, &item->count));
  if (status != NULL) free(ints);
  return status;
}

static gcap_status_t read_string(const gcap_ort_host_t* host, const gcap_ort_kernel_info_t* info,
                                 gcap_ort_node_model_t* m, gcap_attribute_t* item, bool* out_there) {
  size_t bytes = 0;
  *out_there = is_there(host, host->api->KernelInfoGetAttribute_string(info, item->name, NULL, &bytes));
  if (!*out_there) return NULL;
  char* text = calloc(1, bytes + 1);
  if (text == NULL) return no_memory(m);
  item->string = text;
  gcap_status_t status = GCAP_ORT_CALL(host, KernelInfoGetAttribute_string(info, item->name, text, &bytes));
  if (status != NULL) free(text);
  return status;
}

// A number may be a tensor.
static gcap_status_t read_tensor(const gcap_ort_host_t* host, const gcap_ort_kernel_info_t* info,
                                 gcap_attribute_t* item, bool* out_there) {
  gcap_ort_allocator_t* allocator = NULL;
  gcap_ort_value_t* tensor = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, GetAllocatorWithDefaultOptions(&allocator)));
  *out_there = is_there(host, host->api->KernelInfoGetAttribute_tensor(info, item->name, allocator, &tensor));
  if (!*out_there) return NULL;
  gcap_status_t status = gcap_ort_number_read(host, tensor, item, out_there);
  host->api->ReleaseValue(tensor);
  return status;
}

static gcap_status_t read_attribute(const gcap_ort_host_t* host, const gcap_ort_kernel_info_t* info,
                                    const gcap_ort_attribute_t* as, gcap_ort_node_model_t* m) {
  gcap_attribute_t* item = &m->items[m->attributes.count];
  *item = (gcap_attribute_t){.name = as->name, .kind = as->kind};
  bool there = false;
  switch (as->kind) {
    case GCAP_ATTRIBUTE_INT:
      there = is_there(host, host->api->KernelInfoGetAttribute_int64(info, as->name, &item->i));
      break;
    case GCAP_ATTRIBUTE_FLOAT:
      there = is_there(host, host->api->KernelInfoGetAttribute_float(info, as->name, &item->f));
      if (!there) GCAP_RETURN_IF_ERROR(read_tensor(host, info, item, &there));
      break;
    case GCAP_ATTRIBUTE_INTS: GCAP_RETURN_IF_ERROR(read_ints(host, info, m, item, &there)); break;
    case GCAP_ATTRIBUTE_STRING: GCAP_RETURN_IF_ERROR(read_string(host, info, m, item, &there)); break;
  }
  if (there) ++m->attributes.count;
  return NULL;
}

// Reads one value; `*out_there` is false for an optional one that is left out, as which the value then stands.
static gcap_status_t read_value(const gcap_ort_host_t* host, gcap_ort_status_t* asked, gcap_ort_type_info_t* type,
                                gcap_value_t* value, bool* out_there) {
  gcap_status_t status = NULL;
  *out_there = is_there(host, asked) && type != NULL;
  if (*out_there) {
    gcap_ort_reason_t why;
    status = gcap_ort_value_read(host, type, value, &why);
    *out_there = gcap_ort_reason_is_empty(&why);
    host->api->ReleaseTypeInfo(type);
  }
  if (!*out_there) gcap_ort_value_leave_out(value);
  return status;
}

// ONNX Runtime keeps a constant that another node reads on the device there alone, and copies it to the host in each
// run: then the content is not known before the run.
static gcap_status_t read_constant(gcap_ort_factory_t* factory, const gcap_ort_kernel_info_t* info, size_t input,
                                   gcap_ort_node_model_t* m) {
  const gcap_ort_host_t* host = &factory->host;
  int constant = 0;
  const gcap_ort_value_t* content = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, KernelInfoGetConstantInput_tensor(info, input, &constant, &content)));
  if (constant == 0) return NULL;
  gcap_memory_t memory = {.kind = GCAP_MEMORY_HOST};
  gcap_ort_memory_of(factory, host->ep_api->Value_GetMemoryDevice(content), &memory);
  if (gcap_memory_is_on_host(memory)) return GCAP_ORT_CALL(host, GetTensorData(content, &m->values[input].host_data));
  m->hidden_constants |= UINT32_C(1) << input;  // a bit of host_inputs
  return NULL;
}

// Those that are left out at the end do not count.
static gcap_status_t read_inputs(gcap_ort_factory_t* factory, const gcap_ort_op_t* op,
                                 const gcap_ort_kernel_info_t* info, gcap_ort_node_model_t* m, int* out_count) {
  const gcap_ort_host_t* host = &factory->host;
  size_t count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, KernelInfo_GetInputCount(info, &count)));
  *out_count = 0;
  for (size_t i = 0; i < count; ++i) {
    bool there = false;
    gcap_value_t* value = &m->values[i];
    gcap_ort_type_info_t* type = NULL;
    value->name = "input";
    gcap_ort_status_t* asked = host->api->KernelInfo_GetInputTypeInfo(info, i, &type);
    GCAP_RETURN_IF_ERROR(read_value(host, asked, type, value, &there));
    if (there) *out_count = (int)i + 1;
    if (there && gcap_ort_reads_on_host(op->host_inputs, (int)i)) {
      GCAP_RETURN_IF_ERROR(read_constant(factory, info, i, m));
    }
  }
  return NULL;
}

static gcap_status_t read_outputs(const gcap_ort_host_t* host, const gcap_ort_kernel_info_t* info, gcap_value_t* values,
                                  int* out_count) {
  size_t count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(host, KernelInfo_GetOutputCount(info, &count)));
  *out_count = 0;
  for (size_t i = 0; i < count; ++i) {
    bool there = false;
    gcap_ort_type_info_t* type = NULL;
    values[i].name = "output";
    gcap_ort_status_t* asked = host->api->KernelInfo_GetOutputTypeInfo(info, i, &type);
    GCAP_RETURN_IF_ERROR(read_value(host, asked, type, &values[i], &there));
    if (there) *out_count = (int)i + 1;
  }
  return NULL;
}

static gcap_status_t read_all(gcap_ort_factory_t* factory, const gcap_ort_op_t* op, const gcap_ort_kernel_info_t* info,
                              gcap_ort_node_model_t* m) {
  const gcap_ort_host_t* host = &factory->host;
  int num_inputs = 0, num_outputs = 0;
  GCAP_RETURN_IF_ERROR(read_inputs(factory, op, info, m, &num_inputs));
  GCAP_RETURN_IF_ERROR(read_outputs(host, info, m->values + num_inputs, &num_outputs));
  gcap_ort_node_complete(m, num_inputs, num_outputs);
  for (const gcap_ort_attribute_t* a = factory->plugin->attributes; a->name != NULL; ++a) {
    GCAP_RETURN_IF_ERROR(read_attribute(host, info, a, m));
  }
  return NULL;
}

gcap_status_t gcap_ort_node_read_kernel(gcap_ort_factory_t* factory, const gcap_ort_op_t* op,
                                        const gcap_ort_kernel_info_t* info, gcap_ort_node_model_t** out_model) {
  const gcap_ort_host_t* host = &factory->host;
  *out_model = NULL;
  size_t max_attributes = 0, bytes = 0;
  while (factory->plugin->attributes[max_attributes].name != NULL) ++max_attributes;
  gcap_ort_status_t* asked = host->api->KernelInfo_GetNodeName(info, NULL, &bytes);
  if (asked != NULL) host->api->ReleaseStatus(asked);
  char* name = calloc(1, bytes + 1);
  if (name == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a node's name");
  gcap_status_t status = GCAP_ORT_CALL(host, KernelInfo_GetNodeName(info, name, &bytes));
  gcap_ort_node_model_t* m = NULL;
  if (status == NULL) status = gcap_ort_node_create(name, op, max_attributes, &m);
  free(name);
  if (status == NULL) status = read_all(factory, op, info, m);
  if (status != NULL) {
    gcap_ort_node_free(m);
    return status;
  }
  *out_model = m;
  return NULL;
}
