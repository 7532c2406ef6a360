// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Windows over images. No state.
#include "ops/kernels/image.h"

#include "ops/kernels/op_check.h"

gcap_image_strides_t gcap_image_strides_of(const gcap_tensor_t* tensor, bool is_nhwc) {
  const int64_t *size = tensor->shape, c = size[1], h = size[2], w = size[3];
  if (is_nhwc) return (gcap_image_strides_t){.image = h * w * c, .row = w * c, .column = c, .channel = 1};
  return (gcap_image_strides_t){.image = c * h * w, .channel = h * w, .row = w, .column = 1};
}

static gcap_window_side_t side_of(const gcap_image_problem_t* problem, int side) {
  return (gcap_window_side_t){.input = (int32_t)problem->x.shape[2 + side],
                              .output = (int32_t)problem->y.shape[2 + side],
                              .kernel = problem->kernel[side],
                              .stride = problem->stride[side],
                              .pad = problem->pad[side],
                              .dilation = problem->dilation[side]};
}

gcap_status_t gcap_image_plan(const gcap_image_problem_t* problem, gcap_image_window_t* out_window,
                              gcap_image_strides_t* out_strides) {
  GCAP_RETURN_IF_ERROR(gcap_check_dimensions("x", &problem->x));
  GCAP_RETURN_IF_ERROR(gcap_check_dimensions("y", &problem->y));
  const int64_t outputs = gcap_tensor_elements(&problem->y);
  *out_window = (gcap_image_window_t){.h = side_of(problem, 0),
                                      .w = side_of(problem, 1),
                                      .outputs = outputs,
                                      .channels = (int32_t)problem->y.shape[1],
                                      .is_nhwc = problem->is_nhwc,
                                      .narrow = outputs <= INT32_MAX};
  *out_strides = gcap_image_strides_of(&problem->x, problem->is_nhwc);
  return NULL;
}
