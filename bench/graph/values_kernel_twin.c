// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the kernels that read four values.
#include <stdlib.h>

#include "bench/graph/values_kernel.h"
#include "gcap_sim.h"

#ifdef GCAP_TWINS_BY_NAME  // nvcc's object defines them
#define FUNCTION(kernel) NULL
#else
#define FUNCTION(kernel) ((const void*)(kernel))

void gcap_bench_step(float* out, uint32_t position, uint32_t length, uint64_t seed, float temperature) {
  (void)out, (void)position, (void)length, (void)seed, (void)temperature;
  abort();  // kernels are launched, never called
}

void gcap_bench_step_in_memory(float* out, const uint32_t* position, const uint32_t* length, const uint64_t* seed,
                               const float* temperature) {
  (void)out, (void)position, (void)length, (void)seed, (void)temperature;
  abort();
}
#endif

static float sum(const uint32_t* position, const uint32_t* length, const uint64_t* seed, const float* temperature) {
  return (float)*position + (float)*length + (float)(*seed & 0xff) + *temperature;
}

static void run(const gcap_sim_launch_t* launch, void* const* args) {
  (void)launch;
  **(float**)args[0] = sum(args[1], args[2], args[3], args[4]);
}

static size_t tell(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  (void)launch;
  if (capacity > 0) out[0] = (gcap_sim_access_t){*(void**)args[0], sizeof(float), 1};
  return 1;
}

static void run_in_memory(const gcap_sim_launch_t* launch, void* const* args) {
  (void)launch;
  **(float**)args[0] =
      sum(*(const uint32_t**)args[1], *(const uint32_t**)args[2], *(const uint64_t**)args[3], *(const float**)args[4]);
}

static size_t tell_in_memory(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out,
                             size_t capacity) {
  static const size_t bytes[] = {sizeof(float), 4, 4, 8, 4};
  (void)launch;
  for (size_t i = 0; i < 5 && i < capacity; ++i) out[i] = (gcap_sim_access_t){*(void**)args[i], bytes[i], i == 0};
  return 5;
}

__attribute__((constructor)) static void register_twins(void) {
  static const size_t values[] = {8, 4, 4, 8, 4}, in_memory[] = {8, 8, 8, 8, 8};
  const gcap_sim_kernel_t twins[] = {
      {FUNCTION(gcap_bench_step), "gcap_bench_step", values, 5, run, tell},
      {FUNCTION(gcap_bench_step_in_memory), "gcap_bench_step_in_memory", in_memory, 5, run_in_memory, tell_in_memory},
  };
  for (size_t i = 0; i < sizeof(twins) / sizeof(twins[0]); ++i) gcap_sim_register_kernel(&twins[i]);
}
