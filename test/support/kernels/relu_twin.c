// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// ReLU's CPU twin for the simulator. The function below only lends its address, which is the kernel's handle; with
// GCAP_TWINS_BY_NAME it is nvcc's.
#include <stdlib.h>

#include "gcap_sim.h"
#include "test/support/kernels/plain_kernels.h"

#ifndef GCAP_TWINS_BY_NAME
void gcap_kernel_relu_f32(const float* x, float* y, int64_t count) {
  (void)x, (void)y, (void)count;
  abort();  // kernels are launched, never called
}
#endif

typedef struct relu_args {
  const float* x;
  float* y;
  int64_t count;
} relu_args_t;

static relu_args_t unpack(void* const* args) {
  return (relu_args_t){*(const float**)args[0], *(float**)args[1], *(const int64_t*)args[2]};
}

// The kernel strides over what the grid does not cover, so every grid computes all.
static void run(const gcap_sim_launch_t* launch, void* const* args) {
  (void)launch;
  const relu_args_t a = unpack(args);
  for (int64_t i = 0; i < a.count; ++i) a.y[i] = a.x[i] < 0.0f ? 0.0f : a.x[i];
}

static size_t accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  (void)launch;
  const relu_args_t a = unpack(args);
  const size_t bytes = (size_t)a.count * sizeof(float);
  const gcap_sim_access_t all[] = {{a.x, bytes, 0}, {a.y, bytes, 1}};
  for (size_t i = 0; i < 2 && i < capacity; ++i) out[i] = all[i];
  return 2;
}

__attribute__((constructor)) static void register_twin(void) {
  static const size_t arg_bytes[] = {sizeof(const float*), sizeof(float*), sizeof(int64_t)};
  gcap_sim_register_kernel(&(gcap_sim_kernel_t){.function = (const void*)gcap_kernel_relu_f32,
                                                .name = "gcap_kernel_relu_f32",
                                                .arg_bytes = arg_bytes,
                                                .num_args = 3,
                                                .run = run,
                                                .accesses = accesses});
}
