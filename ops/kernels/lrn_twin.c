// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of local response normalization: the same function, output by output.
#include "ops/kernels/lrn_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_lrn(const gcap_lrn_params_t* p, size_t bytes, gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  gcap_twin_access(&list, p->x, (size_t)p->elements * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->elements * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(T) GCAP_OUTPUT_TWIN(lrn, T, p->elements)
GCAP_LRN_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(T) GCAP_TWIN_REGISTER(lrn, T)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t lrn_bytes = sizeof(gcap_lrn_params_t);
  GCAP_LRN_KERNELS(REGISTER_TWIN)
}
