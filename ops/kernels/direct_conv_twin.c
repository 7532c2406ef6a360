// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of direct convolution: the same function, output by output. All of the operands counts as read, though
// strides may step over some of the input.
#include "ops/kernels/direct_conv_kernels.h"
#include "ops/kernels/twin.h"

static size_t list_direct_conv(const gcap_direct_conv_params_t* p, size_t bytes, gcap_sim_access_t* out_items,
                               size_t capacity) {
  gcap_twin_accesses_t list = {out_items, capacity, 0};
  const gcap_image_window_t* window = &p->window;
  const int64_t maps = window->channels, images = window->outputs / (maps * window->h.output * window->w.output);
  gcap_twin_access(&list, p->x, (size_t)(images * p->x_strides.image) * bytes, false);
  gcap_twin_access(&list, p->weight, (size_t)(maps * p->weight_strides.image) * bytes, false);
  if (p->bias != NULL) gcap_twin_access(&list, p->bias, (size_t)maps * bytes, false);
  gcap_twin_access(&list, p->y, (size_t)window->outputs * bytes, true);
  return list.count;
}

#define DEFINE_TWIN(T) GCAP_OUTPUT_TWIN(direct_conv, T, p->window.outputs)
GCAP_DIRECT_CONV_KERNELS(DEFINE_TWIN)

#define REGISTER_TWIN(T) GCAP_TWIN_REGISTER(direct_conv, T)

__attribute__((constructor)) static void register_twins(void) {
  static const size_t direct_conv_bytes = sizeof(gcap_direct_conv_params_t);
  GCAP_DIRECT_CONV_KERNELS(REGISTER_TWIN)
}
