// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// index_map.h: where the elements of several operands are that belong together: a shape, and for each operand the
// distance, in elements, between neighbours on each axis; 0 where the operand is broadcast. A kernel's parameter.
#ifndef GCAP_OPS_KERNELS_INDEX_MAP_H_
#define GCAP_OPS_KERNELS_INDEX_MAP_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GCAP_MAP_MAX_RANK = 8, GCAP_MAP_MAX_OPERANDS = 3 };

// Axes of one element are dropped, and axes that every operand walks as one are merged, so the rank is 1 wherever all
// operands are dense or constant. At least one axis and one element.
typedef struct gcap_index_map {
  int32_t rank;
  int32_t narrow;  // 1: all indices and offsets fit into 31 bits
  int64_t count;   // elements of the shape
  int64_t shape[GCAP_MAP_MAX_RANK];
  int64_t strides[GCAP_MAP_MAX_OPERANDS][GCAP_MAP_MAX_RANK];
} gcap_index_map_t;

// Starts a map of no axes; then come the axes, the outermost first, each with a stride for each operand.
void gcap_index_map_begin(gcap_index_map_t* map);
void gcap_index_map_add_axis(gcap_index_map_t* map, int64_t size, const int64_t strides[GCAP_MAP_MAX_OPERANDS]);
// After the last axis.
void gcap_index_map_end(gcap_index_map_t* map);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_INDEX_MAP_H_
