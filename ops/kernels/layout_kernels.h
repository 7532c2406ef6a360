// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// layout_kernels.h: the kernels that move elements: copies between index maps, transposes by tiles, and gathers. Each
// exists for units of several sizes: an element, or as many neighbours as are moved together.
#ifndef GCAP_OPS_KERNELS_LAYOUT_KERNELS_H_
#define GCAP_OPS_KERNELS_LAYOUT_KERNELS_H_

#include <stdint.h>

#include "ops/kernels/element.h"
#include "ops/kernels/index_map.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GCAP_MAX_UNIT_BYTES = 16 };

typedef struct gcap_unit16 {
  uint64_t halves[2];
} __attribute__((aligned(16))) gcap_unit16_t;

typedef struct gcap_copy_params {
  const void* x;
  void* y;
  gcap_index_map_t map;  // of x and y, in units
} gcap_copy_params_t;

// y [batch, columns, rows] = x [batch, rows, columns]
typedef struct gcap_transpose_params {
  const void* x;
  void* y;
  int64_t batch;
  int64_t rows;
  int64_t columns;
} gcap_transpose_params_t;

// x as [outer, axis, inner], y as [outer, indices, inner], in units.
typedef struct gcap_gather_params {
  const void* x;
  const void* indices;
  void* y;
  int64_t outer;
  int64_t axis_size;
  int64_t num_indices;
  int64_t inner;
  int32_t index_bytes;  // 4 or 8
} gcap_gather_params_t;

enum {
  GCAP_TILE = 32,       // a tile is this many rows and columns
  GCAP_TILE_LINES = 8,  // of which a block of GCAP_TILE * GCAP_TILE_LINES threads takes so many lines at a time
};

// K(size of a unit, a type of this size)
#define GCAP_UNIT_KERNELS(K) K(1, uint8_t) K(2, uint16_t) K(4, uint32_t) K(8, uint64_t) K(16, gcap_unit16_t)

// Any one-dimensional grid; of a transpose, blocks of GCAP_TILE * GCAP_TILE_LINES threads.
#define GCAP_DECLARE_KERNEL(bytes, type)                                          \
  GCAP_KERNEL void gcap_kernel_copy_##bytes(gcap_copy_params_t params);           \
  GCAP_KERNEL void gcap_kernel_transpose_##bytes(gcap_transpose_params_t params); \
  GCAP_KERNEL void gcap_kernel_gather_##bytes(gcap_gather_params_t params);
GCAP_UNIT_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_LAYOUT_KERNELS_H_
