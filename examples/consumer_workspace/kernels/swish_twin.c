// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernel on the simulator: its CPU twin computes the whole grid, and lists the bytes that it touches, which is what
// the simulator's checks look at.
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "gcap_sim.h"
#include "kernels/swish.h"

void swish_kernel(const float* x, float* y, int64_t count, float beta) {
  (void)x, (void)y, (void)count, (void)beta;
  abort();  // only its address is used
}

// The arguments of a launch, as cudaLaunchKernel takes them: a pointer to each.
static void run(const gcap_sim_launch_t* launch, void* const* args) {
  const float *x = *(const float**)args[0], beta = *(const float*)args[3];
  float* y = *(float**)args[1];
  const int64_t threads = (int64_t)launch->grid.x * SWISH_BLOCK_THREADS, count = *(const int64_t*)args[2];
  for (int64_t i = 0; i < threads && i < count; ++i) y[i] = x[i] / (1.0f + expf(-beta * x[i]));
}

static size_t accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  (void)launch;
  const size_t bytes = (size_t) * (const int64_t*)args[2] * sizeof(float);
  if (capacity > 0) out[0] = (gcap_sim_access_t){*(const float**)args[0], bytes, /*is_write=*/false};
  if (capacity > 1) out[1] = (gcap_sim_access_t){*(float**)args[1], bytes, /*is_write=*/true};
  return 2;
}

__attribute__((constructor)) static void register_twin(void) {
  static const size_t arg_bytes[] = {sizeof(float*), sizeof(float*), sizeof(int64_t), sizeof(float)};
  gcap_sim_register_kernel(&(gcap_sim_kernel_t){.function = (const void*)swish_kernel,
                                                .name = "swish_kernel",
                                                .arg_bytes = arg_bytes,
                                                .num_args = 4,
                                                .run = run,
                                                .accesses = accesses});
}
