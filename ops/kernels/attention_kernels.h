// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// attention_kernels.h: from the products of queries and keys to weights: soft cap, mask, softmax. The function of one
// score is what the GPU's kernels and their CPU twins share.
#ifndef GCAP_OPS_KERNELS_ATTENTION_KERNELS_H_
#define GCAP_OPS_KERNELS_ATTENTION_KERNELS_H_

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
  int64_t mask_steps[3];  // elements of the mask from one batch, head and query to the next; 0: broadcast
  int64_t visible;        // with `is_causal`: how many keys the first query sees; each further one sees one more
  float softcap;          // 0: none
  int32_t mask_type;      // gcap_mask_t
  int32_t is_causal;
  unsigned lanes;  // threads for each row: 1, 32 or a whole block
} gcap_attention_params_t;

// Where the mask of a row begins.
GCAP_INLINE int64_t gcap_mask_offset(const gcap_attention_params_t* p, int64_t row) {
  const int64_t matrix = row / p->queries, batch = matrix / p->heads;
  return batch * p->mask_steps[0] + (matrix - batch * p->heads) * p->mask_steps[1] +
         (row - matrix * p->queries) * p->mask_steps[2];
}

// K(type of weights)
#define GCAP_ATTENTION_KERNELS(K) K(f32) K(f16) K(bf16)

// The score of key `i` for a row whose mask begins at `mask`. What does not count is -infinity.
#define GCAP_DEFINE_SCORE(T)                                                                                 \
  GCAP_INLINE float gcap_score_##T(const gcap_attention_params_t* p, int64_t row, int64_t mask, int64_t i) { \
    if (p->is_causal && i >= p->visible + row % p->queries) return -INFINITY;                                \
    float score = p->scores[row * p->keys + i];                                                              \
    if (p->softcap > 0.0f) score = p->softcap * tanhf(score / p->softcap);                                   \
    if (p->mask_type == GCAP_MASK_BOOL) return ((const uint8_t*)p->mask)[mask + i] != 0 ? score : -INFINITY; \
    if (p->mask_type == GCAP_MASK_NUMBER) score += gcap_load_##T(((const gcap_##T##_t*)p->mask)[mask + i]);  \
    return score;                                                                                            \
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
