// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The external adapter: callbacks of the application behind the allocator interface. All state belongs to the
// allocator, none to a device or the process, so memory always returns through the pair of callbacks that gave it.
//
// The callbacks are foreign code. They may return nonsense, so the table of blocks and the spans decide which memory is
// valid. They may change the thread's settings, so gcap restores the settings after each call. They run in the relaxed
// capture mode, since their driver calls would otherwise break another thread's capture in the global mode. They may
// call gcap again, so no lock is held around them. Each running call counts as a user: the allocator ends with its last
// user, even if a callback destroys the allocator.
//
// Locking: spans_mutex guards the spans, and the table of blocks locks itself; neither is held around a callback. A
// block is in both or in neither, except for the moment between the two.

#include "gcap/external_allocator.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "gcap/allocator_ops.h"
#include "gcap/log.h"
#include "lib/allocator/block_table.h"
#include "lib/allocator/refusal.h"
#include "lib/allocator/spans.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/forked.h"
#include "lib/internal/sized.h"

#define EXTERNAL_ALIGNMENT 256u  // what cudaMalloc gives, and kernels and libraries rely on

typedef struct external_allocator {
  gcap_external_allocator_options_t options;
  gcap_block_table_t blocks;
  pthread_mutex_t spans_mutex;
  gcap_external_spans_t spans;
  atomic_size_t users;   // the owner, and each call under way
  atomic_bool is_ended;  // the owner is gone
} external_allocator_t;

// --- Life -----------------------------------------------------------------------------------------------------------

static void enter_call(external_allocator_t* external) { atomic_fetch_add(&external->users, 1); }

// The caller must not touch the allocator afterwards.
static void leave_call(external_allocator_t* external) {
  if (atomic_fetch_sub(&external->users, 1) > 1) return;
  gcap_block_table_deinit(&external->blocks, "external allocator");
  gcap_external_spans_deinit(&external->spans);
  pthread_mutex_destroy(&external->spans_mutex);
  free(external);
}

static void external_destroy(void* self) {
  external_allocator_t* external = self;
  atomic_store(&external->is_ended, true);
  if (atomic_load(&external->users) > 1) {
    gcap_log(GCAP_LOG_WARNING,
             "an external allocator was destroyed while one of its callbacks runs; it ends when that returns");
  }
  leave_call(external);
}

// --- The callbacks' setting -----------------------------------------------------------------------------------------

typedef struct setting {
  gcap_thread_setting_t thread;
  cudaError_t last_error;
} setting_t;

// Before each callback.
static gcap_status_t enter_setting(const external_allocator_t* external, setting_t* out_setting) {
  out_setting->last_error = cudaPeekAtLastError();
  return gcap_thread_enter(external->options.device_id, &out_setting->thread);
}

// After it, whatever it did to the device, the capture mode and the last error. The device is set only when it is
// another one: setting it would make a context on a device that was never used.
static gcap_status_t leave_setting(const setting_t* setting) {
  gcap_status_t status = gcap_relaxed_pop(setting->thread.mode);
  int current = -1;
  gcap_status_t asked = GCAP_CUDA(cudaGetDevice(&current));
  status = gcap_status_join(status, asked);
  if (current != setting->thread.device_id) {
    status = gcap_status_join(status, GCAP_CUDA(cudaSetDevice(setting->thread.device_id)));
  }
  // An error that the callback left, of a cudaMalloc as a rule, would be taken for that of the next kernel launch. One
  // from before is somebody else's.
  if (setting->last_error == cudaSuccess) (void)cudaGetLastError();
  return status;
}

// --- Memory ---------------------------------------------------------------------------------------------------------

static gcap_status_t add_span(external_allocator_t* external, void* ptr, size_t bytes,
                              gcap_external_span_t* out_rival) {
  pthread_mutex_lock(&external->spans_mutex);
  gcap_status_t status = gcap_external_spans_add(&external->spans, ptr, bytes, out_rival);
  pthread_mutex_unlock(&external->spans_mutex);
  return status;
}

static void remove_span(external_allocator_t* external, void* ptr) {
  pthread_mutex_lock(&external->spans_mutex);
  gcap_external_spans_remove(&external->spans, ptr);
  pthread_mutex_unlock(&external->spans_mutex);
}

// Notes what the callback answered, unless it is no memory that we can use. `*out_is_ours` is whether it must go back
// then: an address that is handed out already belongs to whoever got it first.
static gcap_status_t accept(external_allocator_t* external, void* ptr, size_t bytes, bool reserved, bool* out_is_ours) {
  *out_is_ours = ptr != NULL;
  if (ptr == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "the external alloc callback returned NULL for %zu bytes", bytes);
  }
  if (atomic_load(&external->is_ended)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the external allocator was destroyed inside its alloc callback");
  }
  if ((uintptr_t)ptr % EXTERNAL_ALIGNMENT != 0) {
    return GCAP_STATUS(GCAP_LIBRARY_ERROR, "the external alloc callback returned %p, which is not aligned to %u bytes",
                       ptr, EXTERNAL_ALIGNMENT);
  }
  gcap_external_span_t rival = {0};
  gcap_status_t status = add_span(external, ptr, bytes, &rival);
  if (gcap_status_code(status) == GCAP_RESOURCE_EXHAUSTED) return status;
  if (status != NULL) {
    *out_is_ours = rival.begin != (uintptr_t)ptr;
    return gcap_status_annotate(status, GCAP_LIBRARY_ERROR, "the external alloc callback returned memory in use");
  }
  status = gcap_block_table_add(&external->blocks, ptr, bytes, reserved);
  if (status != NULL) remove_span(external, ptr);
  return status;
}

// Gives memory back in a setting of its own, or failing that in any: else it were lost.
static gcap_status_t give_back(external_allocator_t* external, void* ptr) {
  setting_t setting;
  gcap_status_t status = enter_setting(external, &setting);
  external->options.free(ptr);
  return status != NULL ? status : leave_setting(&setting);
}

// The same for a block that was accepted, when the call that got it fails after all.
static gcap_status_t undo(external_allocator_t* external, void* ptr) {
  gcap_block_t block;
  GCAP_RETURN_IF_ERROR(gcap_block_table_take(&external->blocks, ptr, &block));
  remove_span(external, ptr);
  return give_back(external, ptr);
}

static gcap_status_t alloc_noted(external_allocator_t* external, size_t bytes, bool reserved, void** out_ptr) {
  setting_t setting;
  GCAP_RETURN_IF_ERROR(enter_setting(external, &setting));
  void* ptr = external->options.alloc(bytes);
  gcap_status_t restored = leave_setting(&setting);
  bool is_ours = false;
  gcap_status_t status = accept(external, ptr, bytes, reserved, &is_ours);
  const bool is_accepted = status == NULL;
  status = gcap_status_join(status, restored);
  if (status == NULL) {
    *out_ptr = ptr;
    return NULL;
  }
  if (is_accepted) return gcap_status_join(status, undo(external, ptr));
  return is_ours ? gcap_status_join(status, give_back(external, ptr)) : status;
}

static gcap_status_t alloc_or_refuse(external_allocator_t* external, size_t bytes, bool reserved, void** out_ptr) {
  GCAP_RETURN_IF_ERROR(
      gcap_allocator_refuse_in_capture(reserved, bytes, "the alloc callback of the external allocator"));
  enter_call(external);
  gcap_status_t status = alloc_noted(external, bytes, reserved, out_ptr);
  leave_call(external);
  return status;
}

static gcap_status_t external_alloc(void* self, size_t bytes, void** out_ptr) {
  return alloc_or_refuse(self, bytes, /*reserved=*/false, out_ptr);
}

static gcap_status_t external_reserve(void* self, size_t bytes, void** out_ptr) {
  return alloc_or_refuse(self, bytes, /*reserved=*/true, out_ptr);
}

static gcap_status_t empty_cache(const external_allocator_t* external) {
  if (external->options.empty_cache == NULL) return NULL;
  setting_t setting;
  GCAP_RETURN_IF_ERROR(enter_setting(external, &setting));
  external->options.empty_cache();
  return leave_setting(&setting);
}

// What fails before the callback leaves the block handed out; what fails after it is logged.
static gcap_status_t free_noted(external_allocator_t* external, void* ptr) {
  setting_t setting;
  GCAP_RETURN_IF_ERROR(enter_setting(external, &setting));
  gcap_block_t block;
  gcap_status_t status = gcap_block_table_take(&external->blocks, ptr, &block);
  if (status != NULL) return gcap_status_join(status, leave_setting(&setting));
  remove_span(external, ptr);
  external->options.free(ptr);
  gcap_allocator_log_after_free(leave_setting(&setting));
  if (block.reserved) gcap_allocator_log_after_free(empty_cache(external));
  return NULL;
}

static gcap_status_t external_free(void* self, void* ptr) {
  external_allocator_t* external = self;
  GCAP_RETURN_IF_ERROR(gcap_allocator_check_not_capturing("the external free callback"));
  enter_call(external);
  gcap_status_t status = free_noted(external, ptr);
  leave_call(external);
  return status;
}

static gcap_status_t external_trim(void* self) {
  external_allocator_t* external = self;
  if (external->options.empty_cache == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_allocator_check_not_capturing("the external empty_cache callback"));
  enter_call(external);
  gcap_status_t status = empty_cache(external);
  leave_call(external);
  return status;
}

static void external_get_stats(void* self, gcap_allocator_stats_t* out_stats) {
  gcap_block_table_get_stats(&((external_allocator_t*)self)->blocks, out_stats);
}

// --- Creation -------------------------------------------------------------------------------------------------------

GCAP_SIZED_OPTIONS(static, gcap_external_allocator_options);

static gcap_status_t check_options(const gcap_external_allocator_options_t* options) {
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

gcap_status_t gcap_external_allocator_create(const gcap_external_allocator_options_t* given,
                                             gcap_allocator_t** out_allocator) {
  GCAP_RETURN_IF_NULL(out_allocator);
  *out_allocator = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (given == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the external allocator's options are NULL");
  gcap_external_allocator_options_t options;
  GCAP_RETURN_IF_ERROR(gcap_external_allocator_options_read(given, &options));
  GCAP_RETURN_IF_ERROR(check_options(&options));
  external_allocator_t* external = calloc(1, sizeof(*external));
  if (external == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for an external allocator");
  external->options = options;
  gcap_block_table_init(&external->blocks);
  pthread_mutex_init(&external->spans_mutex, NULL);
  atomic_init(&external->users, 1);
  const gcap_allocator_ops_t ops = {
      .struct_version = GCAP_ALLOCATOR_OPS_VERSION,
      .device_id = options.device_id,
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
