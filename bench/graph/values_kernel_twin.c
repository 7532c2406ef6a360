// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twin of the kernel that reads four values.
#include <stdlib.h>

#include "bench/graph/values_kernel.h"
#include "gcap_sim.h"

#ifdef GCAP_TWINS_BY_NAME  // nvcc's object defines it
#define FUNCTION NULL
#else
#define FUNCTION ((const void*)gcap_bench_step)

void gcap_bench_step(float* out, uint32_t position, uint32_t length, uint64_t seed, float temperature) {
  (void)out, (void)position, (void)length, (void)seed, (void)temperature;
  abort();  // kernels are launched, never called
}
#endif

static void run(const gcap_sim_launch_t* launch, void* const* args) {
  (void)launch;
  float* out = *(float**)args[0];
  out[0] = (float)*(const uint32_t*)args[1] + (float)*(const uint32_t*)args[2] +
           (float)(*(const uint64_t*)args[3] & 0xff) + *(const float*)args[4];
}

static size_t tell(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  (void)launch;
  if (capacity > 0) out[0] = (gcap_sim_access_t){*(void**)args[0], sizeof(float), 1};
  return 1;
}

__attribute__((constructor)) static void register_twin(void) {
  static const size_t sizes[] = {8, 4, 4, 8, 4};
  const gcap_sim_kernel_t twin = {FUNCTION, "gcap_bench_step", sizes, 5, run, tell};
  gcap_sim_register_kernel(&twin);
}
