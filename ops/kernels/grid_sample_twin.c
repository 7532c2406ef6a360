// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of GridSample: the same function, output by output. All of the input counts as read, though the grid
// may name little of it.
#include "ops/kernels/grid_sample_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_grid_sample(const gcap_grid_sample_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                               size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  const gcap_window_side_t* side = p->volume.side;
  const int64_t places = (int64_t)side[0].output * side[1].output * side[2].output;
  const int64_t channels = p->volume.outputs / places;  // of all images
  gcap_twin_access(&list, p->x, (size_t)(channels * gcap_volume_inputs(&p->volume)) * bytes, false);
  gcap_twin_access(&list, p->grid, (size_t)(channels / p->volume.channels * places * p->axes) * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)p->volume.outputs * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(T) GCAP_OUTPUT_TWIN(grid_sample, T, p->volume.outputs)
GCAP_GRID_SAMPLE_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(T) GCAP_TWIN_REGISTER(grid_sample, T)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t grid_sample_bytes = sizeof(gcap_grid_sample_params_t);
  GCAP_GRID_SAMPLE_KERNELS(REGISTER_TWIN)
}
