// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The steps of recurrent networks on the GPU: a thread for each element of the state, in the order of memory. An
// element is read and written by one thread.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/recurrent_kernels.h"

#define DEFINE_KERNEL(name, T, reads, writes)                                                  \
  __global__ void gcap_kernel_recurrent_##name##_##T(gcap_recurrent_params_t params) {         \
    for (int64_t i = gcap::FirstOfThread(); i < params.elements; i += gcap::ThreadsOfGrid()) { \
      gcap_recurrent_##name##_##T(&params, i);                                                 \
    }                                                                                          \
  }
GCAP_RECURRENT_KERNELS(DEFINE_KERNEL)
