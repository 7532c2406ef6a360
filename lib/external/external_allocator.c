// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The external adapter: callbacks of the application behind the allocator interface. All state hangs on the allocator,
// none on a device or the process, so memory always goes back through the pair that gave it.
//
// The callbacks are foreign code: they may call gcap again, so no lock is held around them; they may answer nonsense,
// so the ledger decides what is ours. They run with the allocator's device current, and in the relaxed capture mode:
// what they ask of the driver would else break a capture of another thread in global mode.

#include "gcap/external_allocator.h"

#include <stdint.h>
#include <stdlib.h>

#include "gcap/allocator_ops.h"
#include "lib/allocator/ledger.h"
#include "lib/base/cuda_guard.h"

#define EXTERNAL_ALIGNMENT 256u  // what cudaMalloc gives, and kernels and libraries rely on

typedef struct external_allocator {
  gcap_external_allocator_options_t options;
  gcap_ledger_t ledger;
} external_allocator_t;

// Decides whether what the callback answered is memory, and notes it. What is not taken goes back, unless it is in use.
static gcap_status_t accept(external_allocator_t* external, void* ptr, size_t bytes, bool reserved) {
  if (ptr == NULL) {
    (void)cudaGetLastError();  // of the callback's own cudaMalloc, if it made one: the status carries it from here on
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "the external alloc callback returned NULL for %zu bytes", bytes);
  }
  if ((uintptr_t)ptr % EXTERNAL_ALIGNMENT != 0) {
    external->options.free(ptr);
    return GCAP_STATUS(GCAP_LIBRARY_ERROR, "the external alloc callback returned %p, which is not aligned to %u bytes",
                       ptr, EXTERNAL_ALIGNMENT);
  }
  gcap_status_t status = gcap_ledger_add(&external->ledger, ptr, bytes, reserved);
  if (gcap_status_code(status) == GCAP_ALREADY_EXISTS) {
    return gcap_status_annotate(status, GCAP_LIBRARY_ERROR, "the external alloc callback returned memory in use");
  }
  if (status != NULL) external->options.free(ptr);
  return status;
}

// Gives back a block that was accepted, when the call that got it fails after all.
static gcap_status_t undo(external_allocator_t* external, void* ptr) {
  gcap_ledger_entry_t entry;
  GCAP_RETURN_IF_ERROR(gcap_ledger_take(&external->ledger, ptr, &entry));
  external->options.free(ptr);
  return NULL;
}

static gcap_status_t alloc_noted(external_allocator_t* external, size_t bytes, bool reserved, void** out_ptr) {
  GCAP_RETURN_IF_ERROR(
      gcap_allocator_refuse_in_capture(reserved, bytes, "the alloc callback of the external allocator"));
  int device_id = external->options.device_id;
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(device_id, &previous));
  void* ptr = external->options.alloc(bytes);
  gcap_status_t status = accept(external, ptr, bytes, reserved);
  gcap_status_t restored = gcap_thread_leave(device_id, &previous);
  if (status == NULL && restored == NULL) *out_ptr = ptr;
  if (status == NULL && restored != NULL) restored = gcap_status_join(restored, undo(external, ptr));
  return gcap_status_join(status, restored);
}

static gcap_status_t external_alloc(void* self, size_t bytes, void** out_ptr) {
  return alloc_noted(self, bytes, /*reserved=*/false, out_ptr);
}

static gcap_status_t external_reserve(void* self, size_t bytes, void** out_ptr) {
  return alloc_noted(self, bytes, /*reserved=*/true, out_ptr);
}

static gcap_status_t external_free(void* self, void* ptr) {
  external_allocator_t* external = self;
  const gcap_external_allocator_options_t* options = &external->options;
  GCAP_RETURN_IF_ERROR(gcap_allocator_check_not_capturing("the external free callback"));
  gcap_ledger_entry_t entry;
  GCAP_RETURN_IF_ERROR(gcap_ledger_take(&external->ledger, ptr, &entry));
  gcap_thread_setting_t previous;
  gcap_status_t status = gcap_thread_enter(options->device_id, &previous);
  if (status != NULL) return gcap_status_join(status, gcap_ledger_put_back(&external->ledger, &entry));
  options->free(ptr);
  if (entry.reserved && options->empty_cache != NULL) options->empty_cache();
  gcap_ledger_log_after_free(gcap_thread_leave(options->device_id, &previous));
  return NULL;
}

static gcap_status_t external_trim(void* self) {
  const gcap_external_allocator_options_t* options = &((external_allocator_t*)self)->options;
  if (options->empty_cache == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_allocator_check_not_capturing("the external empty_cache callback"));
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(options->device_id, &previous));
  options->empty_cache();
  return gcap_thread_leave(options->device_id, &previous);
}

static void external_get_stats(void* self, gcap_allocator_stats_t* out_stats) {
  gcap_ledger_get_stats(&((external_allocator_t*)self)->ledger, out_stats);
}

static void external_destroy(void* self) {
  gcap_ledger_deinit(&((external_allocator_t*)self)->ledger, "external allocator");
  free(self);
}

static gcap_status_t check_options(const gcap_external_allocator_options_t* options) {
  if (options == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the external allocator's options are NULL");
  if (options->alloc == NULL || options->free == NULL) {
    const char* absent = "callbacks alloc and free are both absent";
    if (options->alloc != NULL) absent = "callback alloc is given without free";
    if (options->free != NULL) absent = "callback free is given without alloc";
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "external allocator: %s; both are required", absent);
  }
  if (options->device_id >= 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "external allocator: device_id is %d, expected 0 or more",
                     options->device_id);
}

gcap_status_t gcap_external_allocator_create(const gcap_external_allocator_options_t* options,
                                             gcap_allocator_t** out_allocator) {
  if (out_allocator == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "out_allocator is NULL");
  *out_allocator = NULL;
  GCAP_RETURN_IF_ERROR(check_options(options));
  external_allocator_t* external = malloc(sizeof(*external));
  if (external == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for an external allocator");
  external->options = *options;
  gcap_ledger_init(&external->ledger);
  const gcap_allocator_ops_t ops = {
      .struct_version = GCAP_ALLOCATOR_OPS_VERSION,
      .device_id = options->device_id,
      .alignment = EXTERNAL_ALIGNMENT,
      .self = external,
      .alloc = external_alloc,
      .free = external_free,
      .reserve = external_reserve,
      .trim = external_trim,
      .get_stats = external_get_stats,
      .destroy = external_destroy,
  };
  gcap_status_t status = gcap_allocator_create(&ops, out_allocator);
  if (status != NULL) external_destroy(external);
  return status;
}
