// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// values_kernel.h: kernels that read four values, as a step of a decoder does.
#ifndef GCAP_BENCH_GRAPH_VALUES_KERNEL_H_
#define GCAP_BENCH_GRAPH_VALUES_KERNEL_H_

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __CUDACC__
#define GCAP_BENCH_KERNEL __global__
#else
#define GCAP_BENCH_KERNEL
#endif

// out[0] = position + length + the low 8 bits of seed + temperature. One block of one thread.
GCAP_BENCH_KERNEL void gcap_bench_step(float* out, uint32_t position, uint32_t length, uint64_t seed,
                                       float temperature);

// The same, with the values in device memory.
GCAP_BENCH_KERNEL void gcap_bench_step_in_memory(float* out, const uint32_t* position, const uint32_t* length,
                                                 const uint64_t* seed, const float* temperature);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_BENCH_GRAPH_VALUES_KERNEL_H_
