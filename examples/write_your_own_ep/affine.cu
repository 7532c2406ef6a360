// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernel on the GPU.
#include "examples/write_your_own_ep/affine.h"

__global__ void affine_kernel(affine_params_t p) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * AFFINE_BLOCK_THREADS + threadIdx.x;
  if (i < p.count) p.y[i] = p.alpha * p.x[i] + p.beta;
}
