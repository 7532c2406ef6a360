// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// attention.h: what the inputs of an Attention, or of com.microsoft's MultiHeadAttention, mean: heads, lengths, and
// sizes of heads, for shapes and for kernels.
#ifndef GCAP_KIT_SHAPE_ATTENTION_H_
#define GCAP_KIT_SHAPE_ATTENTION_H_

#include <stdbool.h>

#include "gcap/kit/model.h"
#include "gcap/status.h"

typedef struct gcap_attention_sizes {
  bool is_packed;     // Q and Y are [batch, length, heads * size]; else [batch, heads, length, size]
  bool kv_is_packed;  // K and V are
  // Inputs; -1: the node has none. `past` is that of the keys; that of the values is behind. `bias` is what is added to
  // Q, K and V, one behind another; `padding` says which keys count.
  int mask, past, bias, padding;
  int64_t batch, q_heads, kv_heads;  // q_heads is a multiple of kv_heads
  int64_t q_length, kv_length, past_length;
  int64_t size, v_size;  // of a head of Q and K, and of V
} gcap_attention_sizes_t;

// Reads them of a node's inputs and attributes, and checks that all inputs fit.
//   INVALID_ARGUMENT  an input does not fit; the message names the node and the input
gcap_status_t gcap_attention_read(const gcap_node_t* node, const gcap_tensor_t* inputs,
                                  gcap_attention_sizes_t* out_sizes) GCAP_NODISCARD;

#endif  // GCAP_KIT_SHAPE_ATTENTION_H_
