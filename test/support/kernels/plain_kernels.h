// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// plain_kernels.h: two kernels with parameters of plain types, for tests that launch kernels by hand: in captures, in
// nodes that they change, in what a GPU was asked. Declared once for these tests, for nvcc and for the CPU twins.
#ifndef GCAP_TEST_SUPPORT_KERNELS_PLAIN_KERNELS_H_
#define GCAP_TEST_SUPPORT_KERNELS_PLAIN_KERNELS_H_

#include <stdint.h>

#ifdef __CUDACC__
#define GCAP_KERNEL __global__
#else
#define GCAP_KERNEL
#endif

#ifdef __cplusplus
extern "C" {
#endif

// y[i] = max(x[i], 0) for i < count. Any one-dimensional grid.
GCAP_KERNEL void gcap_kernel_relu_f32(const float* x, float* y, int64_t count);

// y[r,:] = softmax(x[r,:]) for x, y [rows, cols]. One warp a row: blocks of a multiple of 32 threads, together at least
// `rows` warps.
GCAP_KERNEL void gcap_kernel_softmax_warp_f32(const float* x, float* y, int64_t rows, int64_t cols);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_SUPPORT_KERNELS_PLAIN_KERNELS_H_
