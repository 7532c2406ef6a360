// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rotary_kernels.h: embeddings rotated by the positions of their tokens, one output at a time: the function of one
// output, of which the GPU's kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_ROTARY_KERNELS_H_
#define GCAP_OPS_KERNELS_ROTARY_KERNELS_H_

#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

// The embedding of one token in one head is `size` neighbours, of which the first 2 * `half` are rotated in pairs.
typedef struct gcap_rotary_params {
  const void* x;
  const void* cosines;  // rows of `half`
  const void* sines;
  const int64_t* positions;  // which row a token has; NULL: each of the batch its own, in order
  void* y;
  int64_t count;        // elements
  int64_t size, half;   // half >= 1
  int64_t length;       // tokens
  int64_t token_step;   // elements from one token to the next
  int64_t batch_step;   // from one sequence to the next
  int64_t rows;         // of cosines and sines
  int32_t is_offset;    // 1: `positions` is one number, of the first token
  int32_t interleaved;  // 1: a pair are neighbours; 0: it is `half` apart
} gcap_rotary_params_t;

// The row of the token that element `i` is of; none of 0..rows - 1 if its position is none.
GCAP_INLINE int64_t gcap_rotary_row(const gcap_rotary_params_t* p, int64_t i) {
  const int64_t batch = i / p->batch_step, token = i / p->token_step % p->length;
  if (p->positions == NULL) return batch * p->length + token;
  return p->is_offset ? gcap_wrap_add(p->positions[0], token) : p->positions[batch * p->length + token];
}

// K(type)
#define GCAP_ROTARY_KERNELS(K) K(f32) K(f16) K(bf16)

// Output `i`, in the order of memory. A position without a row gives zeros, and reads no row.
#define GCAP_DEFINE_ROTARY(T)                                                                                    \
  GCAP_INLINE gcap_##T##_t gcap_rotary_##T(const gcap_rotary_params_t* p, int64_t i) {                           \
    const gcap_##T##_t* x = (const gcap_##T##_t*)p->x + i;                                                       \
    const int64_t at = i % p->size;                                                                              \
    if (at >= 2 * p->half) return *x;                                                                            \
    const int64_t row = gcap_rotary_row(p, i);                                                                   \
    if (row < 0 || row >= p->rows) return gcap_store_##T(0.0f);                                                  \
    const int64_t pair = p->interleaved ? at / 2 : at % p->half, apart = p->interleaved ? 1 : p->half;           \
    const int is_second = p->interleaved ? at % 2 == 1 : at >= p->half;                                          \
    const float cosine = gcap_load_##T(((const gcap_##T##_t*)p->cosines)[row * p->half + pair]);                 \
    const float sine = gcap_load_##T(((const gcap_##T##_t*)p->sines)[row * p->half + pair]);                     \
    const float a = gcap_load_##T(is_second ? x[-apart] : x[0]), b = gcap_load_##T(is_second ? x[0] : x[apart]); \
    return gcap_store_##T(is_second ? sine * a + cosine * b : cosine * a - sine * b);                            \
  }
GCAP_ROTARY_KERNELS(GCAP_DEFINE_ROTARY)
#undef GCAP_DEFINE_ROTARY

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(T) GCAP_KERNEL void gcap_kernel_rotary_##T(gcap_rotary_params_t params);
GCAP_ROTARY_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_ROTARY_KERNELS_H_
