// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernel on the simulator: its CPU twin computes the whole grid, and lists the bytes that it touches.
#include <stdlib.h>

#include "gcap_sim.h"
#include "scale.h"

void scale_kernel(scale_params_t params) {
  (void)params;
  abort();  // only its address is used
}

static void run(const gcap_sim_launch_t* launch, void* const* args) {
  const scale_params_t* p = args[0];
  const int64_t threads = (int64_t)launch->grid.x * SCALE_BLOCK_THREADS;
  for (int64_t i = 0; i < threads && i < p->count; ++i) p->y[i] = p->factor * p->x[i];
}

static size_t accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  (void)launch;
  const scale_params_t* p = args[0];
  const size_t bytes = (size_t)p->count * sizeof(float);
  if (capacity > 0) out[0] = (gcap_sim_access_t){p->x, bytes, 0};
  if (capacity > 1) out[1] = (gcap_sim_access_t){p->y, bytes, 1};
  return 2;
}

__attribute__((constructor)) static void register_twin(void) {
  static const size_t params_bytes = sizeof(scale_params_t);
  gcap_sim_register_kernel(&(gcap_sim_kernel_t){.function = (const void*)scale_kernel,
                                                .name = "scale_kernel",
                                                .arg_bytes = &params_bytes,
                                                .num_args = 1,
                                                .run = run,
                                                .accesses = accesses});
}
