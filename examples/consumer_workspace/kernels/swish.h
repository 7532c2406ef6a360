// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// swish.h: a CUDA kernel, for the C code that launches it, for nvcc, and for its CPU twin.
#ifndef GCAP_CONSUMER_KERNELS_SWISH_H_
#define GCAP_CONSUMER_KERNELS_SWISH_H_

#include <stdint.h>

#ifdef __CUDACC__
#define SWISH_KERNEL __global__
#else
#define SWISH_KERNEL
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SWISH_BLOCK_THREADS 128

// y[i] = x[i] / (1 + exp(-beta * x[i])), a thread for each element. Launched by its address, never called.
SWISH_KERNEL void swish_kernel(const float* x, float* y, int64_t count, float beta);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_CONSUMER_KERNELS_SWISH_H_
