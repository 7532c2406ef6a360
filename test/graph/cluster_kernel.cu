// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#include "test/graph/cluster_kernel.h"

static __device__ int blocks_of_cluster() {
#if __CUDA_ARCH__ >= 900
  unsigned count;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
  return static_cast<int>(count);
#else
  return 1;
#endif
}

__global__ void cluster_kernel(int* out) { *out = blocks_of_cluster(); }

__global__ void other_cluster_kernel(int* out) {
  if (blockIdx.x == 0) *out = blocks_of_cluster();
}
