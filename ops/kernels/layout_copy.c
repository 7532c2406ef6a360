// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The copy behind the operators that move elements. Where neighbours stay neighbours they move together, up to 16 bytes
// at a time; a copy that swaps the last two axes goes by tiles, since along memory it could either only read or only
// write. No state.
#include "ops/kernels/layout_copy.h"

#include <stdbool.h>

#include "ops/kernels/op_launch.h"

#define ENTRY(bytes, type)                                                                      \
  [bytes] = {(const void*)gcap_kernel_copy_##bytes, (const void*)gcap_kernel_transpose_##bytes, \
             (const void*)gcap_kernel_gather_##bytes},
static const gcap_layout_kernels_t kernels[] = {GCAP_UNIT_KERNELS(ENTRY)};

const gcap_layout_kernels_t* gcap_layout_kernels_of(size_t unit_bytes) { return &kernels[unit_bytes]; }

size_t gcap_unit_bytes(size_t bytes, uint64_t addresses_and_lengths) {
  while (bytes < GCAP_MAX_UNIT_BYTES && addresses_and_lengths % (2 * bytes) == 0) bytes *= 2;
  return bytes;
}

void gcap_dense_strides(const gcap_tensor_t* tensor, int64_t* out_strides) {
  int64_t stride = 1;
  for (int axis = tensor->rank - 1; axis >= 0; --axis) {
    out_strides[axis] = stride;
    stride *= tensor->shape[axis];
  }
}

// Makes the map one of larger units; returns their size.
static size_t widen(gcap_copy_params_t* params, size_t element_bytes) {
  gcap_index_map_t* map = &params->map;
  const int last = map->rank - 1;
  if (map->strides[0][last] != 1 || map->strides[1][last] != 1) return element_bytes;
  uint64_t multiples = (uintptr_t)params->x | (uintptr_t)params->y | (uint64_t)map->shape[last] * element_bytes;
  for (int axis = 0; axis < last; ++axis) {
    multiples |= (uint64_t)map->strides[0][axis] * element_bytes | (uint64_t)map->strides[1][axis] * element_bytes;
  }
  const size_t unit = gcap_unit_bytes(element_bytes, multiples);
  const int64_t elements = (int64_t)(unit / element_bytes);
  map->count /= elements;
  map->shape[last] /= elements;
  for (int axis = 0; axis < last; ++axis) {
    map->strides[0][axis] /= elements;
    map->strides[1][axis] /= elements;
  }
  return unit;
}

// Whether y is dense, and x with its last two axes swapped is too.
static bool swaps_last_axes(const gcap_index_map_t* map) {
  const int rank = map->rank;
  if (rank != 2 && rank != 3) return false;
  const int64_t *shape = map->shape + rank - 2, *x = map->strides[0] + rank - 2, *y = map->strides[1] + rank - 2;
  const int64_t size = shape[0] * shape[1];
  if (x[0] != 1 || x[1] != shape[0] || y[0] != shape[1] || y[1] != 1) return false;
  return rank == 2 || (map->strides[0][0] == size && map->strides[1][0] == size);
}

static gcap_status_t transpose(gcap_stream_t* stream, size_t element_bytes, const gcap_copy_params_t* copy) {
  const gcap_index_map_t* map = &copy->map;
  gcap_transpose_params_t params = {.x = copy->x,
                                    .y = copy->y,
                                    .batch = map->rank == 3 ? map->shape[0] : 1,
                                    .rows = map->shape[map->rank - 1],
                                    .columns = map->shape[map->rank - 2]};
  const int64_t tiles =
      params.batch * ((params.rows + GCAP_TILE - 1) / GCAP_TILE) * ((params.columns + GCAP_TILE - 1) / GCAP_TILE);
  return gcap_op_launch(stream, kernels[element_bytes].transpose, tiles, 1, GCAP_TILE * GCAP_TILE_LINES, &params);
}

gcap_status_t gcap_copy_strided(gcap_stream_t* stream, size_t element_bytes, int rank, const int64_t* shape,
                                const void* x, const int64_t* x_strides, void* y, const int64_t* y_strides) {
  gcap_copy_params_t params = {.x = x, .y = y};
  gcap_index_map_begin(&params.map);
  for (int axis = 0; axis < rank; ++axis) {
    if (shape[axis] == 0) return NULL;
    gcap_index_map_add_axis(&params.map, shape[axis], (const int64_t[]){x_strides[axis], y_strides[axis], 0});
  }
  gcap_index_map_end(&params.map);
  if (swaps_last_axes(&params.map)) return transpose(stream, element_bytes, &params);
  const size_t unit = widen(&params, element_bytes);
  return gcap_op_launch(stream, kernels[unit].copy, params.map.count, GCAP_BLOCK_THREADS, GCAP_BLOCK_THREADS, &params);
}
