// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// unary_kernels.h: the kernels of one input: lists of operators, types and formulas, of which the launches' tables, the
// GPU's kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_UNARY_KERNELS_H_
#define GCAP_OPS_KERNELS_UNARY_KERNELS_H_

#include <float.h>

#include "ops/kernels/element.h"
#include "ops/kernels/elementwise_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_unary_params {
  const void* x;
  void* y;
  int64_t count;
  float alpha, beta;
  float low, high;  // of clip
  int64_t low_int, high_int;
} gcap_unary_params_t;

// exp does not overflow, and what is small is not lost beside 1.
GCAP_INLINE float gcap_softplus(float a) { return gcap_max_float(a, 0.0f) + log1pf(expf(-fabsf(a))); }

GCAP_INLINE float gcap_elu(float a, float alpha) { return a < 0.0f ? alpha * expm1f(a) : a; }

GCAP_INLINE float gcap_shrink_float(float a, float bias, float lambda) {
  if (a < -lambda) return a + bias;
  return a > lambda ? a - bias : 0.0f;
}

// a - b, truncated: without its whole part, b only takes what is left to the next integer towards zero.
GCAP_INLINE int64_t gcap_sub_real(int64_t a, float b) {
  const float whole = floorf(b);
  const int64_t rest = gcap_wrap_sub(a, gcap_float_to_i64(whole));
  return rest > 0 && b > whole ? rest - 1 : rest;
}
GCAP_INLINE int64_t gcap_shrink_int(int64_t a, float bias, float lambda) {
  if ((double)a < -(double)lambda) return gcap_sub_real(a, -bias);
  return (double)a > (double)lambda ? gcap_sub_real(a, bias) : 0;
}

// K(operator, name, type of x, type of y, formula); `a` is the element, `p` the parameters.
#define GCAP_UNARY_FLOAT_KERNELS(K, T)                                                                 \
  K(GCAP_UNARY_RELU, relu, T, T, a < 0.0f ? 0.0f : a)                                                  \
  K(GCAP_UNARY_GELU, gelu, T, T, gcap_gelu(a))                                                         \
  K(GCAP_UNARY_GELU_TANH, gelu_tanh, T, T, gcap_gelu_tanh(a))                                          \
  K(GCAP_UNARY_SIGMOID, sigmoid, T, T, 1.0f / (1.0f + expf(-a)))                                       \
  K(GCAP_UNARY_TANH, tanh, T, T, tanhf(a))                                                             \
  K(GCAP_UNARY_ERF, erf, T, T, erff(a))                                                                \
  K(GCAP_UNARY_EXP, exp, T, T, expf(a))                                                                \
  K(GCAP_UNARY_LOG, log, T, T, logf(a))                                                                \
  K(GCAP_UNARY_SQRT, sqrt, T, T, sqrtf(a))                                                             \
  K(GCAP_UNARY_NEG, neg, T, T, -a)                                                                     \
  K(GCAP_UNARY_RECIPROCAL, reciprocal, T, T, 1.0f / a)                                                 \
  K(GCAP_UNARY_ABS, abs, T, T, fabsf(a))                                                               \
  K(GCAP_UNARY_LEAKY_RELU, leaky_relu, T, T, a < 0.0f ? p->alpha * a : a)                              \
  K(GCAP_UNARY_CLIP, clip, T, T, gcap_clip_float(a, p->low, p->high))                                  \
  K(GCAP_UNARY_SIN, sin, T, T, sinf(a))                                                                \
  K(GCAP_UNARY_TAN, tan, T, T, tanf(a))                                                                \
  K(GCAP_UNARY_ACOS, acos, T, T, acosf(a))                                                             \
  K(GCAP_UNARY_ASIN, asin, T, T, asinf(a))                                                             \
  K(GCAP_UNARY_ATAN, atan, T, T, atanf(a))                                                             \
  K(GCAP_UNARY_COSH, cosh, T, T, coshf(a))                                                             \
  K(GCAP_UNARY_SINH, sinh, T, T, sinhf(a))                                                             \
  K(GCAP_UNARY_ACOSH, acosh, T, T, acoshf(a))                                                          \
  K(GCAP_UNARY_ASINH, asinh, T, T, asinhf(a))                                                          \
  K(GCAP_UNARY_ATANH, atanh, T, T, atanhf(a))                                                          \
  K(GCAP_UNARY_CEIL, ceil, T, T, ceilf(a))                                                             \
  K(GCAP_UNARY_ROUND, round, T, T, rintf(a))                                                           \
  K(GCAP_UNARY_SIGN, sign, T, T, a > 0.0f ? 1.0f : a < 0.0f ? -1.0f : a == 0.0f ? 0.0f : a)            \
  K(GCAP_UNARY_ELU, elu, T, T, gcap_elu(a, p->alpha))                                                  \
  K(GCAP_UNARY_SELU, selu, T, T, p->beta* gcap_elu(a, p->alpha))                                       \
  K(GCAP_UNARY_CELU, celu, T, T, a < 0.0f ? p->alpha * expm1f(a / p->alpha) : a)                       \
  K(GCAP_UNARY_HARD_SWISH, hard_swish, T, T, a* gcap_clip_float(p->alpha* a + p->beta, 0.0f, 1.0f))    \
  K(GCAP_UNARY_SWISH, swish, T, T, a / (1.0f + expf(-p->alpha * a)))                                   \
  K(GCAP_UNARY_SOFTPLUS, softplus, T, T, gcap_softplus(a))                                             \
  K(GCAP_UNARY_SOFTSIGN, softsign, T, T, a / (1.0f + fabsf(a)))                                        \
  K(GCAP_UNARY_MISH, mish, T, T, a* tanhf(gcap_softplus(a)))                                           \
  K(GCAP_UNARY_THRESHOLDED_RELU, thresholded_relu, T, T, a > p->alpha ? a : 0.0f)                      \
  K(GCAP_UNARY_SHRINK, shrink, T, T, gcap_shrink_float(a, p->alpha, p->beta))                          \
  K(GCAP_UNARY_IS_INF, is_inf, T, bool, fabsf(a) > FLT_MAX && (a < 0.0f ? p->alpha : p->beta) != 0.0f) \
  K(GCAP_UNARY_COS, cos, T, T, cosf(a))                                                                \
  K(GCAP_UNARY_FLOOR, floor, T, T, floorf(a))                                                          \
  K(GCAP_UNARY_HARD_SIGMOID, hard_sigmoid, T, T, gcap_clip_float(p->alpha* a + p->beta, 0.0f, 1.0f))   \
  K(GCAP_UNARY_IS_NAN, is_nan, T, bool, a != a)

#define GCAP_UNARY_INTEGER_KERNELS(K, T)                                    \
  K(GCAP_UNARY_RELU, relu, T, T, gcap_max_int(a, 0))                        \
  K(GCAP_UNARY_NEG, neg, T, T, gcap_wrap_sub(0, a))                         \
  K(GCAP_UNARY_ABS, abs, T, T, a < 0 ? gcap_wrap_sub(0, a) : a)             \
  K(GCAP_UNARY_BIT_NOT, bit_not, T, T, ~a)                                  \
  K(GCAP_UNARY_SIGN, sign, T, T, a > 0 ? 1 : a < 0 ? -1 : 0)                \
  K(GCAP_UNARY_SHRINK, shrink, T, T, gcap_shrink_int(a, p->alpha, p->beta)) \
  K(GCAP_UNARY_CLIP, clip, T, T, gcap_clip_int(a, p->low_int, p->high_int))

#define GCAP_UNARY_KERNELS(K)        \
  GCAP_UNARY_FLOAT_KERNELS(K, f32)   \
  GCAP_UNARY_FLOAT_KERNELS(K, f16)   \
  GCAP_UNARY_FLOAT_KERNELS(K, bf16)  \
  GCAP_UNARY_INTEGER_KERNELS(K, i64) \
  GCAP_UNARY_INTEGER_KERNELS(K, i32) \
  GCAP_UNARY_INTEGER_KERNELS(K, i8)  \
  GCAP_UNARY_INTEGER_KERNELS(K, u8)  \
  K(GCAP_UNARY_NOT, logical_not, bool, bool, !a)

// Casts, with the type of y as operator. `bool` is a macro, so that it cannot be passed on. An integer that f16 can
// hold is exact as float, and others give infinity.
#define GCAP_CAST_FLOAT_KERNELS(K, T)                     \
  K(GCAP_DTYPE_F32, to_f32, T, f32, a)                    \
  K(GCAP_DTYPE_F16, to_f16, T, f16, a)                    \
  K(GCAP_DTYPE_BF16, to_bf16, T, bf16, a)                 \
  K(GCAP_DTYPE_I64, to_i64, T, i64, gcap_float_to_i64(a)) \
  K(GCAP_DTYPE_I32, to_i32, T, i32, gcap_float_to_i32(a)) \
  K(GCAP_DTYPE_BOOL, to_bool, T, bool, a != 0.0f)         \
  K(GCAP_DTYPE_I8, to_i8, T, i8, gcap_float_to_i8(a))     \
  K(GCAP_DTYPE_U8, to_u8, T, u8, gcap_float_to_u8(a))

#define GCAP_CAST_INTEGER_KERNELS(K, T)                          \
  K(GCAP_DTYPE_F32, to_f32, T, f32, (float)a)                    \
  K(GCAP_DTYPE_F16, to_f16, T, f16, (float)a)                    \
  K(GCAP_DTYPE_BF16, to_bf16, T, bf16, gcap_int_to_odd_float(a)) \
  K(GCAP_DTYPE_I64, to_i64, T, i64, a)                           \
  K(GCAP_DTYPE_I32, to_i32, T, i32, a)                           \
  K(GCAP_DTYPE_BOOL, to_bool, T, bool, a)                        \
  K(GCAP_DTYPE_I8, to_i8, T, i8, a)                              \
  K(GCAP_DTYPE_U8, to_u8, T, u8, a)

#define GCAP_CAST_KERNELS(K)                        \
  GCAP_CAST_FLOAT_KERNELS(K, f32)                   \
  GCAP_CAST_FLOAT_KERNELS(K, f16)                   \
  GCAP_CAST_FLOAT_KERNELS(K, bf16)                  \
  GCAP_CAST_INTEGER_KERNELS(K, i64)                 \
  GCAP_CAST_INTEGER_KERNELS(K, i32)                 \
  GCAP_CAST_INTEGER_KERNELS(K, i8)                  \
  GCAP_CAST_INTEGER_KERNELS(K, u8)                  \
  K(GCAP_DTYPE_F32, to_f32, bool, f32, (float)a)    \
  K(GCAP_DTYPE_F16, to_f16, bool, f16, (float)a)    \
  K(GCAP_DTYPE_BF16, to_bf16, bool, bf16, (float)a) \
  K(GCAP_DTYPE_I64, to_i64, bool, i64, a)           \
  K(GCAP_DTYPE_I32, to_i32, bool, i32, a)           \
  K(GCAP_DTYPE_BOOL, to_bool, bool, bool, a)        \
  K(GCAP_DTYPE_I8, to_i8, bool, i8, a)              \
  K(GCAP_DTYPE_U8, to_u8, bool, u8, a)

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(op, name, in, out, formula) \
  GCAP_KERNEL void gcap_kernel_unary_##name##_##in(gcap_unary_params_t params);
GCAP_UNARY_KERNELS(GCAP_DECLARE_KERNEL)
GCAP_CAST_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_UNARY_KERNELS_H_
