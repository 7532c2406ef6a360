// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// reduce.h: sums, means, norms, extremes and products over some of a tensor's axes.
#ifndef GCAP_KIT_OPS_REDUCE_H_
#define GCAP_KIT_OPS_REDUCE_H_

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// Each call launches one kernel on `stream`, and none if the output has no elements.
// Thread:   one thread at a time for each stream.
// Capture:  legal: one kernel node, no allocation.
// Lifetime: tensors are read during the call. Their memory is device memory, of the stream's device or reachable from
//           it, and stays valid until the work is done, or as long as the work's graph.
//
// Tensors.  Up to 2^40 elements. An address is a multiple of the size of an element; no more is needed. `data` may be
//           NULL if there are no elements. The output shares no byte with the input.

typedef enum gcap_reduce_op {
  GCAP_REDUCE_SUM = 0,  // of no elements: 0
  GCAP_REDUCE_MEAN,     // the sum over the number of elements; integers truncate. Of no elements: NaN; of integers: 0
  GCAP_REDUCE_MAX,   // a NaN if one is a NaN. Of no elements: the least of the type, -infinity or false if it has these
  GCAP_REDUCE_MIN,   // the same the other way round
  GCAP_REDUCE_PROD,  // of no elements: 1
  GCAP_REDUCE_L1,    // the sum of the magnitudes
  GCAP_REDUCE_L2,    // the root of the sum of the squares
  GCAP_REDUCE_SUM_SQUARE,  // the sum of the squares
  GCAP_REDUCE_LOG_SUM,     // the logarithm of the sum; of no elements: -infinity
} gcap_reduce_op_t;

// y = op of x over `axes`, `num_axes` different ones in -rank..rank - 1; over no axis, of each element. (ONNX's default
// of no axes means all: name them all.) The shape of `y` is that of `x` with each of these axes 1, or without them.
// Both are of one type: f32, f16, bf16, and but for L2 and LOG_SUM i64 or i32; for MAX and MIN also bool.
//
// Floating-point types are computed in f32 and rounded once. In a sum each thread adds to the next term what it rounded
// off (Kahan's compensated sum), and at most 512 threads' sums are added in a tree: up to 2^33 terms, the error is at
// most 2^-24 * 12 * the sum of the magnitudes. A product is not compensated. Integers wrap around, a mean's sum in 64
// bits. Nothing is allocated, so a block of threads at most computes an element of the output: a reduction to few
// elements leaves most of a GPU idle.
//   INVALID_ARGUMENT  a NULL argument, an unknown operator, or a tensor or axes that are not as said above; the message
//                     names the argument. `axes` may be NULL if `num_axes` is 0
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_reduce(gcap_stream_t* stream, gcap_reduce_op_t op, const gcap_tensor_t* x,
                                   const int64_t* axes, int num_axes, const gcap_tensor_t* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_OPS_REDUCE_H_
