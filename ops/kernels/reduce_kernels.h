// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// reduce_kernels.h: the reductions: one list of operators, types and formulas, of which the launch's table, the GPU's
// kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_REDUCE_KERNELS_H_
#define GCAP_OPS_KERNELS_REDUCE_KERNELS_H_

#include "ops/kernels/compensated_sum.h"
#include "ops/kernels/element.h"
#include "ops/kernels/index_map.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_reduce_params {
  const void* x;
  void* y;                   // dense
  int64_t terms;             // elements of x for each of y; may be 0
  gcap_index_map_t kept;     // the axes that y has, of x
  gcap_index_map_t reduced;  // the others, of x; of no meaning without terms
  unsigned lanes;            // threads for each element of y: 1, 32 or a whole block
} gcap_reduce_params_t;

// K(operator, name, type of x and y, accumulator, its start, step, end, combination, result)
//   step         takes the element `v` into the accumulator `acc`
//   end          what the accumulator holds
//   combination  of what two threads' accumulators hold, `a` and `b`
//   result       of the combination `a` of all, with the number of elements `n`
#define GCAP_REDUCE_FLOAT_KERNELS(K, T)                                                                                \
  K(GCAP_REDUCE_SUM, sum, T, gcap_sum_t, gcap_sum_zero(), gcap_sum_add(&acc, v), gcap_sum_value(acc), a + b, a)        \
  K(GCAP_REDUCE_MEAN, mean, T, gcap_sum_t, gcap_sum_zero(), gcap_sum_add(&acc, v), gcap_sum_value(acc), a + b,         \
    a / (float)n)                                                                                                      \
  K(GCAP_REDUCE_MAX, max, T, float, -INFINITY, acc = gcap_max_float(acc, v), acc, gcap_max_float(a, b), a)             \
  K(GCAP_REDUCE_MIN, min, T, float, INFINITY, acc = gcap_min_float(acc, v), acc, gcap_min_float(a, b), a)              \
  K(GCAP_REDUCE_PROD, prod, T, float, 1.0f, acc *= v, acc, a * b, a)                                                   \
  K(GCAP_REDUCE_L1, l1, T, gcap_sum_t, gcap_sum_zero(), gcap_sum_add(&acc, fabsf(v)), gcap_sum_value(acc), a + b, a)   \
  K(GCAP_REDUCE_L2, l2, T, gcap_sum_t, gcap_sum_zero(), gcap_sum_add(&acc, v* v), gcap_sum_value(acc), a + b,          \
    sqrtf(a))                                                                                                          \
  K(GCAP_REDUCE_SUM_SQUARE, sum_square, T, gcap_sum_t, gcap_sum_zero(), gcap_sum_add(&acc, v* v), gcap_sum_value(acc), \
    a + b, a)                                                                                                          \
  K(GCAP_REDUCE_LOG_SUM, log_sum, T, gcap_sum_t, gcap_sum_zero(), gcap_sum_add(&acc, v), gcap_sum_value(acc), a + b,   \
    logf(a))

#define GCAP_REDUCE_INTEGER_KERNELS(K, T, least, largest)                                                              \
  K(GCAP_REDUCE_SUM, sum, T, int64_t, 0, acc = gcap_wrap_add(acc, v), acc, gcap_wrap_add(a, b), a)                     \
  K(GCAP_REDUCE_MEAN, mean, T, int64_t, 0, acc = gcap_wrap_add(acc, v), acc, gcap_wrap_add(a, b), gcap_wrap_div(a, n)) \
  K(GCAP_REDUCE_MAX, max, T, int64_t, least, acc = gcap_max_int(acc, v), acc, gcap_max_int(a, b), a)                   \
  K(GCAP_REDUCE_MIN, min, T, int64_t, largest, acc = gcap_min_int(acc, v), acc, gcap_min_int(a, b), a)                 \
  K(GCAP_REDUCE_PROD, prod, T, int64_t, 1, acc = gcap_wrap_mul(acc, v), acc, gcap_wrap_mul(a, b), a)                   \
  K(GCAP_REDUCE_L1, l1, T, int64_t, 0, acc = gcap_wrap_add(acc, v < 0 ? gcap_wrap_sub(0, v) : v), acc,                 \
    gcap_wrap_add(a, b), a)                                                                                            \
  K(GCAP_REDUCE_SUM_SQUARE, sum_square, T, int64_t, 0, acc = gcap_wrap_add(acc, gcap_wrap_mul(v, v)), acc,             \
    gcap_wrap_add(a, b), a)

#define GCAP_REDUCE_KERNELS(K)                                                                      \
  GCAP_REDUCE_FLOAT_KERNELS(K, f32)                                                                 \
  GCAP_REDUCE_FLOAT_KERNELS(K, f16)                                                                 \
  GCAP_REDUCE_FLOAT_KERNELS(K, bf16)                                                                \
  GCAP_REDUCE_INTEGER_KERNELS(K, i64, INT64_MIN, INT64_MAX)                                         \
  GCAP_REDUCE_INTEGER_KERNELS(K, i32, INT32_MIN, INT32_MAX)                                         \
  K(GCAP_REDUCE_MAX, max, bool, int64_t, 0, acc = gcap_max_int(acc, v), acc, gcap_max_int(a, b), a) \
  K(GCAP_REDUCE_MIN, min, bool, int64_t, 1, acc = gcap_min_int(acc, v), acc, gcap_min_int(a, b), a)

// Any one-dimensional grid; blocks of a multiple of 32 threads, at most GCAP_ROW_BLOCK_THREADS, or of `lanes`.
#define GCAP_DECLARE_KERNEL(op, name, type, accumulator, start, step, end, combination, result) \
  GCAP_KERNEL void gcap_kernel_reduce_##name##_##type(gcap_reduce_params_t params);
GCAP_REDUCE_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_REDUCE_KERNELS_H_
