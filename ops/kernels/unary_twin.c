// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the operators of one input and of casts: the same formulas.
#include "ops/kernels/twin.h"
#include "ops/kernels/unary_kernels.h"

#define DEFINE_TWIN(op, name, in, out, formula)                                                        \
  GCAP_TWIN_HANDLE(gcap_kernel_unary_##name##_##in, gcap_unary_params_t)                               \
  static gcap_##out##_t apply_##name##_##in(gcap_##in##_t x, const gcap_unary_params_t* p) {           \
    (void)p;                                                                                           \
    const gcap_computed_##in##_t a = gcap_load_##in(x);                                                \
    return gcap_store_##out(formula);                                                                  \
  }                                                                                                    \
  static void run_##name##_##in(const gcap_sim_launch_t* launch, void* const* args) {                  \
    (void)launch;                                                                                      \
    const gcap_unary_params_t* p = args[0];                                                            \
    const gcap_##in##_t* x = p->x;                                                                     \
    gcap_##out##_t* y = p->y;                                                                          \
    for (int64_t i = 0; i < p->count; ++i) y[i] = apply_##name##_##in(x[i], p);                        \
  }                                                                                                    \
  static size_t accesses_##name##_##in(const gcap_sim_launch_t* launch, void* const* args,             \
                                       gcap_sim_access_t* out_items, size_t capacity) {                \
    (void)launch;                                                                                      \
    return list_accesses(args[0], sizeof(gcap_##in##_t), sizeof(gcap_##out##_t), out_items, capacity); \
  }

static size_t list_accesses(const gcap_unary_params_t* p, size_t in_bytes, size_t out_bytes,
                            gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->x, (size_t)p->count * in_bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->count * out_bytes, true);
  return list.count;
}

GCAP_UNARY_KERNELS(DEFINE_TWIN)
GCAP_CAST_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(op, name, in, out, formula)                                                                     \
  gcap_twin_register((const void*)gcap_kernel_unary_##name##_##in, "gcap_kernel_unary_" #name "_" #in, &params_bytes, \
                     run_##name##_##in, accesses_##name##_##in);

__attribute__((constructor)) static void register_twins(void) {
  static const size_t params_bytes = sizeof(gcap_unary_params_t);
  GCAP_UNARY_KERNELS(REGISTER_TWIN)
  GCAP_CAST_KERNELS(REGISTER_TWIN)
}
