// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a host has of a runtime besides runs and copies: streams of its own, and allocators by the kind of memory.
//
// Locking: none. Threads that ask for pinned memory at once may each make an allocator; the first one stays.

#include "lib/runtime/runtime_internal.h"

gcap_status_t gcap_own_runtime_create_stream(void* self, gcap_stream_t** out_stream) {
  gcap_own_runtime_t* runtime = self;
  const int device_id = runtime->options.device_id;
  if (runtime->base.supports_concurrent_runs) return gcap_stream_create(device_id, out_stream);
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  const cudaStream_t shared = gcap_stream_handle(gcap_thread_context_stream(context));
  return gcap_stream_wrap(shared, GCAP_STREAM_USER, GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM, device_id, out_stream);
}

static gcap_status_t get_pinned(gcap_own_runtime_t* runtime, gcap_allocator_t** out_allocator) {
  *out_allocator = atomic_load_explicit(&runtime->pinned, memory_order_acquire);
  if (*out_allocator != NULL) return NULL;
  gcap_allocator_t* made = NULL;
  GCAP_RETURN_IF_ERROR(gcap_pinned_allocator_create(&made));
  if (atomic_compare_exchange_strong(&runtime->pinned, out_allocator, made)) {
    *out_allocator = made;
  } else {
    gcap_allocator_destroy(made);
  }
  return NULL;
}

gcap_status_t gcap_own_runtime_get_allocator(void* self, gcap_memory_kind_t kind, gcap_allocator_t** out_allocator) {
  gcap_own_runtime_t* runtime = self;
  if (kind == GCAP_MEMORY_DEVICE) {
    *out_allocator = runtime->allocator;
    return NULL;
  }
  if (kind == GCAP_MEMORY_PINNED) return get_pinned(runtime, out_allocator);
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                     "gcap_runtime_get_allocator: kind is %d, %s; a runtime allocates device and pinned memory",
                     (int)kind, gcap_memory_kind_name(kind));
}
