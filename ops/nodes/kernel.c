// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One kernel: a copy of its node, the types and shapes that it was made for, and its plan. Shapes are checked where the
// kernel is made, by inference, and compared at each computation: a plan that ran on others would go beyond its memory.
// What a run brings in host memory, as axes, is checked by inference at each computation.

#include <stdlib.h>

#include "gcap/kit/shape_inference.h"
#include "kit/model/node_copy.h"
#include "ops/nodes/op.h"

// --- Computing ------------------------------------------------------------------------------------------------------

static gcap_status_t check_tensor(const gcap_node_kernel_t* kernel, const char* role, int i,
                                  const gcap_tensor_t* tensor, const gcap_tensor_t* expected) {
  if (tensor->dtype != expected->dtype) {
    return GCAP_NODE_REFUSE(kernel->node, "%s %d is of type %s, the kernel was made for %s", role, i,
                            gcap_dtype_name(tensor->dtype), gcap_dtype_name(expected->dtype));
  }
  if (tensor->rank != expected->rank) {
    return GCAP_NODE_REFUSE(kernel->node, "%s %d has rank %d, the kernel was made for %d", role, i, tensor->rank,
                            expected->rank);
  }
  for (int d = 0; d < expected->rank; ++d) {
    if (tensor->shape[d] == expected->shape[d]) continue;
    return GCAP_NODE_REFUSE(kernel->node, "dimension %d of %s %d is %lld, the kernel was made for %lld", d, role, i,
                            (long long)tensor->shape[d], (long long)expected->shape[d]);
  }
  return NULL;
}

// Contents that give other shapes than the kernel's, or none.
static gcap_status_t check_contents(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  gcap_tensor_t made[GCAP_MAX_RANK];  // more outputs have no operator's shapes
  for (int i = 0; i < kernel->node->num_outputs; ++i) made[i] = kernel->outputs[i];
  return gcap_infer_shapes(kernel->node, context->inputs, made);
}

static gcap_status_t compute(void* self, const gcap_kernel_context_t* context) {
  const gcap_node_kernel_t* kernel = self;
  for (int i = 0; i < kernel->node->num_inputs; ++i) {
    GCAP_RETURN_IF_ERROR(check_tensor(kernel, "input", i, &context->inputs[i], &kernel->inputs[i]));
  }
  for (int i = 0; i < kernel->node->num_outputs; ++i) {
    GCAP_RETURN_IF_ERROR(check_tensor(kernel, "output", i, &context->outputs[i], &kernel->outputs[i]));
  }
  if (kernel->has_open_contents) GCAP_RETURN_IF_ERROR(check_contents(kernel, context));
  return kernel->op->compute(kernel, context);
}

// --- Making ---------------------------------------------------------------------------------------------------------

static void destroy(void* self) {
  gcap_node_kernel_t* kernel = self;
  if (kernel->plan != NULL) kernel->op->end_plan(kernel->plan);
  free(kernel->inputs);
  free(kernel->node);
  free(kernel);
}

static gcap_tensor_t tensor_of(const gcap_value_t* value) {
  gcap_tensor_t tensor = {.data = (void*)value->host_data, .dtype = value->dtype, .rank = value->rank};
  for (int d = 0; d < value->rank; ++d) tensor.shape[d] = value->shape[d];
  return tensor;
}

static gcap_status_t check_sizes(const gcap_node_t* node, const gcap_tensor_t* tensors, int count) {
  for (int i = 0; i < count; ++i) {
    for (int d = 0; d < tensors[i].rank; ++d) {
      if (tensors[i].shape[d] >= 0) continue;
      return GCAP_NODE_REFUSE(node, "dimension %d of value %d is %lld, allowed is 0 or more", d, i,
                              (long long)tensors[i].shape[d]);
    }
  }
  return NULL;
}

// The shapes of the model, checked with the content of constants, which may end before the kernel and is forgotten.
static gcap_status_t take_shapes(const gcap_model_t* model, const gcap_node_t* node, gcap_node_kernel_t* kernel) {
  const int count = node->num_inputs + node->num_outputs;
  gcap_tensor_t* tensors = malloc((size_t)count * sizeof(*tensors));
  if (tensors == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", node->name);
  kernel->inputs = tensors;
  kernel->outputs = tensors + node->num_inputs;
  for (int i = 0; i < node->num_inputs; ++i) kernel->inputs[i] = tensor_of(&model->values[node->inputs[i]]);
  for (int i = 0; i < node->num_outputs; ++i) kernel->outputs[i] = tensor_of(&model->values[node->outputs[i]]);
  GCAP_RETURN_IF_ERROR(check_sizes(node, tensors, count));
  GCAP_RETURN_IF_ERROR(gcap_infer_shapes(node, kernel->inputs, kernel->outputs));
  for (int i = 0; i < node->num_inputs; ++i) {
    kernel->has_open_contents |= kernel->inputs[i].data == NULL && gcap_node_op_reads_on_host(kernel->op, i);
  }
  for (int i = 0; i < count; ++i) tensors[i].data = NULL;
  return NULL;
}

static gcap_status_t make_plan(const gcap_node_kernels_t* kernels, const gcap_run_resources_t* resources,
                               gcap_node_kernel_t* kernel) {
  if (kernel->op->plan == NULL) return NULL;
  const gcap_node_planning_t planning = {.kernels = kernels,
                                         .resources = resources,
                                         .node = kernel->node,
                                         .inputs = kernel->inputs,
                                         .outputs = kernel->outputs};
  return kernel->op->plan(&planning, &kernel->plan);
}

gcap_status_t gcap_node_kernel_create(const gcap_node_kernels_t* kernels, const gcap_run_resources_t* resources,
                                      const gcap_node_op_t* op, const gcap_model_t* model, const gcap_node_t* node,
                                      gcap_kernel_t* out_kernel) {
  gcap_node_kernel_t* kernel = calloc(1, sizeof(*kernel));
  if (kernel == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for node '%s'", node->name);
  kernel->op = op;
  gcap_status_t status = gcap_node_copy(node, op->op_type, &kernel->node);
  if (status == NULL) status = take_shapes(model, node, kernel);
  if (status == NULL) status = make_plan(kernels, resources, kernel);
  if (status != NULL) {
    destroy(kernel);
    return status;
  }
  *out_kernel = (gcap_kernel_t){.self = kernel, .compute = compute, .destroy = destroy};
  return NULL;
}
