// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// fat_binary.h: what a fat binary, the device code of one object that nvcc compiled, tells of its kernels.
#ifndef GCAP_SIM_NVCC_FAT_BINARY_H_
#define GCAP_SIM_NVCC_FAT_BINARY_H_

#include <stdbool.h>
#include <stddef.h>

// The device code that the wrapper points to. Stops the program when one of the two is damaged.
const void* gcap_sim_fat_binary_open(const void* wrapper);

// The parameters of a kernel, where each begins and how long each is. Arrays of the caller's.
typedef struct gcap_sim_params {
  size_t count;
  size_t* bytes;
  size_t* offsets;  // one more: the end of the last
} gcap_sim_params_t;

// Finds the parameters of the kernel. False when no machine code that can be read tells of them: it is compressed,
// there is PTX alone, or the form is not known. Stops the program when the machine code is damaged.
bool gcap_sim_fat_binary_params(const void* code, const char* kernel, gcap_sim_params_t* out);

// What a kernel takes of a device. What is 0 is not known, or none.
typedef struct gcap_sim_needs {
  size_t max_threads;   // of a block: __launch_bounds__
  size_t shared_bytes;  // of its __shared__ variables
  size_t const_bytes;   // of the __constant__ variables of its object
  size_t local_bytes;   // of a thread
  size_t registers;     // of a thread
} gcap_sim_needs_t;

// Finds what the kernel takes; all 0 where no machine code that can be read tells. Stops the program when the machine
// code is damaged.
gcap_sim_needs_t gcap_sim_fat_binary_needs(const void* code, const char* kernel);

// Reads the first contents of a variable of a device. False when no machine code that can be read holds the variable
// in that size, or where the contents have an address in them, which only a linker knows. Stops the program when the
// machine code is damaged.
bool gcap_sim_fat_binary_contents(const void* code, const char* variable, void* out, size_t bytes);

#endif  // GCAP_SIM_NVCC_FAT_BINARY_H_
