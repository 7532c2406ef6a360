// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A kernel checks its tensors at each computation: against the types of its node, and against the shapes that the
// inputs give, contents included. What an operator's function gets is then always right, and the function needs no
// check of its own but of what it reads element by element.

#include "kit/cpu_ep/kernel.h"

#include <stdlib.h>

#include "gcap/kit/shape_inference.h"
#include "kit/model/node_copy.h"

typedef struct kernel {
  const gcap_cpu_op_t* op;
  gcap_node_t* node;
  gcap_dtype_t output_dtype;
  gcap_dtype_t input_dtypes[];
} kernel_t;

static gcap_tensor_t tensor_of(const gcap_value_t* value) {
  gcap_tensor_t tensor = {.data = (void*)value->host_data, .dtype = value->dtype, .rank = value->rank};
  for (int i = 0; i < GCAP_MAX_RANK; ++i) tensor.shape[i] = value->shape[i];
  return tensor;
}

// --- Checks of tensors ------------------------------------------------------------------------------------------------

static gcap_status_t check_type(const kernel_t* kernel, const char* role, int i, const gcap_tensor_t* tensor,
                                gcap_dtype_t expected) {
  if (tensor->dtype == expected) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s' (%s): %s %d is of type %s, the node's is of type %s",
                     kernel->node->name, kernel->node->op_type, role, i, gcap_dtype_name(tensor->dtype),
                     gcap_dtype_name(expected));
}

static gcap_status_t check_memory(const kernel_t* kernel, const char* role, int i, const gcap_tensor_t* tensor) {
  if (tensor->data != NULL || gcap_tensor_elements(tensor) == 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s' (%s): %s %d has %lld elements at NULL", kernel->node->name,
                     kernel->node->op_type, role, i, (long long)gcap_tensor_elements(tensor));
}

// A host fixes all sizes before it runs.
static gcap_status_t check_sizes(const kernel_t* kernel, const gcap_tensor_t* output) {
  for (int i = 0; i < output->rank; ++i) {
    if (output->shape[i] >= 0) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "node '%s' (%s): dimension %d of output 0 is %lld, allowed is 0 or more",
                       kernel->node->name, kernel->node->op_type, i, (long long)output->shape[i]);
  }
  return NULL;
}

// Inference also checks shapes, so nothing is counted before it. It reads a content only where there is one.
static gcap_status_t check(const kernel_t* kernel, const gcap_kernel_context_t* context) {
  for (int i = 0; i < kernel->node->num_inputs; ++i) {
    GCAP_RETURN_IF_ERROR(check_type(kernel, "input", i, &context->inputs[i], kernel->input_dtypes[i]));
  }
  GCAP_RETURN_IF_ERROR(check_type(kernel, "output", 0, &context->outputs[0], kernel->output_dtype));
  gcap_tensor_t made = context->outputs[0];
  GCAP_RETURN_IF_ERROR(gcap_infer_shapes(kernel->node, context->inputs, &made));
  GCAP_RETURN_IF_ERROR(check_sizes(kernel, &context->outputs[0]));
  for (int i = 0; i < kernel->node->num_inputs; ++i) {
    if (gcap_cpu_op_reads_shape_only(kernel->op, i)) continue;
    GCAP_RETURN_IF_ERROR(check_memory(kernel, "input", i, &context->inputs[i]));
  }
  return check_memory(kernel, "output", 0, &context->outputs[0]);
}

static gcap_status_t compute(void* self, const gcap_kernel_context_t* context) {
  const kernel_t* kernel = self;
  GCAP_RETURN_IF_ERROR(check(kernel, context));
  const gcap_cpu_call_t call = {
      .op = kernel->op, .node = kernel->node, .inputs = context->inputs, .output = &context->outputs[0]};
  return kernel->op->compute(&call);
}

// --- Making -----------------------------------------------------------------------------------------------------------

static void destroy(void* self) {
  kernel_t* kernel = self;
  free(kernel->node);
  free(kernel);
}

// Checks the shapes of the model, with the content of constants.
static gcap_status_t check_model(const gcap_model_t* model, const gcap_node_t* node) {
  const size_t count = (size_t)node->num_inputs;
  gcap_tensor_t* inputs = malloc(count * sizeof(*inputs));
  if (inputs == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", node->name);
  for (size_t i = 0; i < count; ++i) inputs[i] = tensor_of(&model->values[node->inputs[i]]);
  gcap_tensor_t output = tensor_of(&model->values[node->outputs[0]]);
  gcap_status_t status = gcap_infer_shapes(node, inputs, &output);
  free(inputs);
  return status;
}

gcap_status_t gcap_cpu_kernel_create(const gcap_cpu_op_t* op, const gcap_model_t* model, const gcap_node_t* node,
                                     gcap_kernel_t* out_kernel) {
  GCAP_RETURN_IF_ERROR(check_model(model, node));
  kernel_t* kernel = malloc(sizeof(*kernel) + (size_t)node->num_inputs * sizeof(kernel->input_dtypes[0]));
  if (kernel == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", node->name);
  kernel->op = op;
  gcap_status_t status = gcap_node_copy(node, op->op_type, &kernel->node);
  if (status != NULL) {
    free(kernel);
    return status;
  }
  kernel->output_dtype = model->values[node->outputs[0]].dtype;
  for (int i = 0; i < node->num_inputs; ++i) kernel->input_dtypes[i] = model->values[node->inputs[i]].dtype;
  *out_kernel = (gcap_kernel_t){.self = kernel, .compute = compute, .destroy = destroy};
  return NULL;
}
