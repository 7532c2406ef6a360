// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// scale.h: the CUDA kernels of the lesson, for the C code that launches them, for nvcc, and for their CPU twins.
#ifndef GCAP_EXAMPLES_MOVING_BUFFERS_SCALE_H_
#define GCAP_EXAMPLES_MOVING_BUFFERS_SCALE_H_

#include <stdint.h>

#ifdef __CUDACC__
#define SCALE_KERNEL __global__
#else
#define SCALE_KERNEL
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SCALE_BLOCK_THREADS 256

// All: y[i] = factor * x[i] for i below `count`, in blocks of SCALE_BLOCK_THREADS. Launched by their addresses, never
// called.

// A thread for each element.
SCALE_KERNEL void scale_kernel(const float* x, float* y, uint32_t count, float factor);
// A thread for each four elements: x and y are multiples of 16 bytes, and count is a multiple of 4.
SCALE_KERNEL void scale4_kernel(const float* x, float* y, uint32_t count, float factor);
// A thread for each element; x is found in device memory, at table[0].
SCALE_KERNEL void scale_listed_kernel(const float* const* table, float* y, uint32_t count, float factor);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_MOVING_BUFFERS_SCALE_H_
