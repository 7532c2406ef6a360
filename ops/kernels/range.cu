// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Ranges on the GPU: a thread for each number.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/range_kernels.h"

#define DEFINE_KERNEL(T)                                                                    \
  __global__ void gcap_kernel_range_##T(gcap_range_params_t params) {                       \
    auto* y = static_cast<gcap_##T##_t*>(params.y);                                         \
    for (int64_t i = gcap::FirstOfThread(); i < params.count; i += gcap::ThreadsOfGrid()) { \
      y[i] = gcap_range_##T(&params, i);                                                    \
    }                                                                                       \
  }
GCAP_RANGE_KERNELS(DEFINE_KERNEL)
