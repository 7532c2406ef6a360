// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What ONNX Runtime's profile lacks of captured runs: it times the nodes of a run, and a replay has none. So each
// replay is an event, with the graph's id, and so is each run that was captured.
//
// Locking: `mutex` of a profiler, over its events. As a profile ends, it is held over functions of ONNX Runtime's,
// which call nothing of gcap.

#include "ort/profiler.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gcap/log.h"
#include "lib/internal/clock.h"
#include "lib/internal/grow.h"

typedef struct event {
  const char* what;  // a literal
  int graph_id;
  int thread_id;
  int64_t start_ns;
  int64_t duration_ns;
} event_t;

// In the runtime's hands. `abi` is first.
struct gcap_ort_profiler {
  gcap_ort_profiler_impl_t abi;
  gcap_ort_session_ep_t* ep;
  pthread_mutex_t mutex;  // of the rest; a leaf
  bool is_on;
  int64_t zero_ns;  // of the profile, on our clock
  event_t* events;
  size_t count;
  size_t room;
};

static gcap_ort_profiler_t* profiler_of(gcap_ort_profiler_impl_t* self) { return (gcap_ort_profiler_t*)self; }

int64_t gcap_ort_profiler_now(void) { return (int64_t)gcap_now_ns(); }

void gcap_ort_profiler_note(gcap_ort_session_ep_t* ep, const char* what, int graph_id, int64_t start_ns) {
  gcap_ort_profiler_t* profiler = atomic_load_explicit(&ep->profiler, memory_order_acquire);
  if (profiler == NULL) return;
  const int64_t duration = gcap_ort_profiler_now() - start_ns;
  pthread_mutex_lock(&profiler->mutex);
  // Without memory the profile lacks the event.
  if (profiler->is_on &&
      gcap_grow(&profiler->events, &profiler->room, profiler->count + 1, sizeof(*profiler->events))) {
    profiler->events[profiler->count++] =
        (event_t){what, graph_id, (int)syscall(SYS_gettid), start_ns - profiler->zero_ns, duration};
  }
  pthread_mutex_unlock(&profiler->mutex);
}

static gcap_ort_status_t* start(gcap_ort_profiler_impl_t* self, int64_t offset_ns) {
  gcap_ort_profiler_t* profiler = profiler_of(self);
  pthread_mutex_lock(&profiler->mutex);
  profiler->is_on = true;
  profiler->zero_ns = gcap_ort_profiler_now() - offset_ns;
  profiler->count = 0;
  pthread_mutex_unlock(&profiler->mutex);
  return NULL;
}

static gcap_status_t give_event(const gcap_ort_host_t* host, const event_t* event,
                                gcap_ort_profiling_events_t* container) {
  char name[64], id[16];
  snprintf(name, sizeof(name), "%s graph %d", event->what, event->graph_id);
  snprintf(id, sizeof(id), "%d", event->graph_id);
  const char* const keys[] = {"gpu_graph_id"};
  const char* const values[] = {id};
  gcap_ort_profiling_event_t* made = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_EP_CALL(
      host, CreateProfilingEvent(GCAP_ORT_EVENT_API, getpid(), event->thread_id, name, event->start_ns / 1000,
                                 event->duration_ns / 1000, keys, values, 1, &made)));
  const gcap_ort_profiling_event_t* const one[] = {made};
  gcap_status_t status = GCAP_ORT_EP_CALL(host, ProfilingEventsContainer_AddEvents(container, one, 1));
  host->ep_api->ReleaseProfilingEvent(made);
  return status;
}

static gcap_ort_status_t* end(gcap_ort_profiler_impl_t* self, gcap_ort_profiling_events_t* container) {
  gcap_ort_profiler_t* profiler = profiler_of(self);
  const gcap_ort_host_t* host = &profiler->ep->factory->host;
  gcap_status_t status = NULL;
  pthread_mutex_lock(&profiler->mutex);
  profiler->is_on = false;
  for (size_t i = 0; i < profiler->count && status == NULL; ++i) {
    status = give_event(host, &profiler->events[i], container);
  }
  pthread_mutex_unlock(&profiler->mutex);
  return gcap_ort_give(host, status);
}

static void release(gcap_ort_profiler_impl_t* self) {
  gcap_ort_profiler_t* profiler = profiler_of(self);
  atomic_store(&profiler->ep->profiler, NULL);
  pthread_mutex_destroy(&profiler->mutex);
  free(profiler->events);
  free(profiler);
}

gcap_ort_status_t* gcap_ort_create_profiler(gcap_ort_ep_t* self, gcap_ort_profiler_impl_t** out_profiler) {
  gcap_ort_session_ep_t* ep = (gcap_ort_session_ep_t*)self;
  gcap_ort_profiler_t* profiler = calloc(1, sizeof(*profiler));
  *out_profiler = NULL;
  if (profiler == NULL) {
    return gcap_ort_give(&ep->factory->host, GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a profiler"));
  }
  profiler->abi = (gcap_ort_profiler_impl_t){.ort_version_supported = ep->factory->host.version,
                                             .Release = release,
                                             .StartProfiling = start,
                                             .EndProfiling = end};
  profiler->ep = ep;
  pthread_mutex_init(&profiler->mutex, NULL);
  atomic_store_explicit(&ep->profiler, profiler, memory_order_release);
  *out_profiler = &profiler->abi;
  return NULL;
}
