// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Deferred releases: a queue of host buffers that asynchronous work still reads, each behind an event. Only the thread
// that uses the stream touches the queue, so the queue is not locked. Each release is called once. A release may issue
// work and defer again; work deferred meanwhile has not passed yet, so one pass over the queue ends at the entry that
// was last when the pass began.
//
// A release deferred inside a capture goes to the scope, which keeps it for the graph: a replay reads the buffer again.

#include <stdlib.h>

#include "lib/internal/cuda_event.h"
#include "lib/internal/forked.h"
#include "lib/stream/stream_internal.h"

// Tells whether the stream belongs to a capture of this thread. A stream is used by one thread at a time, so when this
// one has a scope open and the stream captures, it is that scope's.
static gcap_status_t is_in_own_scope(const gcap_stream_t* stream, bool* out_is) {
  *out_is = false;
  // Of an invalidated capture too: its scope releases all it keeps.
  return gcap_thread_captures() ? gcap_stream_is_capturing(stream, out_is) : NULL;
}

gcap_status_t gcap_stream_defer(gcap_stream_t* stream, void (*release)(void* user), void* user) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(release);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (stream->refuses_defers) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "gcap_stream_defer: stream %p is being destroyed and takes no more releases",
                       (void*)stream->handle);
  }
  bool in_own_scope = false;
  GCAP_RETURN_IF_ERROR(is_in_own_scope(stream, &in_own_scope));
  if (in_own_scope) return gcap_thread_capture_hooks->retain(release, /*bytes=*/NULL, /*list=*/NULL, user);
  GCAP_RETURN_IF_ERROR(gcap_stream_check_not_capturing(stream, "gcap_stream_defer"));
  gcap_stream_deferred_release_t* entry = malloc(sizeof(*entry));
  if (entry == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to defer a release");
  *entry = (gcap_stream_deferred_release_t){.number = stream->num_deferred, .release = release, .user = user};
  gcap_status_t status = gcap_event_record_new(stream->device_id, stream->handle, &entry->passed);
  if (status != NULL) {
    free(entry);
    return status;
  }
  ++stream->num_deferred;
  *stream->deferred_tail = entry;
  stream->deferred_tail = &entry->next;
  return NULL;
}

// Tells whether the stream has passed the entry's point.
static gcap_status_t has_passed(const gcap_stream_deferred_release_t* entry, bool* out_passed) {
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = gcap_event_query(entry->passed, out_passed);
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

gcap_status_t gcap_stream_deferred_run(gcap_stream_t* stream, bool all) {
  gcap_status_t status = NULL;
  const uint64_t end = stream->num_deferred;
  ++stream->releases_running;
  while (stream->deferred != NULL && stream->deferred->number < end) {
    gcap_stream_deferred_release_t* oldest = stream->deferred;
    bool passed = all;
    if (!all) status = gcap_status_join(status, has_passed(oldest, &passed));
    if (!passed) break;
    stream->deferred = oldest->next;
    if (stream->deferred == NULL) stream->deferred_tail = &stream->deferred;
    oldest->release(oldest->user);
    status = gcap_status_join(status, GCAP_CUDA(cudaEventDestroy(oldest->passed)));
    free(oldest);
  }
  --stream->releases_running;
  return status;
}
