// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pad.h: pads a tensor, and fills one. Thread, capture, lifetime and tensors are those of gcap/kit/ops/layout.h.
#ifndef GCAP_OPS_KERNELS_PAD_H_
#define GCAP_OPS_KERNELS_PAD_H_

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"
#include "ops/kernels/pad_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// y = x with padding: on axis i, element begins[i] of y is the first one of x, and the shape of y says how much padding
// there is behind the last one. Where the padding is negative, on either side, x is cropped; what other modes than
// CONSTANT show is what is left of x. `value` is one element, in host memory, of the type of x, and read for CONSTANT
// alone.
//   INVALID_ARGUMENT  a NULL argument, a tensor that is not as said above, or y and x of different ranks; padding of
//                     another mode than CONSTANT where nothing is left of x; of REFLECT, more than what is left of x
//                     but one
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
gcap_status_t gcap_pad(gcap_stream_t* stream, const gcap_tensor_t* x, const int64_t* begins, gcap_pad_mode_t mode,
                       const void* value, const gcap_tensor_t* y) GCAP_NODISCARD;

// Sets each element of `y` to `value`: one element, in host memory.
//   INVALID_ARGUMENT  a NULL argument, or a tensor that is not as said above
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
gcap_status_t gcap_fill(gcap_stream_t* stream, const void* value, const gcap_tensor_t* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_PAD_H_
