// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// attend.h: the CUDA kernels of the lesson, for the C code that launches them, for nvcc, and for their CPU twins.
#ifndef GCAP_EXAMPLES_HOLES_ATTEND_H_
#define GCAP_EXAMPLES_HOLES_ATTEND_H_

#include <stdint.h>

#ifdef __CUDACC__
#define ATTEND_KERNEL __global__
#else
#define ATTEND_KERNEL
#endif

#ifdef __cplusplus
extern "C" {
#endif

// Both: one block of so many threads, one for each element. Launched by their addresses, never called.
#define ATTEND_WIDTH 64

// y[i] = factor * x[i].
ATTEND_KERNEL void project_kernel(const float* x, float* y, float factor);
// sum[i] += query[i] * (history[0][i] + ... + history[rows - 1][i]).
ATTEND_KERNEL void attend_kernel(const float* query, const float* history, float* sum, uint32_t rows);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_HOLES_ATTEND_H_
