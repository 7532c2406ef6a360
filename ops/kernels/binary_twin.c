// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the operators of two inputs: the same formulas, row by row.
#include "ops/kernels/binary_kernels.h"
#include "ops/kernels/twin.h"

// A loop for inputs that are dense along the row, which the compiler vectorizes, and one for all.
#define DEFINE_TWIN(op, name, in, out, formula)                                                                  \
  GCAP_TWIN_HANDLE(gcap_kernel_binary_##name##_##in, gcap_binary_params_t)                                       \
  static gcap_##out##_t apply_##name##_##in(gcap_##in##_t x, gcap_##in##_t y, const gcap_binary_params_t* p) {   \
    (void)p;                                                                                                     \
    const gcap_computed_##in##_t a = gcap_load_##in(x), b = gcap_load_##in(y);                                   \
    return gcap_store_##out(formula);                                                                            \
  }                                                                                                              \
  static void run_##name##_##in(const gcap_sim_launch_t* launch, void* const* args) {                            \
    (void)launch;                                                                                                \
    const gcap_binary_params_t* p = args[0];                                                                     \
    const int64_t a_step = p->map.strides[0][p->map.rank - 1], b_step = p->map.strides[1][p->map.rank - 1];      \
    gcap_twin_rows_t rows = gcap_twin_rows(&p->map);                                                             \
    do {                                                                                                         \
      const gcap_##in##_t* a = (const gcap_##in##_t*)p->a + rows.offsets[0];                                     \
      const gcap_##in##_t* b = (const gcap_##in##_t*)p->b + rows.offsets[1];                                     \
      gcap_##out##_t* y = (gcap_##out##_t*)p->y + rows.first;                                                    \
      if (a_step == 1 && b_step == 1) {                                                                          \
        for (int64_t i = 0; i < rows.row_size; ++i) y[i] = apply_##name##_##in(a[i], b[i], p);                   \
      } else {                                                                                                   \
        for (int64_t i = 0; i < rows.row_size; ++i) y[i] = apply_##name##_##in(a[i * a_step], b[i * b_step], p); \
      }                                                                                                          \
    } while (gcap_twin_next_row(&rows));                                                                         \
  }                                                                                                              \
  static size_t accesses_##name##_##in(const gcap_sim_launch_t* launch, void* const* args,                       \
                                       gcap_sim_access_t* out_items, size_t capacity) {                          \
    (void)launch;                                                                                                \
    return list_accesses(args[0], sizeof(gcap_##in##_t), sizeof(gcap_##out##_t), out_items, capacity);           \
  }

static size_t list_accesses(const gcap_binary_params_t* p, size_t in_bytes, size_t out_bytes,
                            gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access_map(&list, &p->map, 0, p->a, in_bytes, false);
  gcap_twin_access_map(&list, &p->map, 1, p->b, in_bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->map.count * out_bytes, true);
  return list.count;
}

GCAP_BINARY_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(op, name, in, out, formula)                                                        \
  gcap_twin_register((const void*)gcap_kernel_binary_##name##_##in, "gcap_kernel_binary_" #name "_" #in, \
                     &params_bytes, run_##name##_##in, accesses_##name##_##in);

__attribute__((constructor)) static void register_twins(void) {
  static const size_t params_bytes = sizeof(gcap_binary_params_t);
  GCAP_BINARY_KERNELS(REGISTER_TWIN)
}
