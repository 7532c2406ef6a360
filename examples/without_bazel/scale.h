// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// scale.h: the engine's kernel, for the C code that launches it, for nvcc, and for its CPU twin.
#ifndef SCALE_H_
#define SCALE_H_

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

// y[i] = factor * x[i].
typedef struct scale_params {
  const float* x;
  float* y;
  int64_t count;
  float factor;
} scale_params_t;

// A thread for each element, in blocks of SCALE_BLOCK_THREADS. Launched by its address, never called.
SCALE_KERNEL void scale_kernel(scale_params_t params);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // SCALE_H_
