// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The allocator interface: a checked copy of the implementer's table, and the rules that hold for every implementation
// (zero bytes, sizes that overflow, NULL, outputs that are NULL on failure), kept here so that no implementation has
// to. Nothing changes after creation, so there is nothing to lock.

#include <stdint.h>
#include <stdlib.h>

#include "gcap/allocator_ops.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/sized.h"

struct gcap_allocator {
  gcap_allocator_ops_t ops;
};

// There is one version; the copy of an older table would be upgraded here, member by member.
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
  GCAP_RETURN_IF_NULL(out_allocator);
  *out_allocator = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(check_ops(ops));
  gcap_watch_forks();
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

// Rounding up to the alignment, which any implementation may do, must not overflow.
static gcap_status_t check_size(const gcap_allocator_t* allocator, size_t bytes) {
  size_t most = SIZE_MAX - (allocator->ops.alignment - 1);
  if (bytes <= most) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the size asked for is %zu bytes, which overflows; allowed are 0..%zu",
                     bytes, most);
}

// What holds for an answer of any implementation.
static gcap_status_t check_answer(gcap_status_t status, size_t bytes, void** out_ptr) {
  if (status != NULL) *out_ptr = NULL;
  if (status != NULL || *out_ptr != NULL) return status;
  return GCAP_STATUS(GCAP_LIBRARY_ERROR, "the allocator's table answered success and gave no memory for %zu bytes",
                     bytes);
}

gcap_status_t gcap_allocator_alloc(gcap_allocator_t* allocator, size_t bytes, void** out_ptr) {
  GCAP_RETURN_IF_NULL(out_ptr);
  *out_ptr = NULL;
  GCAP_RETURN_IF_NULL(allocator);
  if (bytes == 0) return NULL;
  GCAP_RETURN_IF_ERROR(check_size(allocator, bytes));
  return check_answer(allocator->ops.alloc(allocator->ops.self, bytes, out_ptr), bytes, out_ptr);
}

gcap_status_t gcap_allocator_alloc_on_stream(gcap_allocator_t* allocator, size_t bytes, gcap_stream_t* stream,
                                             void** out_ptr) {
  GCAP_RETURN_IF_NULL(out_ptr);
  *out_ptr = NULL;
  GCAP_RETURN_IF_NULL(allocator);
  GCAP_RETURN_IF_NULL(stream);
  if (bytes == 0) return NULL;
  const gcap_allocator_ops_t* ops = &allocator->ops;
  if (ops->alloc_on_stream == NULL) return gcap_allocator_alloc(allocator, bytes, out_ptr);
  GCAP_RETURN_IF_ERROR(check_size(allocator, bytes));
  return check_answer(ops->alloc_on_stream(ops->self, bytes, stream, out_ptr), bytes, out_ptr);
}

gcap_status_t gcap_allocator_reserve(gcap_allocator_t* allocator, size_t bytes, void** out_ptr) {
  GCAP_RETURN_IF_NULL(out_ptr);
  *out_ptr = NULL;
  GCAP_RETURN_IF_NULL(allocator);
  if (bytes == 0) return NULL;
  const gcap_allocator_ops_t* ops = &allocator->ops;
  if (ops->reserve == NULL) return gcap_allocator_alloc(allocator, bytes, out_ptr);
  GCAP_RETURN_IF_ERROR(check_size(allocator, bytes));
  return check_answer(ops->reserve(ops->self, bytes, out_ptr), bytes, out_ptr);
}

gcap_status_t gcap_allocator_free(gcap_allocator_t* allocator, void* ptr) {
  GCAP_RETURN_IF_NULL(allocator);
  return ptr == NULL ? NULL : allocator->ops.free(allocator->ops.self, ptr);
}

gcap_status_t gcap_allocator_trim(gcap_allocator_t* allocator) {
  GCAP_RETURN_IF_NULL(allocator);
  return allocator->ops.trim == NULL ? NULL : allocator->ops.trim(allocator->ops.self);
}

void gcap_allocator_read_stats(gcap_allocator_t* allocator, gcap_allocator_stats_t* out_stats) {
  static const gcap_sized_type_t type = GCAP_SIZED_TYPE(gcap_allocator_stats);
  gcap_allocator_stats_t stats = {.struct_size = sizeof(stats)};
  if (allocator->ops.get_stats != NULL) allocator->ops.get_stats(allocator->ops.self, &stats);
  stats.struct_size = sizeof(stats);  // an implementer may have assigned a whole struct
  stats.device_id = allocator->ops.device_id;
  stats.alignment = allocator->ops.alignment;
  gcap_sized_write(&type, &stats, out_stats);
}
