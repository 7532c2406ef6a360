// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// matmul_integer.h: products of matrices of 8-bit integers.
#ifndef GCAP_OPS_KERNELS_MATMUL_INTEGER_H_
#define GCAP_OPS_KERNELS_MATMUL_INTEGER_H_

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// y = (a - a_zero_point) * (b - b_zero_point), as NumPy's matmul. a and b are i8 or u8, y is i32, whose sums wrap
// around. A zero point is of its operand's type: one element, or [rows] of a, [columns] of b; NULL: 0.
//   INVALID_ARGUMENT  types or shapes that are not as said above; the message names them
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
gcap_status_t gcap_matmul_integer(gcap_stream_t* stream, const gcap_tensor_t* a, const gcap_tensor_t* b,
                                  const gcap_tensor_t* a_zero_point, const gcap_tensor_t* b_zero_point,
                                  const gcap_tensor_t* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_MATMUL_INTEGER_H_
