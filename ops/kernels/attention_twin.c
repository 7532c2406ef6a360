// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the weights of an attention: the same function of a score, row by row.
#include "ops/kernels/attention_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_attention(const gcap_attention_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                             size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  const size_t mask_bytes = p->mask_type == GCAP_MASK_BOOL ? 1 : bytes;
  const gcap_score_row_t last = gcap_score_row(p, p->rows - 1);
  gcap_twin_access(&list, p->scores, (size_t)(p->rows * p->keys) * sizeof(float), false);
  if (p->mask_type != GCAP_MASK_NONE) {
    gcap_twin_access(&list, p->mask, (size_t)(last.mask + p->keys) * mask_bytes, false);
  }
  if (p->padding != NULL) {
    const int64_t numbers = last.padding + (p->padding_is_length ? 1 : p->keys);
    gcap_twin_access(&list, p->padding, (size_t)numbers * sizeof(int32_t), false);
  }
  gcap_twin_access(&list, p->weights, (size_t)(p->rows * p->keys) * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(T)                                                                                    \
  GCAP_TWIN(attention, T, sizeof(gcap_##T##_t))                                                           \
  static void row_##T(const gcap_attention_params_t* p, int64_t row) {                                    \
    const gcap_score_row_t r = gcap_score_row(p, row);                                                    \
    gcap_##T##_t* weights = (gcap_##T##_t*)p->weights + row * p->keys;                                    \
    float largest = -INFINITY;                                                                            \
    for (int64_t i = 0; i < p->keys; ++i) largest = gcap_max_float(largest, gcap_score_##T(p, &r, i));    \
    gcap_sum_t terms = gcap_sum_zero();                                                                   \
    for (int64_t i = 0; i < p->keys; ++i) gcap_sum_add(&terms, expf(gcap_score_##T(p, &r, i) - largest)); \
    const float sum = gcap_sum_value(terms);                                                              \
    for (int64_t i = 0; i < p->keys; ++i) {                                                               \
      weights[i] = gcap_store_##T(expf(gcap_score_##T(p, &r, i) - largest) / sum);                        \
    }                                                                                                     \
  }                                                                                                       \
  static void run_attention_##T(const gcap_sim_launch_t* launch, void* const* args) {                     \
    (void)launch;                                                                                         \
    const gcap_attention_params_t* p = args[0];                                                           \
    for (int64_t row = 0; row < p->rows; ++row) row_##T(p, row);                                          \
  }
GCAP_ATTENTION_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(T) GCAP_TWIN_REGISTER(attention, T)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t attention_bytes = sizeof(gcap_attention_params_t);
  GCAP_ATTENTION_KERNELS(REGISTER_TWIN)
}
