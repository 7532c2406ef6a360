// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of ranges: the same function, number by number.
#include "ops/kernels/range_kernels.h"
#include "ops/kernels/twin.h"

#define DEFINE_TWIN(T)                                                                                         \
  GCAP_TWIN_HANDLE(gcap_kernel_range_##T, gcap_range_params_t)                                                 \
  static void run_##T(const gcap_sim_launch_t* launch, void* const* args) {                                    \
    (void)launch;                                                                                              \
    const gcap_range_params_t* p = args[0];                                                                    \
    for (int64_t i = 0; i < p->count; ++i) ((gcap_##T##_t*)p->y)[i] = gcap_range_##T(p, i);                    \
  }                                                                                                            \
  static size_t accesses_##T(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out_items, \
                             size_t capacity) {                                                                \
    (void)launch;                                                                                              \
    const gcap_range_params_t* p = args[0];                                                                    \
    gcap_twin_accesses_t list = {out_items, capacity, 0};                                                      \
    gcap_twin_access(&list, p->y, (size_t)p->count * sizeof(gcap_##T##_t), true);                              \
    return list.count;                                                                                         \
  }
GCAP_RANGE_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(T) \
  gcap_twin_register((const void*)gcap_kernel_range_##T, "gcap_kernel_range_" #T, &params_bytes, run_##T, accesses_##T);

__attribute__((constructor)) static void register_twins(void) {
  static const size_t params_bytes = sizeof(gcap_range_params_t);
  GCAP_RANGE_KERNELS(REGISTER_TWIN)
}
