// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Convolutions by gcap's own kernel: which, and what it is given. No state.
#include "ops/cudnn/conv2d_plan.h"

// The kernel has a thread for each output, which adds the output's terms one after another. What it saves is the host's
// time: a launch takes 3 to 4 us, a call of cuDNN 28 to 73 us. Within these limits the GPU takes no longer than with
// cuDNN, or up to 8 % longer, so that a replay loses nothing, on an H200 (//bench/ops:conv_bench; docs/gpu_runs.md).
// Beyond: 256 terms of 1 x 1 windows take twice the time, 65,536 outputs 1.25 times, windows of 5 x 5 1.8 times,
// channels last 1.6 times.
#define MAX_TERMS 160
#define MAX_TAPS 9
#define MAX_OUTPUTS (32 * 1024)

// Stops before a product could overflow.
static bool is_at_most(int64_t limit, const int* factors, int count) {
  int64_t product = 1;
  for (int i = 0; i < count; ++i) {
    product *= factors[i];
    if (product > limit) return false;
  }
  return true;
}

static bool is_small(const gcap_conv2d_options_t* o, const int y_shape[4]) {
  const int terms[] = {o->kernel_h, o->kernel_w, o->c / o->groups};
  return o->layout == GCAP_IMAGE_NCHW && is_at_most(MAX_TAPS, terms, 2) && is_at_most(MAX_TERMS, terms, 3) &&
         is_at_most(MAX_OUTPUTS, y_shape, 4);
}

bool gcap_conv2d_choose_direct(const gcap_conv2d_t* conv) {
  const gcap_conv2d_options_t* o = &conv->options;
  if (conv->is_volume) return false;
  if (o->direct != GCAP_CONV2D_DIRECT_AUTO) return o->direct == GCAP_CONV2D_DIRECT_ALWAYS;
  return is_small(o, conv->output_shape);
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
