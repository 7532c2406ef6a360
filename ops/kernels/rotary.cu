// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Rotated embeddings on the GPU: a thread for each output, in the order of memory.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/rotary_kernels.h"

#define DEFINE_KERNEL(T)                                                                    \
  __global__ void gcap_kernel_rotary_##T(gcap_rotary_params_t params) {                     \
    auto* y = static_cast<gcap_##T##_t*>(params.y);                                         \
    for (int64_t i = gcap::FirstOfThread(); i < params.count; i += gcap::ThreadsOfGrid()) { \
      y[i] = gcap_rotary_##T(&params, i);                                                   \
    }                                                                                       \
  }
GCAP_ROTARY_KERNELS(DEFINE_KERNEL)
