// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cum_sum_kernels.h: the kernels of sums that run along an axis.
#ifndef GCAP_OPS_KERNELS_CUM_SUM_KERNELS_H_
#define GCAP_OPS_KERNELS_CUM_SUM_KERNELS_H_

#include <stdint.h>

#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

// x and y as [outer, size, inner]: a line along the axis for each outer and inner index.
typedef struct gcap_cum_sum_params {
  const void* x;
  void* y;
  int64_t lines;  // outer * inner
  int64_t size;
  int64_t inner;
  int32_t exclusive;  // 1: without the element itself
  int32_t reverse;    // 1: from the end
} gcap_cum_sum_params_t;

// Floats are added as double, which rounds far below what is stored. Integers wrap around.
typedef double gcap_summed_f32_t;
typedef double gcap_summed_f16_t;
typedef double gcap_summed_bf16_t;
typedef int64_t gcap_summed_i64_t;
typedef int64_t gcap_summed_i32_t;
GCAP_INLINE double gcap_sum_double(double a, double b) { return a + b; }
#define GCAP_SUM_f32 gcap_sum_double
#define GCAP_SUM_f16 gcap_sum_double
#define GCAP_SUM_bf16 gcap_sum_double
#define GCAP_SUM_i64 gcap_wrap_add
#define GCAP_SUM_i32 gcap_wrap_add

// K(name of a type)
#define GCAP_CUM_SUM_KERNELS(K) K(f32) K(f16) K(bf16) K(i64) K(i32)

// Sums line `line`.
#define GCAP_DEFINE_LINE(T)                                                                 \
  GCAP_INLINE void gcap_cum_sum_##T(const gcap_cum_sum_params_t* p, int64_t line) {         \
    const int64_t outer = line / p->inner;                                                  \
    const int64_t first = outer * p->size * p->inner + (line - outer * p->inner);           \
    gcap_summed_##T##_t sum = 0;                                                            \
    for (int64_t step = 0; step < p->size; ++step) {                                        \
      const int64_t at = first + (p->reverse ? p->size - 1 - step : step) * p->inner;       \
      const gcap_computed_##T##_t element = gcap_load_##T(((const gcap_##T##_t*)p->x)[at]); \
      const gcap_summed_##T##_t with = GCAP_SUM_##T(sum, element);                          \
      const gcap_summed_##T##_t made = p->exclusive ? sum : with;                           \
      ((gcap_##T##_t*)p->y)[at] = gcap_store_##T((gcap_computed_##T##_t)made);              \
      sum = with;                                                                           \
    }                                                                                       \
  }
GCAP_CUM_SUM_KERNELS(GCAP_DEFINE_LINE)
#undef GCAP_DEFINE_LINE

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(T) GCAP_KERNEL void gcap_kernel_cum_sum_##T(gcap_cum_sum_params_t params);
GCAP_CUM_SUM_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_CUM_SUM_KERNELS_H_
