// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a kernel sees of its clusters.
#include "test/support/kernels/device_kernels.h"

namespace {

// Devices before 9.0 have no clusters.
__device__ unsigned int cluster_blocks() {
#if __CUDA_ARCH__ >= 900
  unsigned int blocks;
  asm volatile("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
  return blocks;
#else
  return 1;
#endif
}

}  // namespace

__global__ void gcap_kernel_cluster_size(unsigned int* out) { *out = cluster_blocks(); }
__global__ void gcap_kernel_cluster_size_too(unsigned int* out) { *out = cluster_blocks(); }
