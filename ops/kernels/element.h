// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// element.h: elements of each type for kernels and for their CPU twins: how they are stored, and what is computed with.
//
// Macros that make one function for each type paste a type's name (f32, f16, bf16, i64, i32, bool, i8, u8) to
// gcap_load_, gcap_store_ and so on. Floating-point elements are computed with as float and rounded once, when stored;
// integers and booleans as int64_t, whose low bits are stored: arithmetic of integers wraps around.
#ifndef GCAP_OPS_KERNELS_ELEMENT_H_
#define GCAP_OPS_KERNELS_ELEMENT_H_

#include <math.h>
#include <stdint.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define GCAP_KERNEL __global__
#define GCAP_INLINE static __device__ __forceinline__
typedef __half gcap_f16_t;
typedef __nv_bfloat16 gcap_bf16_t;
#else
#include "ops/kernels/half.h"
#define GCAP_KERNEL
#define GCAP_INLINE static inline
typedef uint16_t gcap_f16_t;
typedef uint16_t gcap_bf16_t;
#endif

typedef float gcap_f32_t;
typedef int64_t gcap_i64_t;
typedef int32_t gcap_i32_t;
typedef uint8_t gcap_bool_t;
typedef int8_t gcap_i8_t;
typedef uint8_t gcap_u8_t;

// What is computed with.
typedef float gcap_computed_f32_t;
typedef float gcap_computed_f16_t;
typedef float gcap_computed_bf16_t;
typedef int64_t gcap_computed_i64_t;
typedef int64_t gcap_computed_i32_t;
typedef int64_t gcap_computed_bool_t;
typedef int64_t gcap_computed_i8_t;
typedef int64_t gcap_computed_u8_t;

GCAP_INLINE float gcap_load_f32(gcap_f32_t v) { return v; }
GCAP_INLINE int64_t gcap_load_i64(gcap_i64_t v) { return v; }
GCAP_INLINE int64_t gcap_load_i32(gcap_i32_t v) { return v; }
GCAP_INLINE int64_t gcap_load_bool(gcap_bool_t v) { return v != 0; }
GCAP_INLINE int64_t gcap_load_i8(gcap_i8_t v) { return v; }
GCAP_INLINE int64_t gcap_load_u8(gcap_u8_t v) { return v; }

GCAP_INLINE gcap_f32_t gcap_store_f32(float v) { return v; }
GCAP_INLINE gcap_i64_t gcap_store_i64(int64_t v) { return v; }
GCAP_INLINE gcap_i32_t gcap_store_i32(int64_t v) { return (gcap_i32_t)v; }
GCAP_INLINE gcap_bool_t gcap_store_bool(int64_t v) { return v != 0; }
GCAP_INLINE gcap_i8_t gcap_store_i8(int64_t v) { return (gcap_i8_t)v; }
GCAP_INLINE gcap_u8_t gcap_store_u8(int64_t v) { return (gcap_u8_t)v; }

#ifdef __CUDACC__
GCAP_INLINE float gcap_load_f16(gcap_f16_t v) { return __half2float(v); }
GCAP_INLINE float gcap_load_bf16(gcap_bf16_t v) { return __bfloat162float(v); }
GCAP_INLINE gcap_f16_t gcap_store_f16(float v) { return __float2half_rn(v); }
GCAP_INLINE gcap_bf16_t gcap_store_bf16(float v) { return __float2bfloat16_rn(v); }
#else
GCAP_INLINE float gcap_load_f16(gcap_f16_t v) { return gcap_f16_to_f32(v); }
GCAP_INLINE float gcap_load_bf16(gcap_bf16_t v) { return gcap_bf16_to_f32(v); }
GCAP_INLINE gcap_f16_t gcap_store_f16(float v) { return gcap_f16_from_f32(v); }
GCAP_INLINE gcap_bf16_t gcap_store_bf16(float v) { return gcap_bf16_from_f32(v); }
#endif

// Arithmetic of integers that wraps around: signed overflow is undefined in C.
GCAP_INLINE int64_t gcap_wrap_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
GCAP_INLINE int64_t gcap_wrap_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
GCAP_INLINE int64_t gcap_wrap_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

// Truncates; a / 0 is 0.
GCAP_INLINE int64_t gcap_wrap_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? gcap_wrap_sub(0, a) : a / b;
}

// What such a quotient leaves, of the sign of a; and the remainder of the sign of b. a modulo 0 is 0.
GCAP_INLINE int64_t gcap_wrap_rem(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
GCAP_INLINE int64_t gcap_floor_mod(int64_t a, int64_t b) {
  const int64_t rest = gcap_wrap_rem(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// A negative power is the truncated quotient: 0, but for a base of 1 or -1. 0 to a negative power is 0.
GCAP_INLINE int64_t gcap_wrap_pow(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  int64_t power = 1;
  for (; b > 0; b /= 2) {
    if (b % 2 == 1) power = gcap_wrap_mul(power, a);
    a = gcap_wrap_mul(a, a);
  }
  return power;
}

// The smaller and the larger of two; a NaN if one of them is a NaN.
GCAP_INLINE float gcap_min_float(float a, float b) { return a != a || a < b ? a : b; }
GCAP_INLINE float gcap_max_float(float a, float b) { return a != a || a > b ? a : b; }
GCAP_INLINE int64_t gcap_min_int(int64_t a, int64_t b) { return a < b ? a : b; }
GCAP_INLINE int64_t gcap_max_int(int64_t a, int64_t b) { return a > b ? a : b; }

GCAP_INLINE float gcap_clip_float(float a, float low, float high) {
  return gcap_min_float(gcap_max_float(a, low), high);
}
GCAP_INLINE int64_t gcap_clip_int(int64_t a, int64_t low, int64_t high) {
  return gcap_min_int(gcap_max_int(a, low), high);
}

// 1 + erf and 1 + tanh cancel for large negative elements: erfc and the quotient do not.
GCAP_INLINE float gcap_gelu(float a) { return 0.5f * a * erfcf(a * -0.707106781f); }
GCAP_INLINE float gcap_gelu_tanh(float a) { return a / (1.0f + expf(-1.59576912f * (a + 0.044715f * a * a * a))); }

// Truncates; a NaN is 0, and what is too large the nearest of -end and end - 1. `end` is a power of two.
GCAP_INLINE int64_t gcap_float_to_int(float a, float end, int64_t largest) {
  if (a != a) return 0;
  return a >= end ? largest : a < -end ? -largest - 1 : (int64_t)a;
}
GCAP_INLINE int64_t gcap_float_to_i64(float a) { return gcap_float_to_int(a, 0x1p63f, INT64_MAX); }
GCAP_INLINE int64_t gcap_float_to_i32(float a) { return gcap_float_to_int(a, 0x1p31f, INT32_MAX); }
GCAP_INLINE int64_t gcap_float_to_i8(float a) { return gcap_float_to_int(a, 0x1p7f, INT8_MAX); }
GCAP_INLINE int64_t gcap_float_to_u8(float a) {
  return gcap_clip_int(gcap_float_to_int(a, 0x1p31f, INT32_MAX), 0, UINT8_MAX);
}

// A float that rounds to the bf16 to which the integer itself rounds: truncated to 24 bits, of which the last one says
// too whether others were cut off. Rounded to the nearest float, it might be a tie that the integer is not.
GCAP_INLINE float gcap_int_to_odd_float(int64_t a) {
  uint64_t magnitude = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
  uint64_t lost = 0;
  float scale = 1.0f;
  for (; magnitude >> 24 != 0; magnitude >>= 1, scale *= 2.0f) lost |= magnitude & 1;
  const float rounded = (float)(int64_t)(magnitude | lost) * scale;
  return a < 0 ? -rounded : rounded;
}

#endif  // GCAP_OPS_KERNELS_ELEMENT_H_
