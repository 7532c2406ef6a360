// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Direct convolution on the GPU: a thread for each output, in the order of memory, so that the threads of a warp read
// neighbours of the input (NCHW) or the same one (NHWC). For small convolutions: nothing is staged or reused but by the
// caches.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/direct_conv_kernels.h"

#define DEFINE_KERNEL(T)                                                                             \
  __global__ void gcap_kernel_direct_conv_##T(gcap_direct_conv_params_t params) {                    \
    auto* y = static_cast<gcap_##T##_t*>(params.y);                                                  \
    for (int64_t i = gcap::FirstOfThread(); i < params.window.outputs; i += gcap::ThreadsOfGrid()) { \
      y[i] = gcap_direct_conv_##T(&params, i);                                                       \
    }                                                                                                \
  }
GCAP_DIRECT_CONV_KERNELS(DEFINE_KERNEL)
