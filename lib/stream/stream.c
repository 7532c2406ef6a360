// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Streams: creation, wrapping, draining and the end. One thread at a time uses a stream; only its timeline (timeline.c)
// and its place in the table of streams are shared. A stream that cannot be drained does not end: memory that a lost
// stream may still write must never look free. Such a stream stays in the table: no other stream has its handle value,
// and memory tagged with it is still withheld from other streams.

#include <stdlib.h>

#include "lib/internal/cuda_guard.h"
#include "lib/internal/forked.h"
#include "lib/internal/stream_watch.h"
#include "lib/stream/stream_internal.h"

// What cudaStreamGetId answers, for a stream that is on `device_id`. 0, and any device will do, where the questions
// would break a capture (rule R24) or have another answer on each device or thread.
static gcap_status_t ask_id(cudaStream_t handle, int device_id, unsigned long long* out_id) {
  *out_id = 0;
  if (gcap_stream_is_alias(handle)) return NULL;
  bool capturing = false;
  GCAP_RETURN_IF_ERROR(gcap_is_stream_capturing(handle, &capturing));
  if (capturing) return NULL;
  int device = device_id;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetDevice(handle, &device)));
  if (device != device_id) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "device_id is %d, stream %p is on device %d", device_id, (void*)handle,
                       device);
  }
  return GCAP_CUDA(cudaStreamGetId(handle, out_id));
}

// For gcap_synchronize_stream, which knows only the handle.
static gcap_status_t synchronize_wrapper(void* stream) { return gcap_stream_synchronize(stream); }

static gcap_status_t stream_new(cudaStream_t handle, int device_id, gcap_stream_ownership_t ownership,
                                gcap_stream_t** out_stream) {
  unsigned long long id = 0;
  GCAP_RETURN_IF_ERROR(ask_id(handle, device_id, &id));
  gcap_stream_t* stream = calloc(1, sizeof(*stream));
  if (stream == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a stream");
  gcap_status_t status = gcap_stream_table_add(&stream->entry, handle, id, stream, synchronize_wrapper);
  if (status != NULL) {
    free(stream);
    return status;
  }
  stream->handle = handle;
  stream->id = id;
  stream->device_id = device_id;
  stream->ownership = ownership;
  stream->can_capture = handle != NULL && handle != cudaStreamLegacy;
  stream->deferred_tail = &stream->deferred;
  gcap_timeline_join(stream);
  *out_stream = stream;
  return NULL;
}

gcap_status_t gcap_stream_create(int device_id, gcap_stream_t** out_stream) {
  GCAP_RETURN_IF_NULL(out_stream);
  *out_stream = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(gcap_check_device(device_id));
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  cudaStream_t handle = NULL;
  gcap_status_t status = GCAP_CUDA(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking));
  status = gcap_status_join(status, gcap_device_pop(device_id, previous));
  if (status == NULL) status = stream_new(handle, device_id, GCAP_STREAM_OWNED, out_stream);
  if (status != NULL && handle != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaStreamDestroy(handle)));
  return status;
}

gcap_status_t gcap_stream_wrap(cudaStream_t handle, gcap_stream_ownership_t ownership, unsigned flags, int device_id,
                               gcap_stream_t** out_stream) {
  GCAP_RETURN_IF_NULL(out_stream);
  *out_stream = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (ownership != GCAP_STREAM_EXTERNAL && ownership != GCAP_STREAM_USER) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "ownership is %d, a wrapped stream is GCAP_STREAM_EXTERNAL (%d) or GCAP_STREAM_USER (%d)",
                       (int)ownership, GCAP_STREAM_EXTERNAL, GCAP_STREAM_USER);
  }
  if ((flags & ~(unsigned)GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM) != 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "flags is 0x%x, allowed is GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM (0x%x)",
                       flags, GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM);
  }
  bool is_default = handle == NULL || handle == cudaStreamLegacy;
  if (is_default && (flags & GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM) == 0) {
    return GCAP_STATUS(
        GCAP_INVALID_ARGUMENT,
        "the stream is the legacy default stream (0): it cannot be captured and waits for every blocking "
        "stream; pass GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM if that is what you want");
  }
  GCAP_RETURN_IF_ERROR(gcap_check_device(device_id));
  return stream_new(handle, device_id, ownership, out_stream);
}

static gcap_status_t drain(gcap_stream_t* stream) {
  gcap_status_t status = gcap_relaxed_synchronize(stream->handle);
  if (status == NULL) gcap_timeline_finish(stream);
  return status;
}

// No graph can hold a wait of the host, so one asked for inside a scope of this thread fails the scope, whatever stream
// it is for, and without a driver call.
static gcap_status_t wait_and_release(gcap_stream_t* stream, const char* operation) {
  GCAP_RETURN_IF_ERROR(gcap_refuse_in_capture(operation));
  GCAP_RETURN_IF_ERROR(gcap_stream_check_not_capturing(stream, operation));
  GCAP_RETURN_IF_ERROR(drain(stream));
  return gcap_stream_deferred_run(stream, /*all=*/true);
}

gcap_status_t gcap_stream_synchronize(gcap_stream_t* stream) {
  GCAP_RETURN_IF_NULL(stream);
  return wait_and_release(stream, "gcap_stream_synchronize");
}

gcap_status_t gcap_stream_end_run(gcap_stream_t* stream, bool synchronize) {
  GCAP_RETURN_IF_NULL(stream);
  if (synchronize) return wait_and_release(stream, "gcap_stream_end_run");
  if (stream->deferred == NULL) return NULL;
  // The releases are somebody else's code, which may make calls that break a capture of the thread.
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_stream_end_run"));
  GCAP_RETURN_IF_ERROR(gcap_stream_check_not_capturing(stream, "gcap_stream_end_run"));
  return gcap_stream_deferred_run(stream, /*all=*/false);
}

static gcap_status_t check_may_end(const gcap_stream_t* stream) {
  if (stream->pooled.pool != NULL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "gcap_stream_destroy: stream %p is of a pool; release it there",
                       (void*)stream->handle);
  }
  if (stream->releases_running > 0) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "gcap_stream_destroy: a deferred release of stream %p has not returned yet, or calls back",
                       (void*)stream->handle);
  }
  // What hangs on the stream ends by somebody else's code, which breaks the captures of the thread (rules R28 and R42).
  const gcap_stream_attachment_t* attachment = stream->attachments;
  if (gcap_thread_captures() && (attachment != NULL || stream->deferred != NULL)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "gcap_stream_destroy: stream %p has a %s attached and this thread is capturing; end the capture "
                       "first",
                       (void*)stream->handle, attachment != NULL ? attachment->key->name : "deferred release");
  }
  gcap_status_t status = gcap_stream_check_not_capturing(stream, "gcap_stream_destroy");
  if (gcap_status_code(status) == GCAP_FAILED_PRECONDITION) return status;
  return gcap_status_annotate(status, gcap_status_code(status), "stream %p is kept", (void*)stream->handle);
}

// Drains the stream and runs its releases, then drains the work that these issued and runs those that they deferred,
// and so on, so that the stream is drained at last. Ends: after some rounds gcap_stream_defer refuses. A failure leaves
// the stream whole; what a release's event left behind is in `*lost`.
static gcap_status_t finish_work(gcap_stream_t* stream, gcap_status_t* lost) {
  gcap_status_t status = drain(stream);
  for (int round = 1; status == NULL && stream->deferred != NULL; ++round) {
    stream->refuses_defers = round >= GCAP_STREAM_LAST_ROUNDS;
    *lost = gcap_status_join(*lost, gcap_stream_deferred_run(stream, /*all=*/true));
    status = drain(stream);
  }
  stream->refuses_defers = false;
  return status;
}

// Ends the attachments, and drains the work that their ends issued there. A failure leaves the stream whole: the next
// use of an attachment makes it again.
static gcap_status_t end_attachments(gcap_stream_t* stream, gcap_status_t* lost) {
  if (stream->attachments == NULL) return NULL;
  stream->refuses_defers = true;  // nobody would run what an attachment's end defers
  *lost = gcap_status_join(*lost, gcap_stream_attachments_destroy(stream));
  gcap_status_t status = drain(stream);
  stream->refuses_defers = false;
  return status;
}

gcap_status_t gcap_stream_destroy(gcap_stream_t* stream) {
  if (stream == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(check_may_end(stream));
  const cudaStream_t handle = stream->handle;
  gcap_status_t lost = NULL;
  gcap_status_t refused = finish_work(stream, &lost);
  if (refused == NULL) refused = end_attachments(stream, &lost);
  if (refused != NULL) {
    const gcap_code_t code = gcap_status_code(refused);  // whatever else was lost, the stream is there
    return gcap_status_annotate(gcap_status_join(lost, refused), code, "stream %p cannot be drained and is kept",
                                (void*)handle);
  }
  gcap_stream_watch_tell(stream);
  gcap_timeline_leave(stream);
  gcap_stream_table_remove(&stream->entry);
  if (stream->ownership == GCAP_STREAM_OWNED) {
    lost = gcap_status_join(lost, GCAP_CUDA(cudaStreamDestroy(handle)));
  }
  free(stream);
  return gcap_status_annotate(lost, GCAP_LEAKED, "stream %p is gone, but not all of it could be ended", (void*)handle);
}

gcap_stream_t* gcap_stream_from_handle(cudaStream_t handle) { return gcap_stream_table_find(handle); }

cudaStream_t gcap_stream_handle(const gcap_stream_t* stream) { return stream->handle; }

int gcap_stream_device(const gcap_stream_t* stream) { return stream->device_id; }

gcap_stream_ownership_t gcap_stream_ownership(const gcap_stream_t* stream) { return stream->ownership; }

bool gcap_stream_can_capture(const gcap_stream_t* stream) { return stream->can_capture; }
