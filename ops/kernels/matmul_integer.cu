// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Products of matrices of 8-bit integers on the GPU: a thread for each output. Neighbours read neighbours of b, and the
// same row of a from cache.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/matmul_integer_kernels.h"

#define DEFINE_KERNEL(A, B)                                                                   \
  __global__ void gcap_kernel_matmul_integer_##A##_##B(gcap_matmul_integer_params_t params) { \
    gcap::ForEach<2>(params.map, [&params](int64_t i, const auto& offsets) {                  \
      params.y[i] = gcap_matmul_integer_##A##_##B(&params, i, offsets[0], offsets[1]);        \
    });                                                                                       \
  }
GCAP_MATMUL_INTEGER_KERNELS(DEFINE_KERNEL)
