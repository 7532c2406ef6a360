// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// range.h: writes the numbers of a range. Thread, capture, lifetime and tensors are those of gcap/kit/ops/layout.h.
#ifndef GCAP_OPS_KERNELS_RANGE_H_
#define GCAP_OPS_KERNELS_RANGE_H_

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// y[i] = start + i * delta, for `y` of f32, i64 or i32. Integers wrap around. `start` and `delta` are one element each,
// in host memory.
//   INVALID_ARGUMENT  a NULL argument, or a tensor that is not as said above
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
gcap_status_t gcap_range(gcap_stream_t* stream, const void* start, const void* delta,
                         const gcap_tensor_t* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_RANGE_H_
