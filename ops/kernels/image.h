// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// image.h: what plans of kernels with a window are made from.
#ifndef GCAP_OPS_KERNELS_IMAGE_H_
#define GCAP_OPS_KERNELS_IMAGE_H_

#include <stdbool.h>

#include "gcap/status.h"
#include "gcap/tensor.h"
#include "ops/kernels/image_window.h"

#ifdef __cplusplus
extern "C" {
#endif

// A window over images, NCHW or NHWC, whose numbers fit each other. No dimension is 0.
typedef struct gcap_image_problem {
  gcap_tensor_t x, y;                             // n, c, h, w; of one type, F32, F16 or BF16; no data
  int kernel[2], stride[2], pad[2], dilation[2];  // of h and w; pads before the first row and column
  bool is_nhwc;
} gcap_image_problem_t;

// Makes the window, and the distances in x.
//   INVALID_ARGUMENT  a tensor of more than 2^40 elements
gcap_status_t gcap_image_plan(const gcap_image_problem_t* problem, gcap_image_window_t* out_window,
                              gcap_image_strides_t* out_strides) GCAP_NODISCARD;

// The distances in a dense tensor of n, c, h, w.
gcap_image_strides_t gcap_image_strides_of(const gcap_tensor_t* tensor, bool is_nhwc);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_IMAGE_H_
