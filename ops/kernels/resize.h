// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// resize.h: launches resizes.
#ifndef GCAP_OPS_KERNELS_RESIZE_H_
#define GCAP_OPS_KERNELS_RESIZE_H_

#include <stdbool.h>

#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "ops/kernels/resize_kernels.h"

typedef enum gcap_resize_mode { GCAP_RESIZE_NEAREST, GCAP_RESIZE_LINEAR, GCAP_RESIZE_CUBIC } gcap_resize_mode_t;

// Which point of the input is that of an element of the output: ONNX's coordinate_transformation_mode.
typedef enum gcap_resize_coordinates {
  GCAP_RESIZE_HALF_PIXEL,
  GCAP_RESIZE_HALF_PIXEL_SYMMETRIC,
  GCAP_RESIZE_PYTORCH_HALF_PIXEL,
  GCAP_RESIZE_TF_HALF_PIXEL_FOR_NN,
  GCAP_RESIZE_ALIGN_CORNERS,
  GCAP_RESIZE_ASYMMETRIC,
} gcap_resize_coordinates_t;

typedef struct gcap_resize_options {
  gcap_resize_mode_t mode;
  gcap_resize_coordinates_t coordinates;
  int rounding;          // NEAREST: GCAP_RESIZE_FLOOR, …; -1: down where an axis grows, else up, as opset 10 has it
  float cubic_coeff;     // CUBIC
  bool exclude_outside;  // CUBIC
  const float* scales;   // of each axis of y to that of x; 1 where the axis is copied
} gcap_resize_options_t;

// y = x, resized. NEAREST takes any type, the others F32, F16 and BF16. x has no dimension of 0 where y has none.
//   INVALID_ARGUMENT  addresses, sizes or types that are none of these, or that overlap
//   CUDA_ERROR        the launch failed, or the device could not be made current
gcap_status_t gcap_resize(gcap_stream_t* stream, const gcap_resize_options_t* options, const gcap_tensor_t* x,
                          const gcap_tensor_t* y) GCAP_NODISCARD;

#endif  // GCAP_OPS_KERNELS_RESIZE_H_
