// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// direct_conv.h: plans and launches direct convolutions.
#ifndef GCAP_OPS_KERNELS_DIRECT_CONV_H_
#define GCAP_OPS_KERNELS_DIRECT_CONV_H_

#include "gcap/stream.h"
#include "ops/kernels/direct_conv_kernels.h"
#include "ops/kernels/image.h"

#ifdef __cplusplus
extern "C" {
#endif

// Fills in the parameters but for the operands. `weight` has the shape k, c/groups, kernel_h, kernel_w, the type and
// the layout of the images.
//   INVALID_ARGUMENT  a tensor of more than 2^40 elements
gcap_status_t gcap_direct_conv_plan(const gcap_image_problem_t* problem, const gcap_tensor_t* weight, bool relu,
                                    gcap_direct_conv_params_t* out_params) GCAP_NODISCARD;

// Launches a convolution of the type on `stream`.
//   CUDA_ERROR  the launch failed, or the device could not be made current
gcap_status_t gcap_direct_conv(gcap_stream_t* stream, gcap_dtype_t dtype,
                               const gcap_direct_conv_params_t* params) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_DIRECT_CONV_H_
