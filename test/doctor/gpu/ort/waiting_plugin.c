// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A plugin EP of ONNX Runtime with a kernel that misbehaves: Relu copies its input, which has no negative number, and
// then waits for the stream, in a capture too. gcap-doctor is to name wait_for_result.
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "gcap/kit/ep_ops.h"
#include "gcap/kit/ort.h"
#include "gcap/kit/shape_inference.h"
#include "gcap/runtime.h"

static __attribute__((noinline)) gcap_status_t wait_for_result(cudaStream_t stream) {
  gcap_status_t status = GCAP_CUDA(cudaStreamSynchronize(stream));
  return status;
}

static gcap_status_t compute(void* self, const gcap_kernel_context_t* context) {
  (void)self;
  cudaStream_t stream = gcap_stream_handle(context->resources.stream);
  const gcap_tensor_t* x = &context->inputs[0];
  const size_t bytes = gcap_tensor_bytes(x);
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDA(cudaMemcpyAsync(context->outputs[0].data, x->data, bytes, cudaMemcpyDeviceToDevice, stream)));
  gcap_status_t status = wait_for_result(stream);
  return status;
}

static bool supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  (void)self, (void)model;
  return strcmp(node->op_type, "Relu") == 0;
}

static gcap_status_t create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                   gcap_kernel_t* out_kernel) {
  (void)self, (void)model, (void)node;
  *out_kernel = (gcap_kernel_t){.compute = compute};
  return NULL;
}

static gcap_status_t infer_shapes(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                  const gcap_tensor_t* inputs, gcap_tensor_t* outputs) {
  (void)self, (void)model;
  return gcap_infer_shapes(node, inputs, outputs);
}

static gcap_status_t destroy(void* self) { return gcap_runtime_destroy(self); }

static gcap_status_t create_ep(void* user, const gcap_options_t* options, gcap_ep_t** out_ep) {
  (void)user;
  *out_ep = NULL;
  gcap_runtime_t* runtime = NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_create(options, &runtime));
  const gcap_ep_ops_t members = {
      .struct_size = sizeof(gcap_ep_ops_t),
      .name = "waiting",
      .self = runtime,
      .supports = supports,
      .create_kernel = create_kernel,
      .infer_shapes = infer_shapes,
      .destroy = destroy,
      .runtime = runtime,
  };
  gcap_status_t status = gcap_ep_create(&members, out_ep);
  if (status != NULL) return gcap_status_join(status, gcap_runtime_destroy(runtime));
  return NULL;
}

static const gcap_ort_op_t ops[] = {{.op_type = "Relu", .first = 1, .last = GCAP_ORT_ANY_LATER_OPSET}, {0}};
static const gcap_ort_attribute_t attributes[] = {{0}};

static const gcap_ort_plugin_t plugin = {
    .struct_size = sizeof(gcap_ort_plugin_t),
    .name = "waiting",
    .vendor = "the gcap authors",
    .version = "0.1.0",
    .create_ep = create_ep,
    .ops = ops,
    .attributes = attributes,
};

GCAP_ORT_DEFINE_PLUGIN(&plugin)
