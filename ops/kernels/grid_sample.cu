// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// GridSample on the GPU: a thread for each output, in the order of memory. Neighbours among outputs are mostly made of
// neighbours among inputs.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/grid_sample_kernels.h"

#define DEFINE_KERNEL(T)                                                                             \
  __global__ void gcap_kernel_grid_sample_##T(gcap_grid_sample_params_t params) {                    \
    auto* y = static_cast<gcap_##T##_t*>(params.y);                                                  \
    for (int64_t i = gcap::FirstOfThread(); i < params.volume.outputs; i += gcap::ThreadsOfGrid()) { \
      y[i] = gcap_grid_sample_##T(&params, i);                                                       \
    }                                                                                                \
  }
GCAP_GRID_SAMPLE_KERNELS(DEFINE_KERNEL)
