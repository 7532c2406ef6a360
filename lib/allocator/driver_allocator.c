// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Driver allocators: every block is one driver call, noted in a table. Each driver call is made with the allocator's
// device current, and in the relaxed capture mode: an allocation cannot hurt another thread's capture, but would
// invalidate it in the global mode. A capturing thread is refused before anything happens.
//
// Invariant: an address is in the table exactly while it is allocated and the caller owns it. Locking: the table's
// mutex, never across a driver call.

#include "lib/allocator/driver_allocator.h"

#include <stdlib.h>

#include "gcap/allocator_ops.h"
#include "lib/allocator/block_table.h"
#include "lib/allocator/refusal.h"
#include "lib/internal/cuda_guard.h"

// What both runtimes give: cudaMalloc by documentation, cudaHostAlloc because it locks whole pages.
#define DRIVER_ALIGNMENT 256u

typedef struct driver_allocator {
  const gcap_driver_calls_t* calls;
  int device_id;
  gcap_block_table_t blocks;
} driver_allocator_t;

static gcap_status_t ask_driver(const driver_allocator_t* allocator, size_t bytes, void** out_ptr) {
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(allocator->device_id, &previous));
  const cudaError_t answer = allocator->calls->alloc(bytes, out_ptr);
  gcap_status_t status = gcap_status_from_cuda(answer, allocator->calls->alloc_name, __FILE__, __LINE__);
  if (answer == cudaErrorMemoryAllocation) {
    status = gcap_status_annotate(status, GCAP_RESOURCE_EXHAUSTED, "the %s cannot get %zu bytes",
                                  allocator->calls->allocator_name, bytes);
  }
  if (status != NULL) *out_ptr = NULL;
  return gcap_status_join(status, gcap_thread_leave(allocator->device_id, &previous));
}

// Gives memory back; `*out_freed` tells whether it is gone, also where the thread's settings could not be restored.
static gcap_status_t give_back(const driver_allocator_t* allocator, void* ptr, bool* out_freed) {
  *out_freed = false;
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(allocator->device_id, &previous));
  gcap_status_t status = allocator->calls->free(ptr);
  *out_freed = status == NULL;
  return gcap_status_join(status, gcap_thread_leave(allocator->device_id, &previous));
}

static gcap_status_t alloc_noted(driver_allocator_t* allocator, size_t bytes, bool reserved, void** out_ptr) {
  GCAP_RETURN_IF_ERROR(gcap_allocator_refuse_in_capture(reserved, bytes, allocator->calls->source));
  gcap_status_t status = ask_driver(allocator, bytes, out_ptr);
  if (status == NULL) status = gcap_block_table_add(&allocator->blocks, *out_ptr, bytes, reserved);
  if (status != NULL && *out_ptr != NULL) {
    bool freed = false;
    status = gcap_status_join(status, give_back(allocator, *out_ptr, &freed));
    *out_ptr = NULL;
  }
  return status;
}

static gcap_status_t driver_alloc(void* self, size_t bytes, void** out_ptr) {
  return alloc_noted(self, bytes, /*reserved=*/false, out_ptr);
}

static gcap_status_t driver_reserve(void* self, size_t bytes, void** out_ptr) {
  return alloc_noted(self, bytes, /*reserved=*/true, out_ptr);
}

static gcap_status_t driver_free(void* self, void* ptr) {
  driver_allocator_t* allocator = self;
  GCAP_RETURN_IF_ERROR(gcap_allocator_check_not_capturing(allocator->calls->free_name));
  gcap_block_t block;
  GCAP_RETURN_IF_ERROR(gcap_block_table_take(&allocator->blocks, ptr, &block));
  bool freed = false;
  gcap_status_t status = give_back(allocator, ptr, &freed);
  if (freed) {
    gcap_allocator_log_after_free(status);
    return NULL;
  }
  return gcap_status_join(status, gcap_block_table_put_back(&allocator->blocks, &block));
}

static void driver_get_stats(void* self, gcap_allocator_stats_t* out_stats) {
  driver_allocator_t* allocator = self;
  gcap_block_table_get_stats(&allocator->blocks, out_stats);
}

static void driver_destroy(void* self) {
  driver_allocator_t* allocator = self;
  gcap_block_table_deinit(&allocator->blocks, allocator->calls->allocator_name);
  free(allocator);
}

gcap_status_t gcap_driver_allocator_create(const gcap_driver_calls_t* calls, int device_id,
                                           gcap_allocator_t** out_allocator) {
  *out_allocator = NULL;
  driver_allocator_t* allocator = malloc(sizeof(*allocator));
  if (allocator == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a %s", calls->allocator_name);
  allocator->calls = calls;
  allocator->device_id = device_id;
  gcap_block_table_init(&allocator->blocks);
  const gcap_allocator_ops_t ops = {
      .struct_version = GCAP_ALLOCATOR_OPS_VERSION,
      .device_id = device_id,
      .alignment = DRIVER_ALIGNMENT,
      .self = allocator,
      .alloc = driver_alloc,
      .free = driver_free,
      .reserve = driver_reserve,
      .get_stats = driver_get_stats,
      .destroy = driver_destroy,
  };
  gcap_status_t status = gcap_allocator_create(&ops, out_allocator);
  if (status != NULL) driver_destroy(allocator);
  return status;
}
