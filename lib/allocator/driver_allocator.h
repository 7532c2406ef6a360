// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// driver_allocator.h: an allocator that asks the driver for every block: what the device and pinned allocators share.
#ifndef GCAP_LIB_ALLOCATOR_DRIVER_ALLOCATOR_H_
#define GCAP_LIB_ALLOCATOR_DRIVER_ALLOCATOR_H_

#include <cuda_runtime_api.h>

#include "gcap/allocator.h"

typedef struct gcap_driver_calls {
  const char* allocator_name;  // "device allocator"
  const char* source;          // "cudaMalloc of the device allocator"
  const char* free_name;       // the runtime's function
  const char* alloc_name;      // the runtime's function
  cudaError_t (*alloc)(size_t bytes, void** out_ptr);
  gcap_status_t (*free)(void* ptr);
} gcap_driver_calls_t;

// Makes an allocator of two runtime calls, which live for ever. `device_id` is made current around them; -1: none.
gcap_status_t gcap_driver_allocator_create(const gcap_driver_calls_t* calls, int device_id,
                                           gcap_allocator_t** out_allocator) GCAP_NODISCARD;

#endif  // GCAP_LIB_ALLOCATOR_DRIVER_ALLOCATOR_H_
