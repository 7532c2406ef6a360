// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Timelines: which stream comes after which, known without asking the driver.
//
// A stream's sync id counts its notifications and synchronisations. A notification carries a copy of all its producer
// knew when it was recorded, so one wait passes on what the producer had waited for. Knowledge is a small array per
// stream, keyed by serial; a stream that ends is taken out of all the others, so no array grows with streams long gone.
//
// Locking: the registry's mutex guards the list of live streams and is taken before a stream's known_mutex, which
// guards its knowledge. Sync ids are atomic: a release at the end of a wait pairs with the acquire of the question.

#include <stdlib.h>
#include <string.h>

#include "lib/base/cuda_guard.h"
#include "lib/stream/stream_internal.h"

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static gcap_stream_t* live_streams;
static uint64_t next_serial = 1;

void timeline_join(gcap_stream_t* stream) {
  pthread_mutex_init(&stream->known_mutex, NULL);
  pthread_mutex_lock(&registry_mutex);
  stream->serial = next_serial++;
  stream->next_live = live_streams;
  if (live_streams != NULL) live_streams->previous_live = stream;
  live_streams = stream;
  pthread_mutex_unlock(&registry_mutex);
}

static known_point_t* find_point(const knowledge_t* known, uint64_t serial) {
  for (size_t i = 0; i < known->count; ++i) {
    if (known->points[i].serial == serial) return &known->points[i];
  }
  return NULL;
}

// Raises what is known of `serial`. False when there is no memory: then less is known, which is safe.
static bool learn(knowledge_t* known, uint64_t serial, uint64_t sync_id) {
  known_point_t* point = find_point(known, serial);
  if (point != NULL) {
    if (point->sync_id < sync_id) point->sync_id = sync_id;
    return true;
  }
  if (known->count == known->capacity) {
    size_t capacity = known->capacity == 0 ? 4 : 2 * known->capacity;
    known_point_t* points = realloc(known->points, capacity * sizeof(*points));
    if (points == NULL) return false;
    known->points = points;
    known->capacity = capacity;
  }
  known->points[known->count++] = (known_point_t){serial, sync_id};
  return true;
}

static bool is_live(uint64_t serial) {
  const gcap_stream_t* stream = live_streams;
  while (stream != NULL && stream->serial != serial) stream = stream->next_live;
  return stream != NULL;
}

// Called with the registry's mutex held.
static void forget_dead_streams(knowledge_t* known) {
  size_t kept = 0;
  for (size_t i = 0; i < known->count; ++i) {
    if (is_live(known->points[i].serial)) known->points[kept++] = known->points[i];
  }
  known->count = kept;
}

void timeline_leave(gcap_stream_t* stream) {
  pthread_mutex_lock(&registry_mutex);
  if (stream->previous_live != NULL) {
    stream->previous_live->next_live = stream->next_live;
  } else {
    live_streams = stream->next_live;
  }
  if (stream->next_live != NULL) stream->next_live->previous_live = stream->previous_live;
  for (gcap_stream_t* other = live_streams; other != NULL; other = other->next_live) {
    pthread_mutex_lock(&other->known_mutex);
    known_point_t* point = find_point(&other->known, stream->serial);
    if (point != NULL) *point = other->known.points[--other->known.count];
    pthread_mutex_unlock(&other->known_mutex);
  }
  pthread_mutex_unlock(&registry_mutex);
  free(stream->known.points);
  pthread_mutex_destroy(&stream->known_mutex);
}

void timeline_finish(gcap_stream_t* stream) {
  uint64_t point = atomic_fetch_add_explicit(&stream->sync_id, 1, memory_order_relaxed) + 1;
  atomic_store_explicit(&stream->finished_id, point, memory_order_release);
}

uint64_t gcap_stream_sync_id(const gcap_stream_t* stream) {
  return atomic_load_explicit(&stream->sync_id, memory_order_relaxed);
}

bool gcap_stream_has_finished(const gcap_stream_t* stream, uint64_t sync_id) {
  return atomic_load_explicit(&stream->finished_id, memory_order_acquire) > sync_id;
}

bool gcap_stream_has_waited(const gcap_stream_t* consumer, const gcap_stream_t* producer, uint64_t sync_id) {
  if (consumer == producer || gcap_stream_has_finished(producer, sync_id)) return true;
  pthread_mutex_t* mutex = (pthread_mutex_t*)&consumer->known_mutex;  // the question changes nothing a caller can see
  pthread_mutex_lock(mutex);
  const known_point_t* point = find_point(&consumer->known, producer->serial);
  bool waited = point != NULL && point->sync_id > sync_id;
  pthread_mutex_unlock(mutex);
  return waited;
}

struct gcap_notification {
  gcap_stream_t* producer;
  cudaEvent_t event;
  uint64_t sync_id;   // the point it marks; 0: never recorded
  knowledge_t known;  // the producer's, when it was recorded
  bool captured;
};

gcap_status_t gcap_notification_create(gcap_stream_t* producer, gcap_notification_t** out_notification) {
  *out_notification = NULL;
  gcap_notification_t* notification = calloc(1, sizeof(*notification));
  if (notification == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a notification");
  notification->producer = producer;
  int previous = 0;
  gcap_status_t status = gcap_device_push(producer->device_id, &previous);
  if (status == NULL) {
    status = GCAP_CUDA(cudaEventCreateWithFlags(&notification->event, cudaEventDisableTiming));
    status = gcap_status_join(status, gcap_device_pop(producer->device_id, previous));
  }
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

gcap_status_t gcap_notification_record(gcap_notification_t* notification) {
  gcap_stream_t* producer = notification->producer;
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  if (producer->can_capture) {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamIsCapturing(producer->handle, &state)));
  }
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaEventRecord(notification->event, producer->handle)));
  notification->captured = state != cudaStreamCaptureStatusNone;
  notification->known.count = 0;
  pthread_mutex_lock(&producer->known_mutex);
  for (size_t i = 0; i < producer->known.count; ++i) {
    const known_point_t* point = &producer->known.points[i];
    if (!learn(&notification->known, point->serial, point->sync_id)) break;
  }
  pthread_mutex_unlock(&producer->known_mutex);
  notification->sync_id = atomic_fetch_add_explicit(&producer->sync_id, 1, memory_order_relaxed) + 1;
  return NULL;
}

static gcap_status_t check_recorded(const gcap_notification_t* notification) {
  if (notification->sync_id != 0) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the notification of stream %p was never recorded",
                     (void*)notification->producer->handle);
}

gcap_status_t gcap_notification_wait(gcap_notification_t* notification, gcap_stream_t* consumer) {
  GCAP_RETURN_IF_ERROR(check_recorded(notification));
  // The driver would break the capture (rule R17 of the capture rules).
  if (!notification->captured) {
    GCAP_RETURN_IF_ERROR(
        stream_check_not_capturing(consumer, "waiting for a notification recorded outside the capture"));
  }
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamWaitEvent(consumer->handle, notification->event, 0)));
  if (notification->captured) return NULL;  // an edge orders nodes of the graph, not what the streams are given next
  // A notification may know streams that are gone by now. Their points are dropped before an array grows, which keeps
  // it within twice the live streams.
  size_t need = notification->known.count + 1;
  pthread_mutex_lock(&consumer->known_mutex);
  bool may_grow = consumer->known.count + need > consumer->known.capacity;
  if (may_grow) {
    pthread_mutex_unlock(&consumer->known_mutex);
    pthread_mutex_lock(&registry_mutex);
    pthread_mutex_lock(&consumer->known_mutex);
    forget_dead_streams(&consumer->known);
  }
  bool all = learn(&consumer->known, notification->producer->serial, notification->sync_id);
  for (size_t i = 0; all && i < notification->known.count; ++i) {
    all = learn(&consumer->known, notification->known.points[i].serial, notification->known.points[i].sync_id);
  }
  pthread_mutex_unlock(&consumer->known_mutex);
  if (may_grow) pthread_mutex_unlock(&registry_mutex);
  return NULL;
}

gcap_status_t gcap_notification_wait_on_host(gcap_notification_t* notification) {
  GCAP_RETURN_IF_ERROR(check_recorded(notification));
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
  // Another thread may have raised it further; the higher of the two stays.
  uint_fast64_t finished = atomic_load(&notification->producer->finished_id);
  while (finished < notification->sync_id &&
         !atomic_compare_exchange_weak(&notification->producer->finished_id, &finished, notification->sync_id)) {
  }
  return NULL;
}
