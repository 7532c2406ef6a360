// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Kernels whose pointers are hard to find in their arguments.
#include "test/support/kernels/moving_kernels.h"

static __device__ void add(const float* x, float* y, float addend, uint32_t count) {
  for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) y[i] = x[i] + addend;
}

__global__ void gcap_kernel_add_packed(gcap_test_packed_t args) { add(args.x, args.y, args.addend, args.count); }

__global__ void gcap_kernel_add_split(uint32_t x_low, float* y, uint32_t x_high, uint32_t count) {
  add(reinterpret_cast<const float*>(static_cast<uint64_t>(x_high) << 32 | x_low), y, 1.0f, count);
}

__global__ void gcap_kernel_add_table(float* const* table, uint32_t count) { add(table[0], table[1], 1.0f, count); }

__global__ void gcap_kernel_add_scalar(const float* x, float* y, uint64_t addend, uint32_t count) {
  add(x, y, static_cast<float>(addend & 0xff), count);
}
