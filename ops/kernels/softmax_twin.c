// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Softmax's CPU twins for the simulator, one for each kernel. They compute the rows that the launched grid covers and
// no more, so that a wrapper that launches too little shows.
#include <math.h>
#include <stdlib.h>

#include "gcap_sim.h"
#include "ops/kernels/device_kernels.h"

enum { WARP_THREADS = 32 };

// These only lend their addresses, which are the kernels' handles; kernels are launched, never called.
void gcap_kernel_softmax_warp_f32(const float* x, float* y, int64_t rows, int64_t cols) {
  (void)x, (void)y, (void)rows, (void)cols;
  abort();
}

void gcap_kernel_softmax_block_f32(const float* x, float* y, int64_t rows, int64_t cols) {
  (void)x, (void)y, (void)rows, (void)cols;
  abort();
}

typedef struct softmax_args {
  const float* x;
  float* y;
  int64_t rows;
  int64_t cols;
} softmax_args_t;

// The arguments, with `rows` cut to what the grid covers at `rows_per_block`.
static softmax_args_t unpack(const gcap_sim_launch_t* launch, void* const* args, unsigned rows_per_block) {
  softmax_args_t a = {*(const float**)args[0], *(float**)args[1], *(const int64_t*)args[2], *(const int64_t*)args[3]};
  const int64_t covered = (int64_t)launch->grid.x * rows_per_block;
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

static void softmax_rows(softmax_args_t a) {
  for (int64_t row = 0; row < a.rows; ++row) softmax_row(a.x + row * a.cols, a.y + row * a.cols, a.cols);
}

static size_t list_accesses(softmax_args_t a, gcap_sim_access_t* out, size_t capacity) {
  const size_t bytes = (size_t)a.rows * (size_t)a.cols * sizeof(float);
  const gcap_sim_access_t all[] = {{a.x, bytes, 0}, {a.y, bytes, 1}};
  for (size_t i = 0; i < 2 && i < capacity; ++i) out[i] = all[i];
  return 2;
}

static unsigned warps(const gcap_sim_launch_t* launch) { return launch->block.x / WARP_THREADS; }

static void run_warp(const gcap_sim_launch_t* launch, void* const* args) {
  softmax_rows(unpack(launch, args, warps(launch)));
}

static size_t accesses_warp(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out,
                            size_t capacity) {
  return list_accesses(unpack(launch, args, warps(launch)), out, capacity);
}

static void run_block(const gcap_sim_launch_t* launch, void* const* args) { softmax_rows(unpack(launch, args, 1)); }

static size_t accesses_block(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out,
                             size_t capacity) {
  return list_accesses(unpack(launch, args, 1), out, capacity);
}

__attribute__((constructor)) static void register_twins(void) {
  static const size_t arg_bytes[] = {sizeof(const float*), sizeof(float*), sizeof(int64_t), sizeof(int64_t)};
  gcap_sim_kernel_t kernel = {.function = (const void*)gcap_kernel_softmax_warp_f32,
                              .name = "gcap_kernel_softmax_warp_f32",
                              .arg_bytes = arg_bytes,
                              .num_args = 4,
                              .run = run_warp,
                              .accesses = accesses_warp};
  gcap_sim_register_kernel(&kernel);
  kernel.function = (const void*)gcap_kernel_softmax_block_f32;
  kernel.name = "gcap_kernel_softmax_block_f32";
  kernel.run = run_block;
  kernel.accesses = accesses_block;
  gcap_sim_register_kernel(&kernel);
}
