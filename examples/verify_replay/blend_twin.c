// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernel on the simulator: its CPU twin computes the block, and lists the bytes that it touches, which is what the
// simulator's checks look at.
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "examples/verify_replay/blend.h"
#include "gcap_sim.h"

#define BYTES (BLEND_WIDTH * sizeof(float))

// Only its address is used.
void blend_kernel(const float* input, float* sum, float weight) {
  (void)input, (void)sum, (void)weight;
  abort();
}

static void run_blend(const gcap_sim_launch_t* launch, void* const* args) {
  (void)launch;
  const float* input = *(const float* const*)args[0];
  float* sum = *(float* const*)args[1];
  for (int i = 0; i < BLEND_WIDTH; ++i) sum[i] += *(const float*)args[2] * input[i];
}

static size_t blend_accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out,
                             size_t capacity) {
  (void)launch;
  float* sum = *(float* const*)args[1];
  if (capacity > 0) out[0] = (gcap_sim_access_t){*(const float* const*)args[0], BYTES, false};
  if (capacity > 1) out[1] = (gcap_sim_access_t){sum, BYTES, false};
  if (capacity > 2) out[2] = (gcap_sim_access_t){sum, BYTES, true};
  return 3;
}

__attribute__((constructor)) static void register_twin(void) {
  static const size_t arg_bytes[] = {sizeof(float*), sizeof(float*), sizeof(float)};
  const gcap_sim_kernel_t kernel = {(const void*)blend_kernel, "blend_kernel", arg_bytes, 3, run_blend, blend_accesses};
  gcap_sim_register_kernel(&kernel);
}
