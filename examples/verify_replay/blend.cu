// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernel on the GPU.
#include "examples/verify_replay/blend.h"

__global__ void blend_kernel(const float* input, float* sum, float weight) {
  sum[threadIdx.x] += weight * input[threadIdx.x];
}
