// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The parameters and the launch of direct convolutions. No state.
#include "ops/kernels/direct_conv.h"

#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

// Few, so that a small convolution is spread over many multiprocessors.
enum { BLOCK_THREADS = 64 };

gcap_status_t gcap_direct_conv_plan(const gcap_image_problem_t* problem, const gcap_tensor_t* weight, bool relu,
                                    gcap_direct_conv_params_t* out_params) {
  const int64_t groups = problem->x.shape[1] / weight->shape[1];
  gcap_direct_conv_params_t params = {
      .group_maps = (int32_t)(problem->y.shape[1] / groups), .group_channels = (int32_t)weight->shape[1], .relu = relu};
  GCAP_RETURN_IF_ERROR(gcap_image_plan(problem, &params.window, &params.x_strides));
  GCAP_RETURN_IF_ERROR(gcap_check_dimensions("weight", weight));
  params.weight_strides = gcap_image_strides_of(weight, problem->is_nhwc);
  *out_params = params;
  return NULL;
}

#define ENTRY(T) [GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_direct_conv_##T,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_DIRECT_CONV_KERNELS(ENTRY)};

gcap_status_t gcap_direct_conv(gcap_stream_t* stream, gcap_dtype_t dtype, const gcap_direct_conv_params_t* params) {
  gcap_direct_conv_params_t given = *params;  // a launch's arguments are not const
  return gcap_op_launch(stream, kernels[dtype], given.window.outputs, BLOCK_THREADS, BLOCK_THREADS, &given);
}
