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

// What is done to scores before the softmax.
typedef struct gcap_attention_how {
  float softcap;    // 0 (none) or more: score = softcap * tanh(score / softcap)
  int64_t visible;  // 0 or more: query i sees the keys before visible + i; negative: all
  const gcap_tensor_t*
      mask;  // NULL: none; bool, where false is minus infinity, or of the type of the weights, and added
  const gcap_tensor_t* padding;  // NULL: none; i32, see below
  float filter;                  // added to the scores of keys that do not count by the padding
} gcap_attention_how_t;

// weights = softmax(scores, as `how` says) over the last axis. `scores` are f32, `weights` f32, f16 or bf16, both of
// shape [batch, heads, queries, keys]; they may be the same tensor. The mask has a size or 1 for each axis but the
// last, and may lack the first ones. The padding is of shape [batch]: how many keys count; or [batch, keys] or [batch,
// queries, keys]: more than 0 where a key counts.
//   INVALID_ARGUMENT  types or shapes that are not as said above; the message names them
//   CUDA_ERROR        the launch failed, or the stream's device could not be made current
gcap_status_t gcap_attention_weights(gcap_stream_t* stream, const gcap_attention_how_t* how,
                                     const gcap_tensor_t* scores, const gcap_tensor_t* weights) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_ATTENTION_H_
