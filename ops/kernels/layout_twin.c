// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the kernels that move elements. What a gather reads depends on the indices, so all of x counts as
// read.
#include <string.h>

#include "ops/kernels/layout_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_copy(const gcap_copy_params_t* p, size_t bytes, gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access_map(&list, &p->map, 0, p->x, bytes, false);
  gcap_twin_access_map(&list, &p->map, 1, p->y, bytes, true);
  return list.count;
}

static size_t list_transpose(const gcap_transpose_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                             size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->x, (size_t)(p->batch * p->rows * p->columns) * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)(p->batch * p->rows * p->columns) * bytes, true);
  return list.count;
}

static size_t list_gather(const gcap_gather_params_t* p, size_t bytes, gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->x, (size_t)(p->outer * p->axis_size * p->inner) * bytes, false);
  gcap_twin_access(&list, p->indices, (size_t)p->num_indices * (size_t)p->index_bytes, false);
  gcap_twin_access(&list, p->y, (size_t)(p->outer * p->num_indices * p->inner) * bytes, true);
  return list.count;
}

static int64_t index_at(const gcap_gather_params_t* p, int64_t i) {
  const int64_t index = p->index_bytes == 8 ? ((const int64_t*)p->indices)[i] : ((const int32_t*)p->indices)[i];
  return index < 0 ? index + p->axis_size : index;
}

#define DEFINE_RUNS(bytes, type)                                                                            \
  static void run_copy_##bytes(const gcap_sim_launch_t* launch, void* const* args) {                        \
    (void)launch;                                                                                           \
    const gcap_copy_params_t* p = args[0];                                                                  \
    const int64_t x_step = p->map.strides[0][p->map.rank - 1], y_step = p->map.strides[1][p->map.rank - 1]; \
    gcap_twin_rows_t rows = gcap_twin_rows(&p->map);                                                        \
    do {                                                                                                    \
      const type* x = (const type*)p->x + rows.offsets[0];                                                  \
      type* y = (type*)p->y + rows.offsets[1];                                                              \
      for (int64_t i = 0; i < rows.row_size; ++i) y[i * y_step] = x[i * x_step];                            \
    } while (gcap_twin_next_row(&rows));                                                                    \
  }                                                                                                         \
  static void run_transpose_##bytes(const gcap_sim_launch_t* launch, void* const* args) {                   \
    (void)launch;                                                                                           \
    const gcap_transpose_params_t* p = args[0];                                                             \
    const type* x = p->x;                                                                                   \
    type* y = p->y;                                                                                         \
    for (int64_t b = 0; b < p->batch; ++b, x += p->rows * p->columns) {                                     \
      for (int64_t column = 0; column < p->columns; ++column) {                                             \
        for (int64_t row = 0; row < p->rows; ++row) *y++ = x[row * p->columns + column];                    \
      }                                                                                                     \
    }                                                                                                       \
  }                                                                                                         \
  static void run_gather_##bytes(const gcap_sim_launch_t* launch, void* const* args) {                      \
    (void)launch;                                                                                           \
    const gcap_gather_params_t* p = args[0];                                                                \
    type* y = p->y;                                                                                         \
    for (int64_t row = 0; row < p->outer * p->num_indices; ++row, y += p->inner) {                          \
      const int64_t index = index_at(p, row % p->num_indices);                                              \
      if (index < 0 || index >= p->axis_size) {                                                             \
        memset(y, 0, (size_t)p->inner * sizeof(type));                                                      \
      } else {                                                                                              \
        const int64_t from = (row / p->num_indices * p->axis_size + index) * p->inner;                      \
        memcpy(y, (const type*)p->x + from, (size_t)p->inner * sizeof(type));                               \
      }                                                                                                     \
    }                                                                                                       \
  }

#define DEFINE_TWINS(bytes, type) \
  DEFINE_RUNS(bytes, type)        \
  GCAP_TWIN(copy, bytes, bytes) GCAP_TWIN(transpose, bytes, bytes) GCAP_TWIN(gather, bytes, bytes)
GCAP_UNIT_KERNELS(DEFINE_TWINS)

#define REGISTER_TWINS(bytes, type) \
  GCAP_TWIN_REGISTER(copy, bytes) GCAP_TWIN_REGISTER(transpose, bytes) GCAP_TWIN_REGISTER(gather, bytes)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t copy_bytes = sizeof(gcap_copy_params_t);
  static const size_t transpose_bytes = sizeof(gcap_transpose_params_t);
  static const size_t gather_bytes = sizeof(gcap_gather_params_t);
  GCAP_UNIT_KERNELS(REGISTER_TWINS)
}
