// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Softmax's CPU twin for the simulator. It computes the rows that the launched grid covers and no more.
#include <math.h>
#include <stdlib.h>

#include "gcap_sim.h"
#include "test/support/kernels/plain_kernels.h"

enum { WARP_THREADS = 32 };

// It only lends its address, which is the kernel's handle; kernels are launched, never called. With GCAP_TWINS_BY_NAME
// it is nvcc's.
#ifndef GCAP_TWINS_BY_NAME
void gcap_kernel_softmax_warp_f32(const float* x, float* y, int64_t rows, int64_t cols) {
  (void)x, (void)y, (void)rows, (void)cols;
  abort();
}
#endif

typedef struct softmax_args {
  const float* x;
  float* y;
  int64_t rows;
  int64_t cols;
} softmax_args_t;

// The arguments, with the rows that the grid covers: a warp a row.
static softmax_args_t unpack(const gcap_sim_launch_t* launch, void* const* args) {
  softmax_args_t a = {*(const float**)args[0], *(float**)args[1], *(const int64_t*)args[2], *(const int64_t*)args[3]};
  const int64_t covered = (int64_t)launch->grid.x * (launch->block.x / WARP_THREADS);
  if (a.rows > covered) a.rows = covered;
  return a;
}

static void softmax_row(const float* x, float* y, int64_t cols) {
  float max = -INFINITY;
  for (int64_t i = 0; i < cols; ++i) max = fmaxf(max, x[i]);
  double sum = 0.0;
  for (int64_t i = 0; i < cols; ++i) sum += expf(x[i] - max);
  for (int64_t i = 0; i < cols; ++i) y[i] = expf(x[i] - max) / (float)sum;
}

static void run(const gcap_sim_launch_t* launch, void* const* args) {
  const softmax_args_t a = unpack(launch, args);
  for (int64_t row = 0; row < a.rows; ++row) softmax_row(a.x + row * a.cols, a.y + row * a.cols, a.cols);
}

static size_t accesses(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  const softmax_args_t a = unpack(launch, args);
  const size_t bytes = (size_t)a.rows * (size_t)a.cols * sizeof(float);
  const gcap_sim_access_t all[] = {{a.x, bytes, 0}, {a.y, bytes, 1}};
  for (size_t i = 0; i < 2 && i < capacity; ++i) out[i] = all[i];
  return 2;
}

__attribute__((constructor)) static void register_twin(void) {
  static const size_t arg_bytes[] = {sizeof(const float*), sizeof(float*), sizeof(int64_t), sizeof(int64_t)};
  gcap_sim_register_kernel(&(gcap_sim_kernel_t){.function = (const void*)gcap_kernel_softmax_warp_f32,
                                                .name = "gcap_kernel_softmax_warp_f32",
                                                .arg_bytes = arg_bytes,
                                                .num_args = 4,
                                                .run = run,
                                                .accesses = accesses});
}
