// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ReLU on the GPU. Bound by memory: 16 bytes a thread and step when both addresses allow it. Every element is read and
// written by one thread, so y may be x.
#include "test/support/kernels/plain_kernels.h"

namespace {

// Compares rather than takes the maximum: a NaN compares false and stays.
__device__ float relu(float v) { return v < 0.0f ? 0.0f : v; }

}  // namespace

__global__ void gcap_kernel_relu_f32(const float* x, float* y, int64_t count) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const bool aligned = (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y)) % sizeof(float4) == 0;
  const int64_t vectors = aligned ? count / 4 : 0;
  for (int64_t i = first; i < vectors; i += stride) {
    const float4 v = reinterpret_cast<const float4*>(x)[i];
    reinterpret_cast<float4*>(y)[i] = make_float4(relu(v.x), relu(v.y), relu(v.z), relu(v.w));
  }
  for (int64_t i = 4 * vectors + first; i < count; i += stride) y[i] = relu(x[i]);
}
