// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Convolutions by gcap's own kernel: which, and what it is given. No state.
#include "ops/cudnn/conv2d_plan.h"

// The kernel has a thread for each output, which adds the output's terms one after another: the number of terms decides
// how long a convolution takes that does not fill the GPU, the number of all products how long one takes that does. Up
// to these limits, which are estimates (//bench/ops:conv_bench measures), the kernel should take no longer than
// cuDNN's; what is saved is the host's time, of which a launch takes far less than a call of cuDNN.
#define MAX_TERMS 256.0
#define MAX_PRODUCTS (4.0 * 1024 * 1024)

// In double, where no product overflows.
static bool is_small(const gcap_conv2d_options_t* o, const int y_shape[4]) {
  const double terms = (double)o->kernel_h * o->kernel_w * (o->c / o->groups);
  const double outputs = (double)y_shape[0] * y_shape[1] * y_shape[2] * y_shape[3];
  return terms <= MAX_TERMS && outputs * terms <= MAX_PRODUCTS;
}

bool gcap_conv2d_choose_direct(const gcap_conv2d_options_t* options, const int y_shape[4]) {
  if (options->direct != GCAP_CONV2D_DIRECT_AUTO) return options->direct == GCAP_CONV2D_DIRECT_ALWAYS;
  return is_small(options, y_shape);
}

gcap_status_t gcap_conv2d_plan_direct(gcap_conv2d_t* conv) {
  const gcap_conv2d_options_t* o = &conv->options;
  const int* y = conv->output_shape;
  const gcap_image_problem_t problem = {.x = {.dtype = o->dtype, .rank = 4, .shape = {o->n, o->c, o->h, o->w}},
                                        .y = {.dtype = o->dtype, .rank = 4, .shape = {y[0], y[1], y[2], y[3]}},
                                        .kernel = {o->kernel_h, o->kernel_w},
                                        .stride = {o->stride_h, o->stride_w},
                                        .pad = {o->pad_h, o->pad_w},
                                        .dilation = {o->dilation_h, o->dilation_w},
                                        .is_nhwc = o->layout == GCAP_IMAGE_NHWC};
  const gcap_tensor_t weight = {
      .dtype = o->dtype, .rank = 4, .shape = {o->k, o->c / o->groups, o->kernel_h, o->kernel_w}};
  return gcap_direct_conv_plan(&problem, &weight, o->relu, &conv->direct);
}
