// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Padding on the GPU: a thread for each unit of the output, in the order of memory, so that writes are whole lines, and
// reads too where x runs along the last axis.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/pad_kernels.h"

#define DEFINE_KERNEL(bytes, type)                                                          \
  __global__ void gcap_kernel_pad_##bytes(gcap_pad_params_t params) {                       \
    const type* x = static_cast<const type*>(params.x);                                     \
    type* y = static_cast<type*>(params.y);                                                 \
    const type value = *reinterpret_cast<const type*>(&params.value);                       \
    for (int64_t i = gcap::FirstOfThread(); i < params.count; i += gcap::ThreadsOfGrid()) { \
      const int64_t source = gcap_pad_source(&params, i);                                   \
      y[i] = source < 0 ? value : x[source];                                                \
    }                                                                                       \
  }
GCAP_UNIT_KERNELS(DEFINE_KERNEL)
