// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of pooling of three axes: the same function, output by output. All of the input counts as read, though
// strides may step over some of it.
#include "ops/kernels/twin.h"
#include "ops/kernels/volume_pool_kernels.h"

static size_t list_volume_pool(const gcap_volume_pool_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                               size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  const gcap_window_side_t* side = p->volume.side;
  const int64_t channels = p->volume.outputs / ((int64_t)side[0].output * side[1].output * side[2].output);
  gcap_twin_access(&list, p->x, (size_t)(channels * gcap_volume_inputs(&p->volume)) * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->volume.outputs * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(T) GCAP_OUTPUT_TWIN(volume_pool, T, p->volume.outputs)
GCAP_VOLUME_POOL_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(T) GCAP_TWIN_REGISTER(volume_pool, T)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t volume_pool_bytes = sizeof(gcap_volume_pool_params_t);
  GCAP_VOLUME_POOL_KERNELS(REGISTER_TWIN)
}
