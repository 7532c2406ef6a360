// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// arrange_kernels.h: the kernels that choose elements by where they are: triangles of matrices, one-hot vectors, and
// sequences that are reversed, for units of each size (layout_kernels.h).
#ifndef GCAP_OPS_KERNELS_ARRANGE_KERNELS_H_
#define GCAP_OPS_KERNELS_ARRANGE_KERNELS_H_

#include <stdint.h>

#include "ops/kernels/layout_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// The elements of a matrix, by the distance d of their column from their row.
typedef enum gcap_triangle {
  GCAP_TRIANGLE_UPPER = 0,  // d >= k
  GCAP_TRIANGLE_LOWER,      // d <= k
  GCAP_TRIANGLE_DIAGONAL,   // d == k
} gcap_triangle_t;

// y = x, or `value` where `x` is NULL, in a triangle of each of the matrices, and 0 outside.
typedef struct gcap_triangle_params {
  gcap_unit16_t value;
  const void* x;
  void* y;
  int64_t count;
  int64_t rows;
  int64_t columns;
  int64_t k;
  int32_t triangle;
} gcap_triangle_params_t;

// y as [outer, depth, inner], indices as [outer, inner].
typedef struct gcap_one_hot_params {
  const void* indices;
  const void* values;  // off, on
  void* y;
  int64_t count;  // of y
  int64_t depth;
  int64_t inner;
  int32_t index_bytes;  // 4 or 8
  int32_t is_float;     // the indices
} gcap_one_hot_params_t;

// x and y as [outer, middle, inner], in units; time is one of the first two, the batch is the other.
typedef struct gcap_reverse_params {
  const void* x;
  const int64_t* lengths;
  void* y;
  int64_t count;
  int64_t outer;
  int64_t middle;
  int64_t inner;
  int32_t time_is_outer;
} gcap_reverse_params_t;

GCAP_INLINE int gcap_triangle_has(const gcap_triangle_params_t* p, int64_t i) {
  const int64_t row = i / p->columns, distance = i - row * p->columns - row % p->rows;
  if (p->triangle == GCAP_TRIANGLE_DIAGONAL) return distance == p->k;
  return p->triangle == GCAP_TRIANGLE_UPPER ? distance >= p->k : distance <= p->k;
}

// 1 where element `i` of y is on. A negative index counts from the end; one that is outside is nowhere on.
GCAP_INLINE int gcap_one_hot_is_on(const gcap_one_hot_params_t* p, int64_t i) {
  const int64_t row = i / p->inner, outer = row / p->depth, at = outer * p->inner + (i - row * p->inner);
  int64_t index = 0;
  if (p->is_float) {
    index = gcap_float_to_i64(((const float*)p->indices)[at]);
  } else {
    index = p->index_bytes == 8 ? ((const int64_t*)p->indices)[at] : ((const int32_t*)p->indices)[at];
  }
  return (index < 0 ? index + p->depth : index) == row - outer * p->depth;
}

// The unit of x that unit `i` of y shows. A length that is outside counts as the nearest.
GCAP_INLINE int64_t gcap_reverse_source(const gcap_reverse_params_t* p, int64_t i) {
  const int64_t row = i / p->inner, outer = row / p->middle, middle = row - outer * p->middle;
  const int64_t time = p->time_is_outer ? outer : middle, steps = p->time_is_outer ? p->outer : p->middle;
  const int64_t given = p->lengths[p->time_is_outer ? middle : outer];
  const int64_t length = gcap_clip_int(given, 0, steps);
  if (time >= length) return i;
  const int64_t from = length - 1 - time;
  return (p->time_is_outer ? from * p->middle + middle : outer * p->middle + from) * p->inner + (i - row * p->inner);
}

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(bytes, type)                                        \
  GCAP_KERNEL void gcap_kernel_triangle_##bytes(gcap_triangle_params_t params); \
  GCAP_KERNEL void gcap_kernel_one_hot_##bytes(gcap_one_hot_params_t params);   \
  GCAP_KERNEL void gcap_kernel_reverse_##bytes(gcap_reverse_params_t params);
GCAP_UNIT_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_ARRANGE_KERNELS_H_
