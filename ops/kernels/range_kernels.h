// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// range_kernels.h: the kernels that write the numbers of a range.
#ifndef GCAP_OPS_KERNELS_RANGE_KERNELS_H_
#define GCAP_OPS_KERNELS_RANGE_KERNELS_H_

#include <stdint.h>

#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

// y[i] = start + i * delta.
typedef struct gcap_range_params {
  void* y;
  int64_t count;
  double start, delta;                   // of f32: a float's sum with a product would be rounded twice
  int64_t integer_start, integer_delta;  // of integers
} gcap_range_params_t;

GCAP_INLINE gcap_f32_t gcap_range_f32(const gcap_range_params_t* p, int64_t i) {
  return (gcap_f32_t)(p->start + (double)i * p->delta);
}
// i * delta may be more than its type holds although the sum is not: it wraps there and back.
GCAP_INLINE gcap_i64_t gcap_range_i64(const gcap_range_params_t* p, int64_t i) {
  return gcap_wrap_add(p->integer_start, gcap_wrap_mul(i, p->integer_delta));
}
GCAP_INLINE gcap_i32_t gcap_range_i32(const gcap_range_params_t* p, int64_t i) {
  return gcap_store_i32(gcap_range_i64(p, i));
}

// K(name of a type)
#define GCAP_RANGE_KERNELS(K) K(f32) K(i64) K(i32)

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(T) GCAP_KERNEL void gcap_kernel_range_##T(gcap_range_params_t params);
GCAP_RANGE_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_RANGE_KERNELS_H_
