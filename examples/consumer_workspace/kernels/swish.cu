// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernel on the GPU.
#include "kernels/swish.h"

__global__ void swish_kernel(const float* x, float* y, int64_t count, float beta) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * SWISH_BLOCK_THREADS + threadIdx.x;
  if (i < count) y[i] = x[i] / (1.0f + expf(-beta * x[i]));
}
