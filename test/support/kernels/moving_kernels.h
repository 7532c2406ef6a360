// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// moving_kernels.h: kernels whose pointers are hard to find in their arguments. Each adds to `count` floats.
#ifndef GCAP_TEST_SUPPORT_KERNELS_MOVING_KERNELS_H_
#define GCAP_TEST_SUPPORT_KERNELS_MOVING_KERNELS_H_

#include "test/support/kernels/plain_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// Pointers at odd bytes.
typedef struct __attribute__((packed)) gcap_test_packed {
  uint8_t addend;
  const float* x;
  float* y;
  uint16_t count;
} gcap_test_packed_t;

// y[i] = x[i] + addend. One block.
GCAP_KERNEL void gcap_kernel_add_packed(gcap_test_packed_t args);

// y[i] = x[i] + 1, where the address of x comes in two halves. One block.
GCAP_KERNEL void gcap_kernel_add_split(uint32_t x_low, float* y, uint32_t x_high, uint32_t count);

// table[1][i] = table[0][i] + 1, where the table lies in device memory. One block.
GCAP_KERNEL void gcap_kernel_add_table(float* const* table, uint32_t count);

// y[i] = x[i] + the low 8 bits of `addend`, which is a number, whatever it looks like. One block.
GCAP_KERNEL void gcap_kernel_add_scalar(const float* x, float* y, uint64_t addend, uint32_t count);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_SUPPORT_KERNELS_MOVING_KERNELS_H_
