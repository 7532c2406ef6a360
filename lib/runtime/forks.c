// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// More streams in a run. Each thread keeps the streams that it ever forked, so that its next run, and the capture after
// its warm-up, get the same ones without a driver call; they come from the runtime's pool and return to it when the
// thread ends. In a run the first `num_forked` are forked and not joined, the first `num_in_run` were forked at all,
// and each of these has a scratch run open, as the run's own stream has.
//
// An eager run orders its streams by notifications, so that scratch knows who waited for whom; each stream has one,
// attached to it. In a captured run the capture scope does it. The scope also opens, closes and keeps a reservation for
// each stream that allocates: a reservation that the graphs of a thread share would end later than the stream is
// borrowed.
//
// Locking: none. A thread's forks are its own.

#include "lib/runtime/forks.h"

#include <stdlib.h>
#include <string.h>

#include "gcap/capture.h"
#include "gcap/log.h"
#include "lib/capture/inner.h"
#include "lib/graph/inner.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/grow.h"
#include "lib/runtime/runtime_internal.h"
#include "lib/scratch/inner.h"
#include "lib/stream/inner.h"

typedef struct forks {
  gcap_stream_t** streams;
  size_t num_streams, room;
  size_t num_forked;
  size_t num_in_run;
  size_t num_in_last_run;
} forks_t;

// --- The order of streams -------------------------------------------------------------------------------------------

static gcap_status_t create_notification(gcap_stream_t* stream, void** out_object) {
  gcap_notification_t* notification = NULL;
  gcap_status_t status = gcap_notification_create(stream, &notification);
  *out_object = notification;
  return status;
}

static void destroy_notification(void* notification) { gcap_notification_destroy(notification); }

// Records what the stream was given so far.
static gcap_status_t notify(gcap_stream_t* stream, gcap_notification_t** out_notification) {
  static const gcap_attachment_key_t key = {"notification of forks", create_notification, destroy_notification};
  void* object = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_attachment(stream, &key, &object));
  *out_notification = object;
  return gcap_notification_record(*out_notification);
}

// The scope orders streams against its origin alone.
static gcap_status_t check_origin(gcap_capture_t* capture, const gcap_stream_t* stream, const char* operation) {
  if (gcap_capture_stream(capture) == gcap_stream_handle(stream)) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: the run's stream %p is not the origin of the capture, which is %p",
                     operation, (void*)gcap_stream_handle(stream), (void*)gcap_capture_stream(capture));
}

// The streams come after what `stream` was given so far.
static gcap_status_t order_after(gcap_stream_t* stream, gcap_stream_t* const* streams, size_t count) {
  gcap_capture_t* capture = gcap_capture_current();
  if (capture != NULL) {
    GCAP_RETURN_IF_ERROR(check_origin(capture, stream, "gcap_runtime_fork"));
    for (size_t i = 0; i < count; ++i) {
      const cudaStream_t handle = gcap_stream_handle(streams[i]);
      GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &handle, 1));
    }
    return NULL;
  }
  gcap_notification_t* notification = NULL;
  GCAP_RETURN_IF_ERROR(notify(stream, &notification));
  for (size_t i = 0; i < count; ++i) GCAP_RETURN_IF_ERROR(gcap_notification_wait(notification, streams[i]));
  return NULL;
}

// `stream` comes after what the forked stream was given so far.
static gcap_status_t order_before(gcap_stream_t* forked, gcap_stream_t* stream) {
  gcap_capture_t* capture = gcap_capture_current();
  if (capture != NULL) {
    const cudaStream_t handle = gcap_stream_handle(forked);
    GCAP_RETURN_IF_ERROR(check_origin(capture, stream, "gcap_runtime_join"));
    return gcap_capture_join(capture, &handle, 1);
  }
  gcap_notification_t* notification = NULL;
  GCAP_RETURN_IF_ERROR(notify(forked, &notification));
  return gcap_notification_wait(notification, stream);
}

// --- One thread's forks ---------------------------------------------------------------------------------------------

static gcap_status_t forks_create(void* user, void** out_object) {
  (void)user;
  *out_object = calloc(1, sizeof(forks_t));
  return *out_object != NULL ? NULL : GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a thread's forks");
}

static gcap_status_t end_scratch_runs(gcap_own_runtime_t* runtime, forks_t* forks, uint64_t work, bool has_failed) {
  gcap_status_t status = NULL;
  for (size_t i = 0; i < forks->num_in_run; ++i) {
    status = gcap_status_join(status, gcap_scratch_end_run_of(runtime->scratch, forks->streams[i], work, has_failed));
  }
  forks->num_in_last_run = forks->num_in_run;
  forks->num_in_run = 0;
  forks->num_forked = 0;
  return status;
}

// Waits for the streams, so that scratch may end, and gives them back. One that cannot be waited for stays out.
static gcap_status_t forks_end(void* user, void* object, bool by_thread_exit) {
  gcap_own_runtime_t* runtime = user;
  forks_t* forks = object;
  if (by_thread_exit && gcap_thread_captures()) gcap_capture_abort(gcap_capture_current());  // the context would too
  gcap_status_t status = end_scratch_runs(runtime, forks, /*work=*/0, /*has_failed=*/true);
  for (size_t i = 0; i < forks->num_streams; ++i) {
    gcap_status_t ended = gcap_stream_synchronize(forks->streams[i]);
    if (ended == NULL) ended = gcap_stream_pool_release(runtime->streams, forks->streams[i]);
    status = gcap_status_join(status, ended);
  }
  free(forks->streams);
  free(forks);
  return gcap_status_annotate(status, GCAP_LEAKED, "a forked stream may still be in use");
}

gcap_status_t gcap_forks_create(gcap_own_runtime_t* runtime) {
  const gcap_affine_ops_t ops = {.name = "forked streams", .create = forks_create, .end = forks_end, .user = runtime};
  return gcap_affine_create(&ops, &runtime->forks);
}

// --- Around a run ---------------------------------------------------------------------------------------------------

void gcap_forks_prepare(gcap_own_runtime_t* runtime, uint64_t work) {
  forks_t* forks = gcap_affine_find(runtime->forks);
  if (forks == NULL || gcap_thread_captures()) return;
  for (size_t i = 0; i < forks->num_in_last_run; ++i) {
    gcap_status_t status = gcap_scratch_prepare_for(runtime->scratch, forks->streams[i], work);
    if (status == NULL) continue;
    gcap_log(GCAP_LOG_WARNING, "a forked stream of a capture may lack memory: %s", gcap_status_message(status));
    gcap_status_free(status);
  }
}

// Orders `stream` after what is not joined, and where that fails waits, so that memory is free when it is freed. A
// capture orders nothing: it does not become a graph.
static gcap_status_t join_left(forks_t* forks, gcap_stream_t* stream) {
  gcap_status_t status = NULL;
  for (size_t i = 0; !gcap_thread_captures() && i < forks->num_forked; ++i) {
    gcap_status_t ordered = order_before(forks->streams[i], stream);
    if (ordered != NULL) ordered = gcap_status_join(ordered, gcap_stream_synchronize(forks->streams[i]));
    status = gcap_status_join(status, ordered);
  }
  forks->num_forked = 0;
  return status;
}

gcap_status_t gcap_forks_close(gcap_own_runtime_t* runtime, gcap_stream_t* stream, gcap_status_t run_status) {
  forks_t* forks = gcap_affine_find(runtime->forks);
  if (forks == NULL || forks->num_forked == 0) return run_status;
  if (run_status == NULL) {
    run_status = GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                             "the run forked %zu stream%s and did not join: call gcap_runtime_join before the work "
                             "that needs the results",
                             forks->num_forked, forks->num_forked == 1 ? "" : "s");
  }
  return gcap_status_join(run_status, join_left(forks, stream));
}

gcap_status_t gcap_forks_end_scratch_runs(gcap_own_runtime_t* runtime, uint64_t work, bool has_failed) {
  forks_t* forks = gcap_affine_find(runtime->forks);
  return forks != NULL ? end_scratch_runs(runtime, forks, work, has_failed) : NULL;
}

gcap_status_t gcap_forks_end_left_run(gcap_own_runtime_t* runtime, gcap_stream_t* stream) {
  forks_t* forks = gcap_affine_find(runtime->forks);
  if (forks == NULL || forks->num_in_run == 0) return NULL;
  return gcap_status_join(join_left(forks, stream), end_scratch_runs(runtime, forks, /*work=*/0, /*has_failed=*/true));
}

// --- Fork and join --------------------------------------------------------------------------------------------------

// The calling thread's forks, and the stream of the run that it has open.
static gcap_status_t find_run(gcap_own_runtime_t* runtime, const char* operation, forks_t** out_forks,
                              gcap_stream_t** out_stream) {
  gcap_thread_context_t* context = NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_hole(operation));
  GCAP_RETURN_IF_ERROR(gcap_thread_contexts_get(runtime->contexts, &context));
  int id = GCAP_GRAPH_ID_NONE;
  if (!gcap_graph_manager_has_own_run(gcap_thread_context_graphs(context), &id)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: this thread has no run open", operation);
  }
  void* forks = NULL;
  GCAP_RETURN_IF_ERROR(gcap_affine_get(runtime->forks, &forks));
  *out_forks = forks;
  *out_stream = gcap_thread_context_stream(context);
  return NULL;
}

// Gives the thread `count` streams, of which those that it has stay.
static gcap_status_t acquire(gcap_own_runtime_t* runtime, forks_t* forks, size_t count) {
  if (count <= forks->num_streams) return NULL;
  if (!gcap_grow(&forks->streams, &forks->room, count, sizeof(*forks->streams))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %zu forked streams", count);
  }
  while (forks->num_streams < count) {
    GCAP_RETURN_IF_ERROR(gcap_stream_pool_acquire(runtime->streams, &forks->streams[forks->num_streams]));
    ++forks->num_streams;
  }
  return NULL;
}

static gcap_status_t fork_streams(gcap_own_runtime_t* runtime, forks_t* forks, gcap_stream_t* stream, size_t count) {
  const size_t wanted = forks->num_forked + count;
  GCAP_RETURN_IF_ERROR(acquire(runtime, forks, wanted));
  for (; forks->num_in_run < wanted; ++forks->num_in_run) {
    GCAP_RETURN_IF_ERROR(gcap_scratch_begin_run(runtime->scratch, forks->streams[forks->num_in_run]));
  }
  GCAP_RETURN_IF_ERROR(order_after(stream, forks->streams + forks->num_forked, count));
  forks->num_forked = wanted;
  return NULL;
}

// What was meant for the graph is not in it, or not in order.
static gcap_status_t latched(gcap_status_t status) {
  if (status != NULL) gcap_capture_fail_once(gcap_capture_current(), status);
  return status;
}

gcap_status_t gcap_own_runtime_fork(void* self, size_t count, gcap_stream_t** out_streams) {
  gcap_own_runtime_t* runtime = self;
  forks_t* forks = NULL;
  gcap_stream_t* stream = NULL;
  GCAP_RETURN_IF_ERROR(latched(find_run(runtime, "gcap_runtime_fork", &forks, &stream)));
  if (count == 0) return NULL;
  const size_t first = forks->num_forked;
  GCAP_RETURN_IF_ERROR(latched(fork_streams(runtime, forks, stream, count)));
  memcpy(out_streams, forks->streams + first, count * sizeof(*out_streams));
  return NULL;
}

gcap_status_t gcap_own_runtime_join(void* self) {
  gcap_own_runtime_t* runtime = self;
  forks_t* forks = NULL;
  gcap_stream_t* stream = NULL;
  GCAP_RETURN_IF_ERROR(latched(find_run(runtime, "gcap_runtime_join", &forks, &stream)));
  for (size_t i = 0; i < forks->num_forked; ++i) {
    GCAP_RETURN_IF_ERROR(latched(order_before(forks->streams[i], stream)));
  }
  forks->num_forked = 0;
  return NULL;
}
