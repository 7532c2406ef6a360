// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Local response normalization on the GPU: a thread for each output, in the order of memory, so that the threads of a
// warp read neighbours of the input. A channel's elements are read again for each window that they are in: from cache.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/lrn_kernels.h"

#define DEFINE_KERNEL(T)                                                                       \
  __global__ void gcap_kernel_lrn_##T(gcap_lrn_params_t params) {                              \
    auto* y = static_cast<gcap_##T##_t*>(params.y);                                            \
    for (int64_t i = gcap::FirstOfThread(); i < params.elements; i += gcap::ThreadsOfGrid()) { \
      y[i] = gcap_lrn_##T(&params, i);                                                         \
    }                                                                                          \
  }
GCAP_LRN_KERNELS(DEFINE_KERNEL)
