// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The allocator interface: a checked copy of the implementer's table, and the rules that hold for every implementation
// (zero bytes, NULL, outputs that are NULL on failure), kept here so that no implementation has to. Nothing changes
// after creation, so there is nothing to lock.

#include <stdlib.h>

#include "gcap/allocator_ops.h"

struct gcap_allocator {
  gcap_allocator_ops_t ops;
};

static gcap_status_t check_ops(const gcap_allocator_ops_t* ops) {
  if (ops == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the allocator's ops table is NULL");
  if (ops->struct_version != GCAP_ALLOCATOR_OPS_VERSION) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "struct_version of the allocator's ops is %u, this library knows only %u",
                       ops->struct_version, GCAP_ALLOCATOR_OPS_VERSION);
  }
  if (ops->alloc == NULL || ops->free == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the allocator's ops lack the required member %s",
                       ops->alloc == NULL ? "alloc" : "free");
  }
  if (ops->alignment == 0 || (ops->alignment & (ops->alignment - 1)) != 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "alignment of the allocator's ops is %zu, expected a power of two",
                       ops->alignment);
  }
  if (ops->device_id < -1) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "device_id of the allocator's ops is %d, expected a device or -1 (host)",
                       (int)ops->device_id);
  }
  return NULL;
}

gcap_status_t gcap_allocator_create(const gcap_allocator_ops_t* ops, gcap_allocator_t** out_allocator) {
  *out_allocator = NULL;
  GCAP_RETURN_IF_ERROR(check_ops(ops));
  gcap_allocator_t* allocator = malloc(sizeof(*allocator));
  if (allocator == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for an allocator");
  allocator->ops = *ops;
  *out_allocator = allocator;
  return NULL;
}

void gcap_allocator_destroy(gcap_allocator_t* allocator) {
  if (allocator == NULL) return;
  if (allocator->ops.destroy != NULL) allocator->ops.destroy(allocator->ops.self);
  free(allocator);
}

gcap_status_t gcap_allocator_alloc(gcap_allocator_t* allocator, size_t bytes, void** out_ptr) {
  *out_ptr = NULL;
  if (bytes == 0) return NULL;
  gcap_status_t status = allocator->ops.alloc(allocator->ops.self, bytes, out_ptr);
  if (status != NULL) *out_ptr = NULL;
  return status;
}

gcap_status_t gcap_allocator_alloc_on_stream(gcap_allocator_t* allocator, size_t bytes, gcap_stream_t* stream,
                                             void** out_ptr) {
  if (allocator->ops.alloc_on_stream == NULL) return gcap_allocator_alloc(allocator, bytes, out_ptr);
  *out_ptr = NULL;
  if (bytes == 0) return NULL;
  gcap_status_t status = allocator->ops.alloc_on_stream(allocator->ops.self, bytes, stream, out_ptr);
  if (status != NULL) *out_ptr = NULL;
  return status;
}

gcap_status_t gcap_allocator_reserve(gcap_allocator_t* allocator, size_t bytes, void** out_ptr) {
  if (allocator->ops.reserve == NULL) return gcap_allocator_alloc(allocator, bytes, out_ptr);
  *out_ptr = NULL;
  if (bytes == 0) return NULL;
  gcap_status_t status = allocator->ops.reserve(allocator->ops.self, bytes, out_ptr);
  if (status != NULL) *out_ptr = NULL;
  return status;
}

gcap_status_t gcap_allocator_free(gcap_allocator_t* allocator, void* ptr) {
  return ptr == NULL ? NULL : allocator->ops.free(allocator->ops.self, ptr);
}

gcap_status_t gcap_allocator_trim(gcap_allocator_t* allocator) {
  return allocator->ops.trim == NULL ? NULL : allocator->ops.trim(allocator->ops.self);
}

void gcap_allocator_get_stats(gcap_allocator_t* allocator, gcap_allocator_stats_t* out_stats) {
  *out_stats = (gcap_allocator_stats_t){0};
  if (allocator->ops.get_stats != NULL) allocator->ops.get_stats(allocator->ops.self, out_stats);
}

int gcap_allocator_device(const gcap_allocator_t* allocator) { return allocator->ops.device_id; }

size_t gcap_allocator_alignment(const gcap_allocator_t* allocator) { return allocator->ops.alignment; }
