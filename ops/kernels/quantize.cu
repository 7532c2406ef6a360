// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Integers of 8 bits for numbers and back, on the GPU: a thread for each element, in the order of memory.
#include "ops/kernels/device_tools.cuh"
#include "ops/kernels/quantize_kernels.h"

#define DEFINE_KERNEL(function, in, out)                                                    \
  __global__ void gcap_kernel_##function##_##in##_##out(gcap_quantize_params_t params) {    \
    auto* y = static_cast<gcap_##out##_t*>(params.y);                                       \
    for (int64_t i = gcap::FirstOfThread(); i < params.count; i += gcap::ThreadsOfGrid()) { \
      y[i] = gcap_##function##_##in##_##out(&params, i);                                    \
    }                                                                                       \
  }
__global__ void gcap_kernel_quantization_range(gcap_quantization_range_params_t params) {
  if (gcap::FirstOfThread() == 0) gcap_quantization_range(&params);
}

#define DEFINE_QUANTIZE(in, out, low, high) DEFINE_KERNEL(quantize, in, out)
#define DEFINE_DEQUANTIZE(in, out) DEFINE_KERNEL(dequantize, in, out)
GCAP_QUANTIZE_KERNELS(DEFINE_QUANTIZE)
GCAP_DEQUANTIZE_KERNELS(DEFINE_DEQUANTIZE)
