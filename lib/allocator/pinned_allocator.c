// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The pinned allocator: cudaHostAlloc and cudaFreeHost behind the allocator interface. State and locking:
// driver_allocator.c.

#include "lib/allocator/driver_allocator.h"
#include "lib/internal/check_argument.h"

static cudaError_t pinned_alloc(size_t bytes, void** out_ptr) {
  return cudaHostAlloc(out_ptr, bytes, cudaHostAllocDefault);
}

static gcap_status_t pinned_free(void* ptr) { return GCAP_CUDA(cudaFreeHost(ptr)); }

gcap_status_t gcap_pinned_allocator_create(gcap_allocator_t** out_allocator) {
  static const gcap_driver_calls_t calls = {
      .allocator_name = "pinned allocator",
      .source = "cudaHostAlloc of the pinned allocator",
      .free_name = "cudaFreeHost",
      .alloc_name = "cudaHostAlloc(out_ptr, bytes, cudaHostAllocDefault)",
      .alloc = pinned_alloc,
      .free = pinned_free,
  };
  GCAP_RETURN_IF_NULL(out_allocator);
  return gcap_driver_allocator_create(&calls, /*device_id=*/-1, out_allocator);
}
