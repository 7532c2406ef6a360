// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// normalize_kernels.h: the kernels of softmax and layer normalization, one for each type.
#ifndef GCAP_OPS_KERNELS_NORMALIZE_KERNELS_H_
#define GCAP_OPS_KERNELS_NORMALIZE_KERNELS_H_

#include "ops/kernels/compensated_sum.h"
#include "ops/kernels/element.h"

#ifdef __cplusplus
extern "C" {
#endif

// x as [outer, columns, inner]: a row is the elements of one outer and one inner index.
typedef struct gcap_softmax_params {
  const void* x;
  void* y;
  int64_t rows;  // outer * inner
  int64_t columns;
  int64_t inner;
  unsigned lanes;  // threads for each row: 1, 32 or a whole block
} gcap_softmax_params_t;

// x as [rows, columns].
typedef struct gcap_layer_norm_params {
  const void* x;
  void* y;
  const void* scale;
  const void* bias;    // NULL: none
  float* mean;         // of each row; NULL: not wanted
  float* inv_std_dev;  // the same
  int64_t rows;
  int64_t columns;
  float epsilon;
  unsigned lanes;  // threads for each row: 1, 32 or a whole block
} gcap_layer_norm_params_t;

// K(name, type, result) with the element `a` less the largest of its row, and the `sum` of the row's exponentials.
#define GCAP_SOFTMAX_KERNELS_OF(K, T) K(softmax, T, expf(a) / sum) K(log_softmax, T, a - logf(sum))
#define GCAP_SOFTMAX_KERNELS(K)   \
  GCAP_SOFTMAX_KERNELS_OF(K, f32) \
  GCAP_SOFTMAX_KERNELS_OF(K, f16) \
  GCAP_SOFTMAX_KERNELS_OF(K, bf16)

// K(type)
#define GCAP_LAYER_NORM_KERNELS(K) K(f32) K(f16) K(bf16)

// Any one-dimensional grid; blocks of a multiple of 32 threads, at most GCAP_ROW_BLOCK_THREADS, or of `lanes`.
#define GCAP_DECLARE_SOFTMAX(name, type, result) \
  GCAP_KERNEL void gcap_kernel_##name##_##type(gcap_softmax_params_t params);
#define GCAP_DECLARE_LAYER_NORM(type) GCAP_KERNEL void gcap_kernel_layer_norm_##type(gcap_layer_norm_params_t params);
GCAP_SOFTMAX_KERNELS(GCAP_DECLARE_SOFTMAX)
GCAP_LAYER_NORM_KERNELS(GCAP_DECLARE_LAYER_NORM)
#undef GCAP_DECLARE_SOFTMAX
#undef GCAP_DECLARE_LAYER_NORM

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_NORMALIZE_KERNELS_H_
