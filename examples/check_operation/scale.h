// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// scale.h: the CUDA kernel of the lesson, for the C code that launches it, for nvcc, and for its CPU twin.
#ifndef GCAP_EXAMPLES_CHECK_OPERATION_SCALE_H_
#define GCAP_EXAMPLES_CHECK_OPERATION_SCALE_H_

#ifdef __CUDACC__
#define SCALE_KERNEL __global__
#else
#define SCALE_KERNEL
#endif

#ifdef __cplusplus
extern "C" {
#endif

// One block of so many threads, one for each element. Launched by its address, never called.
#define SCALE_WIDTH 64

// y[i] = factor * x[i], and with `device_factor` y[i] = *device_factor * x[i].
SCALE_KERNEL void scale_kernel(const float* x, float* y, float factor, const float* device_factor);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_CHECK_OPERATION_SCALE_H_
