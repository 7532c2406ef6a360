// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The parameters and the launch of direct convolutions. No state.
#include "ops/kernels/direct_conv.h"

#include "ops/kernels/op_check.h"
#include "ops/kernels/op_launch.h"

// Few, so that a small convolution is spread over many multiprocessors.
enum { BLOCK_THREADS = 64 };

// The distances between neighbours along n, c, h and w.
static void strides_of(const gcap_tensor_t* tensor, bool is_nhwc, int64_t strides[4]) {
  static const int nchw[] = {3, 2, 1, 0}, nhwc[] = {1, 3, 2, 0};
  const int* order = is_nhwc ? nhwc : nchw;
  int64_t stride = 1;
  for (int i = 0; i < 4; ++i) {
    strides[order[i]] = stride;
    stride *= tensor->shape[order[i]];
  }
}

static gcap_direct_conv_side_t side_of(const gcap_direct_conv_problem_t* problem, int side) {
  const int axis = 2 + side;
  return (gcap_direct_conv_side_t){.input = (int32_t)problem->x.shape[axis],
                                   .output = (int32_t)problem->y.shape[axis],
                                   .kernel = (int32_t)problem->weight.shape[axis],
                                   .stride = problem->stride[side],
                                   .pad = problem->pad[side],
                                   .dilation = problem->dilation[side]};
}

gcap_status_t gcap_direct_conv_plan(const gcap_direct_conv_problem_t* problem, gcap_direct_conv_params_t* out_params) {
  const gcap_tensor_t *x = &problem->x, *weight = &problem->weight, *y = &problem->y;
  GCAP_RETURN_IF_ERROR(gcap_check_dimensions("x", x));
  GCAP_RETURN_IF_ERROR(gcap_check_dimensions("weight", weight));
  GCAP_RETURN_IF_ERROR(gcap_check_dimensions("y", y));
  int64_t of_x[4], of_weight[4];
  strides_of(x, problem->is_nhwc, of_x);
  strides_of(weight, problem->is_nhwc, of_weight);
  const int64_t groups = x->shape[1] / weight->shape[1];
  *out_params = (gcap_direct_conv_params_t){.outputs = gcap_tensor_elements(y),
                                            .narrow = gcap_tensor_elements(y) <= INT32_MAX,
                                            .is_nhwc = problem->is_nhwc,
                                            .relu = problem->relu,
                                            .maps = (int32_t)y->shape[1],
                                            .group_maps = (int32_t)(y->shape[1] / groups),
                                            .group_channels = (int32_t)weight->shape[1],
                                            .h = side_of(problem, 0),
                                            .w = side_of(problem, 1),
                                            .x_image = of_x[0],
                                            .x_channel = of_x[1],
                                            .x_row = of_x[2],
                                            .x_column = of_x[3],
                                            .weight_map = of_weight[0],
                                            .weight_channel = of_weight[1],
                                            .weight_row = of_weight[2],
                                            .weight_column = of_weight[3]};
  return NULL;
}

#define ENTRY(T) [GCAP_DTYPE_OF_##T] = (const void*)gcap_kernel_direct_conv_##T,
static const void* const kernels[GCAP_NUM_DTYPES] = {GCAP_DIRECT_CONV_KERNELS(ENTRY)};

gcap_status_t gcap_direct_conv(gcap_stream_t* stream, gcap_dtype_t dtype, const gcap_direct_conv_params_t* params) {
  gcap_direct_conv_params_t given = *params;  // a launch's arguments are not const
  return gcap_op_launch(stream, kernels[dtype], given.outputs, BLOCK_THREADS, BLOCK_THREADS, &given);
}
