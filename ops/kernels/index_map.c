// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Index maps: an axis is merged with the one before it as soon as it is added, if for every operand a step on the outer
// axis is as far as a walk over the inner one.
#include "ops/kernels/index_map.h"

#include <stdbool.h>
#include <string.h>

void gcap_index_map_begin(gcap_index_map_t* map) {
  memset(map, 0, sizeof(*map));
  map->count = 1;
}

static bool continues_last_axis(const gcap_index_map_t* map, int64_t size, const int64_t* strides) {
  if (map->rank == 0) return false;
  for (int k = 0; k < GCAP_MAP_MAX_OPERANDS; ++k) {
    if (map->strides[k][map->rank - 1] != size * strides[k]) return false;
  }
  return true;
}

void gcap_index_map_add_axis(gcap_index_map_t* map, int64_t size, const int64_t strides[GCAP_MAP_MAX_OPERANDS]) {
  map->count *= size;
  if (size == 1) return;
  const bool merges = continues_last_axis(map, size, strides);
  const int axis = merges ? map->rank - 1 : map->rank++;
  map->shape[axis] = merges ? map->shape[axis] * size : size;
  for (int k = 0; k < GCAP_MAP_MAX_OPERANDS; ++k) map->strides[k][axis] = strides[k];
}

// The offset of the element that is farthest from the first.
static uint64_t reach(const gcap_index_map_t* map, const int64_t* strides) {
  uint64_t offset = 0;
  for (int axis = 0; axis < map->rank; ++axis) {
    offset += (uint64_t)(map->shape[axis] - 1) * (uint64_t)(strides[axis] < 0 ? -strides[axis] : strides[axis]);
  }
  return offset;
}

void gcap_index_map_end(gcap_index_map_t* map) {
  if (map->rank == 0) map->shape[map->rank++] = 1;
  map->narrow = map->count <= INT32_MAX;
  for (int k = 0; k < GCAP_MAP_MAX_OPERANDS; ++k) {
    if (reach(map, map->strides[k]) > INT32_MAX) map->narrow = 0;
  }
}
