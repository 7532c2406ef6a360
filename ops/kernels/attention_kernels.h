// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// attention_kernels.h: from the products of queries and keys to weights: soft cap, masks, softmax. The function of one
// score is what the GPU's kernels and their CPU twins share.
#ifndef GCAP_OPS_KERNELS_ATTENTION_KERNELS_H_
#define GCAP_OPS_KERNELS_ATTENTION_KERNELS_H_

#include <stddef.h>

#include "ops/kernels/compensated_sum.h"
#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gcap_mask {
  GCAP_MASK_NONE = 0,
  GCAP_MASK_BOOL,    // false: the score does not count
  GCAP_MASK_NUMBER,  // of the weights' type: added to the score
} gcap_mask_t;

// Scores as [batch, heads, queries, keys]. A row is the scores of one query.
typedef struct gcap_attention_params {
  const float* scores;
  const void* mask;
  void* weights;
  int64_t rows;
  int64_t heads, queries, keys;
  int64_t mask_steps[3];     // elements of the mask from one batch, head and query to the next; 0: broadcast
  const int32_t* padding;    // NULL: all keys count; else more than 0 where a key does, or how many keys do
  int64_t padding_steps[2];  // elements of it from one batch and query to the next
  float filter;              // what is added to the score of a key that does not count
  int32_t padding_is_length;
  int64_t visible;    // with `is_causal`: how many keys the first query sees; each further one sees one more
  float softcap;      // 0: none
  int32_t mask_type;  // gcap_mask_t
  int32_t is_causal;
  unsigned lanes;  // threads for each row: 1, 32 or a whole block
} gcap_attention_params_t;

// One row: its first score, its query, and where its mask and its padding begin.
typedef struct gcap_score_row {
  int64_t first, query, mask, padding;
} gcap_score_row_t;

GCAP_INLINE gcap_score_row_t gcap_score_row(const gcap_attention_params_t* p, int64_t row) {
  const int64_t matrix = row / p->queries, batch = matrix / p->heads, query = row - matrix * p->queries;
  gcap_score_row_t r;
  r.first = row * p->keys;
  r.query = query;
  r.mask = batch * p->mask_steps[0] + (matrix - batch * p->heads) * p->mask_steps[1] + query * p->mask_steps[2];
  r.padding = batch * p->padding_steps[0] + query * p->padding_steps[1];
  return r;
}

GCAP_INLINE int gcap_score_counts(const gcap_attention_params_t* p, const gcap_score_row_t* r, int64_t i) {
  if (p->padding == NULL) return 1;
  return p->padding_is_length ? i < p->padding[r->padding] : p->padding[r->padding + i] > 0;
}

// K(type of weights)
#define GCAP_ATTENTION_KERNELS(K) K(f32) K(f16) K(bf16)

// The score of key `i` in a row. What a mask of bools or the order of tokens hides is -infinity.
#define GCAP_DEFINE_SCORE(T)                                                                                   \
  GCAP_INLINE float gcap_score_##T(const gcap_attention_params_t* p, const gcap_score_row_t* r, int64_t i) {   \
    if (p->is_causal && i >= p->visible + r->query) return -INFINITY;                                          \
    if (p->mask_type == GCAP_MASK_BOOL && ((const uint8_t*)p->mask)[r->mask + i] == 0) return -INFINITY;       \
    float score = p->scores[r->first + i];                                                                     \
    if (p->softcap > 0.0f) score = p->softcap * tanhf(score / p->softcap);                                     \
    if (p->mask_type == GCAP_MASK_NUMBER) score += gcap_load_##T(((const gcap_##T##_t*)p->mask)[r->mask + i]); \
    return gcap_score_counts(p, r, i) ? score : score + p->filter;                                             \
  }
GCAP_ATTENTION_KERNELS(GCAP_DEFINE_SCORE)
#undef GCAP_DEFINE_SCORE

// Any one-dimensional grid; blocks of a multiple of 32 threads, at most GCAP_ROW_BLOCK_THREADS, or of `lanes`.
#define GCAP_DECLARE_KERNEL(T) GCAP_KERNEL void gcap_kernel_attention_##T(gcap_attention_params_t params);
GCAP_ATTENTION_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_ATTENTION_KERNELS_H_
