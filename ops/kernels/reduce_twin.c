// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the reductions: the same formulas, with one accumulator for each element of the output.
#include "ops/kernels/reduce_kernels.h"
#include "ops/kernels/twin.h"

#define DEFINE_TWIN(op, name, type, accumulator, start, step, end, combination, result)                             \
  GCAP_TWIN_HANDLE(gcap_kernel_reduce_##name##_##type, gcap_reduce_params_t)                                        \
  static gcap_##type##_t reduce_##name##_##type(const gcap_##type##_t* x, const gcap_index_map_t* map, int64_t n) { \
    accumulator acc = start;                                                                                        \
    const int64_t x_step = map->strides[0][map->rank - 1];                                                          \
    gcap_twin_rows_t rows = gcap_twin_rows(map);                                                                    \
    if (n > 0) {                                                                                                    \
      do {                                                                                                          \
        for (int64_t i = 0; i < rows.row_size; ++i) {                                                               \
          const gcap_computed_##type##_t v = gcap_load_##type(x[rows.offsets[0] + i * x_step]);                     \
          step;                                                                                                     \
        }                                                                                                           \
      } while (gcap_twin_next_row(&rows));                                                                          \
    }                                                                                                               \
    const gcap_computed_##type##_t a = end;                                                                         \
    return gcap_store_##type(result);                                                                               \
  }                                                                                                                 \
  static void run_##name##_##type(const gcap_sim_launch_t* launch, void* const* args) {                             \
    (void)launch;                                                                                                   \
    const gcap_reduce_params_t* p = args[0];                                                                        \
    const int64_t x_step = p->kept.strides[0][p->kept.rank - 1];                                                    \
    gcap_twin_rows_t rows = gcap_twin_rows(&p->kept);                                                               \
    do {                                                                                                            \
      for (int64_t i = 0; i < rows.row_size; ++i) {                                                                 \
        /* Of no terms there is no x. */                                                                            \
        const gcap_##type##_t* x = p->x;                                                                            \
        if (x != NULL) x += rows.offsets[0] + i * x_step;                                                           \
        ((gcap_##type##_t*)p->y)[rows.first + i] = reduce_##name##_##type(x, &p->reduced, p->terms);                \
      }                                                                                                             \
    } while (gcap_twin_next_row(&rows));                                                                            \
  }                                                                                                                 \
  static size_t accesses_##name##_##type(const gcap_sim_launch_t* launch, void* const* args,                        \
                                         gcap_sim_access_t* out_items, size_t capacity) {                           \
    (void)launch;                                                                                                   \
    return list_accesses(args[0], sizeof(gcap_##type##_t), out_items, capacity);                                    \
  }

// All of x is read, which is dense.
static size_t list_accesses(const gcap_reduce_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                            size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->x, (size_t)(p->kept.count * p->terms) * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->kept.count * bytes, true);
  return list.count;
}

GCAP_REDUCE_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(op, name, type, accumulator, start, step, end, combination, result)                    \
  gcap_twin_register((const void*)gcap_kernel_reduce_##name##_##type, "gcap_kernel_reduce_" #name "_" #type, \
                     &params_bytes, run_##name##_##type, accesses_##name##_##type);

__attribute__((constructor)) static void register_twins(void) {
  static const size_t params_bytes = sizeof(gcap_reduce_params_t);
  GCAP_REDUCE_KERNELS(REGISTER_TWIN)
}
