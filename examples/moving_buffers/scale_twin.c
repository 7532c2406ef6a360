// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernels on the simulator: their CPU twins compute the whole grid, and list the bytes that they touch, which is
// what the simulator's checks look at.
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "examples/moving_buffers/scale.h"
#include "gcap_sim.h"

// Only their addresses are used.
void scale_kernel(const float* x, float* y, uint32_t count, float factor) {
  (void)x, (void)y, (void)count, (void)factor;
  abort();
}
void scale4_kernel(const float* x, float* y, uint32_t count, float factor) { scale_kernel(x, y, count, factor); }
void scale_listed_kernel(const float* const* table, float* y, uint32_t count, float factor) {
  scale_kernel(table[0], y, count, factor);
}

static void scale(const gcap_sim_launch_t* launch, uint32_t elements_per_thread, const float* x, void* const* args) {
  float* y = *(float* const*)args[1];
  const uint32_t count = *(const uint32_t*)args[2];
  const float factor = *(const float*)args[3];
  const uint32_t covered = launch->grid.x * SCALE_BLOCK_THREADS * elements_per_thread;
  for (uint32_t i = 0; i < covered && i < count; ++i) y[i] = factor * x[i];
}

static void run(const gcap_sim_launch_t* launch, void* const* args) {
  scale(launch, 1, *(const float* const*)args[0], args);
}
static void run4(const gcap_sim_launch_t* launch, void* const* args) {
  scale(launch, 4, *(const float* const*)args[0], args);
}
static void run_listed(const gcap_sim_launch_t* launch, void* const* args) {
  scale(launch, 1, **(const float* const* const*)args[0], args);
}

static size_t accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  (void)launch;
  const size_t bytes = *(const uint32_t*)args[2] * sizeof(float);
  if (capacity > 0) out[0] = (gcap_sim_access_t){*(const float* const*)args[0], bytes, false};
  if (capacity > 1) out[1] = (gcap_sim_access_t){*(float* const*)args[1], bytes, true};
  return 2;
}
// What the table points to is not listed: the simulator holds each replay to the memory of the capture, and a table may
// point elsewhere by then.
static size_t accesses_listed(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out,
                              size_t capacity) {
  const size_t count = accesses(launch, args, out, capacity);
  if (capacity > 0) out[0].bytes = sizeof(float*);
  return count;
}

__attribute__((constructor)) static void register_twins(void) {
  static const size_t arg_bytes[] = {sizeof(void*), sizeof(float*), sizeof(uint32_t), sizeof(float)};
  const gcap_sim_kernel_t kernels[] = {
      {(const void*)scale_kernel, "scale_kernel", arg_bytes, 4, run, accesses},
      {(const void*)scale4_kernel, "scale4_kernel", arg_bytes, 4, run4, accesses},
      {(const void*)scale_listed_kernel, "scale_listed_kernel", arg_bytes, 4, run_listed, accesses_listed},
  };
  for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); ++i) gcap_sim_register_kernel(&kernels[i]);
}
