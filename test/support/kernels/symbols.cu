// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Two variables of the device, and kernels that use them.
#include "test/support/kernels/device_kernels.h"

static __device__ unsigned int global_words[GCAP_TEST_SYMBOL_WORDS] = {0x11111111u};
static __constant__ unsigned int constant_words[GCAP_TEST_SYMBOL_WORDS];

const void* gcap_test_symbol_global(void) { return &global_words; }
const void* gcap_test_symbol_constant(void) { return &constant_words; }

__global__ void gcap_kernel_read_symbols(unsigned int* out) {
  out[0] = global_words[0];
  out[1] = constant_words[0];
}

__global__ void gcap_kernel_add_to_symbol(unsigned int value) { global_words[0] += value; }
