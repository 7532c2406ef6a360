// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Two kernels and a table; the runtime does the rest. Neither the EP nor a kernel has anything of its own, so each
// `self` is NULL. (The lesson on EPs is examples/write_your_own_ep.)
#include "examples/lesson_ep/lesson_ep.h"

#include <string.h>

#include "gcap/kit/ep_ops.h"
#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/shape_inference.h"

static bool is_add(const gcap_node_t* node) { return strcmp(node->op_type, "Add") == 0 && node->num_inputs == 2; }

static bool is_reshape(const gcap_node_t* node) {
  return strcmp(node->op_type, "Reshape") == 0 && node->num_inputs == 2;
}

static bool supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  (void)self;
  if (!is_add(node) && !is_reshape(node)) return false;
  const gcap_dtype_t of_second = is_add(node) ? GCAP_DTYPE_F32 : GCAP_DTYPE_I64;
  return model->values[node->inputs[0]].dtype == GCAP_DTYPE_F32 && model->values[node->inputs[1]].dtype == of_second &&
         model->values[node->outputs[0]].dtype == GCAP_DTYPE_F32;
}

static gcap_input_place_t input_place(void* self, const gcap_model_t* model, const gcap_node_t* node, int input) {
  (void)self;
  (void)model;
  return is_reshape(node) && input == 1 ? GCAP_INPUT_IN_HOST_MEMORY : GCAP_INPUT_IN_EP_MEMORY;
}

static gcap_status_t infer_shapes(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                  const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  (void)self;
  (void)model;
  return gcap_infer_shapes(node, inputs, outputs);
}

static gcap_status_t add(void* self, const gcap_kernel_context_t* context) {
  (void)self;
  return gcap_binary(context->resources.stream, GCAP_BINARY_ADD, &context->inputs[0], &context->inputs[1],
                     &context->outputs[0]);
}

static gcap_status_t reshape(void* self, const gcap_kernel_context_t* context) {
  (void)self;
  const gcap_tensor_t* y = &context->outputs[0];
  return GCAP_CUDA(cudaMemcpyAsync(y->data, context->inputs[0].data, gcap_tensor_bytes(y), cudaMemcpyDeviceToDevice,
                                   gcap_stream_handle(context->resources.stream)));
}

static gcap_status_t create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                   gcap_kernel_t* out_kernel) {
  (void)self;
  (void)model;
  *out_kernel = (gcap_kernel_t){.compute = is_add(node) ? add : reshape};
  return NULL;
}

static gcap_graph_node_policy_t all_nodes_on_ep(const void* self) {
  (void)self;
  return GCAP_GRAPH_ALL_NODES_ON_EP;
}

static gcap_graph_node_policy_t allow_cpu_for_shapes(const void* self) {
  (void)self;
  return GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES;
}

static gcap_graph_node_policy_t allow_holes(const void* self) {
  (void)self;
  return GCAP_GRAPH_ALLOW_HOLES;
}

static gcap_graph_node_policy_t (*const policies[])(const void*) = {
    [GCAP_GRAPH_ALL_NODES_ON_EP] = all_nodes_on_ep,
    [GCAP_GRAPH_ALLOW_CPU_FOR_SHAPES] = allow_cpu_for_shapes,
    [GCAP_GRAPH_ALLOW_HOLES] = allow_holes,
};

gcap_status_t lesson_ep_create(const char* const* keys, const char* const* values, size_t num_options,
                               gcap_graph_node_policy_t policy, gcap_ep_t** out_ep) {
  *out_ep = NULL;
  gcap_options_t options;
  gcap_options_init(&options);
  GCAP_RETURN_IF_ERROR(gcap_options_parse_for_ep(&options, "lesson", keys, values, num_options));
  gcap_runtime_t* runtime = NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_create(&options, &runtime));
  const gcap_ep_ops_t ops = {
      .struct_size = sizeof(gcap_ep_ops_t),
      .name = "lesson",
      .supports = supports,
      .create_kernel = create_kernel,
      .input_place = input_place,
      .infer_shapes = infer_shapes,
      .graph_capture_node_assignment_policy = policies[policy],
      .runtime = runtime,
  };
  gcap_status_t status = gcap_ep_create(&ops, out_ep);
  if (status != NULL) status = gcap_status_join(status, gcap_runtime_destroy(runtime));
  return status;
}
