// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// affine.h: the CUDA kernel of the lesson, for the C code that launches it, for nvcc, and for its CPU twin.
#ifndef GCAP_EXAMPLES_WRITE_YOUR_OWN_EP_AFFINE_H_
#define GCAP_EXAMPLES_WRITE_YOUR_OWN_EP_AFFINE_H_

#include <stdint.h>

#ifdef __CUDACC__
#define AFFINE_KERNEL __global__
#else
#define AFFINE_KERNEL
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define AFFINE_BLOCK_THREADS 256

// y[i] = alpha * x[i] + beta. y may be x.
typedef struct affine_params {
  const float* x;
  float* y;
  int64_t count;
  float alpha, beta;
} affine_params_t;

// A thread for each element, in blocks of AFFINE_BLOCK_THREADS. Launched by its address, never called.
AFFINE_KERNEL void affine_kernel(affine_params_t params);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_WRITE_YOUR_OWN_EP_AFFINE_H_
