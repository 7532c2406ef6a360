// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Pads that are not the same at both ends, which cuDNN does not have: the input is copied among zeros in the workspace,
// as one box. A line of the box is a row of one channel in NCHW, of all channels in NHWC. No state.
#include "ops/cudnn/conv2d_plan.h"

gcap_status_t gcap_conv2d_pad_input(const gcap_conv2d_t* conv, cudaStream_t stream, const void* x, void* padded) {
  const gcap_conv2d_options_t* o = &conv->options;
  const bool is_nhwc = o->layout == GCAP_IMAGE_NHWC;
  const size_t pixel = is_nhwc ? (size_t)o->c * conv->element_bytes : conv->element_bytes;
  const size_t planes = is_nhwc ? (size_t)o->n : (size_t)o->n * (size_t)o->c;
  const size_t line = (size_t)o->w * pixel, padded_line = (size_t)conv->padded_w * pixel;
  const struct cudaMemcpy3DParms copy = {
      .srcPtr = {(void*)x, line, line, (size_t)o->h},  // the struct serves both ways
      .dstPtr = {padded, padded_line, padded_line, (size_t)conv->padded_h},
      .dstPos = {(size_t)(o->pad_w - gcap_conv2d_symmetric_pad(o->pad_w, o->pad_w_end)) * pixel,
                 (size_t)(o->pad_h - gcap_conv2d_symmetric_pad(o->pad_h, o->pad_h_end)), 0},
      .extent = {line, (size_t)o->h, planes},
      .kind = cudaMemcpyDeviceToDevice};
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(padded, 0, conv->padded.bytes, stream)));
  return GCAP_CUDA(cudaMemcpy3DAsync(&copy, stream));
}
