// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// row_norm_kernels.h: rows divided by their deviation or by a norm, for normalizations of instances, groups and roots
// of mean squares, and for Lp norms. A row is of up to two blocks of axes: x as [outer, columns / inner, kept, inner],
// of which `outer` and `kept` count rows. Something may be added to x first: the sum is rounded and written, and its
// rows are normalized. What one element needs is a function here, of which the GPU's kernels and their CPU twins are
// made.
#ifndef GCAP_OPS_KERNELS_ROW_NORM_KERNELS_H_
#define GCAP_OPS_KERNELS_ROW_NORM_KERNELS_H_

#include <stddef.h>

#include "ops/kernels/compensated_sum.h"
#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a row is divided by.
enum {
  GCAP_ROW_NORM_DEVIATION,  // sqrt(mean of the squares + epsilon)
  GCAP_ROW_NORM_L1,         // the sum of the magnitudes; a row of zeros stays as it is
  GCAP_ROW_NORM_L2,         // the root of the sum of the squares; likewise
};

typedef struct gcap_row_norm_params {
  const void* x;
  void* y;
  const void* scale;  // NULL: 1
  const void* bias;   // NULL: 0
  int64_t rows, columns, kept, inner;
  // Element c of row r has the scale (r % scale_rows) * scale_columns + c / scale_span, and the bias of this number.
  int64_t scale_rows, scale_columns, scale_span;
  // NULL: nothing is added. Else row r of x, which is dense, gets row r % skip_rows of `skip`, and `addend` if there is
  // one, which is one row. `sum` is where the rows go that are normalized; it may be y.
  const void* skip;
  const void* addend;
  void* sum;
  int64_t skip_rows;
  float epsilon;
  int32_t kind;
  int32_t centers;  // 1: the mean of the row is taken from its elements first
  unsigned lanes;   // threads for each row: 1, 32 or a whole block
} gcap_row_norm_params_t;

// The first element of a row.
GCAP_INLINE int64_t gcap_row_norm_first(const gcap_row_norm_params_t* p, int64_t row) {
  if (p->kept == 1) return row * p->columns;
  return row / p->kept * p->kept * p->columns + row % p->kept * p->inner;
}

// How far element `column` of a row is from its first one.
GCAP_INLINE int64_t gcap_row_norm_offset(const gcap_row_norm_params_t* p, int64_t column) {
  if (p->columns == p->inner) return column;
  if (p->inner == 1) return column * p->kept;
  return column / p->inner * p->kept * p->inner + column % p->inner;
}

GCAP_INLINE int64_t gcap_row_norm_scale_at(const gcap_row_norm_params_t* p, int64_t row, int64_t column) {
  return row % p->scale_rows * p->scale_columns + (p->scale_span == 1 ? column : column / p->scale_span);
}

// What an element adds to the sum.
GCAP_INLINE float gcap_row_norm_term(const gcap_row_norm_params_t* p, float value) {
  return p->kind == GCAP_ROW_NORM_L1 ? fabsf(value) : value * value;
}

GCAP_INLINE float gcap_row_norm_divisor(const gcap_row_norm_params_t* p, float sum) {
  if (p->kind == GCAP_ROW_NORM_DEVIATION) return sqrtf(sum / (float)p->columns + p->epsilon);
  if (sum == 0.0f) return 1.0f;
  return p->kind == GCAP_ROW_NORM_L1 ? sum : sqrtf(sum);
}

// K(type)
#define GCAP_ROW_NORM_KERNELS(K) K(f32) K(f16) K(bf16)

// Any one-dimensional grid; blocks of a multiple of 32 threads, at most GCAP_ROW_BLOCK_THREADS, or of `lanes`.
#define GCAP_DECLARE_KERNEL(type) GCAP_KERNEL void gcap_kernel_row_norm_##type(gcap_row_norm_params_t params);
GCAP_ROW_NORM_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_ROW_NORM_KERNELS_H_
