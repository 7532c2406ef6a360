// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// lrn_kernels.h: local response normalization across channels, one output at a time: the function of one output, of
// which the GPU's kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_LRN_KERNELS_H_
#define GCAP_OPS_KERNELS_LRN_KERNELS_H_

#include "ops/kernels/compensated_sum.h"
#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

// x as [images, channels, inner].
typedef struct gcap_lrn_params {
  const void* x;
  void* y;
  int64_t elements;  // all of them
  int64_t channels;
  int64_t inner;
  int64_t before, after;  // how far the window reaches, each below `channels`
  float scale;            // alpha / size
  float beta;
  float bias;
  int32_t narrow;  // 1: `elements` fits into 31 bits
} gcap_lrn_params_t;

// The channel of element `i`. Divisions of 32 bits take a fraction of the time of those of 64.
GCAP_INLINE int64_t gcap_lrn_channel(const gcap_lrn_params_t* p, int64_t i) {
  if (p->narrow) return (uint32_t)i / (uint32_t)p->inner % (uint32_t)p->channels;
  return i / p->inner % p->channels;
}

// Output `i`, in the order of memory.
#define GCAP_DEFINE_LRN(T)                                                                                  \
  GCAP_INLINE gcap_##T##_t gcap_lrn_##T(const gcap_lrn_params_t* p, int64_t i) {                            \
    const gcap_##T##_t* x = (const gcap_##T##_t*)p->x + i;                                                  \
    const int64_t channel = gcap_lrn_channel(p, i);                                                         \
    const int64_t first = gcap_max_int(-channel, -p->before);                                               \
    const int64_t last = gcap_min_int(p->channels - 1 - channel, p->after);                                 \
    gcap_sum_t squares = gcap_sum_zero();                                                                   \
    for (int64_t k = first; k <= last; ++k) {                                                               \
      const float value = gcap_load_##T(x[k * p->inner]);                                                   \
      gcap_sum_add(&squares, value* value);                                                                 \
    }                                                                                                       \
    return gcap_store_##T(gcap_load_##T(*x) / powf(p->bias + p->scale * gcap_sum_value(squares), p->beta)); \
  }

// K(type)
#define GCAP_LRN_KERNELS(K) K(f32) K(f16) K(bf16)

GCAP_LRN_KERNELS(GCAP_DEFINE_LRN)
#undef GCAP_DEFINE_LRN

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(T) GCAP_KERNEL void gcap_kernel_lrn_##T(gcap_lrn_params_t params);
GCAP_LRN_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_LRN_KERNELS_H_
