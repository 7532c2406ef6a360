// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// select.h: elements of rows by their order, as ONNX's ArgMax, ArgMin and TopK. A row is one line along an axis.
#ifndef GCAP_OPS_KERNELS_SELECT_H_
#define GCAP_OPS_KERNELS_SELECT_H_

#include <stdbool.h>

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// Each call launches one kernel on `stream`; none for outputs without elements. Shapes and types are those that the
// operator has in ONNX, `axis` is not negative, and `x` is of f32, f16, bf16, i64 or i32. Zeros of both signs are
// equal. Outputs share no byte with `x` or each other.
//   INVALID_ARGUMENT  a tensor's type, size or address, or an overlap; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current

// y, of i64 and with one place for each row, = the index of the row's largest or smallest element, of several equal
// ones the first, or with `last` the last. A NaN is more extreme than any number, as numpy has it.
gcap_status_t gcap_arg(gcap_stream_t* stream, const gcap_tensor_t* x, int axis, bool smallest, bool last,
                       const gcap_tensor_t* y) GCAP_NODISCARD;

// The k largest or smallest elements of each row, where k is the size of `values` on the axis, and their indices, of
// i64. Of equal elements those with the lower indices are taken, and come first. `sorted`: in the order of the
// elements, the most extreme one first; else in that of the indices. A NaN of either sign is larger than any number,
// and equal to other NaNs, as ONNX Runtime's CPU EP has it.
gcap_status_t gcap_top_k(gcap_stream_t* stream, const gcap_tensor_t* x, int axis, bool smallest, bool sorted,
                         const gcap_tensor_t* values, const gcap_tensor_t* indices) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_SELECT_H_
