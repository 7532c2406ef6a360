// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What hangs on a stream: attachments (library handles) as a stack, deferred releases as a queue. Both are touched only
// by the thread that uses the stream, so neither is locked.

#include <stdlib.h>

#include "lib/base/cuda_guard.h"
#include "lib/stream/stream_internal.h"

gcap_status_t gcap_stream_attachment(gcap_stream_t* stream, const gcap_attachment_key_t* key, void** out_object) {
  *out_object = NULL;
  for (attachment_t* a = stream->attachments; a != NULL; a = a->older) {
    if (a->key == key) {
      *out_object = a->object;
      return NULL;
    }
  }
  if (stream->ownership == GCAP_STREAM_EXTERNAL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s cannot be attached to stream %p: the stream is EXTERNAL", key->name,
                       (void*)stream->handle);
  }
  GCAP_RETURN_IF_ERROR(stream_check_not_capturing(stream, key->name));
  attachment_t* attachment = calloc(1, sizeof(*attachment));
  if (attachment == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to attach %s", key->name);
  int previous = 0;
  gcap_status_t status = gcap_device_push(stream->device_id, &previous);
  if (status == NULL) {
    status = key->create(stream, &attachment->object);
    gcap_status_t restored = gcap_device_pop(stream->device_id, previous);
    if (status == NULL && restored != NULL) key->destroy(attachment->object);
    status = gcap_status_join(status, restored);
  }
  if (status != NULL) {
    free(attachment);
    return status;
  }
  attachment->key = key;
  attachment->older = stream->attachments;
  stream->attachments = attachment;
  *out_object = attachment->object;
  return NULL;
}

gcap_status_t attachments_destroy(gcap_stream_t* stream) {
  if (stream->attachments == NULL) return NULL;
  int previous = stream->device_id;
  gcap_status_t status = gcap_device_push(stream->device_id, &previous);
  while (stream->attachments != NULL) {
    attachment_t* newest = stream->attachments;
    stream->attachments = newest->older;
    newest->key->destroy(newest->object);
    free(newest);
  }
  return gcap_status_join(status, gcap_device_pop(stream->device_id, previous));
}

gcap_status_t gcap_stream_defer(gcap_stream_t* stream, void (*release)(void* user), void* user) {
  GCAP_RETURN_IF_ERROR(stream_check_not_capturing(stream, "gcap_stream_defer"));
  deferred_release_t* entry = calloc(1, sizeof(*entry));
  if (entry == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to defer a release");
  int previous = 0;
  gcap_status_t status = gcap_device_push(stream->device_id, &previous);
  if (status == NULL) {
    status = GCAP_CUDA(cudaEventCreateWithFlags(&entry->passed, cudaEventDisableTiming));
    if (status == NULL) status = GCAP_CUDA(cudaEventRecord(entry->passed, stream->handle));
    status = gcap_status_join(status, gcap_device_pop(stream->device_id, previous));
  }
  if (status != NULL) {
    if (entry->passed != NULL) status = gcap_status_join(status, GCAP_CUDA(cudaEventDestroy(entry->passed)));
    free(entry);
    return status;
  }
  entry->release = release;
  entry->user = user;
  *stream->deferred_tail = entry;
  stream->deferred_tail = &entry->next;
  return NULL;
}

// Tells whether the stream has passed the entry's point.
static gcap_status_t has_passed(const deferred_release_t* entry, bool* out_passed) {
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  cudaError_t answer = cudaEventQuery(entry->passed);
  *out_passed = answer == cudaSuccess;
  if (answer == cudaErrorNotReady) {
    (void)cudaGetLastError();  // an answer, not a failure
    answer = cudaSuccess;
  }
  gcap_status_t status = gcap_status_from_cuda(answer, "cudaEventQuery(entry->passed)", __FILE__, __LINE__);
  return gcap_status_join(status, gcap_relaxed_pop(mode));
}

gcap_status_t deferred_run(gcap_stream_t* stream, bool all) {
  gcap_status_t status = NULL;
  while (stream->deferred != NULL) {
    deferred_release_t* oldest = stream->deferred;
    bool passed = all;
    if (!all) status = gcap_status_join(status, has_passed(oldest, &passed));
    if (!passed) break;
    stream->deferred = oldest->next;
    if (stream->deferred == NULL) stream->deferred_tail = &stream->deferred;
    oldest->release(oldest->user);
    status = gcap_status_join(status, GCAP_CUDA(cudaEventDestroy(oldest->passed)));
    free(oldest);
  }
  return status;
}
