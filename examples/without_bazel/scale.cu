// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernel on the GPU.
#include "scale.h"

__global__ void scale_kernel(scale_params_t p) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * SCALE_BLOCK_THREADS + threadIdx.x;
  if (i < p.count) p.y[i] = p.factor * p.x[i];
}
