// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The device allocator: cudaMalloc and cudaFree behind the allocator interface. State and locking: driver_allocator.c.

#include "lib/allocator/driver_allocator.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"

static cudaError_t device_alloc(size_t bytes, void** out_ptr) { return cudaMalloc(out_ptr, bytes); }

static gcap_status_t device_free(void* ptr) { return GCAP_CUDA(cudaFree(ptr)); }

gcap_status_t gcap_device_allocator_create(int device_id, gcap_allocator_t** out_allocator) {
  static const gcap_driver_calls_t calls = {
      .allocator_name = "device allocator",
      .source = "cudaMalloc of the device allocator",
      .free_name = "cudaFree",
      .alloc_name = "cudaMalloc(out_ptr, bytes)",
      .alloc = device_alloc,
      .free = device_free,
  };
  GCAP_RETURN_IF_NULL(out_allocator);
  *out_allocator = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(gcap_check_device(device_id));
  return gcap_driver_allocator_create(&calls, device_id, out_allocator);
}
