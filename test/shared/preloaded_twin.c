// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A library that is preloaded into kernel_program, which was linked without it: the twin of the program's kernel.

#include "gcap_sim.h"

static void run(const gcap_sim_launch_t* launch, void* const* args) {
  const float* x = *(const float**)args[0];
  const float factor = *(const float*)args[1];
  float* y = *(float**)args[2];
  for (unsigned int i = 0; i < launch->block.x; ++i) y[i] = factor * x[i];
}

static size_t accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  const size_t bytes = launch->block.x * sizeof(float);
  const gcap_sim_access_t all[] = {{*(const float**)args[0], bytes, 0}, {*(float**)args[2], bytes, 1}};
  for (size_t i = 0; i < 2 && i < capacity; ++i) out[i] = all[i];
  return 2;
}

__attribute__((constructor)) static void register_twin(void) {
  static const size_t arg_bytes[] = {sizeof(const float*), sizeof(float), sizeof(float*)};
  gcap_sim_register_kernel(&(gcap_sim_kernel_t){
      .name = "engine::scale", .arg_bytes = arg_bytes, .num_args = 3, .run = run, .accesses = accesses});
}
