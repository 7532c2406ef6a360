// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// device_kernels.h: the kernels' declarations, one for three readers: the launch wrappers, which only take a kernel's
// address (the handle that cudaLaunchKernel wants), nvcc, and the CPU twins.
#ifndef GCAP_OPS_KERNELS_DEVICE_KERNELS_H_
#define GCAP_OPS_KERNELS_DEVICE_KERNELS_H_

#include <stdint.h>

#ifdef __CUDACC__
#define GCAP_KERNEL __global__
#else
#define GCAP_KERNEL
#endif

#ifdef __cplusplus
extern "C" {
#endif

// Any one-dimensional grid.
GCAP_KERNEL void gcap_kernel_relu_f32(const float* x, float* y, int64_t count);

// One warp a row: blocks of a multiple of 32 threads, together at least `rows` warps.
GCAP_KERNEL void gcap_kernel_softmax_warp_f32(const float* x, float* y, int64_t rows, int64_t cols);

// One block a row: `rows` blocks of a multiple of 32 threads, at most 1024.
GCAP_KERNEL void gcap_kernel_softmax_block_f32(const float* x, float* y, int64_t rows, int64_t cols);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_KERNELS_DEVICE_KERNELS_H_
