// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the powers of two types: the same function, row by row.
#include "ops/kernels/pow_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_pow(const gcap_pow_params_t* p, size_t bytes, gcap_sim_access_t* out_items, size_t capacity) {
  static const size_t exponent_bytes[] = {[GCAP_EXPONENT_F32] = 4,
                                          [GCAP_EXPONENT_F16] = 2,
                                          [GCAP_EXPONENT_BF16] = 2,
                                          [GCAP_EXPONENT_I64] = 8,
                                          [GCAP_EXPONENT_I32] = 4};
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access_map(&list, &p->map, 0, p->a, bytes, false);
  gcap_twin_access_map(&list, &p->map, 1, p->b, exponent_bytes[p->exponent], false);
  gcap_twin_access(&list, p->y, (size_t)p->map.count * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(T, real, whole)                                                      \
  GCAP_TWIN(pow, T, sizeof(gcap_##T##_t))                                                \
  static void run_pow_##T(const gcap_sim_launch_t* launch, void* const* args) {          \
    (void)launch;                                                                        \
    const gcap_pow_params_t* p = args[0];                                                \
    const int last = p->map.rank - 1;                                                    \
    const int64_t a_step = p->map.strides[0][last], b_step = p->map.strides[1][last];    \
    gcap_twin_rows_t rows = gcap_twin_rows(&p->map);                                     \
    do {                                                                                 \
      for (int64_t i = 0; i < rows.row_size; ++i) {                                      \
        ((gcap_##T##_t*)p->y)[rows.first + i] =                                          \
            gcap_pow_##T(p, rows.offsets[0] + i * a_step, rows.offsets[1] + i * b_step); \
      }                                                                                  \
    } while (gcap_twin_next_row(&rows));                                                 \
  }
GCAP_POW_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(T, real, whole) GCAP_TWIN_REGISTER(pow, T)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t pow_bytes = sizeof(gcap_pow_params_t);
  GCAP_POW_KERNELS(REGISTER_TWIN)
}
