// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of running sums: the same function, line by line.
#include "ops/kernels/cum_sum_kernels.h"
#include "ops/kernels/twin.h"

#define DEFINE_TWIN(T)                                                                                         \
  GCAP_TWIN_HANDLE(gcap_kernel_cum_sum_##T, gcap_cum_sum_params_t)                                             \
  static void run_##T(const gcap_sim_launch_t* launch, void* const* args) {                                    \
    (void)launch;                                                                                              \
    const gcap_cum_sum_params_t* p = args[0];                                                                  \
    for (int64_t i = 0; i < p->lines; ++i) gcap_cum_sum_##T(p, i);                                             \
  }                                                                                                            \
  static size_t accesses_##T(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out_items, \
                             size_t capacity) {                                                                \
    (void)launch;                                                                                              \
    const gcap_cum_sum_params_t* p = args[0];                                                                  \
    gcap_twin_accesses_t list = {out_items, capacity, 0};                                                      \
    const size_t bytes = (size_t)(p->lines * p->size) * sizeof(gcap_##T##_t);                                  \
    gcap_twin_access(&list, p->x, bytes, false);                                                               \
    gcap_twin_access(&list, p->y, bytes, true);                                                                \
    return list.count;                                                                                         \
  }
GCAP_CUM_SUM_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(T)                                                                                      \
  gcap_twin_register((const void*)gcap_kernel_cum_sum_##T, "gcap_kernel_cum_sum_" #T, &params_bytes, run_##T, \
                     accesses_##T);

__attribute__((constructor)) static void register_twins(void) {
  static const size_t params_bytes = sizeof(gcap_cum_sum_params_t);
  GCAP_CUM_SUM_KERNELS(REGISTER_TWIN)
}
