// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The release of captured graphs by id, from any thread. An EP whose threads have graphs of their own releases the
// calling thread's alone, so each other thread releases its own when ONNX Runtime next asks about its graphs, which it
// does before each run.
//
// Locking: `mutex` of the releases, a leaf, over their list; `last` is read without it. Graphs end without it.

#include "ort/release.h"

#include <stdlib.h>

#include "lib/internal/grow.h"
#include "ort/turn.h"

struct gcap_ort_release {
  int id;
  uint64_t number;
};

void gcap_ort_releases_init(gcap_ort_releases_t* releases) {
  pthread_mutex_init(&releases->mutex, NULL);
  atomic_init(&releases->last, 0);
}

void gcap_ort_releases_deinit(gcap_ort_releases_t* releases) {
  pthread_mutex_destroy(&releases->mutex);
  free(releases->ids);
}

static struct gcap_ort_release* find(const gcap_ort_releases_t* releases, int id) {
  for (size_t i = 0; i < releases->count; ++i) {
    if (releases->ids[i].id == id) return &releases->ids[i];
  }
  return NULL;
}

// With the mutex.
static gcap_status_t note(gcap_ort_releases_t* releases, int id) {
  struct gcap_ort_release* release = find(releases, id);
  if (release == NULL && !gcap_grow(&releases->ids, &releases->room, releases->count + 1, sizeof(*releases->ids))) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to release graph id %d", id);
  }
  if (release == NULL) release = &releases->ids[releases->count++];
  const uint64_t number = atomic_load_explicit(&releases->last, memory_order_relaxed) + 1;
  *release = (struct gcap_ort_release){id, number};
  atomic_store_explicit(&releases->last, number, memory_order_release);
  return NULL;
}

// An id of which this thread has no graph is released.
static gcap_status_t release_own(gcap_ort_session_ep_t* ep, int id) {
  gcap_status_t status = gcap_runtime_release(ep->runtime, id);
  if (gcap_status_code(status) != GCAP_NOT_FOUND) return status;
  gcap_status_ignore(status);
  return NULL;
}

// The first release after `seen`; false if there is none.
static bool next_after(gcap_ort_releases_t* releases, uint64_t seen, struct gcap_ort_release* out_release) {
  bool found = false;
  pthread_mutex_lock(&releases->mutex);
  for (size_t i = 0; i < releases->count; ++i) {
    const struct gcap_ort_release* release = &releases->ids[i];
    if (release->number <= seen || (found && release->number > out_release->number)) continue;
    *out_release = *release;
    found = true;
  }
  pthread_mutex_unlock(&releases->mutex);
  return found;
}

gcap_status_t gcap_ort_releases_follow(gcap_ort_session_ep_t* ep, gcap_ort_run_t* run) {
  if (run->releases_seen == atomic_load_explicit(&ep->releases.last, memory_order_acquire)) return NULL;
  struct gcap_ort_release release = {0};
  while (next_after(&ep->releases, run->releases_seen, &release)) {
    GCAP_RETURN_IF_ERROR(release_own(ep, release.id));
    run->releases_seen = release.number;
  }
  return NULL;
}

static gcap_status_t release_graph(gcap_ort_session_ep_t* ep, int graph_id) {
  if (!gcap_ep_supports_concurrent_runs(ep->ep)) return release_own(ep, graph_id);  // the threads share their graphs
  gcap_ort_run_t* run = NULL;
  GCAP_RETURN_IF_ERROR(gcap_affine_get(ep->runs, (void**)&run));
  pthread_mutex_lock(&ep->releases.mutex);
  gcap_status_t status = note(&ep->releases, graph_id);
  pthread_mutex_unlock(&ep->releases.mutex);
  return status != NULL ? status : gcap_ort_releases_follow(ep, run);
}

gcap_ort_status_t* gcap_ort_release_captured_graph(gcap_ort_ep_t* self, int graph_id) {
  gcap_ort_session_ep_t* ep = (gcap_ort_session_ep_t*)self;
  gcap_ort_turn_begin(ep);
  gcap_status_t status = release_graph(ep, graph_id);
  gcap_ort_turn_end(ep);
  return gcap_ort_give(&ep->factory->host, status);
}
