// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernel on the simulator: its CPU twin computes the block, and lists the bytes that it touches, which is what the
// simulator's checks look at.
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "examples/check_operation/scale.h"
#include "gcap_sim.h"

#define BYTES (SCALE_WIDTH * sizeof(float))

// Only its address is used.
void scale_kernel(const float* x, float* y, float factor, const float* device_factor) {
  (void)x, (void)y, (void)factor, (void)device_factor;
  abort();
}

static const float* device_factor_of(void* const* args) { return *(const float* const*)args[3]; }

static void run_scale(const gcap_sim_launch_t* launch, void* const* args) {
  (void)launch;
  const float* x = *(const float* const*)args[0];
  float* y = *(float* const*)args[1];
  const float factor = device_factor_of(args) != NULL ? *device_factor_of(args) : *(const float*)args[2];
  for (int i = 0; i < SCALE_WIDTH; ++i) y[i] = factor * x[i];
}

static size_t scale_accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out,
                             size_t capacity) {
  (void)launch;
  const size_t count = device_factor_of(args) != NULL ? 3 : 2;
  if (capacity > 0) out[0] = (gcap_sim_access_t){*(const float* const*)args[0], BYTES, false};
  if (capacity > 1) out[1] = (gcap_sim_access_t){*(float* const*)args[1], BYTES, true};
  if (capacity > 2 && count > 2) out[2] = (gcap_sim_access_t){device_factor_of(args), sizeof(float), false};
  return count;
}

__attribute__((constructor)) static void register_twin(void) {
  static const size_t arg_bytes[] = {sizeof(float*), sizeof(float*), sizeof(float), sizeof(float*)};
  const gcap_sim_kernel_t kernel = {(const void*)scale_kernel, "scale_kernel", arg_bytes, 4, run_scale, scale_accesses};
  gcap_sim_register_kernel(&kernel);
}
