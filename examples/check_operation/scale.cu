// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernel on the GPU.
#include "examples/check_operation/scale.h"

__global__ void scale_kernel(const float* x, float* y, float factor, const float* device_factor) {
  y[threadIdx.x] = (device_factor != nullptr ? *device_factor : factor) * x[threadIdx.x];
}
