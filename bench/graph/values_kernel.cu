// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A kernel that reads four values.
#include "bench/graph/values_kernel.h"

__global__ void gcap_bench_step(float* out, uint32_t position, uint32_t length, uint64_t seed, float temperature) {
  out[0] = static_cast<float>(position) + static_cast<float>(length) + static_cast<float>(seed & 0xff) + temperature;
}

__global__ void gcap_bench_step_in_memory(float* out, const uint32_t* position, const uint32_t* length,
                                          const uint64_t* seed, const float* temperature) {
  out[0] =
      static_cast<float>(*position) + static_cast<float>(*length) + static_cast<float>(*seed & 0xff) + *temperature;
}
