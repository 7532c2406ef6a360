// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the kernels whose places indices name, in the order of what moves: of updates that share a place
// without a reduction, the last one stays. What is read or written depends on the indices, so all of the data counts as
// read, and of a scatter also as written: what no update reaches keeps its value.
#include "ops/kernels/indexed_kernels.h"
#include "ops/kernels/twin.h"

// --- Accesses -------------------------------------------------------------------------------------------------------

// How many elements of the data there are from the first to the last that any index reaches.
static int64_t data_of_elements(const gcap_elements_params_t* p) {
  int64_t last = (p->axis_size - 1) * p->axis_stride;
  for (int axis = 0; axis < p->map.rank; ++axis) last += (p->map.shape[axis] - 1) * p->map.strides[0][axis];
  return last + 1;
}

static int64_t data_of_slices(const gcap_slices_params_t* p) {
  int64_t last = (p->slices / p->slices_per_batch - 1) * p->batch_stride;
  for (int k = 0; k < p->depth; ++k) last += (p->sizes[k] - 1) * p->strides[k];
  return (last + 1) * p->inner;
}

typedef struct moved {
  const void *data, *values, *indices;
  size_t data_bytes, values_bytes, index_bytes;
  bool is_gather;
} moved_t;

static size_t list_moved(const moved_t* moved, gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, moved->indices, moved->index_bytes, false);
  gcap_twin_access(&list, moved->data, moved->data_bytes, false);
  if (!moved->is_gather) gcap_twin_access(&list, moved->data, moved->data_bytes, true);
  gcap_twin_access(&list, moved->values, moved->values_bytes, moved->is_gather);
  return list.count;
}

static size_t list_elements(const gcap_elements_params_t* p, size_t bytes, bool is_gather, gcap_sim_access_t* out_items,
                            size_t capacity) {
  return list_moved(&(moved_t){.data = is_gather ? p->from : p->to,
                               .values = is_gather ? p->to : p->from,
                               .indices = p->indices,
                               .data_bytes = (size_t)data_of_elements(p) * bytes,
                               .values_bytes = (size_t)p->map.count * bytes,
                               .index_bytes = (size_t)p->map.count * (size_t)p->index_bytes,
                               .is_gather = is_gather},
                    out_items, capacity);
}

static size_t list_slices(const gcap_slices_params_t* p, size_t bytes, bool is_gather, gcap_sim_access_t* out_items,
                          size_t capacity) {
  return list_moved(&(moved_t){.data = is_gather ? p->from : p->to,
                               .values = is_gather ? p->to : p->from,
                               .indices = p->indices,
                               .data_bytes = (size_t)data_of_slices(p) * bytes,
                               .values_bytes = (size_t)(p->slices * p->inner) * bytes,
                               .index_bytes = (size_t)(p->slices * p->depth) * sizeof(int64_t),
                               .is_gather = is_gather},
                    out_items, capacity);
}

static size_t list_cache(const gcap_cache_params_t* p, size_t bytes, bool is_gather, gcap_sim_access_t* out_items,
                         size_t capacity) {
  const int64_t of_batch = p->prefixes * p->rows * p->inner, batch = p->units / of_batch;
  return list_moved(&(moved_t){.data = p->to,
                               .values = p->from,
                               .indices = p->starts,
                               .data_bytes = (size_t)(batch * p->prefixes * p->capacity * p->inner) * bytes,
                               .values_bytes = (size_t)p->units * bytes,
                               .index_bytes = p->starts == NULL ? 0 : (size_t)batch * sizeof(int64_t),
                               .is_gather = is_gather},
                    out_items, capacity);
}

// --- Runs -----------------------------------------------------------------------------------------------------------

// For each element with an index: `i` is the element, `place` where it is in the data, -1 if nowhere.
#define FOR_EACH_ELEMENT(p, body)                                                                   \
  const int64_t step = (p)->map.strides[0][(p)->map.rank - 1];                                      \
  gcap_twin_rows_t rows = gcap_twin_rows(&(p)->map);                                                \
  do {                                                                                              \
    for (int64_t k = 0; k < rows.row_size; ++k) {                                                   \
      const int64_t i = rows.first + k, index = gcap_element_index((p), i);                         \
      const int64_t place = index < 0 ? -1 : rows.offsets[0] + k * step + index * (p)->axis_stride; \
      body;                                                                                         \
    }                                                                                               \
  } while (gcap_twin_next_row(&rows));

// For each unit of the slices: `i` is the unit, `place` where it is in the data, negative if nowhere.
#define FOR_EACH_UNIT(p, slice_of, body)                                            \
  for (int64_t slice = 0; slice < (p)->slices; ++slice) {                           \
    const int64_t first = slice_of((p), slice) * (p)->inner;                        \
    for (int64_t k = 0; k < (p)->inner; ++k) {                                      \
      const int64_t i = slice * (p)->inner + k, place = first < 0 ? -1 : first + k; \
      body;                                                                         \
    }                                                                               \
  }

#define DEFINE_ELEMENT_RUNS(bytes, type)                                                           \
  static void run_gather_elements_##bytes(const gcap_sim_launch_t* launch, void* const* args) {    \
    (void)launch;                                                                                  \
    const gcap_elements_params_t* p = args[0];                                                     \
    FOR_EACH_ELEMENT(p, ((type*)p->to)[i] = place < 0 ? (type){0} : ((const type*)p->from)[place]) \
  }                                                                                                \
  static void run_scatter_elements_##bytes(const gcap_sim_launch_t* launch, void* const* args) {   \
    (void)launch;                                                                                  \
    const gcap_elements_params_t* p = args[0];                                                     \
    FOR_EACH_ELEMENT(p, if (place >= 0)((type*)p->to)[place] = ((const type*)p->from)[i])          \
  }
GCAP_ELEMENT_KERNELS(DEFINE_ELEMENT_RUNS)

#define DEFINE_SLICE_RUNS(bytes, type)                                                                               \
  static void run_gather_slices_##bytes(const gcap_sim_launch_t* launch, void* const* args) {                        \
    (void)launch;                                                                                                    \
    const gcap_slices_params_t* p = args[0];                                                                         \
    FOR_EACH_UNIT(p, gcap_gathered_slice, ((type*)p->to)[i] = place < 0 ? (type){0} : ((const type*)p->from)[place]) \
  }                                                                                                                  \
  static void run_scatter_slices_##bytes(const gcap_sim_launch_t* launch, void* const* args) {                       \
    (void)launch;                                                                                                    \
    const gcap_slices_params_t* p = args[0];                                                                         \
    FOR_EACH_UNIT(p, gcap_scattered_slice, ((type*)p->to)[place] = ((const type*)p->from)[i])                        \
  }                                                                                                                  \
  static void run_write_cache_##bytes(const gcap_sim_launch_t* launch, void* const* args) {                          \
    (void)launch;                                                                                                    \
    const gcap_cache_params_t* p = args[0];                                                                          \
    for (int64_t i = 0; i < p->units; ++i) {                                                                         \
      const int64_t row = i / p->inner, place = gcap_cache_row(p, row);                                              \
      if (place >= 0) ((type*)p->to)[place * p->inner + i % p->inner] = ((const type*)p->from)[i];                   \
    }                                                                                                                \
  }
GCAP_UNIT_KERNELS(DEFINE_SLICE_RUNS)

#define DEFINE_REDUCTIONS(T, kind, word)                                                                             \
  static void update_##T(int32_t op, gcap_##T##_t* to, gcap_##T##_t update) {                                        \
    *to = gcap_scattered_##T(op, *to, update);                                                                       \
  }                                                                                                                  \
  static void run_reduce_elements_##T(const gcap_sim_launch_t* launch, void* const* args) {                          \
    (void)launch;                                                                                                    \
    const gcap_elements_params_t* p = args[0];                                                                       \
    gcap_##T##_t* to = p->to;                                                                                        \
    FOR_EACH_ELEMENT(p, if (place >= 0) update_##T(p->scatter_op, &to[place], ((const gcap_##T##_t*)p->from)[i]))    \
  }                                                                                                                  \
  static void run_reduce_slices_##T(const gcap_sim_launch_t* launch, void* const* args) {                            \
    (void)launch;                                                                                                    \
    const gcap_slices_params_t* p = args[0];                                                                         \
    gcap_##T##_t* to = p->to;                                                                                        \
    FOR_EACH_UNIT(p, gcap_scattered_slice, update_##T(p->scatter_op, &to[place], ((const gcap_##T##_t*)p->from)[i])) \
  }
GCAP_SCATTER_OP_KERNELS(DEFINE_REDUCTIONS)

// --- Registration ---------------------------------------------------------------------------------------------------

#define DEFINE_TWIN(kernel, family, suffix, bytes, is_gather)                                    \
  GCAP_TWIN_HANDLE(gcap_kernel_##kernel##_##suffix, gcap_##family##_params_t)                    \
  static size_t accesses_##kernel##_##suffix(const gcap_sim_launch_t* launch, void* const* args, \
                                             gcap_sim_access_t* out_items, size_t capacity) {    \
    (void)launch;                                                                                \
    return list_##family(args[0], bytes, is_gather, out_items, capacity);                        \
  }
#define DEFINE_ELEMENT_TWINS(bytes, type)                    \
  DEFINE_TWIN(gather_elements, elements, bytes, bytes, true) \
  DEFINE_TWIN(scatter_elements, elements, bytes, bytes, false)
GCAP_ELEMENT_KERNELS(DEFINE_ELEMENT_TWINS)
#define DEFINE_SLICE_TWINS(bytes, type)                    \
  DEFINE_TWIN(gather_slices, slices, bytes, bytes, true)   \
  DEFINE_TWIN(scatter_slices, slices, bytes, bytes, false) \
  DEFINE_TWIN(write_cache, cache, bytes, bytes, false)
GCAP_UNIT_KERNELS(DEFINE_SLICE_TWINS)
#define DEFINE_REDUCTION_TWINS(T, kind, word)                            \
  DEFINE_TWIN(reduce_elements, elements, T, sizeof(gcap_##T##_t), false) \
  DEFINE_TWIN(reduce_slices, slices, T, sizeof(gcap_##T##_t), false)
GCAP_SCATTER_OP_KERNELS(DEFINE_REDUCTION_TWINS)

#define REGISTER_TWIN(kernel, family, suffix)                                                          \
  gcap_twin_register((const void*)gcap_kernel_##kernel##_##suffix, "gcap_kernel_" #kernel "_" #suffix, \
                     &family##_bytes, run_##kernel##_##suffix, accesses_##kernel##_##suffix);
#define REGISTER_ELEMENT_TWINS(bytes, type) \
  REGISTER_TWIN(gather_elements, elements, bytes) REGISTER_TWIN(scatter_elements, elements, bytes)
#define REGISTER_SLICE_TWINS(bytes, type)     \
  REGISTER_TWIN(gather_slices, slices, bytes) \
  REGISTER_TWIN(scatter_slices, slices, bytes) REGISTER_TWIN(write_cache, cache, bytes)
#define REGISTER_REDUCTION_TWINS(T, kind, word) \
  REGISTER_TWIN(reduce_elements, elements, T) REGISTER_TWIN(reduce_slices, slices, T)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t elements_bytes = sizeof(gcap_elements_params_t);
  static const size_t slices_bytes = sizeof(gcap_slices_params_t), cache_bytes = sizeof(gcap_cache_params_t);
  GCAP_ELEMENT_KERNELS(REGISTER_ELEMENT_TWINS)
  GCAP_UNIT_KERNELS(REGISTER_SLICE_TWINS)
  GCAP_SCATTER_OP_KERNELS(REGISTER_REDUCTION_TWINS)
}
