// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pow_kernels.h: powers whose exponent is of another type than the base: one function of an element for each type of
// the base, of which the GPU's kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_POW_KERNELS_H_
#define GCAP_OPS_KERNELS_POW_KERNELS_H_

#include "ops/kernels/element.h"
#include "ops/kernels/index_map.h"

#ifdef __cplusplus
extern "C" {
#endif

// The type of an exponent. A parameter, and the same for all threads: a power takes far longer than the branch.
typedef enum gcap_exponent {
  GCAP_EXPONENT_F32 = 0,
  GCAP_EXPONENT_F16,
  GCAP_EXPONENT_BF16,
  GCAP_EXPONENT_I64,  // from here on: whole numbers
  GCAP_EXPONENT_I32,
} gcap_exponent_t;

typedef struct gcap_pow_params {
  const void* a;
  const void* b;
  void* y;               // dense, of the type of a
  gcap_index_map_t map;  // of a and b
  int32_t exponent;      // gcap_exponent_t
} gcap_pow_params_t;

GCAP_INLINE float gcap_load_real_exponent(const gcap_pow_params_t* p, int64_t i) {
  if (p->exponent == GCAP_EXPONENT_F32) return gcap_load_f32(((const gcap_f32_t*)p->b)[i]);
  if (p->exponent == GCAP_EXPONENT_F16) return gcap_load_f16(((const gcap_f16_t*)p->b)[i]);
  return gcap_load_bf16(((const gcap_bf16_t*)p->b)[i]);
}

GCAP_INLINE int64_t gcap_load_whole_exponent(const gcap_pow_params_t* p, int64_t i) {
  if (p->exponent == GCAP_EXPONENT_I64) return gcap_load_i64(((const gcap_i64_t*)p->b)[i]);
  return gcap_load_i32(((const gcap_i32_t*)p->b)[i]);
}

// A float has no odd numbers beyond 2^24, so the sign is not powf's.
GCAP_INLINE float gcap_pow_float_whole(float a, int64_t b) {
  const float power = powf(fabsf(a), (float)b);
  return signbit(a) && b % 2 != 0 ? -power : power;
}
GCAP_INLINE float gcap_pow_float_real(float a, float b) { return powf(a, b); }

// Truncated; a NaN is 0, and what is too large the nearest of -end and end - 1. A whole exponent is as one of an
// integer type.
GCAP_INLINE int64_t gcap_pow_int_real(int64_t a, float b, double end, int64_t largest) {
  if (b == truncf(b) && fabsf(b) < 0x1p63f) return gcap_wrap_pow(a, (int64_t)b);
  const double power = pow((double)a, (double)b);
  if (power != power) return 0;
  return power >= end ? largest : power < -end ? -largest - 1 : (int64_t)power;
}
GCAP_INLINE int64_t gcap_pow_i64_real(int64_t a, float b) { return gcap_pow_int_real(a, b, 0x1p63, INT64_MAX); }
GCAP_INLINE int64_t gcap_pow_i32_real(int64_t a, float b) { return gcap_pow_int_real(a, b, 0x1p31, INT32_MAX); }

// K(type of a, function of a real exponent, function of a whole one)
#define GCAP_POW_KERNELS(K)                          \
  K(f32, gcap_pow_float_real, gcap_pow_float_whole)  \
  K(f16, gcap_pow_float_real, gcap_pow_float_whole)  \
  K(bf16, gcap_pow_float_real, gcap_pow_float_whole) \
  K(i64, gcap_pow_i64_real, gcap_wrap_pow)           \
  K(i32, gcap_pow_i32_real, gcap_wrap_pow)

// The power of the elements at two offsets.
#define GCAP_DEFINE_POW(T, real, whole)                                                                       \
  GCAP_INLINE gcap_##T##_t gcap_pow_##T(const gcap_pow_params_t* p, int64_t a_offset, int64_t b_offset) {     \
    const gcap_computed_##T##_t a = gcap_load_##T(((const gcap_##T##_t*)p->a)[a_offset]);                     \
    return gcap_store_##T(p->exponent < GCAP_EXPONENT_I64 ? real(a, gcap_load_real_exponent(p, b_offset))     \
                                                          : whole(a, gcap_load_whole_exponent(p, b_offset))); \
  }
GCAP_POW_KERNELS(GCAP_DEFINE_POW)
#undef GCAP_DEFINE_POW

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(T, real, whole) GCAP_KERNEL void gcap_kernel_pow_##T(gcap_pow_params_t params);
GCAP_POW_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_POW_KERNELS_H_
