// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// attention.h: the weights of an attention, from scores.
#ifndef GCAP_OPS_KERNELS_ATTENTION_H_
#define GCAP_OPS_KERNELS_ATTENTION_H_

#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// weights = softmax(cap(scores) + mask) over the last axis. `scores` are f32, `weights` f32, f16 or bf16, both of shape
// [batch, heads, queries, keys]; they may be the same tensor. `mask` is bool, where false is minus infinity, or of the
// type of the weights; it has a size or 1 for each axis but the last, and may lack the first ones; NULL: none. With
// `visible` >= 0 query i sees the keys before visible + i. `softcap` is 0 (none) or more.
//   INVALID_ARGUMENT  types or shapes that are not as said above; the message names them
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
gcap_status_t gcap_attention_weights(gcap_stream_t* stream, const gcap_tensor_t* scores, const gcap_tensor_t* mask,
                                     float softcap, int64_t visible, const gcap_tensor_t* weights) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_ATTENTION_H_
