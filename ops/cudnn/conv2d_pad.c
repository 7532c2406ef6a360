// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Pads that are not the same at both ends, which cuDNN does not have: the input is copied among zeros in the workspace.
// No state.
#include "ops/cudnn/conv2d_plan.h"
#include "ops/kernels/pad.h"

// The tensor of n images or volumes, with its channels where the layout has them.
static gcap_tensor_t tensor_of(const gcap_conv2d_options_t* o, int d, int h, int w, void* data) {
  if (o->layout == GCAP_IMAGE_NHWC) {
    return (gcap_tensor_t){.data = data, .dtype = o->dtype, .rank = 5, .shape = {o->n, d, h, w, o->c}};
  }
  return (gcap_tensor_t){.data = data, .dtype = o->dtype, .rank = 5, .shape = {o->n, o->c, d, h, w}};
}

gcap_status_t gcap_conv2d_pad_input(const gcap_conv2d_t* conv, gcap_stream_t* stream, const void* x, void* padded) {
  static const float zero = 0.0f;  // of any type
  const gcap_conv2d_options_t* o = &conv->options;
  const int first = o->layout == GCAP_IMAGE_NHWC ? 1 : 2;
  const gcap_tensor_t from = tensor_of(o, o->d, o->h, o->w, (void*)x);  // the struct serves both ways
  const gcap_tensor_t to = tensor_of(o, conv->padded_d, conv->padded_h, conv->padded_w, padded);
  int64_t begins[5] = {0};
  begins[first] = o->pad_d - gcap_conv2d_symmetric_pad(o->pad_d, o->pad_d_end);
  begins[first + 1] = o->pad_h - gcap_conv2d_symmetric_pad(o->pad_h, o->pad_h_end);
  begins[first + 2] = o->pad_w - gcap_conv2d_symmetric_pad(o->pad_w, o->pad_w_end);
  return gcap_pad(stream, &from, begins, GCAP_PAD_CONSTANT, &zero, &to);
}
