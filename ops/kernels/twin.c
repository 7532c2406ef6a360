// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Walks over index maps and lists of byte ranges, for CPU twins. No state.
#include "ops/kernels/twin.h"

#include <string.h>

void gcap_twin_register(const void* kernel, const char* name, const size_t* params_bytes,
                        void (*run)(const gcap_sim_launch_t*, void* const*),
                        size_t (*accesses)(const gcap_sim_launch_t*, void* const*, gcap_sim_access_t*, size_t)) {
#ifdef GCAP_TWINS_BY_NAME
  kernel = NULL;
#endif
  gcap_sim_register_kernel(&(gcap_sim_kernel_t){
      .function = kernel, .name = name, .arg_bytes = params_bytes, .num_args = 1, .run = run, .accesses = accesses});
}

// --- Rows -----------------------------------------------------------------------------------------------------------

gcap_twin_rows_t gcap_twin_rows(const gcap_index_map_t* map) {
  return (gcap_twin_rows_t){.map = map, .row_size = map->shape[map->rank - 1]};
}

bool gcap_twin_next_row(gcap_twin_rows_t* rows) {
  const gcap_index_map_t* map = rows->map;
  rows->first += rows->row_size;
  for (int axis = map->rank - 2; axis >= 0; --axis) {
    const bool carries = ++rows->index[axis] == map->shape[axis];
    const int64_t steps = carries ? 1 - map->shape[axis] : 1;
    for (int k = 0; k < GCAP_MAP_MAX_OPERANDS; ++k) rows->offsets[k] += steps * map->strides[k][axis];
    if (!carries) return true;
    rows->index[axis] = 0;
  }
  return false;
}

// --- Accesses -------------------------------------------------------------------------------------------------------

void gcap_twin_access(gcap_twin_accesses_t* list, const void* address, size_t bytes, bool is_write) {
  if (list->count < list->capacity) list->items[list->count] = (gcap_sim_access_t){address, bytes, is_write};
  ++list->count;
}

// The axes that move operand `k`, those with the longest steps first, all steps forward. Returns how far behind the
// operand's first element its lowest one is.
static int64_t sort_axes(const gcap_index_map_t* map, int k, gcap_index_map_t* out_sorted) {
  int64_t lowest = 0;
  gcap_index_map_t axes = {0};
  for (int axis = 0; axis < map->rank; ++axis) {
    int64_t stride = map->strides[k][axis];
    if (stride == 0) continue;
    if (stride < 0) lowest += stride * (map->shape[axis] - 1), stride = -stride;
    int at = axes.rank++;
    for (; at > 0 && axes.strides[0][at - 1] < stride; --at) {
      axes.strides[0][at] = axes.strides[0][at - 1];
      axes.shape[at] = axes.shape[at - 1];
    }
    axes.strides[0][at] = stride;
    axes.shape[at] = map->shape[axis];
  }
  gcap_index_map_begin(out_sorted);
  for (int at = 0; at < axes.rank; ++at) {
    gcap_index_map_add_axis(out_sorted, axes.shape[at], (const int64_t[]){axes.strides[0][at], 0, 0});
  }
  gcap_index_map_end(out_sorted);
  return lowest;
}

void gcap_twin_access_map(gcap_twin_accesses_t* list, const gcap_index_map_t* map, int k, const void* address,
                          size_t element_bytes, bool is_write) {
  gcap_index_map_t sorted;
  const char* lowest = (const char*)address + sort_axes(map, k, &sorted) * (int64_t)element_bytes;
  const int64_t step = sorted.strides[0][sorted.rank - 1];
  gcap_twin_rows_t rows = gcap_twin_rows(&sorted);
  do {
    const char* row = lowest + rows.offsets[0] * (int64_t)element_bytes;
    if (step <= 1) {
      gcap_twin_access(list, row, (size_t)rows.row_size * element_bytes, is_write);
      continue;
    }
    for (int64_t i = 0; i < rows.row_size; ++i) {
      gcap_twin_access(list, row + i * step * (int64_t)element_bytes, element_bytes, is_write);
    }
  } while (gcap_twin_next_row(&rows));
}
