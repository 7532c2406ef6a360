// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// direct_pool.h: plans and launches direct poolings.
#ifndef GCAP_OPS_KERNELS_DIRECT_POOL_H_
#define GCAP_OPS_KERNELS_DIRECT_POOL_H_

#include "gcap/stream.h"
#include "ops/kernels/direct_pool_kernels.h"
#include "ops/kernels/image.h"

// Fills in the parameters but for the operands. `counted_end`: the pads behind the last row and column, which an
// average counts as zeros, as it does those before the first; NULL: it counts none.
//   INVALID_ARGUMENT  a tensor of more than 2^40 elements
gcap_status_t gcap_direct_pool_plan(const gcap_image_problem_t* problem, bool is_max, const int counted_end[2],
                                    gcap_direct_pool_params_t* out_params) GCAP_NODISCARD;

// Launches a pooling of the type on `stream`.
//   CUDA_ERROR  the launch failed, or the device could not be made current
gcap_status_t gcap_direct_pool(gcap_stream_t* stream, gcap_dtype_t dtype,
                               const gcap_direct_pool_params_t* params) GCAP_NODISCARD;

#endif  // GCAP_OPS_KERNELS_DIRECT_POOL_H_
