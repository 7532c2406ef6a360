// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// fat_binary.h: what a fat binary, the device code of one object that nvcc compiled, tells of its kernels.
#ifndef GCAP_SIM_NVCC_FAT_BINARY_H_
#define GCAP_SIM_NVCC_FAT_BINARY_H_

#include <stdbool.h>
#include <stddef.h>

// The device code that the wrapper points to. Stops the program when one of the two is damaged.
const void* gcap_sim_fat_binary_open(const void* wrapper);

// Finds the size of each parameter of the kernel. False when no machine code that can be read holds the kernel: it is
// compressed, there is PTX alone, or parameters are told in an unknown form. Otherwise `*out_bytes` is an array of the
// caller's. Stops the program when the machine code is damaged.
bool gcap_sim_fat_binary_params(const void* code, const char* kernel, size_t** out_bytes, size_t* out_count);

// Reads the first contents of a variable of a device. False when no machine code that can be read holds the variable
// in that size, or where the contents have an address in them, which only a linker knows. Stops the program when the
// machine code is damaged.
bool gcap_sim_fat_binary_contents(const void* code, const char* variable, void* out, size_t bytes);

#endif  // GCAP_SIM_NVCC_FAT_BINARY_H_
