// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// arrange.h: tensors whose elements are chosen by where they are. Thread, capture, lifetime and tensors are those of
// gcap/kit/ops/layout.h.
#ifndef GCAP_OPS_KERNELS_ARRANGE_H_
#define GCAP_OPS_KERNELS_ARRANGE_H_

#include <stdbool.h>

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "ops/kernels/arrange_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// Each returns
//   INVALID_ARGUMENT  a NULL argument, or a tensor that is not as said; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current

// y = x in a triangle of its matrices, the last two axes, and 0 outside. Without `x` (NULL) what is inside is `value`,
// one element in host memory; with `x`, `value` is not read.
gcap_status_t gcap_triangle(gcap_stream_t* stream, gcap_triangle_t triangle, int64_t k, const gcap_tensor_t* x,
                            const void* value, const gcap_tensor_t* y) GCAP_NODISCARD;

// y = values[1] where the index along `axis` of y, in 0..y.rank - 1, is that of `indices` there, else values[0]. A
// negative index counts from the end, and one that is outside is nowhere. `indices` are i64, i32 or f32, and have the
// shape of y without the axis.
gcap_status_t gcap_one_hot(gcap_stream_t* stream, const gcap_tensor_t* indices, const gcap_tensor_t* values, int axis,
                           const gcap_tensor_t* y) GCAP_NODISCARD;

// y = x with the first lengths[b] steps of sequence b reversed. `time_axis` is 0 or 1, and the other one of the two is
// the batch. A length that is outside of 0..steps counts as the nearest.
gcap_status_t gcap_reverse_sequence(gcap_stream_t* stream, const gcap_tensor_t* x, const gcap_tensor_t* lengths,
                                    int time_axis, const gcap_tensor_t* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_ARRANGE_H_
