// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs and captures. ONNX Runtime runs a model again and again in one call of the application, until
// IsGraphCaptured, or 8 times. Two of its questions are answered with that in mind:
//
// - A kernel that fails in a capture does not fail the run: a capture has executed nothing, so the run ends without a
//   graph and the next one, eager, tells.
// - IsGraphCaptureEnabled says no when an eager run has given the results and the next run would not give a graph: when
//   the last capture failed, or the warm-up is longer than what the runtime has patience for; and when the application
//   wants one run a call.
//
// A run with a graph id is refused if a kernel reads on the host what a run brings (capability.c).
//
// Locking: `open_mutex` of an EP, a leaf, over the list of its open runs. The factory's `mutex` over the list of EPs,
// while each is asked for the calling thread's run. A run is its thread's: with ORT_PARALLEL, other threads compute its
// kernels while that thread waits, one after the other.

#include "ort/run.h"

#include <stdlib.h>

#include "gcap/capture.h"
#include "gcap/log.h"
#include "lib/graph/inner.h"
#include "lib/internal/cuda_guard.h"
#include "ort/holds.h"
#include "ort/profiler.h"
#include "ort/run_options.h"
#include "ort/stream.h"
#include "ort/turn.h"

// ONNX Runtime fails a call whose 8th run leaves no graph.
enum { MOST_ATTEMPTS = 7 };

static gcap_ort_session_ep_t* ep_of(const gcap_ort_ep_t* self) { return (gcap_ort_session_ep_t*)self; }

static gcap_ort_status_t* give(const gcap_ort_session_ep_t* ep, gcap_status_t status) {
  return gcap_ort_give(&ep->factory->host, status);
}

static void leave(gcap_ort_run_t* run);
static void abandon(gcap_ort_run_t* run);

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
  gcap_ort_holds_forget(run, by_thread_exit);
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

gcap_ort_run_t* gcap_ort_run_current(const gcap_ort_session_ep_t* ep) {
  gcap_ort_run_t* run = gcap_affine_find(ep->runs);
  return run != NULL && run->open ? run : NULL;
}

static gcap_ort_run_t* find_on(gcap_ort_session_ep_t* ep, const void* stream_handle) {
  pthread_mutex_lock(&ep->open_mutex);
  gcap_ort_run_t* run = ep->open_runs;
  while (run != NULL && (const void*)gcap_stream_handle(run->resources.stream) != stream_handle) run = run->next;
  pthread_mutex_unlock(&ep->open_mutex);
  return run;
}

gcap_status_t gcap_ort_run_of_kernel(gcap_ort_session_ep_t* ep, const gcap_ort_kernel_context_t* context,
                                     gcap_ort_run_t** out_run) {
  *out_run = gcap_ort_run_current(ep);
  if (*out_run != NULL) return NULL;
  void* handle = NULL;
  GCAP_RETURN_IF_ERROR(GCAP_ORT_CALL(&ep->factory->host, KernelContext_GetGPUComputeStream(context, &handle)));
  *out_run = find_on(ep, handle);
  return NULL;
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

bool gcap_ort_run_reruns(const gcap_ort_run_t* run) {
  return run->captures && run->ep->options.graph.rerun_failed_capture && run->options.rerun_failed_capture;
}

void gcap_ort_run_note_failure(gcap_ort_run_t* run, gcap_status_t status) {
  if (run != NULL && run->failure == NULL) run->failure = gcap_status_clone(status);
}

gcap_status_t gcap_ort_run_check_host_copy(const gcap_ort_run_t* run) {
  if (run == NULL || run->options.graph_id == GCAP_GRAPH_ID_NONE || !gcap_ort_captures_graphs(run->ep)) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "graph id %d: an input or output of the run is in host memory, which a replay would neither read "
                     "nor write: bind inputs and outputs to device memory (IO binding), or run with gpu_graph_id -1",
                     run->options.graph_id);
}

// --- Begin and end of a run -----------------------------------------------------------------------------------------

static gcap_status_t open_run(gcap_ort_session_ep_t* ep, gcap_ort_run_t* run) {
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(ep->runtime, &run->resources));
  GCAP_RETURN_IF_ERROR(gcap_ort_stream_prepare(run->resources.stream));
  GCAP_RETURN_IF_ERROR(gcap_device_push(ep->device->id, &run->previous_device));
  gcap_run_init(&run->asked);
  run->asked.id = run->options.graph_id;
  run->asked.pinned = run->options.pinned;
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
  gcap_ort_holds_end_run(run, /*is_done=*/synchronize && status == NULL);
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

// ONNX Runtime asks for a replay without naming the run's tensors, so nobody could compare what they hold.
static gcap_status_t check_content(const gcap_ort_session_ep_t* ep, int graph_id) {
  if (graph_id == GCAP_GRAPH_ID_NONE || ep->content.reader[0] == 0) return NULL;
  const char* value = ep->content.value;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "graph id %d: %s reads '%s' on the host, where a replay would use what '%s' held in the captured "
                     "run: make '%s' a constant of the model, or run with gpu_graph_id -1",
                     graph_id, ep->content.reader, value, value, value);
}

static gcap_status_t start(gcap_ort_session_ep_t* ep, const gcap_ort_run_options_t* options) {
  gcap_ort_run_abandon(ep);
  gcap_ort_run_t* run = NULL;
  GCAP_RETURN_IF_ERROR(gcap_affine_get(ep->runs, (void**)&run));
  const bool captures = gcap_ort_captures_graphs(ep);
  GCAP_RETURN_IF_ERROR(gcap_ort_run_options_read(&ep->factory->host, options, captures, &run->options));
  GCAP_RETURN_IF_ERROR(check_content(ep, run->options.graph_id));
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
  if (run->options.graph_id == GCAP_GRAPH_ID_NONE || gcap_runtime_is_captured(ep->runtime, run->options.graph_id)) {
    run->attempts = 0;
    return false;  // the runtime asks no more
  }
  gcap_status_t why = gcap_runtime_explain(ep->runtime, run->options.graph_id, GCAP_GRAPH_WHY_CAPTURE_FAILED);
  const bool failed_before = why != NULL;
  gcap_status_free(why);
  const bool settled = failed_before || !run->options.capture_in_run || ++run->attempts >= MOST_ATTEMPTS;
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
  if (gcap_ort_run_reruns(run) && gcap_run_take_failed_capture(run->options.graph_id, status)) return NULL;
  if (status == NULL && run->captures) gcap_ort_profiler_note(ep, "capture of", run->options.graph_id, run->start_ns);
  if (status == NULL) run->settled = is_settled(ep, run);
  if (!failed || gcap_status_code(status) == GCAP_CAPTURE_INVALIDATED) return status;
  gcap_status_ignore(status);  // the kernel gave it to the runtime
  return NULL;
}

gcap_ort_status_t* gcap_ort_on_run_end(gcap_ort_ep_t* self, const gcap_ort_run_options_t* options, bool synchronize) {
  (void)options;
  return give(ep_of(self), finish(ep_of(self), synchronize));
}
