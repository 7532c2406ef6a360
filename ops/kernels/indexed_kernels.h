// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// indexed_kernels.h: the kernels that move elements to and from places that indices on the device name: where an
// element is, and what a reduction makes of two, for the GPU's kernels and their CPU twins.
#ifndef GCAP_OPS_KERNELS_INDEXED_KERNELS_H_
#define GCAP_OPS_KERNELS_INDEXED_KERNELS_H_

#include "ops/kernels/element.h"
#include "ops/kernels/index_map.h"
#include "ops/kernels/layout_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a scatter does with an update and the element in its place.
typedef enum gcap_scatter_op {
  GCAP_SCATTER_NONE,  // the update replaces the element
  GCAP_SCATTER_ADD,
  GCAP_SCATTER_MUL,
  GCAP_SCATTER_MIN,
  GCAP_SCATTER_MAX,
} gcap_scatter_op_t;

// An index for each element: on one axis of `data`, whose other axes are those of the indices.
typedef struct gcap_elements_params {
  const void* indices;
  const void* from;  // the data of a gather, the updates of a scatter
  void* to;
  gcap_index_map_t map;  // over the indices: of the data at index 0
  int64_t axis_size;
  int64_t axis_stride;
  int32_t index_bytes;  // 4 or 8
  int32_t scatter_op;
} gcap_elements_params_t;

// `depth` indices for each slice of `inner` units of the data. All other places are counted in slices.
typedef struct gcap_slices_params {
  const int64_t* indices;
  const void* from;  // as above
  void* to;
  int64_t slices;  // that move
  int64_t inner;
  int64_t slices_per_batch;
  int64_t batch_stride;
  int64_t sizes[GCAP_MAP_MAX_RANK];  // of the axes that are indexed
  int64_t strides[GCAP_MAP_MAX_RANK];
  int32_t depth;
  int32_t narrow;  // 1: all units that move are counted in 31 bits
  int32_t scatter_op;
} gcap_slices_params_t;

// Rows of `inner` units behind one another in a cache: `from` as [batch, prefixes, rows, inner], `to` as
// [batch, prefixes, capacity, inner].
typedef struct gcap_cache_params {
  const int64_t* starts;  // where the first row goes, for each of the batch; NULL: to the begin
  const void* from;
  void* to;
  int64_t units;  // of `from`
  int64_t prefixes;
  int64_t rows;
  int64_t capacity;
  int64_t inner;
  int32_t circular;
} gcap_cache_params_t;

// An index from the end as one from the begin; -1 if it is out of range.
GCAP_INLINE int64_t gcap_index_inside(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

GCAP_INLINE int64_t gcap_element_index(const gcap_elements_params_t* p, int64_t i) {
  const int64_t index = p->index_bytes == 8 ? ((const int64_t*)p->indices)[i] : ((const int32_t*)p->indices)[i];
  return gcap_index_inside(index, p->axis_size);
}

// The slice of unit `i`. Divisions of 32 bits take a fraction of the time of those of 64.
GCAP_INLINE int64_t gcap_slice_of_unit(const gcap_slices_params_t* p, int64_t i) {
  return p->narrow ? (int64_t)((uint32_t)i / (uint32_t)p->inner) : i / p->inner;
}

// The slice of the data that `slice` is gathered from; -1 if an index is out of range.
GCAP_INLINE int64_t gcap_gathered_slice(const gcap_slices_params_t* p, int64_t slice) {
  int64_t place = slice / p->slices_per_batch * p->batch_stride;
  for (int k = 0; k < p->depth; ++k) {
    const int64_t index = gcap_index_inside(p->indices[slice * p->depth + k], p->sizes[k]);
    if (index < 0) return -1;
    place += index * p->strides[k];
  }
  return place;
}

// The slice of the data that `slice` is scattered to. An index that is out of range is the nearest that is not.
GCAP_INLINE int64_t gcap_scattered_slice(const gcap_slices_params_t* p, int64_t slice) {
  int64_t place = 0;
  for (int k = 0; k < p->depth; ++k) {
    const int64_t size = p->sizes[k];
    int64_t index = gcap_clip_int(p->indices[slice * p->depth + k], -size, size - 1);
    if (index < 0) index += size;
    place += index * p->strides[k];
  }
  return place;
}

// The row of the cache for row `i`; -1 if it is out of range.
GCAP_INLINE int64_t gcap_cache_row(const gcap_cache_params_t* p, int64_t i) {
  const int64_t prefix = i / p->rows, row = i - prefix * p->rows;
  const int64_t start = p->starts == NULL ? 0 : p->starts[prefix / p->prefixes];
  const int64_t at = p->circular ? (start % p->capacity + p->capacity + row) % p->capacity : gcap_wrap_add(start, row);
  return at < 0 || at >= p->capacity ? -1 : prefix * p->capacity + at;
}

// --- Reductions -----------------------------------------------------------------------------------------------------

GCAP_INLINE float gcap_scatter_float(int32_t op, float a, float b) {
  switch (op) {
    case GCAP_SCATTER_ADD: return a + b;
    case GCAP_SCATTER_MUL: return a * b;
    case GCAP_SCATTER_MIN: return gcap_min_float(a, b);
    default: return gcap_max_float(a, b);
  }
}
GCAP_INLINE int64_t gcap_scatter_int(int32_t op, int64_t a, int64_t b) {
  switch (op) {
    case GCAP_SCATTER_ADD: return gcap_wrap_add(a, b);
    case GCAP_SCATTER_MUL: return gcap_wrap_mul(a, b);
    case GCAP_SCATTER_MIN: return gcap_min_int(a, b);
    default: return gcap_max_int(a, b);
  }
}

// K(type, what is computed with, a word of the type's size)
#define GCAP_SCATTER_OP_KERNELS(K) \
  K(f32, float, uint32_t)          \
  K(f16, float, uint16_t) K(bf16, float, uint16_t) K(i64, int, uint64_t) K(i32, int, uint32_t)

// An element and an update, combined.
#define GCAP_DEFINE_SCATTERED(T, kind, word)                                                           \
  GCAP_INLINE gcap_##T##_t gcap_scattered_##T(int32_t op, gcap_##T##_t element, gcap_##T##_t update) { \
    return gcap_store_##T(gcap_scatter_##kind(op, gcap_load_##T(element), gcap_load_##T(update)));     \
  }
GCAP_SCATTER_OP_KERNELS(GCAP_DEFINE_SCATTERED)
#undef GCAP_DEFINE_SCATTERED

// --- Kernels --------------------------------------------------------------------------------------------------------

// K(size of an element, a type of this size). Slices move in units (layout_kernels.h).
#define GCAP_ELEMENT_KERNELS(K) K(1, uint8_t) K(2, uint16_t) K(4, uint32_t) K(8, uint64_t)

// Any one-dimensional grid.
#define GCAP_DECLARE_KERNEL(bytes, type)                                               \
  GCAP_KERNEL void gcap_kernel_gather_elements_##bytes(gcap_elements_params_t params); \
  GCAP_KERNEL void gcap_kernel_scatter_elements_##bytes(gcap_elements_params_t params);
GCAP_ELEMENT_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#define GCAP_DECLARE_KERNEL(bytes, type)                                            \
  GCAP_KERNEL void gcap_kernel_gather_slices_##bytes(gcap_slices_params_t params);  \
  GCAP_KERNEL void gcap_kernel_scatter_slices_##bytes(gcap_slices_params_t params); \
  GCAP_KERNEL void gcap_kernel_write_cache_##bytes(gcap_cache_params_t params);
GCAP_UNIT_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#define GCAP_DECLARE_KERNEL(T, kind, word)                                         \
  GCAP_KERNEL void gcap_kernel_reduce_elements_##T(gcap_elements_params_t params); \
  GCAP_KERNEL void gcap_kernel_reduce_slices_##T(gcap_slices_params_t params);
GCAP_SCATTER_OP_KERNELS(GCAP_DECLARE_KERNEL)
#undef GCAP_DECLARE_KERNEL

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_INDEXED_KERNELS_H_
