// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the choice between two inputs. Which of two elements is read depends on the condition, so both count
// as read.
#include "ops/kernels/twin.h"
#include "ops/kernels/where_kernels.h"

static size_t list_where(const gcap_where_params_t* p, size_t bytes, gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access_map(&list, &p->map, 0, p->condition, 1, false);
  gcap_twin_access_map(&list, &p->map, 1, p->a, bytes, false);
  gcap_twin_access_map(&list, &p->map, 2, p->b, bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->map.count * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(bytes, type)                                                                        \
  GCAP_TWIN(where, bytes, bytes)                                                                        \
  static void run_where_##bytes(const gcap_sim_launch_t* launch, void* const* args) {                   \
    (void)launch;                                                                                       \
    const gcap_where_params_t* p = args[0];                                                             \
    const int last = p->map.rank - 1;                                                                   \
    const int64_t c_step = p->map.strides[0][last], a_step = p->map.strides[1][last],                   \
                  b_step = p->map.strides[2][last];                                                     \
    gcap_twin_rows_t rows = gcap_twin_rows(&p->map);                                                    \
    do {                                                                                                \
      const uint8_t* c = p->condition + rows.offsets[0];                                                \
      const type* a = (const type*)p->a + rows.offsets[1];                                              \
      const type* b = (const type*)p->b + rows.offsets[2];                                              \
      type* y = (type*)p->y + rows.first;                                                               \
      for (int64_t i = 0; i < rows.row_size; ++i) y[i] = c[i * c_step] ? a[i * a_step] : b[i * b_step]; \
    } while (gcap_twin_next_row(&rows));                                                                \
  }
GCAP_WHERE_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(bytes, type) GCAP_TWIN_REGISTER(where, bytes)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t where_bytes = sizeof(gcap_where_params_t);
  GCAP_WHERE_KERNELS(REGISTER_TWIN)
}
