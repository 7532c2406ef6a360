// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// direct_conv.h: plans and launches direct convolutions.
#ifndef GCAP_OPS_KERNELS_DIRECT_CONV_H_
#define GCAP_OPS_KERNELS_DIRECT_CONV_H_

#include <stdbool.h>

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "ops/kernels/direct_conv_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// A convolution of images, NCHW or NHWC: shapes are n, c, h, w; that of the weight is k, c/groups, kernel_h, kernel_w.
typedef struct gcap_direct_conv_problem {
  gcap_tensor_t x, weight, y;          // of one type, F32, F16 or BF16; no data; no dimension is 0
  int stride[2], pad[2], dilation[2];  // of h and w; pads before the first row and column
  bool is_nhwc, relu;
} gcap_direct_conv_problem_t;

// Fills in the parameters but for the operands. The numbers fit each other.
//   INVALID_ARGUMENT  a tensor of more than 2^40 elements
gcap_status_t gcap_direct_conv_plan(const gcap_direct_conv_problem_t* problem,
                                    gcap_direct_conv_params_t* out_params) GCAP_NODISCARD;

// Launches a convolution of the type on `stream`.
//   CUDA_ERROR  the launch failed, or the device could not be made current
gcap_status_t gcap_direct_conv(gcap_stream_t* stream, gcap_dtype_t dtype,
                               const gcap_direct_conv_params_t* params) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_DIRECT_CONV_H_
