// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of padding: the same function, unit by unit. From the first to the last element that a step on each
// axis reaches, all of x counts as read.
#include <string.h>

#include "ops/kernels/pad_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_pad(const gcap_pad_params_t* p, size_t bytes, gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  int64_t reach = 1;
  for (int32_t k = 0; k < p->rank && reach > 0; ++k) {
    reach = p->axes[k].extent > 0 ? reach + (p->axes[k].extent - 1) * p->axes[k].stride : 0;
  }
  if (reach > 0) gcap_twin_access(&list, p->x, (size_t)reach * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->count * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(bytes, type)                                                                                   \
  GCAP_TWIN_HANDLE(gcap_kernel_pad_##bytes, gcap_pad_params_t)                                                     \
  static void run_##bytes(const gcap_sim_launch_t* launch, void* const* args) {                                    \
    (void)launch;                                                                                                  \
    const gcap_pad_params_t* p = args[0];                                                                          \
    type value;                                                                                                    \
    memcpy(&value, &p->value, sizeof(value));                                                                      \
    for (int64_t i = 0; i < p->count; ++i) {                                                                       \
      const int64_t source = gcap_pad_source(p, i);                                                                \
      ((type*)p->y)[i] = source < 0 ? value : ((const type*)p->x)[source];                                         \
    }                                                                                                              \
  }                                                                                                                \
  static size_t accesses_##bytes(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out_items, \
                                 size_t capacity) {                                                                \
    (void)launch;                                                                                                  \
    return list_pad(args[0], bytes, out_items, capacity);                                                          \
  }
GCAP_UNIT_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(bytes, type)                                                                                \
  gcap_twin_register((const void*)gcap_kernel_pad_##bytes, "gcap_kernel_pad_" #bytes, &params_bytes, run_##bytes, \
                     accesses_##bytes);

__attribute__((constructor)) static void register_twins(void) {
  static const size_t params_bytes = sizeof(gcap_pad_params_t);
  GCAP_UNIT_KERNELS(REGISTER_TWIN)
}
