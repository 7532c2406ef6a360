// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Notifications: an event, and the producer's knowledge when the event was recorded. A notification recorded inside a
// capture is an edge of the graph: an edge orders nodes, so it carries no knowledge.
//
// One thread at a time uses a notification, so notifications are not locked.

#include <stdlib.h>

#include "lib/internal/cuda_event.h"
#include "lib/internal/forked.h"
#include "lib/stream/stream_internal.h"

struct gcap_notification {
  gcap_stream_t* producer;
  cudaEvent_t event;
  uint64_t sync_id;              // the point it marks; 0: never recorded
  gcap_timeline_points_t known;  // the producer's, when it was recorded
  bool captured;
};

gcap_status_t gcap_notification_create(gcap_stream_t* producer, gcap_notification_t** out_notification) {
  GCAP_RETURN_IF_NULL(producer);
  GCAP_RETURN_IF_NULL(out_notification);
  *out_notification = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_notification_t* notification = calloc(1, sizeof(*notification));
  if (notification == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a notification");
  notification->producer = producer;
  gcap_status_t status = gcap_event_create(producer->device_id, &notification->event);
  if (status != NULL) {
    gcap_notification_destroy(notification);
    return status;
  }
  *out_notification = notification;
  return NULL;
}

void gcap_notification_destroy(gcap_notification_t* notification) {
  if (notification == NULL) return;
  if (notification->event != NULL) {
    // Nothing to do about a failure: the event is gone for us either way.
    gcap_status_ignore(GCAP_CUDA(cudaEventDestroy(notification->event)));
  }
  free(notification->known.points);
  free(notification);
}

// Tells the scope that this thread has open, if any, which stream took part in its capture: one that was forked to and
// is not joined at the end is named by what it was given.
static void tell_ledger(const char* operation, cudaStream_t stream, int line) {
  gcap_note(operation, cudaSuccess, stream, __FILE__, line);
}

gcap_status_t gcap_notification_record(gcap_notification_t* notification) {
  GCAP_RETURN_IF_NULL(notification);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_stream_t* producer = notification->producer;
  bool capturing = false;
  GCAP_RETURN_IF_ERROR(gcap_stream_is_capturing(producer, &capturing));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(notification->event, producer->handle)));
  notification->captured = capturing;
  if (notification->captured) tell_ledger("gcap_notification_record", producer->handle, __LINE__);
  gcap_timeline_copy_known(producer, &notification->known);
  notification->sync_id = atomic_fetch_add_explicit(&producer->sync_id, 1, memory_order_relaxed) + 1;
  return NULL;
}

static gcap_status_t check_recorded(const gcap_notification_t* notification) {
  if (notification->sync_id != 0) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the notification of stream %p was never recorded",
                     (void*)notification->producer->handle);
}

// A notification from outside may not enter a capture: the driver would break it (rule R17 of the capture rules). The
// scope of this thread fails all the same, for its graph would lack the wait.
static gcap_status_t check_consumer_is_eager(const gcap_stream_t* consumer) {
  gcap_status_t status =
      gcap_stream_check_not_capturing(consumer, "waiting for a notification recorded outside the capture");
  if (status != NULL && gcap_thread_captures()) gcap_thread_capture_hooks->fail(status);
  return status;
}

gcap_status_t gcap_notification_wait(gcap_notification_t* notification, gcap_stream_t* consumer) {
  GCAP_RETURN_IF_NULL(notification);
  GCAP_RETURN_IF_NULL(consumer);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(check_recorded(notification));
  if (!notification->captured) GCAP_RETURN_IF_ERROR(check_consumer_is_eager(consumer));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamWaitEvent(consumer->handle, notification->event, 0)));
  if (notification->captured) {
    // An edge orders nodes of the graph, not what the streams are given next.
    tell_ledger("gcap_notification_wait", consumer->handle, __LINE__);
    return NULL;
  }
  gcap_timeline_point_t producers = {notification->producer->serial, notification->sync_id};
  gcap_timeline_learn(consumer, &(gcap_timeline_points_t){.points = &producers, .count = 1});
  gcap_timeline_learn(consumer, &notification->known);
  return NULL;
}

gcap_status_t gcap_notification_wait_on_host(gcap_notification_t* notification) {
  GCAP_RETURN_IF_NULL(notification);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  GCAP_RETURN_IF_ERROR(check_recorded(notification));
  GCAP_RETURN_IF_ERROR(gcap_refuse_in_capture("gcap_notification_wait_on_host"));
  if (notification->captured) {
    return GCAP_STATUS(
        GCAP_FAILED_PRECONDITION,
        "the notification of stream %p was recorded inside a capture: it is a graph edge, the host cannot "
        "wait for it",
        (void*)notification->producer->handle);
  }
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_relaxed_push(&mode));
  gcap_status_t status = GCAP_CUDA(cudaEventSynchronize(notification->event));
  status = gcap_status_join(status, gcap_relaxed_pop(mode));
  if (status != NULL) return status;
  gcap_timeline_finish_before(notification->producer, notification->sync_id);
  gcap_timeline_finish_points(&notification->known);
  return NULL;
}
