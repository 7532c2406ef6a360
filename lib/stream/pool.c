// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The stream pool. Each thread has a lane (an affine object, lib/internal/affine.h): the idle streams that the thread
// released itself, which no other thread touches, and those that other threads gave back to it. When the thread ends,
// its idle streams go to the common list, and its acquired streams lose their home. A thread without an idle stream
// takes one from the common list, and makes a new stream only if that list is empty. So the number of streams is at
// most the sum of what the living threads have had acquired at once, plus the common list.
//
// Stream order alone protects the next user: earlier work on the same stream completes first. So nothing is waited for
// until the pool ends.
//
// Locking: the pool's mutex guards the list of all streams, the common list, the pushes to `returned` and the end of a
// lane. The mutex is never held across a CUDA call. `idle` belongs to the lane's thread. A stream's home changes only
// under the mutex, or while the home's own thread acquires the stream; so a thread that reads its own lane as a
// stream's home can trust what it read.

#include <pthread.h>
#include <stdlib.h>

#include "lib/internal/affine.h"
#include "lib/internal/forked.h"
#include "lib/stream/stream_internal.h"

typedef struct lane {
  gcap_stream_t* idle;               // newest first
  _Atomic(gcap_stream_t*) returned;  // newest first; pushed under the mutex, looked at without it
} lane_t;

struct gcap_stream_pool {
  int device_id;
  gcap_affine_t* lanes;
  pthread_mutex_t mutex;
  gcap_stream_t* all;     // newest first
  gcap_stream_t* common;  // idle streams of threads that are gone
};

static void push_idle(gcap_stream_t** list, gcap_stream_t* stream) {
  stream->pooled.next_idle = *list;
  *list = stream;
}

static gcap_stream_t* pop_idle(gcap_stream_t** list) {
  gcap_stream_t* stream = *list;
  if (stream != NULL) *list = stream->pooled.next_idle;
  return stream;
}

// Called with the mutex held.
static void push_returned(lane_t* lane, gcap_stream_t* stream) {
  gcap_stream_t* list = atomic_load_explicit(&lane->returned, memory_order_relaxed);
  push_idle(&list, stream);
  atomic_store_explicit(&lane->returned, list, memory_order_relaxed);
}

// Called with the mutex held.
static gcap_stream_t* take_returned(lane_t* lane) {
  gcap_stream_t* list = atomic_load_explicit(&lane->returned, memory_order_relaxed);
  atomic_store_explicit(&lane->returned, NULL, memory_order_relaxed);
  return list;
}

// --- Lanes ----------------------------------------------------------------------------------------------------------

static gcap_status_t lane_create(void* user, void** out_object) {
  (void)user;
  *out_object = calloc(1, sizeof(lane_t));
  return *out_object != NULL ? NULL : GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a thread's streams");
}

// Its thread is gone: what it had is everybody's.
static gcap_status_t lane_end(void* user, void* object, bool by_thread_exit) {
  gcap_stream_pool_t* pool = user;
  lane_t* lane = object;
  if (by_thread_exit) {
    pthread_mutex_lock(&pool->mutex);
    gcap_stream_t* lists[] = {lane->idle, take_returned(lane)};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); ++i) {
      gcap_stream_t* stream = NULL;
      while ((stream = pop_idle(&lists[i])) != NULL) push_idle(&pool->common, stream);
    }
    for (gcap_stream_t* stream = pool->all; stream != NULL; stream = stream->pooled.next_of_pool) {
      if (atomic_load_explicit(&stream->pooled.home, memory_order_relaxed) == lane) {
        atomic_store_explicit(&stream->pooled.home, NULL, memory_order_relaxed);
      }
    }
    pthread_mutex_unlock(&pool->mutex);
  }
  free(lane);
  return NULL;
}

// --- The pool -------------------------------------------------------------------------------------------------------

gcap_status_t gcap_stream_pool_create(int device_id, gcap_stream_pool_t** out_pool) {
  GCAP_RETURN_IF_NULL(out_pool);
  *out_pool = NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_stream_pool_t* pool = calloc(1, sizeof(*pool));
  if (pool == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a stream pool");
  pool->device_id = device_id;
  const gcap_affine_ops_t ops = {.name = "stream pool lane", .create = lane_create, .end = lane_end, .user = pool};
  gcap_status_t status = gcap_affine_create(&ops, &pool->lanes);
  if (status != NULL) {
    free(pool);
    return status;
  }
  pthread_mutex_init(&pool->mutex, NULL);
  *out_pool = pool;
  return NULL;
}

// Whether the pool can end now.
static gcap_status_t check_idle(gcap_stream_pool_t* pool) {
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_stream_pool_destroy"));
  gcap_stream_pool_stats_t stats;
  gcap_stream_pool_get_stats(pool, &stats);
  if (stats.num_out > 0) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "gcap_stream_pool_destroy: %zu of %zu streams are out; release them",
                       stats.num_out, stats.num_streams);
  }
  for (gcap_stream_t* stream = pool->all; stream != NULL; stream = stream->pooled.next_of_pool) {
    gcap_status_t status = gcap_stream_check_not_capturing(stream, "gcap_stream_pool_destroy");
    if (gcap_status_code(status) == GCAP_FAILED_PRECONDITION) return status;
    gcap_status_ignore(status);  // of a lost device, from which the pool must end too: the stream's own end asks again
  }
  return NULL;
}

gcap_status_t gcap_stream_pool_destroy(gcap_stream_pool_t* pool) {
  if (pool == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(check_idle(pool));
  gcap_status_t status = gcap_affine_destroy(pool->lanes);
  while (pool->all != NULL) {
    gcap_stream_t* stream = pool->all;
    pool->all = stream->pooled.next_of_pool;
    stream->pooled.pool = NULL;
    status = gcap_status_join(status, gcap_stream_destroy(stream));
  }
  pthread_mutex_destroy(&pool->mutex);
  free(pool);
  return gcap_status_annotate(status, GCAP_LEAKED, "the stream pool is gone, but not all of its streams");
}

// --- Streams --------------------------------------------------------------------------------------------------------

// Moves to the lane what other threads gave back to it, newest first.
static void fetch_returned(gcap_stream_pool_t* pool, lane_t* lane) {
  if (atomic_load_explicit(&lane->returned, memory_order_relaxed) == NULL) return;
  pthread_mutex_lock(&pool->mutex);
  gcap_stream_t* list = take_returned(lane);
  pthread_mutex_unlock(&pool->mutex);
  gcap_stream_t* last = list;
  while (last->pooled.next_idle != NULL) last = last->pooled.next_idle;
  last->pooled.next_idle = lane->idle;
  lane->idle = list;
}

static gcap_stream_t* adopt_common(gcap_stream_pool_t* pool, lane_t* lane) {
  pthread_mutex_lock(&pool->mutex);
  gcap_stream_t* stream = pop_idle(&pool->common);
  if (stream != NULL) atomic_store_explicit(&stream->pooled.home, lane, memory_order_relaxed);
  pthread_mutex_unlock(&pool->mutex);
  return stream;
}

static gcap_status_t create_stream(gcap_stream_pool_t* pool, lane_t* lane, gcap_stream_t** out_stream) {
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("a new stream of the pool"));
  gcap_stream_t* stream = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_create(pool->device_id, &stream));
  pthread_mutex_lock(&pool->mutex);
  stream->pooled.pool = pool;
  stream->pooled.next_of_pool = pool->all;
  atomic_store_explicit(&stream->pooled.home, lane, memory_order_relaxed);
  pool->all = stream;
  pthread_mutex_unlock(&pool->mutex);
  *out_stream = stream;
  return NULL;
}

gcap_status_t gcap_stream_pool_acquire(gcap_stream_pool_t* pool, gcap_stream_t** out_stream) {
  GCAP_RETURN_IF_NULL(out_stream);
  *out_stream = NULL;
  GCAP_RETURN_IF_NULL(pool);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  void* object = NULL;
  GCAP_RETURN_IF_ERROR(gcap_affine_get(pool->lanes, &object));
  lane_t* lane = object;
  fetch_returned(pool, lane);
  gcap_stream_t* stream = pop_idle(&lane->idle);
  if (stream == NULL) stream = adopt_common(pool, lane);
  if (stream == NULL) GCAP_RETURN_IF_ERROR(create_stream(pool, lane, &stream));
  atomic_store_explicit(&stream->pooled.is_out, true, memory_order_relaxed);
  *out_stream = stream;
  return NULL;
}

// Gives a stream back to another thread, or to all.
static void return_home(gcap_stream_pool_t* pool, gcap_stream_t* stream) {
  pthread_mutex_lock(&pool->mutex);
  lane_t* lane = atomic_load_explicit(&stream->pooled.home, memory_order_relaxed);
  if (lane != NULL) {
    push_returned(lane, stream);
  } else {
    push_idle(&pool->common, stream);
  }
  pthread_mutex_unlock(&pool->mutex);
}

// Whether a stream that its user gives back may be given to the next one.
static gcap_status_t check_returnable(const gcap_stream_t* stream, bool is_mine, bool* out_is_capturing) {
  *out_is_capturing = false;
  if (is_mine && !gcap_thread_captures()) return NULL;  // this thread would know
  return gcap_stream_is_capturing(stream, out_is_capturing);
}

gcap_status_t gcap_stream_pool_release(gcap_stream_pool_t* pool, gcap_stream_t* stream) {
  GCAP_RETURN_IF_NULL(pool);
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  if (stream->pooled.pool != pool) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "stream %p is of %s", (void*)stream->handle,
                       stream->pooled.pool == NULL ? "no pool" : "another pool");
  }
  lane_t* lane = gcap_affine_find(pool->lanes);
  bool is_mine = lane != NULL && atomic_load_explicit(&stream->pooled.home, memory_order_relaxed) == lane;
  bool is_capturing = false;
  gcap_status_t unknown = check_returnable(stream, is_mine, &is_capturing);
  if (is_capturing) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "gcap_stream_pool_release: stream %p is capturing; end the capture first",
                       (void*)stream->handle);
  }
  if (!atomic_exchange_explicit(&stream->pooled.is_out, false, memory_order_relaxed)) {
    gcap_status_ignore(unknown);  // whatever the stream does, it is not the caller's
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "stream %p was released already", (void*)stream->handle);
  }
  if (unknown != NULL) {
    return gcap_status_annotate(unknown, GCAP_LEAKED, "stream %p may be capturing: the pool gives it to nobody more",
                                (void*)stream->handle);
  }
  if (is_mine) {
    push_idle(&lane->idle, stream);
  } else {
    return_home(pool, stream);
  }
  return NULL;
}

void gcap_stream_pool_get_stats(gcap_stream_pool_t* pool, gcap_stream_pool_stats_t* out_stats) {
  *out_stats = (gcap_stream_pool_stats_t){0};
  pthread_mutex_lock(&pool->mutex);
  for (gcap_stream_t* stream = pool->all; stream != NULL; stream = stream->pooled.next_of_pool) {
    ++out_stats->num_streams;
    if (atomic_load_explicit(&stream->pooled.is_out, memory_order_relaxed)) ++out_stats->num_out;
  }
  pthread_mutex_unlock(&pool->mutex);
}
