// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the products of 8-bit integers: the same function, output by output.
#include "ops/kernels/matmul_integer_kernels.h"
#include "ops/kernels/twin.h"

// Up to the last element of the operand's last row or column.
static size_t list_accesses(const gcap_matmul_integer_params_t* p, gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  int64_t last[2] = {p->depth, (p->depth - 1) * p->b_step + 1};
  for (int axis = 0; axis < p->map.rank; ++axis) {
    for (int k = 0; k < 2; ++k) last[k] += (p->map.shape[axis] - 1) * p->map.strides[k][axis];
  }
  if (p->depth > 0) gcap_twin_access(&list, p->a, (size_t)last[0], false);
  if (p->depth > 0) gcap_twin_access(&list, p->b, (size_t)last[1], false);
  if (p->a_zero_point != NULL) {
    gcap_twin_access(&list, p->a_zero_point, p->of_each_row ? (size_t)p->rows : 1, false);
  }
  if (p->b_zero_point != NULL) {
    gcap_twin_access(&list, p->b_zero_point, p->of_each_column ? (size_t)p->columns : 1, false);
  }
  gcap_twin_access(&list, p->y, (size_t)p->map.count * sizeof(*p->y), true);
  return list.count;
}

#define DEFINE_TWIN(A, B)                                                                                            \
  GCAP_TWIN_HANDLE(gcap_kernel_matmul_integer_##A##_##B, gcap_matmul_integer_params_t)                               \
  static void run_##A##_##B(const gcap_sim_launch_t* launch, void* const* args) {                                    \
    (void)launch;                                                                                                    \
    const gcap_matmul_integer_params_t* p = args[0];                                                                 \
    const int last = p->map.rank - 1;                                                                                \
    const int64_t a_step = p->map.strides[0][last], b_step = p->map.strides[1][last];                                \
    gcap_twin_rows_t rows = gcap_twin_rows(&p->map);                                                                 \
    do {                                                                                                             \
      for (int64_t i = 0; i < rows.row_size; ++i) {                                                                  \
        p->y[rows.first + i] = gcap_matmul_integer_##A##_##B(p, rows.first + i, rows.offsets[0] + i * a_step,        \
                                                             rows.offsets[1] + i * b_step);                          \
      }                                                                                                              \
    } while (gcap_twin_next_row(&rows));                                                                             \
  }                                                                                                                  \
  static size_t accesses_##A##_##B(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out_items, \
                                   size_t capacity) {                                                                \
    (void)launch;                                                                                                    \
    return list_accesses(args[0], out_items, capacity);                                                              \
  }
GCAP_MATMUL_INTEGER_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(A, B)                                                                                      \
  gcap_twin_register((const void*)gcap_kernel_matmul_integer_##A##_##B, "gcap_kernel_matmul_integer_" #A "_" #B, \
                     &params_bytes, run_##A##_##B, accesses_##A##_##B);

__attribute__((constructor)) static void register_twins(void) {
  static const size_t params_bytes = sizeof(gcap_matmul_integer_params_t);
  GCAP_MATMUL_INTEGER_KERNELS(REGISTER_TWIN)
}
