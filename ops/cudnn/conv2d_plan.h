// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// conv2d_plan.h: what the files of the convolution share: the plan and the checked options.
#ifndef GCAP_OPS_CUDNN_CONV2D_PLAN_H_
#define GCAP_OPS_CUDNN_CONV2D_PLAN_H_

#include <cudnn.h>
#include <stdbool.h>

#include "gcap/kit/ops/conv2d.h"
#include "ops/kernels/direct_conv.h"

// Of each part of a workspace.
enum { GCAP_CONV2D_WORKSPACE_ALIGNMENT = 256 };

// A part of the workspace; no bytes: not there.
typedef struct gcap_conv2d_part {
  size_t offset, bytes;
} gcap_conv2d_part_t;

struct gcap_conv2d {
  gcap_conv2d_options_t options;  // checked: all pads are given
  cudnnTensorDescriptor_t x, y, bias;
  cudnnFilterDescriptor_t weight;
  cudnnConvolutionDescriptor_t convolution;
  cudnnActivationDescriptor_t activation;  // NULL: the plain call does it, without bias and ReLU
  cudnnConvolutionFwdAlgo_t algorithm;
  size_t algorithm_bytes;            // of the workspace
  gcap_conv2d_part_t padded, zeros;  // the input with the pads that cuDNN cannot have, and a bias of zeros
  size_t element_bytes;
  int padded_h, padded_w, padded_d;  // of the input that cuDNN sees
  int output_shape[5];               // n, k, oh, ow, od
  bool is_volume;                    // of three axes; else all of the third one is 1, and its pads are 0
  bool is_empty;                     // there is nothing to compute, and nothing is described
  bool is_direct;                    // nothing is described
  gcap_direct_conv_params_t direct;  // then; without operands
};

// The caller's options, checked, the shape of the output, and whether there is a third axis.
gcap_status_t gcap_conv2d_check_options(const gcap_conv2d_options_t* given, gcap_conv2d_options_t* out_options,
                                        int out_shape[5], bool* out_is_volume) GCAP_NODISCARD;

// --- gcap's kernel --------------------------------------------------------------------------------------------------

// Whether it does the convolution, which is checked.
bool gcap_conv2d_choose_direct(const gcap_conv2d_t* conv);

// Makes its parameters.
gcap_status_t gcap_conv2d_plan_direct(gcap_conv2d_t* conv) GCAP_NODISCARD;

// --- cuDNN's algorithms ---------------------------------------------------------------------------------------------

// Chooses an algorithm for what is described.
gcap_status_t gcap_conv2d_choose(gcap_conv2d_t* conv) GCAP_NODISCARD;

// Fills in candidates, of which there is room for `capacity`, by running them all.
gcap_status_t gcap_conv2d_find(const gcap_conv2d_t* conv, int capacity, cudnnConvolutionFwdAlgoPerf_t* out_candidates,
                               int* out_count) GCAP_NODISCARD;

// What an algorithm needs. SIZE_MAX: cuDNN does not have it for this convolution.
gcap_status_t gcap_conv2d_need(const gcap_conv2d_t* conv, cudnnConvolutionFwdAlgo_t algorithm,
                               size_t* out_bytes) GCAP_NODISCARD;

// --- Pads -----------------------------------------------------------------------------------------------------------

// The pads of one side as cuDNN can have them, the same at both ends; what is more at one end is put into the input.
static inline int gcap_conv2d_symmetric_pad(int begin, int end) { return begin < end ? begin : end; }

// Copies x into the workspace's part, among zeros.
gcap_status_t gcap_conv2d_pad_input(const gcap_conv2d_t* conv, gcap_stream_t* stream, const void* x,
                                    void* padded) GCAP_NODISCARD;

#endif  // GCAP_OPS_CUDNN_CONV2D_PLAN_H_
