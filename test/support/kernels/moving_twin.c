// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of the kernels whose pointers are hard to find.
#include <stdlib.h>

#include "gcap_sim.h"
#include "test/support/kernels/moving_kernels.h"

#ifndef GCAP_TWINS_BY_NAME  // nvcc's object defines them where there is one
void gcap_kernel_add_packed(gcap_test_packed_t args) {
  (void)args;
  abort();  // kernels are launched, never called
}

void gcap_kernel_add_split(uint32_t x_low, float* y, uint32_t x_high, uint32_t count) {
  (void)x_low, (void)y, (void)x_high, (void)count;
  abort();
}

void gcap_kernel_add_table(float* const* table, uint32_t count) {
  (void)table, (void)count;
  abort();
}

void gcap_kernel_add_scalar(const float* x, float* y, uint64_t addend, uint32_t count) {
  (void)x, (void)y, (void)addend, (void)count;
  abort();
}
#endif

// What all of them do.
typedef struct sum {
  const float* x;
  float* y;
  float addend;
  uint32_t count;
} sum_t;

static void add(sum_t s) {
  for (uint32_t i = 0; i < s.count; ++i) s.y[i] = s.x[i] + s.addend;
}

static size_t tell(sum_t s, gcap_sim_access_t* out, size_t capacity) {
  const gcap_sim_access_t all[] = {{s.x, s.count * sizeof(float), 0}, {s.y, s.count * sizeof(float), 1}};
  for (size_t i = 0; i < 2 && i < capacity; ++i) out[i] = all[i];
  return 2;
}

static sum_t unpack_packed(void* const* args) {
  const gcap_test_packed_t* packed = args[0];
  return (sum_t){packed->x, packed->y, packed->addend, packed->count};
}

static sum_t unpack_split(void* const* args) {
  const uint64_t low = *(const uint32_t*)args[0], high = *(const uint32_t*)args[2];
  return (sum_t){(const float*)(uintptr_t)(high << 32 | low), *(float**)args[1], 1.0f, *(const uint32_t*)args[3]};
}

static sum_t unpack_table(void* const* args) {
  float* const* table = *(float* const**)args[0];
  return (sum_t){table[0], table[1], 1.0f, *(const uint32_t*)args[1]};
}

static sum_t unpack_scalar(void* const* args) {
  return (sum_t){*(const float**)args[0], *(float**)args[1], (float)(*(const uint64_t*)args[2] & 0xff),
                 *(const uint32_t*)args[3]};
}

#define TWIN(kernel)                                                                                             \
  static void run_##kernel(const gcap_sim_launch_t* launch, void* const* args) {                                 \
    (void)launch;                                                                                                \
    add(unpack_##kernel(args));                                                                                  \
  }                                                                                                              \
  static size_t accesses_of_##kernel(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out, \
                                     size_t capacity) {                                                          \
    (void)launch;                                                                                                \
    return tell(unpack_##kernel(args), out, capacity);                                                           \
  }

TWIN(packed)
TWIN(split)
TWIN(scalar)

static void run_table(const gcap_sim_launch_t* launch, void* const* args) {
  (void)launch;
  add(unpack_table(args));
}

// Tells of the table too.
static size_t accesses_of_table(const gcap_sim_launch_t* launch, void* const* args, gcap_sim_access_t* out,
                                size_t capacity) {
  (void)launch;
  if (capacity > 2) out[2] = (gcap_sim_access_t){*(void**)args[0], 2 * sizeof(float*), 0};
  return tell(unpack_table(args), out, capacity) + 1;
}

#ifdef GCAP_TWINS_BY_NAME
#define FUNCTION(kernel) NULL
#else
#define FUNCTION(kernel) ((const void*)(kernel))
#endif

__attribute__((constructor)) static void register_twins(void) {
  static const size_t packed[] = {sizeof(gcap_test_packed_t)}, split[] = {4, 8, 4, 4}, table[] = {8, 4},
                      scalar[] = {8, 8, 8, 4};
  const gcap_sim_kernel_t twins[] = {
      {FUNCTION(gcap_kernel_add_packed), "gcap_kernel_add_packed", packed, 1, run_packed, accesses_of_packed},
      {FUNCTION(gcap_kernel_add_split), "gcap_kernel_add_split", split, 4, run_split, accesses_of_split},
      {FUNCTION(gcap_kernel_add_table), "gcap_kernel_add_table", table, 2, run_table, accesses_of_table},
      {FUNCTION(gcap_kernel_add_scalar), "gcap_kernel_add_scalar", scalar, 4, run_scalar, accesses_of_scalar},
  };
  for (size_t i = 0; i < sizeof(twins) / sizeof(twins[0]); ++i) gcap_sim_register_kernel(&twins[i]);
}
