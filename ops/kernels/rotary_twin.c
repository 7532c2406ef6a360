// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the rotation of embeddings: the same function, output by output. Which rows are read depends on the
// positions, so all of them count as read.
#include "ops/kernels/rotary_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_rotary(const gcap_rotary_params_t* p, size_t bytes, gcap_sim_access_t* out_items, size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  const int64_t tokens = p->is_offset ? 1 : p->count / p->batch_step * p->length;
  gcap_twin_access(&list, p->x, (size_t)p->count * bytes, false);
  gcap_twin_access(&list, p->cosines, (size_t)(p->rows * p->half) * bytes, false);
  gcap_twin_access(&list, p->sines, (size_t)(p->rows * p->half) * bytes, false);
  if (p->positions != NULL) gcap_twin_access(&list, p->positions, (size_t)tokens * sizeof(int64_t), false);
  gcap_twin_access(&list, p->y, (size_t)p->count * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(T) GCAP_OUTPUT_TWIN(rotary, T, p->count)
GCAP_ROTARY_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(T) GCAP_TWIN_REGISTER(rotary, T)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t rotary_bytes = sizeof(gcap_rotary_params_t);
  GCAP_ROTARY_KERNELS(REGISTER_TWIN)
}
