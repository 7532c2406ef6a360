// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// matmul_integer_kernels.h: products of matrices of 8-bit integers, one output at a time: the function of one output,
// of which the GPU's kernels and their CPU twins are made.
#ifndef GCAP_OPS_KERNELS_MATMUL_INTEGER_KERNELS_H_
#define GCAP_OPS_KERNELS_MATMUL_INTEGER_KERNELS_H_

#include "ops/kernels/element.h"
#include "ops/kernels/index_map.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gcap_matmul_integer_params {
  const void* a;
  const void* b;
  const void* a_zero_point;  // NULL: 0
  const void* b_zero_point;
  int32_t* y;            // dense
  gcap_index_map_t map;  // of y's shape: where the row of a and the column of b begin
  int64_t rows, columns;
  int64_t depth;        // terms of a sum
  int64_t b_step;       // from one element of a column to the next
  int32_t of_each_row;  // 1: a_zero_point has one number for each row; 0: one for all
  int32_t of_each_column;
} gcap_matmul_integer_params_t;

// K(type of a, type of b)
#define GCAP_MATMUL_INTEGER_KERNELS(K) K(i8, i8) K(i8, u8) K(u8, i8) K(u8, u8)

// Output `i`, in the order of memory. The sum wraps around.
#define GCAP_DEFINE_MATMUL_INTEGER(A, B)                                                                          \
  GCAP_INLINE int32_t gcap_matmul_integer_##A##_##B(const gcap_matmul_integer_params_t* p, int64_t i,             \
                                                    int64_t a_offset, int64_t b_offset) {                         \
    const gcap_##A##_t *a = (const gcap_##A##_t*)p->a + a_offset, *a_zero = (const gcap_##A##_t*)p->a_zero_point; \
    const gcap_##B##_t *b = (const gcap_##B##_t*)p->b + b_offset, *b_zero = (const gcap_##B##_t*)p->b_zero_point; \
    const int64_t row = i / p->columns % p->rows, column = i % p->columns;                                        \
    const int32_t of_a = a_zero != NULL ? a_zero[p->of_each_row ? row : 0] : 0;                                   \
    const int32_t of_b = b_zero != NULL ? b_zero[p->of_each_column ? column : 0] : 0;                             \
    uint32_t sum = 0;                                                                                             \
    for (int64_t k = 0; k < p->depth; ++k) sum += (uint32_t)((a[k] - of_a) * (b[k * p->b_step] - of_b));          \
    return (int32_t)sum;                                                                                          \
  }
GCAP_MATMUL_INTEGER_KERNELS(GCAP_DEFINE_MATMUL_INTEGER)
#undef GCAP_DEFINE_MATMUL_INTEGER

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(A, B) \
  GCAP_KERNEL void gcap_kernel_matmul_integer_##A##_##B(gcap_matmul_integer_params_t params);
GCAP_MATMUL_INTEGER_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_MATMUL_INTEGER_KERNELS_H_
