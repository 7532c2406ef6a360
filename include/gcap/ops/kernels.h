// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// kernels.h: gcap's own CUDA kernels, each with a CPU twin for the simulator.
#ifndef GCAP_OPS_KERNELS_H_
#define GCAP_OPS_KERNELS_H_

#include <stdint.h>

#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// Each call launches one kernel on `stream`.
// Thread:   one thread at a time for each stream.
// Capture:  legal: one kernel node, no allocation.
// Lifetime: the addresses are device memory and stay valid until the work is done, or as long as the work's graph.

// y[i] = max(x[i], 0) for i < count; a NaN stays a NaN. count in 1..2^40. `y` may be `x`.
//   INVALID_ARGUMENT  a NULL argument or a count out of range, named in the message
//   CUDA_ERROR        the launch failed
GCAP_API gcap_status_t gcap_relu_f32(gcap_stream_t* stream, const float* x, float* y, int64_t count) GCAP_NODISCARD;

// y[r,:] = softmax(x[r,:]) for x, y [rows, cols], with the row's maximum subtracted first. rows in 1..2^31 − 1, cols
// in 1..2^20. `y` may be `x`.
//   INVALID_ARGUMENT  a NULL argument or a size out of range, named in the message
//   CUDA_ERROR        the launch failed
GCAP_API gcap_status_t gcap_softmax_f32(gcap_stream_t* stream, const float* x, float* y, int64_t rows,
                                        int64_t cols) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_H_
