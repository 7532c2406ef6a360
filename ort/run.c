// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs, captures and replays. ONNX Runtime runs a model again and again in one call of the application, until
// IsGraphCaptured, or 8 times. Two of its questions are answered with that in mind:
//
// - A kernel that fails in a capture does not fail the run: a capture has executed nothing, so the run ends without a
//   graph and the next one, eager, tells.
// - IsGraphCaptureEnabled says no when an eager run has given the results and the next run would not give a graph: when
//   the last capture failed, or the warm-up is longer than what the runtime has patience for.

#include <errno.h>
#include <stdlib.h>

#include "gcap/capture.h"
#include "gcap/log.h"
#include "lib/graph/engine.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/grow.h"
#include "ort/ep.h"
#include "ort/stream.h"

// ONNX Runtime fails a call whose 8th run leaves no graph.
enum { MOST_ATTEMPTS = 7 };

static gcap_ort_session_ep_t* ep_of(const gcap_ort_ep_t* self) { return (gcap_ort_session_ep_t*)self; }

static gcap_ort_status_t* give(const gcap_ort_session_ep_t* ep, gcap_status_t status) {
  return gcap_ort_give(&ep->factory->host, status);
}

static void leave(gcap_ort_run_t* run);
static void abandon(gcap_ort_run_t* run);

// --- What a run holds -----------------------------------------------------------------------------------------------

static gcap_status_t make_room(gcap_ort_run_t* run) {
  if (run->holds == NULL) run->holds = calloc(1, sizeof(*run->holds));
  gcap_ort_holds_t* holds = run->holds;
  const size_t count = holds != NULL ? holds->count + 1 : 1;
  if (holds != NULL && gcap_grow(&holds->at, &holds->room, count, sizeof(holds->at[0]))) return NULL;
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a run of %zu kernels", count);
}

gcap_status_t gcap_ort_run_hold(gcap_ort_run_t* run, gcap_hold_t* hold) {
  pthread_mutex_lock(&run->holds_mutex);
  gcap_status_t status = make_room(run);
  if (status == NULL) {
    gcap_hold_take(hold);
    run->holds->at[run->holds->count++] = hold;
  }
  pthread_mutex_unlock(&run->holds_mutex);
  return status;
}

static void let_go_all(gcap_ort_holds_t* holds) {
  for (size_t i = 0; i < holds->count; ++i) gcap_hold_let_go(holds->at[i]);
  holds->count = 0;
}

static void end_holds(void* user) {
  gcap_ort_holds_t* holds = user;
  let_go_all(holds);
  free(holds->at);
  free(holds);
}

// Lets go of what the run held: at once if its work is done, else when its stream has passed the work.
static void give_up_holds(gcap_ort_run_t* run, bool is_done) {
  gcap_ort_holds_t* holds = run->holds;
  if (holds == NULL || holds->count == 0) return;
  if (is_done) {
    let_go_all(holds);
    return;
  }
  run->holds = NULL;
  gcap_status_t status = gcap_stream_defer(run->resources.stream, end_holds, holds);
  if (status == NULL) return;
  for (size_t i = 0; i < holds->count; ++i) {
    gcap_hold_give_to_stream(holds->at[i], run->ep->runtime, run->resources.stream);
  }
  end_holds(holds);
  gcap_status_ignore(status);  // each part found another way
}

// Of a run that a thread left open when it exited, nobody tells when its work is done.
static void forget_holds(gcap_ort_holds_t* holds, bool by_thread_exit) {
  for (size_t i = 0; by_thread_exit && i < holds->count; ++i) gcap_hold_keep(holds->at[i]);
  if (by_thread_exit) holds->count = 0;
  end_holds(holds);
}

// --- Each thread's run ----------------------------------------------------------------------------------------------

static gcap_status_t create_run(void* user, void** out_object) {
  const gcap_ort_releases_t* releases = user;
  gcap_ort_run_t* run = calloc(1, sizeof(*run));
  if (run == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a thread's run");
  pthread_mutex_init(&run->holds_mutex, NULL);
  run->releases_seen = atomic_load(&releases->last);
  *out_object = run;
  return NULL;
}

// A thread may exit in a run that ONNX Runtime did not end. A stream of its own ends with it, with the capture on it.
static gcap_status_t end_run(void* user, void* object, bool by_thread_exit) {
  (void)user;
  gcap_ort_run_t* run = object;
  if (run->open && by_thread_exit && !gcap_ep_supports_concurrent_runs(run->ep->ep)) {
    abandon(run);
  } else if (run->open) {
    leave(run);
  }
  if (run->holds != NULL) forget_holds(run->holds, by_thread_exit);
  gcap_status_free(run->failure);
  pthread_mutex_destroy(&run->holds_mutex);
  free(run);
  return NULL;
}

gcap_status_t gcap_ort_runs_create(gcap_ort_releases_t* releases, gcap_affine_t** out_runs) {
  const gcap_affine_ops_t ops = {.name = "thread's run", .create = create_run, .end = end_run, .user = releases};
  return gcap_affine_create(&ops, out_runs);
}

static void enter(gcap_ort_run_t* run, gcap_ort_session_ep_t* ep) {
  run->open = true;
  run->num_computed = 0;
  run->ep = ep;
  pthread_mutex_lock(&ep->open_mutex);
  run->next = ep->open_runs;
  ep->open_runs = run;
  pthread_mutex_unlock(&ep->open_mutex);
}

static void leave(gcap_ort_run_t* run) {
  run->open = false;
  pthread_mutex_lock(&run->ep->open_mutex);
  gcap_ort_run_t** link = &run->ep->open_runs;
  while (*link != run) link = &(*link)->next;
  *link = run->next;
  pthread_mutex_unlock(&run->ep->open_mutex);
}

gcap_ort_run_t* gcap_ort_run_on(gcap_ort_session_ep_t* ep, const void* stream_handle) {
  pthread_mutex_lock(&ep->open_mutex);
  gcap_ort_run_t* run = ep->open_runs;
  while (run != NULL && (const void*)gcap_stream_handle(run->resources.stream) != stream_handle) run = run->next;
  pthread_mutex_unlock(&ep->open_mutex);
  return run;
}

gcap_ort_run_t* gcap_ort_run_current(const gcap_ort_session_ep_t* ep) {
  gcap_ort_run_t* run = gcap_affine_find(ep->runs);
  return run != NULL && run->open ? run : NULL;
}

// A session may be run inside of another one's run: the later one counts.
gcap_ort_run_t* gcap_ort_run_of_thread(gcap_ort_factory_t* factory) {
  gcap_ort_run_t* last = NULL;
  pthread_mutex_lock(&factory->mutex);
  for (const gcap_ort_session_ep_t* ep = factory->eps; ep != NULL; ep = ep->next) {
    gcap_ort_run_t* run = gcap_ort_run_current(ep);
    if (run != NULL && (last == NULL || run->start_ns > last->start_ns)) last = run;
  }
  pthread_mutex_unlock(&factory->mutex);
  return last;
}

void gcap_ort_run_note_failure(gcap_ort_run_t* run, gcap_status_t status) {
  if (run != NULL && run->failure == NULL) run->failure = gcap_status_clone(status);
}

static bool captures_graphs(const gcap_ort_session_ep_t* ep) {
  gcap_runtime_info_t info;
  gcap_runtime_get_info(ep->runtime, &info);
  return info.is_graph_capture_enabled;
}

gcap_status_t gcap_ort_run_check_host_copy(const gcap_ort_run_t* run) {
  if (run == NULL || run->graph_id == GCAP_GRAPH_ID_NONE || !captures_graphs(run->ep)) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "graph id %d: an input or output of the run is in host memory, which a replay would neither read "
                     "nor write: bind inputs and outputs to device memory (IO binding), or run with gpu_graph_id -1",
                     run->graph_id);
}

// --- Begin and end of a run -----------------------------------------------------------------------------------------

static gcap_status_t parse_graph_id(const char* text, int* out_id) {
  *out_id = 0;
  if (text == NULL) return NULL;
  char* end = NULL;
  errno = 0;
  const long id = strtol(text, &end, 10);
  *out_id = (int)id;
  if (end != text && *end == 0 && errno == 0 && id == (long)*out_id) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "gpu_graph_id is '%s'; expected a whole number, -1 for no graph", text);
}

static gcap_status_t open_run(gcap_ort_session_ep_t* ep, gcap_ort_run_t* run) {
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(ep->runtime, &run->resources));
  GCAP_RETURN_IF_ERROR(gcap_ort_stream_prepare(run->resources.stream));
  GCAP_RETURN_IF_ERROR(gcap_device_push(ep->device->id, &run->previous_device));
  gcap_run_init(&run->asked);
  run->asked.id = run->graph_id;
  gcap_status_t status = gcap_runtime_begin_run(ep->runtime, &run->asked, /*out_kind=*/NULL, /*out_addresses=*/NULL);
  run->captures = status == NULL && gcap_thread_is_capturing();
  if (status == NULL) return NULL;
  return gcap_status_join(status, gcap_device_pop(ep->device->id, run->previous_device));
}

// Closes the run with what became of it, and gives what gcap_runtime_end_run says.
static gcap_status_t close_run(gcap_ort_session_ep_t* ep, gcap_ort_run_t* run, gcap_status_t run_status,
                               bool synchronize) {
  leave(run);
  run->asked.synchronize = synchronize;
  gcap_status_t status = gcap_runtime_end_run(ep->runtime, &run->asked, run_status);
  give_up_holds(run, /*is_done=*/synchronize && status == NULL);
  status = gcap_status_join(status, gcap_device_pop(ep->device->id, run->previous_device));
  gcap_ort_turn_end(ep);
  return status;
}

static void abandon(gcap_ort_run_t* run) {
  gcap_status_t status = run->failure;
  run->failure = NULL;
  if (status == NULL) status = GCAP_STATUS(GCAP_FAILED_PRECONDITION, "ONNX Runtime did not end a run that it began");
  status = close_run(run->ep, run, status, /*synchronize=*/false);
  gcap_log(GCAP_LOG_WARNING, "%s", gcap_status_message(status));
  gcap_status_ignore(status);  // whoever began the run has had its failure
}

void gcap_ort_run_abandon(gcap_ort_session_ep_t* ep) {
  gcap_ort_run_t* run = gcap_ort_run_current(ep);
  if (run != NULL) abandon(run);
}

static gcap_status_t start(gcap_ort_session_ep_t* ep, const gcap_ort_run_options_t* options) {
  gcap_ort_run_abandon(ep);
  gcap_ort_run_t* run = NULL;
  GCAP_RETURN_IF_ERROR(gcap_affine_get(ep->runs, (void**)&run));
  const char* id = ep->factory->host.api->GetRunConfigEntry(options, "gpu_graph_id");
  GCAP_RETURN_IF_ERROR(parse_graph_id(id, &run->graph_id));
  run->settled = false;
  run->start_ns = gcap_ort_profiler_now();
  GCAP_RETURN_IF_ERROR(gcap_ort_turn_begin_run(ep));
  gcap_status_t status = open_run(ep, run);
  if (status != NULL) {
    gcap_ort_turn_end(ep);
    return status;
  }
  enter(run, ep);
  return NULL;
}

gcap_ort_status_t* gcap_ort_on_run_start(gcap_ort_ep_t* self, const gcap_ort_run_options_t* options) {
  return give(ep_of(self), start(ep_of(self), options));
}

// Whether the application's call has what it wants, or the runtime shall run the model once more.
static bool is_settled(gcap_ort_session_ep_t* ep, gcap_ort_run_t* run) {
  if (run->graph_id == GCAP_GRAPH_ID_NONE || gcap_runtime_is_captured(ep->runtime, run->graph_id)) {
    run->attempts = 0;
    return false;  // the runtime asks no more
  }
  gcap_status_t why = gcap_runtime_explain(ep->runtime, run->graph_id, GCAP_GRAPH_WHY_CAPTURE_FAILED);
  const bool failed_before = why != NULL;
  gcap_status_free(why);
  const bool settled = failed_before || ++run->attempts >= MOST_ATTEMPTS;
  if (settled) run->attempts = 0;
  return settled;
}

// The failure of a run: a kernel's or a copy's; or that the runtime ended a captured run early, which it does not tell.
static gcap_status_t take_failure(const gcap_ort_session_ep_t* ep, gcap_ort_run_t* run) {
  gcap_status_t failure = run->failure;
  run->failure = NULL;
  const int num_kernels = atomic_load(&ep->num_kernels);
  if (failure != NULL || !run->captures || run->num_computed == num_kernels) return failure;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "ONNX Runtime ended the run after %d of %d nodes", run->num_computed,
                     num_kernels);
}

static gcap_status_t finish(gcap_ort_session_ep_t* ep, bool synchronize) {
  gcap_ort_run_t* run = gcap_ort_run_current(ep);
  if (run == NULL) return NULL;
  gcap_status_t failure = take_failure(ep, run);
  const bool failed = failure != NULL;
  gcap_status_t status = close_run(ep, run, failure, synchronize);
  if (ep->options.graph.rerun_failed_capture && gcap_run_take_failed_capture(run->graph_id, status)) return NULL;
  if (status == NULL && run->captures) gcap_ort_profiler_note(ep, "capture of", run->graph_id, run->start_ns);
  if (status == NULL) run->settled = is_settled(ep, run);
  if (!failed || gcap_status_code(status) == GCAP_CAPTURE_INVALIDATED) return status;
  gcap_status_ignore(status);  // the kernel gave it to the runtime
  return NULL;
}

gcap_ort_status_t* gcap_ort_on_run_end(gcap_ort_ep_t* self, const gcap_ort_run_options_t* options, bool synchronize) {
  (void)options;
  return give(ep_of(self), finish(ep_of(self), synchronize));
}

// Waits for the calling thread's stream, never for the device.
gcap_ort_status_t* gcap_ort_sync(gcap_ort_ep_t* self) {
  gcap_ort_turn_begin(ep_of(self));
  gcap_status_t status = gcap_runtime_synchronize(ep_of(self)->runtime);
  gcap_ort_turn_end(ep_of(self));
  return give(ep_of(self), status);
}

// --- Graphs ---------------------------------------------------------------------------------------------------------

bool gcap_ort_is_graph_capture_enabled(const gcap_ort_ep_t* self) {
  const gcap_ort_session_ep_t* ep = ep_of(self);
  const gcap_ort_run_t* run = gcap_affine_find(ep->runs);
  return captures_graphs(ep) && (run == NULL || !run->settled);
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
