// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The kernels on the simulator: their CPU twins compute the block, and list the bytes that they touch, which is what
// the simulator's checks look at.
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "examples/holes/attend.h"
#include "gcap_sim.h"

#define ROW_BYTES (ATTEND_WIDTH * sizeof(float))

// Only their addresses are used.
void project_kernel(const float* x, float* y, float factor) {
  (void)x, (void)y, (void)factor;
  abort();
}
void attend_kernel(const float* query, const float* history, float* sum, uint32_t rows) {
  (void)query, (void)history, (void)sum, (void)rows;
  abort();
}

static void run_project(const gcap_sim_launch_t* launch, void* const* args) {
  (void)launch;
  const float* x = *(const float* const*)args[0];
  float* y = *(float* const*)args[1];
  for (int i = 0; i < ATTEND_WIDTH; ++i) y[i] = *(const float*)args[2] * x[i];
}

static size_t project_accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out,
                               size_t capacity) {
  (void)launch;
  if (capacity > 0) out[0] = (gcap_sim_access_t){*(const float* const*)args[0], ROW_BYTES, false};
  if (capacity > 1) out[1] = (gcap_sim_access_t){*(float* const*)args[1], ROW_BYTES, true};
  return 2;
}

static void run_attend(const gcap_sim_launch_t* launch, void* const* args) {
  (void)launch;
  const float* query = *(const float* const*)args[0];
  const float* history = *(const float* const*)args[1];
  float* sum = *(float* const*)args[2];
  const uint32_t rows = *(const uint32_t*)args[3];
  for (int i = 0; i < ATTEND_WIDTH; ++i) {
    float total = 0;
    for (uint32_t row = 0; row < rows; ++row) total += history[row * ATTEND_WIDTH + i];
    sum[i] += query[i] * total;
  }
}

static size_t attend_accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out,
                              size_t capacity) {
  (void)launch;
  const size_t rows = *(const uint32_t*)args[3];
  float* sum = *(float* const*)args[2];
  if (capacity > 0) out[0] = (gcap_sim_access_t){*(const float* const*)args[0], ROW_BYTES, false};
  if (capacity > 1) out[1] = (gcap_sim_access_t){*(const float* const*)args[1], rows * ROW_BYTES, false};
  if (capacity > 2) out[2] = (gcap_sim_access_t){sum, ROW_BYTES, false};
  if (capacity > 3) out[3] = (gcap_sim_access_t){sum, ROW_BYTES, true};
  return 4;
}

__attribute__((constructor)) static void register_twins(void) {
  static const size_t project_bytes[] = {sizeof(float*), sizeof(float*), sizeof(float)};
  static const size_t attend_bytes[] = {sizeof(float*), sizeof(float*), sizeof(float*), sizeof(uint32_t)};
  const gcap_sim_kernel_t kernels[] = {
      {(const void*)project_kernel, "project_kernel", project_bytes, 3, run_project, project_accesses},
      {(const void*)attend_kernel, "attend_kernel", attend_bytes, 4, run_attend, attend_accesses},
  };
  for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); ++i) gcap_sim_register_kernel(&kernels[i]);
}
