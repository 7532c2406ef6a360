// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cum_sum.h: sums that run along an axis. Thread, capture, lifetime and tensors are those of gcap/kit/ops/layout.h.
#ifndef GCAP_OPS_KERNELS_CUM_SUM_H_
#define GCAP_OPS_KERNELS_CUM_SUM_H_

#include <stdbool.h>

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// y = at each element the sum of x from the first one on `axis`, in -rank..rank - 1, to this one; `exclusive`: to the
// one before; `reverse`: from the last one instead. x is of floats, i64 or i32. Floats are added as double;
// integers wrap around.
//   INVALID_ARGUMENT  a NULL argument, or a tensor or axis that is not as said above; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
gcap_status_t gcap_cum_sum(gcap_stream_t* stream, const gcap_tensor_t* x, int64_t axis, bool exclusive, bool reverse,
                           const gcap_tensor_t* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_CUM_SUM_H_
