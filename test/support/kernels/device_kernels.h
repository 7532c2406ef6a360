// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// device_kernels.h: kernels that tell what only a device knows: variables of the device, and the size of clusters.
#ifndef GCAP_TEST_SUPPORT_KERNELS_DEVICE_KERNELS_H_
#define GCAP_TEST_SUPPORT_KERNELS_DEVICE_KERNELS_H_

#include "test/support/kernels/plain_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

// How many words each of the two variables has.
enum { GCAP_TEST_SYMBOL_WORDS = 16 };

// The addresses by which the host names two variables of the device, as cudaMemcpyToSymbol takes them: one in global
// memory, { 0x11111111, 0, ... } at first, and one in constant memory, all zero at first.
const void* gcap_test_symbol_global(void);
const void* gcap_test_symbol_constant(void);

// out[0] = the first word of the global variable, out[1] = that of the constant one.
GCAP_KERNEL void gcap_kernel_read_symbols(unsigned int* out);
// Adds `value` to the first word of the global variable.
GCAP_KERNEL void gcap_kernel_add_to_symbol(unsigned int value);

// *out = the blocks of a cluster in x, 1 without clusters. Two kernels that differ in their names alone.
GCAP_KERNEL void gcap_kernel_cluster_size(unsigned int* out);
GCAP_KERNEL void gcap_kernel_cluster_size_too(unsigned int* out);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_SUPPORT_KERNELS_DEVICE_KERNELS_H_
