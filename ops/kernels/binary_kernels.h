// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// binary_kernels.h: the kernels of two inputs: one list of operators, types and formulas, of which the launch's table,
// the GPU's kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_BINARY_KERNELS_H_
#define GCAP_OPS_KERNELS_BINARY_KERNELS_H_

#include "ops/kernels/element.h"
#include "ops/kernels/elementwise_ops.h"
#include "ops/kernels/index_map.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_binary_params {
  const void* a;
  const void* b;
  void* y;               // dense
  gcap_index_map_t map;  // of a and b
  float alpha;
} gcap_binary_params_t;

// K(operator, name, type of a and b, type of y, formula); `p` are the parameters.
#define GCAP_BINARY_FLOAT_KERNELS(K, T)                              \
  K(GCAP_BINARY_ADD, add, T, T, a + b)                               \
  K(GCAP_BINARY_SUB, sub, T, T, a - b)                               \
  K(GCAP_BINARY_MUL, mul, T, T, a* b)                                \
  K(GCAP_BINARY_DIV, div, T, T, a / b)                               \
  K(GCAP_BINARY_POW, pow, T, T, powf(a, b))                          \
  K(GCAP_BINARY_MIN, min, T, T, gcap_min_float(a, b))                \
  K(GCAP_BINARY_MAX, max, T, T, gcap_max_float(a, b))                \
  K(GCAP_BINARY_EQUAL, equal, T, bool, a == b)                       \
  K(GCAP_BINARY_LESS, less, T, bool, a < b)                          \
  K(GCAP_BINARY_GREATER, greater, T, bool, a > b)                    \
  K(GCAP_BINARY_LESS_OR_EQUAL, less_or_equal, T, bool, a <= b)       \
  K(GCAP_BINARY_GREATER_OR_EQUAL, greater_or_equal, T, bool, a >= b) \
  K(GCAP_BINARY_PRELU, prelu, T, T, a < 0.0f ? a * b : a)            \
  K(GCAP_BINARY_FMOD, fmod, T, T, fmodf(a, b))                       \
  K(GCAP_BINARY_GELU, gelu, T, T, gcap_gelu(a + b))                  \
  K(GCAP_BINARY_GELU_TANH, gelu_tanh, T, T, gcap_gelu_tanh(a + b))   \
  K(GCAP_BINARY_RUNNING_MEAN, running_mean, T, T, (a * p->alpha + b) / (p->alpha + 1.0f))

#define GCAP_BINARY_INTEGER_KERNELS(K, T)                            \
  K(GCAP_BINARY_ADD, add, T, T, gcap_wrap_add(a, b))                 \
  K(GCAP_BINARY_SUB, sub, T, T, gcap_wrap_sub(a, b))                 \
  K(GCAP_BINARY_MUL, mul, T, T, gcap_wrap_mul(a, b))                 \
  K(GCAP_BINARY_DIV, div, T, T, gcap_wrap_div(a, b))                 \
  K(GCAP_BINARY_MIN, min, T, T, gcap_min_int(a, b))                  \
  K(GCAP_BINARY_MAX, max, T, T, gcap_max_int(a, b))                  \
  K(GCAP_BINARY_EQUAL, equal, T, bool, a == b)                       \
  K(GCAP_BINARY_LESS, less, T, bool, a < b)                          \
  K(GCAP_BINARY_GREATER, greater, T, bool, a > b)                    \
  K(GCAP_BINARY_LESS_OR_EQUAL, less_or_equal, T, bool, a <= b)       \
  K(GCAP_BINARY_GREATER_OR_EQUAL, greater_or_equal, T, bool, a >= b) \
  K(GCAP_BINARY_BIT_AND, bit_and, T, T, a& b)                        \
  K(GCAP_BINARY_BIT_OR, bit_or, T, T, a | b)                         \
  K(GCAP_BINARY_BIT_XOR, bit_xor, T, T, a ^ b)                       \
  K(GCAP_BINARY_MOD, mod, T, T, gcap_floor_mod(a, b))                \
  K(GCAP_BINARY_FMOD, fmod, T, T, gcap_wrap_rem(a, b))

#define GCAP_BINARY_KERNELS(K)                                        \
  GCAP_BINARY_FLOAT_KERNELS(K, f32)                                   \
  GCAP_BINARY_FLOAT_KERNELS(K, f16)                                   \
  GCAP_BINARY_FLOAT_KERNELS(K, bf16)                                  \
  GCAP_BINARY_INTEGER_KERNELS(K, i64)                                 \
  GCAP_BINARY_INTEGER_KERNELS(K, i32)                                 \
  GCAP_BINARY_INTEGER_KERNELS(K, i8)                                  \
  GCAP_BINARY_INTEGER_KERNELS(K, u8)                                  \
  K(GCAP_BINARY_POW, pow, i64, i64, gcap_wrap_pow(a, b))              \
  K(GCAP_BINARY_POW, pow, i32, i32, gcap_wrap_pow(a, b))              \
  K(GCAP_BINARY_EQUAL, equal, bool, bool, a == b)                     \
  K(GCAP_BINARY_SHIFT_LEFT, shift_left, u8, u8, b < 8 ? a << b : 0)   \
  K(GCAP_BINARY_SHIFT_RIGHT, shift_right, u8, u8, b < 8 ? a >> b : 0) \
  K(GCAP_BINARY_AND, logical_and, bool, bool, a& b)                   \
  K(GCAP_BINARY_OR, logical_or, bool, bool, a | b)                    \
  K(GCAP_BINARY_XOR, logical_xor, bool, bool, a ^ b)

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(op, name, in, out, formula) \
  GCAP_KERNEL void gcap_kernel_binary_##name##_##in(gcap_binary_params_t params);
GCAP_BINARY_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_BINARY_KERNELS_H_
