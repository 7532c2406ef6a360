// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Running sums on the GPU: a thread for each line, so that the order of the sum is that of the axis. Neighbouring lines
// are neighbours in memory wherever the axis is not the last one.
#include "ops/kernels/cum_sum_kernels.h"
#include "ops/kernels/device_tools.cuh"

#define DEFINE_KERNEL(T)                                                                    \
  __global__ void gcap_kernel_cum_sum_##T(gcap_cum_sum_params_t params) {                   \
    for (int64_t i = gcap::FirstOfThread(); i < params.lines; i += gcap::ThreadsOfGrid()) { \
      gcap_cum_sum_##T(&params, i);                                                         \
    }                                                                                       \
  }
GCAP_CUM_SUM_KERNELS(DEFINE_KERNEL)
