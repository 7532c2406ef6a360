// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// normalize.h: softmax, layer normalization and local response normalization.
#ifndef GCAP_KIT_OPS_NORMALIZE_H_
#define GCAP_KIT_OPS_NORMALIZE_H_

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// Each call launches one kernel on `stream`, and none if no output has an element.
// Thread:   one thread at a time for each stream.
// Capture:  legal: one kernel node, no allocation.
// Lifetime: tensors are read during the call. Their memory is device memory, of the stream's device or reachable from
//           it, and stays valid until the work is done, or as long as the work's graph.
//
// Tensors.  All of one call are of one type: f32, f16 or bf16. They are computed in f32, with compensated sums
//           (reduce.h), and rounded once. Up to 2^40 elements. An address is a multiple of the size of an element; no
//           more is needed. `data` may be NULL if there are no elements. `y` has the shape of `x`, and, but for gcap_lrn,
//           may be `x`; else it shares no byte with an input.

// y = softmax of x along `axis`, in -rank..rank - 1, with the largest element subtracted first. Where one element is a
// NaN or +infinity, or all are -infinity, all along the axis become NaN.
//   INVALID_ARGUMENT  a NULL argument, or a tensor or axis that is not as said above; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_softmax(gcap_stream_t* stream, const gcap_tensor_t* x, int axis,
                                    const gcap_tensor_t* y) GCAP_NODISCARD;

// y = the logarithm of softmax, without its underflow.
//   errors of gcap_softmax
GCAP_API gcap_status_t gcap_log_softmax(gcap_stream_t* stream, const gcap_tensor_t* x, int axis,
                                        const gcap_tensor_t* y) GCAP_NODISCARD;

// y = (x - mean) / sqrt(variance + epsilon) * scale + bias, with mean and variance over the axes from `axis`
// (-rank..rank - 1) to the last, as ONNX's LayerNormalization. `scale` and `bias` have the shape of these axes; `bias`
// may be NULL. `epsilon` >= 0. `mean` and `inv_std_dev`, each NULL or of f32 and of the shape of x with 1 from `axis`
// on, are given the mean and 1 / sqrt(variance + epsilon); of an empty row both are NaN. They share no byte with
// another tensor.
//   INVALID_ARGUMENT  a NULL argument, a negative epsilon or a NaN, or a tensor or axis that is not as said above; the
//                     message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_layer_norm(gcap_stream_t* stream, const gcap_tensor_t* x, int axis, float epsilon,
                                       const gcap_tensor_t* scale, const gcap_tensor_t* bias, const gcap_tensor_t* y,
                                       const gcap_tensor_t* mean, const gcap_tensor_t* inv_std_dev) GCAP_NODISCARD;

// y = x / (bias + alpha / size * squares)^beta, as ONNX's LRN: the local response normalization across channels. Axis 1
// of `x` are its C channels; `squares` is the sum of the squares of the elements at the same place in the channels
// max(0, c - floor((size - 1) / 2))..min(C - 1, c + ceil((size - 1) / 2)). `x` has rank 2 or more, `size` >= 1. `y` is
// not `x`. What `alpha`, `beta` and `bias` make of the formula, is stored: a NaN too.
//   INVALID_ARGUMENT  a NULL argument, a size below 1, or a tensor that is not as said above; the message names it
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
GCAP_API gcap_status_t gcap_lrn(gcap_stream_t* stream, const gcap_tensor_t* x, int64_t size, float alpha, float beta,
                                float bias, const gcap_tensor_t* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_OPS_NORMALIZE_H_
