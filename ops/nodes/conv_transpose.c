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

// Axis `i` of the window, which has the element 0 of y under a place that is `pad_begin` behind its first one.
static gcap_status_t read_side(const gcap_node_t* node, const gcap_tensor_t* x, const gcap_window_t* window, int i,
                               gcap_window_side_t* side) {
  const struct {
    const char* what;
    int64_t size;
    int32_t* out_size;
  } sizes[] = {{"an axis of input 0", x->shape[LEADING + i], &side->input},
               {"an axis of output 0", window->count[i], &side->output},
               {"an axis of the window", window->size[i], &side->kernel},
               {"a stride", window->stride[i], &side->stride},
               {"a dilation", window->dilation[i], &side->dilation},
               {"a pad", window->pad_begin[i], &side->pad}};
  for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); ++k) {
    GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, sizes[k].what, sizes[k].size, sizes[k].out_size));
  }
  return NULL;
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
    GCAP_RETURN_IF_ERROR(read_side(node, &in[0], &window, i, &side[GCAP_VOLUME_AXES - window.rank + i]));
  }
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "the number of channels", in[0].shape[1], &ignored));
  GCAP_RETURN_IF_ERROR(gcap_node_int_size(node, "the number of maps", y->shape[1], &ignored));
  return gcap_conv_transpose(context->resources.stream, side, &in[0], &in[1], node->num_inputs > 2 ? &in[2] : NULL, y);
}
