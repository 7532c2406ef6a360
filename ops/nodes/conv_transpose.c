// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ConvTranspose of one to three axes, by a kernel of gcap's.

#include "ops/kernels/conv_transpose.h"

#include "kit/shape/inner.h"
#include "ops/nodes/op.h"

enum { LEADING = 2 };  // batch and channels

bool gcap_node_conv_transpose_accepts(const gcap_model_t* model, const gcap_node_t* node) {
  const int rank = gcap_node_input(model, node, 0)->rank;
  if (rank <= LEADING || rank > LEADING + GCAP_VOLUME_AXES) return false;
  if (gcap_node_input(model, node, 1)->rank != rank) return false;
  return node->num_inputs < 3 || gcap_node_input(model, node, 2)->rank == 1;
}

gcap_status_t gcap_node_conv_transpose(const gcap_node_kernel_t* kernel, const gcap_kernel_context_t* context) {
  static const gcap_window_side_t one = {.input = 1, .output = 1, .kernel = 1, .stride = 1, .dilation = 1};
  const gcap_node_t* node = kernel->node;
  const gcap_tensor_t *in = context->inputs, *y = &context->outputs[0];
  int ignored = 0;
  gcap_window_t window;
  GCAP_RETURN_IF_ERROR(gcap_infer_transposed_window(node, in, &window));
  gcap_window_side_t side[GCAP_VOLUME_AXES] = {one, one, one};
  for (int i = 0; i < window.rank; ++i) {
    GCAP_RETURN_IF_ERROR(
        gcap_node_window_side(node, &window, in[0].shape[LEADING + i], i, &side[GCAP_VOLUME_AXES - window.rank + i]));
  }
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "the number of channels", in[0].shape[1], &ignored));
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "the number of maps", y->shape[1], &ignored));
  return gcap_conv_transpose(context->resources.stream, side, &in[0], &in[1], node->num_inputs > 2 ? &in[2] : NULL, y);
}
