// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// minimal_ep.h: a small execution provider over cuBLASLt, cuDNN and two kernels: the example to copy from.
#ifndef GCAP_EXAMPLES_MINIMAL_EP_MINIMAL_EP_H_
#define GCAP_EXAMPLES_MINIMAL_EP_MINIMAL_EP_H_

#include "gcap/ep.h"
#include "gcap/ep_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

// Attributes of the ops that have any (gcap_node_t::attributes). All tensors are fp32, images NCHW.

// "Conv": inputs x [n,c,h,w], weight [k,c,kh,kw], bias [k]; output [n,k,oh,ow].
typedef struct minimal_ep_conv_attributes {
  int stride;
  int pad;
  bool relu;  // fused
} minimal_ep_conv_attributes_t;

// "MaxPool": square windows, no padding.
typedef struct minimal_ep_pool_attributes {
  int window;
  int stride;
} minimal_ep_pool_attributes_t;

// "Gemm": inputs a [m,k], weight [n,k], bias [n]; output [m,n] = a · weightᵀ + bias.
typedef struct minimal_ep_gemm_attributes {
  bool relu;  // fused
} minimal_ep_gemm_attributes_t;

// "Relu" and "Softmax" have none. "Relu" looks at the number of elements only, so its output may have another shape.

// Makes the provider. `*out_runtime` is borrowed from it: its scratch and graph counters.
// Thread, Capture, Lifetime: as gcap_ep_t.
//   INVALID_ARGUMENT  options that contradict each other, or no such device
//   LIBRARY_ERROR     cuBLASLt or cuDNN could not start
gcap_status_t minimal_ep_create(const gcap_options_t* options, gcap_ep_t** out_ep,
                                gcap_runtime_t** out_runtime) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_MINIMAL_EP_MINIMAL_EP_H_
