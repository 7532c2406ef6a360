// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernels on the GPU.
#include "examples/moving_buffers/scale.h"

static __device__ uint32_t index_of_thread() { return blockIdx.x * SCALE_BLOCK_THREADS + threadIdx.x; }

__global__ void scale_kernel(const float* x, float* y, uint32_t count, float factor) {
  const uint32_t i = index_of_thread();
  if (i < count) y[i] = factor * x[i];
}

__global__ void scale4_kernel(const float* x, float* y, uint32_t count, float factor) {
  const uint32_t i = index_of_thread();
  if (i >= count / 4) return;
  const float4 four = reinterpret_cast<const float4*>(x)[i];
  reinterpret_cast<float4*>(y)[i] = make_float4(factor * four.x, factor * four.y, factor * four.z, factor * four.w);
}

__global__ void scale_listed_kernel(const float* const* table, float* y, uint32_t count, float factor) {
  const uint32_t i = index_of_thread();
  if (i < count) y[i] = factor * table[0][i];
}
