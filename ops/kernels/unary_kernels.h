// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// unary_kernels.h: the kernels of one input: lists of operators, types and formulas, of which the launches' tables, the
// GPU's kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_UNARY_KERNELS_H_
#define GCAP_OPS_KERNELS_UNARY_KERNELS_H_

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

// K(operator, name, type of x, type of y, formula); `a` is the element, `p` the parameters.
//
// 1 + erf and 1 + tanh cancel for large negative elements: erfc and the quotient do not.
#define GCAP_UNARY_FLOAT_KERNELS(K, T)                                                                    \
  K(GCAP_UNARY_RELU, relu, T, T, a < 0.0f ? 0.0f : a)                                                     \
  K(GCAP_UNARY_GELU, gelu, T, T, 0.5f * a * erfcf(a * -0.707106781f))                                     \
  K(GCAP_UNARY_GELU_TANH, gelu_tanh, T, T, a / (1.0f + expf(-1.59576912f * (a + 0.044715f * a * a * a)))) \
  K(GCAP_UNARY_SIGMOID, sigmoid, T, T, 1.0f / (1.0f + expf(-a)))                                          \
  K(GCAP_UNARY_TANH, tanh, T, T, tanhf(a))                                                                \
  K(GCAP_UNARY_ERF, erf, T, T, erff(a))                                                                   \
  K(GCAP_UNARY_EXP, exp, T, T, expf(a))                                                                   \
  K(GCAP_UNARY_LOG, log, T, T, logf(a))                                                                   \
  K(GCAP_UNARY_SQRT, sqrt, T, T, sqrtf(a))                                                                \
  K(GCAP_UNARY_NEG, neg, T, T, -a)                                                                        \
  K(GCAP_UNARY_RECIPROCAL, reciprocal, T, T, 1.0f / a)                                                    \
  K(GCAP_UNARY_ABS, abs, T, T, fabsf(a))                                                                  \
  K(GCAP_UNARY_LEAKY_RELU, leaky_relu, T, T, a < 0.0f ? p->alpha * a : a)                                 \
  K(GCAP_UNARY_CLIP, clip, T, T, gcap_clip_float(a, p->low, p->high))                                     \
  K(GCAP_UNARY_COS, cos, T, T, cosf(a))                                                                   \
  K(GCAP_UNARY_FLOOR, floor, T, T, floorf(a))                                                             \
  K(GCAP_UNARY_HARD_SIGMOID, hard_sigmoid, T, T, gcap_clip_float(p->alpha* a + p->beta, 0.0f, 1.0f))      \
  K(GCAP_UNARY_IS_NAN, is_nan, T, bool, a != a)

#define GCAP_UNARY_INTEGER_KERNELS(K, T)                        \
  K(GCAP_UNARY_RELU, relu, T, T, gcap_max_int(a, 0))            \
  K(GCAP_UNARY_NEG, neg, T, T, gcap_wrap_sub(0, a))             \
  K(GCAP_UNARY_ABS, abs, T, T, a < 0 ? gcap_wrap_sub(0, a) : a) \
  K(GCAP_UNARY_CLIP, clip, T, T, gcap_clip_int(a, p->low_int, p->high_int))

#define GCAP_UNARY_KERNELS(K)        \
  GCAP_UNARY_FLOAT_KERNELS(K, f32)   \
  GCAP_UNARY_FLOAT_KERNELS(K, f16)   \
  GCAP_UNARY_FLOAT_KERNELS(K, bf16)  \
  GCAP_UNARY_INTEGER_KERNELS(K, i64) \
  GCAP_UNARY_INTEGER_KERNELS(K, i32) \
  K(GCAP_UNARY_NOT, logical_not, bool, bool, !a)

// Casts, with the type of y as operator. An integer that f16 can hold is exact as float, and others give infinity.
#define GCAP_CAST_FLOAT_KERNELS(K, T)                     \
  K(GCAP_DTYPE_F32, to_f32, T, f32, a)                    \
  K(GCAP_DTYPE_F16, to_f16, T, f16, a)                    \
  K(GCAP_DTYPE_BF16, to_bf16, T, bf16, a)                 \
  K(GCAP_DTYPE_I64, to_i64, T, i64, gcap_float_to_i64(a)) \
  K(GCAP_DTYPE_I32, to_i32, T, i32, gcap_float_to_i32(a)) \
  K(GCAP_DTYPE_BOOL, to_bool, T, bool, a != 0.0f)

#define GCAP_CAST_INTEGER_KERNELS(K, T)                          \
  K(GCAP_DTYPE_F32, to_f32, T, f32, (float)a)                    \
  K(GCAP_DTYPE_F16, to_f16, T, f16, (float)a)                    \
  K(GCAP_DTYPE_BF16, to_bf16, T, bf16, gcap_int_to_odd_float(a)) \
  K(GCAP_DTYPE_I64, to_i64, T, i64, a)                           \
  K(GCAP_DTYPE_I32, to_i32, T, i32, a)                           \
  K(GCAP_DTYPE_BOOL, to_bool, T, bool, a)

#define GCAP_CAST_KERNELS(K)                        \
  GCAP_CAST_FLOAT_KERNELS(K, f32)                   \
  GCAP_CAST_FLOAT_KERNELS(K, f16)                   \
  GCAP_CAST_FLOAT_KERNELS(K, bf16)                  \
  GCAP_CAST_INTEGER_KERNELS(K, i64)                 \
  GCAP_CAST_INTEGER_KERNELS(K, i32)                 \
  K(GCAP_DTYPE_F32, to_f32, bool, f32, (float)a)    \
  K(GCAP_DTYPE_F16, to_f16, bool, f16, (float)a)    \
  K(GCAP_DTYPE_BF16, to_bf16, bool, bf16, (float)a) \
  K(GCAP_DTYPE_I64, to_i64, bool, i64, a)           \
  K(GCAP_DTYPE_I32, to_i32, bool, i32, a)           \
  K(GCAP_DTYPE_BOOL, to_bool, bool, bool, a)

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
