// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Powers of two types on the GPU. Every element is read and written by one thread, so y may be an input.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/pow_kernels.h"

#define DEFINE_KERNEL(T, real, whole)                                                          \
  __global__ void gcap_kernel_pow_##T(gcap_pow_params_t params) {                              \
    gcap::ForEach<2>(params.map, [&params](int64_t i, const auto& offsets) {                   \
      static_cast<gcap_##T##_t*>(params.y)[i] = gcap_pow_##T(&params, offsets[0], offsets[1]); \
    });                                                                                        \
  }
GCAP_POW_KERNELS(DEFINE_KERNEL)
