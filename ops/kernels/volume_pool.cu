// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Pooling of three axes on the GPU: a thread for each output, in the order of memory, so that the threads of a warp
// read neighbours of the input.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/volume_pool_kernels.h"

#define DEFINE_KERNEL(T)                                                                             \
  __global__ void gcap_kernel_volume_pool_##T(gcap_volume_pool_params_t params) {                    \
    auto* y = static_cast<gcap_##T##_t*>(params.y);                                                  \
    for (int64_t i = gcap::FirstOfThread(); i < params.volume.outputs; i += gcap::ThreadsOfGrid()) { \
      y[i] = gcap_volume_pool_##T(&params, i);                                                       \
    }                                                                                                \
  }
GCAP_VOLUME_POOL_KERNELS(DEFINE_KERNEL)
