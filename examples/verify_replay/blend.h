// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// blend.h: the CUDA kernel of the lesson, for the C code that launches it, for nvcc, and for its CPU twin.
#ifndef GCAP_EXAMPLES_VERIFY_REPLAY_BLEND_H_
#define GCAP_EXAMPLES_VERIFY_REPLAY_BLEND_H_

#ifdef __CUDACC__
#define BLEND_KERNEL __global__
#else
#define BLEND_KERNEL
#endif

#ifdef __cplusplus
extern "C" {
#endif

// One block of so many threads, one for each element. Launched by its address, never called.
#define BLEND_WIDTH 64

// sum[i] += weight * input[i].
BLEND_KERNEL void blend_kernel(const float* input, float* sum, float weight);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_VERIFY_REPLAY_BLEND_H_
