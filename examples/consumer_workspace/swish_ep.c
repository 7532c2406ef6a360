// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The EP's kernel goes to the stream of the run, in whatever run it is: so the run can be captured. Nothing is shared,
// so nothing is locked.
#include "swish_ep.h"

#include <string.h>

#include "gcap/kit/ep_ops.h"
#include "kernels/swish.h"

static bool supports(void* self, const gcap_model_t* model, const gcap_node_t* node) {
  (void)self;
  if (strcmp(node->op_type, "Swish") != 0 || node->num_inputs != 1 || node->num_outputs != 1) return false;
  return model->values[node->inputs[0]].dtype == GCAP_DTYPE_F32;
}

static gcap_status_t compute(void* self, const gcap_kernel_context_t* context) {
  (void)self;
  const float* x = context->inputs[0].data;
  float *y = context->outputs[0].data, beta = SWISH_EP_BETA;
  int64_t count = gcap_tensor_elements(&context->outputs[0]);
  const dim3 grid = {(unsigned)((count + SWISH_BLOCK_THREADS - 1) / SWISH_BLOCK_THREADS), 1, 1};
  const dim3 block = {SWISH_BLOCK_THREADS, 1, 1};
  void* args[] = {&x, &y, &count, &beta};
  return GCAP_CUDA(cudaLaunchKernel((const void*)swish_kernel, grid, block, args, /*sharedMem=*/0,
                                    gcap_stream_handle(context->resources.stream)));
}

static void destroy_kernel(void* self) { (void)self; }

static gcap_status_t create_kernel(void* self, const gcap_model_t* model, const gcap_node_t* node,
                                   gcap_kernel_t* out_kernel) {
  (void)self, (void)model, (void)node;
  *out_kernel = (gcap_kernel_t){.compute = compute, .destroy = destroy_kernel};
  return NULL;
}

gcap_status_t swish_ep_create(const gcap_options_t* options, gcap_ep_t** out_ep) {
  *out_ep = NULL;
  gcap_runtime_t* runtime = NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_create(options, &runtime));
  const gcap_ep_ops_t ops = {.struct_size = sizeof(ops),
                             .name = "swish",
                             .supports = supports,
                             .create_kernel = create_kernel,
                             .runtime = runtime};
  gcap_status_t status = gcap_ep_create(&ops, out_ep);
  return status == NULL ? NULL : gcap_status_join(status, gcap_runtime_destroy(runtime));
}
