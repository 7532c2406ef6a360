// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Transposed convolution on the GPU: a thread for each output, in the order of memory, so that the threads of a warp
// read neighbours of the input.
#include "ops/kernels/conv_transpose_kernels.h"
#include "ops/kernels/device_tools.cuh"

#define DEFINE_KERNEL(T)                                                                             \
  __global__ void gcap_kernel_conv_transpose_##T(gcap_conv_transpose_params_t params) {              \
    auto* y = static_cast<gcap_##T##_t*>(params.y);                                                  \
    for (int64_t i = gcap::FirstOfThread(); i < params.volume.outputs; i += gcap::ThreadsOfGrid()) { \
      y[i] = gcap_conv_transpose_##T(&params, i);                                                    \
    }                                                                                                \
  }
GCAP_CONV_TRANSPOSE_KERNELS(DEFINE_KERNEL)
