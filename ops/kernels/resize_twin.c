// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of resizes: the same functions, output by output. All of the input counts as read, though some of it
// may be stepped over.
#include "ops/kernels/resize_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_accesses(const gcap_resize_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                            size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  int64_t inputs = 1;
  for (int32_t k = 0; k < p->rank; ++k) inputs *= p->axes[k].input;
  gcap_twin_access(&list, p->x, (size_t)inputs * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->outputs * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(name, type, element)                                                                          \
  GCAP_TWIN_HANDLE(gcap_kernel_resize_##name, gcap_resize_params_t)                                               \
  static void run_##name(const gcap_sim_launch_t* launch, void* const* args) {                                    \
    (void)launch;                                                                                                 \
    const gcap_resize_params_t* p = args[0];                                                                      \
    for (int64_t i = 0; i < p->outputs; ++i) ((type*)p->y)[i] = (element);                                        \
  }                                                                                                               \
  static size_t accesses_##name(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out_items, \
                                size_t capacity) {                                                                \
    (void)launch;                                                                                                 \
    return list_accesses(args[0], sizeof(type), out_items, capacity);                                             \
  }

#define DEFINE_INTERPOLATION(T) DEFINE_TWIN(T, gcap_##T##_t, gcap_resize_##T(p, i))
#define DEFINE_NEAREST(bytes, type) DEFINE_TWIN(nearest_##bytes, type, ((const type*)p->x)[gcap_resize_offset(p, i)])
GCAP_RESIZE_KERNELS(DEFINE_INTERPOLATION)
GCAP_RESIZE_NEAREST_KERNELS(DEFINE_NEAREST)

#define REGISTER_TWIN(name)                                                                                          \
  gcap_twin_register((const void*)gcap_kernel_resize_##name, "gcap_kernel_resize_" #name, &params_bytes, run_##name, \
                     accesses_##name);
#define REGISTER_NEAREST(bytes, type) REGISTER_TWIN(nearest_##bytes)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t params_bytes = sizeof(gcap_resize_params_t);
  GCAP_RESIZE_KERNELS(REGISTER_TWIN)
  GCAP_RESIZE_NEAREST_KERNELS(REGISTER_NEAREST)
}
