// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of transposed convolution: the same function, output by output. All of the input counts as read, though
// pads may cut some of it off.
#include "ops/kernels/conv_transpose_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_conv_transpose(const gcap_conv_transpose_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                                  size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  const gcap_volume_t* volume = &p->volume;
  const gcap_window_side_t* side = volume->side;
  const int64_t images =
      volume->outputs / ((int64_t)volume->channels * side[0].output * side[1].output * side[2].output);
  const int64_t channels = (int64_t)volume->channels / p->group_maps * p->group_channels;
  gcap_twin_access(&list, p->x, (size_t)(images * channels * gcap_volume_inputs(volume)) * bytes, false);
  gcap_twin_access(&list, p->weight, (size_t)(channels * p->group_maps * gcap_volume_taps(volume)) * bytes, false);
  if (p->bias != NULL) gcap_twin_access(&list, p->bias, (size_t)volume->channels * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)volume->outputs * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(T) GCAP_OUTPUT_TWIN(conv_transpose, T, p->volume.outputs)
GCAP_CONV_TRANSPOSE_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(T) GCAP_TWIN_REGISTER(conv_transpose, T)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t conv_transpose_bytes = sizeof(gcap_conv_transpose_params_t);
  GCAP_CONV_TRANSPOSE_KERNELS(REGISTER_TWIN)
}
