// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Replays, and what ONNX Runtime asks about graphs before and after them. It names the graph's id and no more.
//
// IsGraphCaptureEnabled says no when an eager run has given the results of the application's call: see run.c.
//
// Locking: none; a replay takes the EP's turn.

#include "ort/replay.h"

#include <stdlib.h>

#include "gcap/log.h"
#include "lib/internal/cuda_guard.h"
#include "ort/profiler.h"
#include "ort/release.h"
#include "ort/turn.h"

static gcap_ort_session_ep_t* ep_of(const gcap_ort_ep_t* self) { return (gcap_ort_session_ep_t*)self; }

static gcap_ort_status_t* give(const gcap_ort_session_ep_t* ep, gcap_status_t status) {
  return gcap_ort_give(&ep->factory->host, status);
}

// Waits for the calling thread's stream, never for the device.
gcap_ort_status_t* gcap_ort_sync(gcap_ort_ep_t* self) {
  gcap_ort_turn_begin(ep_of(self));
  gcap_status_t status = gcap_runtime_synchronize(ep_of(self)->runtime);
  gcap_ort_turn_end(ep_of(self));
  return give(ep_of(self), status);
}

// Asked first when a session has its nodes, of which ONNX Runtime then refuses it if some are left to other EPs.
static void warn_once(gcap_ort_session_ep_t* ep) {
  if (atomic_load_explicit(&ep->warning, memory_order_relaxed) == NULL) return;
  char* warning = atomic_exchange(&ep->warning, NULL);
  if (warning != NULL) gcap_log(GCAP_LOG_WARNING, "%s", warning);
  free(warning);
}

bool gcap_ort_is_graph_capture_enabled(const gcap_ort_ep_t* self) {
  gcap_ort_session_ep_t* ep = ep_of(self);
  warn_once(ep);
  const gcap_ort_run_t* run = gcap_affine_find(ep->runs);
  return gcap_ort_captures_graphs(ep) && (run == NULL || !run->settled);
}

// ONNX Runtime asks before each run of a thread.
bool gcap_ort_is_graph_captured(const gcap_ort_ep_t* self, int graph_id) {
  gcap_ort_run_t* run = gcap_affine_find(ep_of(self)->runs);
  gcap_status_t status = run != NULL ? gcap_ort_releases_follow(ep_of(self), run) : NULL;
  if (status != NULL) gcap_log(GCAP_LOG_WARNING, "%s", gcap_status_message(status));
  gcap_status_ignore(status);  // what was not released is tried again
  return gcap_runtime_is_captured(ep_of(self)->runtime, graph_id);
}

static gcap_status_t replay(gcap_ort_session_ep_t* ep, int graph_id) {
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = graph_id;
  run.synchronize = ep->factory->host.version < GCAP_ORT_VERSION_SYNC_AFTER_REPLAY;
  const int64_t start_ns = gcap_ort_profiler_now();
  int previous = 0;
  bool replayed = false;
  GCAP_RETURN_IF_ERROR(gcap_device_push(ep->device->id, &previous));
  gcap_status_t status = gcap_runtime_replay(ep->runtime, &run, &replayed);
  status = gcap_status_join(status, gcap_device_pop(ep->device->id, previous));
  if (replayed) gcap_ort_profiler_note(ep, "replay of", graph_id, start_ns);
  if (status != NULL || replayed) return status;
  return GCAP_STATUS(GCAP_NOT_FOUND, "there is no graph %d to replay on this thread", graph_id);
}

gcap_ort_status_t* gcap_ort_replay_graph(gcap_ort_ep_t* self, int graph_id) {
  gcap_ort_turn_begin(ep_of(self));
  gcap_status_t status = replay(ep_of(self), graph_id);
  gcap_ort_turn_end(ep_of(self));
  return give(ep_of(self), status);
}
