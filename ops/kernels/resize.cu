// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Resizes on the GPU: a thread for each output, in the order of memory, so that the threads of a warp write neighbours
// and read elements near each other.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/resize_kernels.h"

#define DEFINE_KERNEL(T)                                                                      \
  __global__ void gcap_kernel_resize_##T(gcap_resize_params_t params) {                       \
    auto* y = static_cast<gcap_##T##_t*>(params.y);                                           \
    for (int64_t i = gcap::FirstOfThread(); i < params.outputs; i += gcap::ThreadsOfGrid()) { \
      y[i] = gcap_resize_##T(&params, i);                                                     \
    }                                                                                         \
  }

#define DEFINE_NEAREST(bytes, type)                                                                         \
  __global__ void gcap_kernel_resize_nearest_##bytes(gcap_resize_params_t params) {                         \
    for (int64_t i = gcap::FirstOfThread(); i < params.outputs; i += gcap::ThreadsOfGrid()) {               \
      static_cast<type*>(params.y)[i] = static_cast<const type*>(params.x)[gcap_resize_offset(&params, i)]; \
    }                                                                                                       \
  }

GCAP_RESIZE_KERNELS(DEFINE_KERNEL)
GCAP_RESIZE_NEAREST_KERNELS(DEFINE_NEAREST)
