// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernels on the GPU.
#include "examples/holes/attend.h"

__global__ void project_kernel(const float* x, float* y, float factor) { y[threadIdx.x] = factor * x[threadIdx.x]; }

__global__ void attend_kernel(const float* query, const float* history, float* sum, uint32_t rows) {
  float total = 0;
  for (uint32_t row = 0; row < rows; ++row) total += history[row * ATTEND_WIDTH + threadIdx.x];
  sum[threadIdx.x] += query[threadIdx.x] * total;
}
