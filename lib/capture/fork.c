// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Fork and join: several streams in one capture.
//
// A stream enters a capture by waiting for an event of the capture (rule R18 of the capture rules), and the origin
// comes after a stream by waiting for an event of that stream. An event lives for one call only, since the captured
// edge does not need it afterwards. An event belongs to the device of the stream that records it. A capturing stream
// cannot be queried for its device, so the device is queried before the stream enters. Locking: none, a scope belongs
// to its thread.

#include "lib/capture/capture_internal.h"
#include "lib/internal/cuda_event.h"
#include "lib/internal/forked.h"

static gcap_status_t check_call(const gcap_capture_t* capture, const cudaStream_t* streams, size_t num_streams,
                                const char* operation) {
  if (streams == NULL && num_streams > 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s: streams is NULL and num_streams is %zu", operation, num_streams);
  }
  for (size_t i = 0; i < num_streams; ++i) {
    if (streams[i] == NULL || streams[i] == cudaStreamLegacy) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s: streams[%zu] is the legacy default stream, which cannot capture",
                         operation, i);
    }
    if (streams[i] == capture->stream) {
      return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s: streams[%zu] is %p, the origin of the capture itself", operation,
                         i, (void*)streams[i]);
    }
  }
  return NULL;
}

// Makes an event that a stream of the device can record, records it there and has each of `waiting` wait for it.
static gcap_status_t order(cudaStream_t first, int device_id, const cudaStream_t* waiting, size_t num_waiting) {
  cudaEvent_t event = NULL;
  GCAP_RETURN_IF_ERROR(gcap_event_record_new(device_id, first, &event));
  gcap_status_t status = NULL;
  for (size_t i = 0; status == NULL && i < num_waiting; ++i) {
    status = GCAP_CUDA(cudaStreamWaitEvent(waiting[i], event, 0));
  }
  return gcap_status_join(status, GCAP_CUDA(cudaEventDestroy(event)));
}

// Enters a stream that is idle, or in this capture already, in the scope's list.
static gcap_status_t enter(gcap_capture_t* capture, cudaStream_t stream) {
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  unsigned long long id = 0, own_id = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetCaptureInfo(stream, &state, &id, NULL, NULL, NULL, NULL)));
  int device_id = GCAP_CAPTURE_DEVICE_UNKNOWN;
  if (state == cudaStreamCaptureStatusNone) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetDevice(stream, &device_id)));
  } else {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamGetCaptureInfo(capture->stream, &state, &own_id, NULL, NULL, NULL, NULL)));
    if (id != own_id) {
      return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "gcap_capture_fork: stream %p is being captured by somebody else",
                         (void*)stream);
    }
  }
  gcap_capture_member_t* member = gcap_capture_members_add(&capture->members, stream);
  if (member == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the list of forked streams");
  if (device_id != GCAP_CAPTURE_DEVICE_UNKNOWN) member->device_id = device_id;
  member->joined = false;
  return NULL;
}

static gcap_status_t fork_all(gcap_capture_t* capture, const cudaStream_t* streams, size_t num_streams) {
  GCAP_RETURN_IF_ERROR(check_call(capture, streams, num_streams, "gcap_capture_fork"));
  for (size_t i = 0; i < num_streams; ++i) GCAP_RETURN_IF_ERROR(enter(capture, streams[i]));
  return num_streams == 0 ? NULL : order(capture->stream, capture->device_id, streams, num_streams);
}

static gcap_status_t join_all(gcap_capture_t* capture, const cudaStream_t* streams, size_t num_streams) {
  GCAP_RETURN_IF_ERROR(check_call(capture, streams, num_streams, "gcap_capture_join"));
  for (size_t i = 0; i < num_streams; ++i) {
    const gcap_capture_member_t* member = gcap_capture_members_find(&capture->members, streams[i]);
    if (member != NULL && member->device_id != GCAP_CAPTURE_DEVICE_UNKNOWN) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gcap_capture_join: streams[%zu] is %p, which this scope did not fork", i,
                       (void*)streams[i]);
  }
  for (size_t i = 0; i < num_streams; ++i) {
    gcap_capture_member_t* member = gcap_capture_members_find(&capture->members, streams[i]);
    GCAP_RETURN_IF_ERROR(order(streams[i], member->device_id, &capture->stream, 1));
    member->joined = true;
  }
  return NULL;
}

static gcap_status_t check_thread(const gcap_capture_t* capture, const char* operation) {
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(operation));
  if (capture != NULL && capture == gcap_capture_current()) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: capture is %s; a scope belongs to the thread that began it",
                     operation, capture == NULL ? "NULL" : "another thread's, or its end has begun");
}

// What was meant for the graph is not in it, or not in order.
static gcap_status_t latched(gcap_capture_t* capture, gcap_status_t status) {
  gcap_capture_fail(capture, status);
  return status;
}

gcap_status_t gcap_capture_fork(gcap_capture_t* capture, const cudaStream_t* streams, size_t num_streams) {
  GCAP_RETURN_IF_ERROR(check_thread(capture, "gcap_capture_fork"));
  return latched(capture, fork_all(capture, streams, num_streams));
}

gcap_status_t gcap_capture_join(gcap_capture_t* capture, const cudaStream_t* streams, size_t num_streams) {
  GCAP_RETURN_IF_ERROR(check_thread(capture, "gcap_capture_join"));
  return latched(capture, join_all(capture, streams, num_streams));
}
