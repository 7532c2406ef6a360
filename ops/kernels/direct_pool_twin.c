// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of direct pooling: the same function, output by output. All of the input counts as read, though
// strides may step over some of it.
#include "ops/kernels/direct_pool_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_direct_pool(const gcap_direct_pool_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                               size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  const gcap_image_window_t* window = &p->window;
  const int64_t images = window->outputs / ((int64_t)window->channels * window->h.output * window->w.output);
  gcap_twin_access(&list, p->x, (size_t)(images * p->x_strides.image) * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)window->outputs * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(T) GCAP_OUTPUT_TWIN(direct_pool, T, p->window.outputs)
GCAP_DIRECT_POOL_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(T) GCAP_TWIN_REGISTER(direct_pool, T)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t direct_pool_bytes = sizeof(gcap_direct_pool_params_t);
  GCAP_DIRECT_POOL_KERNELS(REGISTER_TWIN)
}
