// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Attachments: a stack of library handles that live as long as their stream. They are made and destroyed with the
// stream's device current, and in the relaxed capture mode, since their allocations would otherwise break another
// thread's capture in the global mode. Only the thread that uses the stream touches the stack, so the stack is not
// locked.

#include <stdlib.h>

#include "lib/internal/cuda_guard.h"
#include "lib/internal/run_trace.h"
#include "lib/stream/stream_internal.h"

// Making a library handle breaks the captures of the thread, whatever stream they are of (rule R42 of the capture
// rules).
static gcap_status_t check_may_create(const gcap_stream_t* stream, const gcap_attachment_key_t* key) {
  gcap_status_t status = gcap_refuse_in_capture(key->name);
  if (status == NULL) status = gcap_stream_check_not_capturing(stream, key->name);
  return gcap_status_annotate(status, gcap_status_code(status), "stream %p has no %s yet, a warm-up run makes it",
                              (void*)stream->handle, key->name);
}

gcap_status_t gcap_stream_attachment(gcap_stream_t* stream, const gcap_attachment_key_t* key, void** out_object) {
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(key);
  GCAP_RETURN_IF_NULL(out_object);
  *out_object = NULL;
  for (gcap_stream_attachment_t* a = stream->attachments; a != NULL; a = a->older) {
    if (a->key == key) {
      *out_object = a->object;
      return NULL;
    }
  }
  if (stream->ownership == GCAP_STREAM_EXTERNAL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s cannot be attached to stream %p: the stream is EXTERNAL", key->name,
                       (void*)stream->handle);
  }
  GCAP_RETURN_IF_NULL(key->create);
  GCAP_RETURN_IF_NULL(key->destroy);
  GCAP_RETURN_IF_ERROR(check_may_create(stream, key));
  gcap_stream_attachment_t* attachment = calloc(1, sizeof(*attachment));
  if (attachment == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to attach %s", key->name);
  gcap_thread_setting_t previous;
  gcap_status_t status = gcap_thread_enter(stream->device_id, &previous);
  if (status == NULL) {
    status = key->create(stream, &attachment->object);
    gcap_status_t restored = gcap_thread_leave(stream->device_id, &previous);
    if (status == NULL && restored != NULL) key->destroy(attachment->object);
    status = gcap_status_join(status, restored);
  }
  if (status != NULL) {
    free(attachment);
    return status;
  }
  gcap_trace_initialization(GCAP_INITIALIZED_ATTACHMENT);
  attachment->key = key;
  attachment->older = stream->attachments;
  stream->attachments = attachment;
  *out_object = attachment->object;
  return NULL;
}

gcap_status_t gcap_stream_attachments_destroy(gcap_stream_t* stream) {
  if (stream->attachments == NULL) return NULL;
  gcap_thread_setting_t previous;
  gcap_status_t status = gcap_thread_enter(stream->device_id, &previous);
  bool entered = status == NULL;
  while (stream->attachments != NULL) {
    gcap_stream_attachment_t* newest = stream->attachments;
    stream->attachments = newest->older;
    newest->key->destroy(newest->object);
    free(newest);
  }
  return entered ? gcap_thread_leave(stream->device_id, &previous) : status;
}
