// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A run of a runtime in one call: the engine's steps, by the public functions, so of any runtime.
//
// Locking: the turns of a runtime whose threads share one stream, over the whole run.

#include <stdlib.h>

#include "lib/graph/inner.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/unwind.h"
#include "lib/runtime/inner.h"
#include "lib/runtime/runtime_internal.h"

typedef struct whole_run {
  gcap_runtime_t* runtime;
  gcap_run_t run;  // in the library's layout
  gcap_run_resources_t resources;
  void** addresses;            // [buffers->count]; NULL: without buffers
  gcap_graph_manager_t* held;  // of gcap's own: used after the work and the log sink, so neither may destroy it
  bool is_inside;              // the same of the runtime
} whole_run_t;

// `runtime`: its run's work is being called; NULL: the work returned.
static void end_run_on_unwind(gcap_runtime_t** runtime) {
  if (*runtime == NULL) return;
  gcap_status_ignore(gcap_runtime_end_run(*runtime, /*run=*/NULL, GCAP_STATUS_OF_UNWINDING()));  // the exception tells
}

static gcap_status_t issue(gcap_runtime_t* runtime, const gcap_run_t* run, const gcap_run_resources_t* resources) {
  GCAP_AT_SCOPE_END(end_run_on_unwind) gcap_runtime_t* unfinished = runtime;
  GCAP_AT_SCOPE_END(gcap_graph_leave_work)
  gcap_graph_work_call_t call = {.frame = __builtin_frame_address(0),
                                 .manager = gcap_runtime_own_graphs(runtime),
                                 .taps = run->taps,
                                 .num_taps = run->num_taps};
  gcap_graph_enter_work(&call);
  gcap_status_t status = run->work(run->user, resources);
  unfinished = NULL;
  return status;
}

gcap_status_t gcap_runtime_run_once(gcap_runtime_t* runtime, const gcap_run_t* run,
                                    const gcap_run_resources_t* resources, gcap_graph_run_kind_t* out_kind) {
  const int device_id = gcap_stream_device(resources->stream);
  // The work may not return, nor the function of a guard or of a hole.
  GCAP_AT_SCOPE_END(gcap_device_give_back_on_unwind) gcap_lent_device_t lent = {.id = -1};
  GCAP_RETURN_IF_ERROR(gcap_device_lend(device_id, &lent));
  gcap_run_t begun = *run;
  begun.num_taps = 0;  // the work has them
  gcap_status_t status = gcap_runtime_begin_run(runtime, &begun, out_kind, (void**)resources->addresses);
  if (status == NULL) {
    gcap_run_resources_t kept = *resources;
    status = gcap_run_keep_addresses(*out_kind, &kept);
    if (status == NULL) status = issue(runtime, run, &kept);
    status = gcap_runtime_end_run(runtime, &begun, status);
  }
  return gcap_status_join(status, gcap_device_give_back(&lent));
}

// --- The steps ------------------------------------------------------------------------------------------------------

static gcap_status_t replay_step(void* self, gcap_run_result_t* result, bool* out_replayed) {
  whole_run_t* whole = self;
  if (whole->run.capture_only) {
    const bool is_captured = gcap_runtime_has_graph(whole->runtime, &whole->run);
    *out_replayed = gcap_run_is_recorded(is_captured, gcap_runtime_id_of(whole->runtime, &whole->run), result);
    return NULL;
  }
  if (whole->run.result != NULL || whole->run.num_taps != 0) whole->run.result = result;  // else: the shorter way
  gcap_status_t status = gcap_runtime_replay(whole->runtime, &whole->run, out_replayed);
  if (*out_replayed) result->was_issued = true;
  if (*out_replayed && status == NULL) result->outcome = GCAP_RUN_REPLAYED;
  return status;
}

// Before the first run that is begun.
static gcap_status_t get_resources(whole_run_t* whole) {
  if (whole->resources.stream != NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(whole->runtime, &whole->resources));
  if (whole->resources.stream == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "get_resources of the runtime's table left `stream` NULL");
  }
  gcap_run_give_addresses(whole->run.buffers, whole->addresses, &whole->resources);
  atomic_fetch_add(&whole->runtime->num_inside, 1);
  whole->is_inside = true;
  if (whole->runtime->own == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_runtime_graphs(whole->runtime, &whole->held));
  gcap_graph_manager_hold(whole->held);
  return NULL;
}

// The result of a run whose runtime's table wrote none: what the run's kind and its status say.
static void complete(gcap_run_result_t* result, gcap_graph_run_kind_t kind, gcap_status_t status) {
  if (kind == GCAP_GRAPH_RUN_REHEARSAL) return;
  const gcap_run_outcome_t done = kind == GCAP_GRAPH_RUN_CAPTURE ? GCAP_RUN_CAPTURED : GCAP_RUN_EAGER;
  if (status == NULL) result->outcome = done;
  result->was_issued = gcap_status_code(status) != GCAP_CAPTURE_INVALIDATED;
}

static gcap_status_t issue_step(void* self, int id, gcap_run_result_t* result, gcap_graph_run_kind_t* out_kind) {
  whole_run_t* whole = self;
  gcap_run_result_init(result);
  GCAP_RETURN_IF_ERROR(get_resources(whole));
  gcap_run_t run = whole->run;
  gcap_run_as_step(&run, id);
  run.result = result;
  gcap_status_t status = gcap_runtime_run_once(whole->runtime, &run, &whole->resources, out_kind);
  if (whole->runtime->own == NULL && result->outcome == GCAP_RUN_NOT_DONE) complete(result, *out_kind, status);
  return status;
}

// Work goes to the thread's stream. Whoever calls this step waits around it.
static gcap_status_t work_step(void* self, gcap_run_result_t* result) {
  whole_run_t* whole = self;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  whole->run.stream = GCAP_RUN_OWN_STREAM;
  whole->run.synchronize = true;
  return issue_step(whole, GCAP_GRAPH_ID_NONE, result, &kind);
}

// The run in the scope that records it: its buffers are where the work is told, and do not move.
typedef struct recorded_run {
  gcap_runtime_t* runtime;
  gcap_run_t run;
  gcap_run_resources_t resources;
} recorded_run_t;

static gcap_status_t run_in_scope(void* user) {
  const recorded_run_t* recorded = user;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  return gcap_runtime_run_once(recorded->runtime, &recorded->run, &recorded->resources, &kind);
}

static gcap_status_t record_step(void* self, void** addresses, struct gcap_graph_recording* recording) {
  const whole_run_t* whole = self;
  recorded_run_t recorded = {whole->runtime, whole->run, whole->resources};
  gcap_run_give_addresses(whole->run.buffers, addresses, &recorded.resources);
  gcap_run_as_step(&recorded.run, GCAP_GRAPH_ID_NONE);
  recorded.run.buffers = NULL;
  recorded.run.synchronize = false;
  recorded.run.result = NULL;
  const int id = gcap_runtime_id_of(whole->runtime, &whole->run);
  return gcap_runtime_record(whole->runtime, id, run_in_scope, &recorded, recording);
}

// Has a run compare its replays. Another runtime than gcap's own has no graph that could be looked at.
static gcap_status_t verify(whole_run_t* whole, const gcap_run_t* run, gcap_run_steps_t* steps) {
  whole->run.verify = NULL;  // the steps have it
  if (run->verify == NULL || run->capture_only) return NULL;
  if (whole->runtime->own == NULL) {
    return GCAP_STATUS(GCAP_UNIMPLEMENTED, "the run has `verify`, and the runtime is not gcap's own");
  }
  GCAP_RETURN_IF_ERROR(get_resources(whole));
  steps->verified = run;
  steps->manager = whole->held;
  steps->work = work_step;
  steps->record = record_step;
  return NULL;
}

// A replay has read them. Before the work the resources were asked for.
static gcap_status_t give_taps(const whole_run_t* whole, const gcap_run_t* run, const gcap_run_result_t* result) {
  if (run->num_taps == 0 || result->outcome == GCAP_RUN_REPLAYED || whole->held == NULL) return NULL;
  const bool is_own = run->stream == GCAP_RUN_OWN_STREAM;
  const cudaStream_t stream = is_own ? gcap_stream_handle(whole->resources.stream) : run->stream;
  return gcap_graph_give_taps(whole->held, run, result, stream);
}

// --- The whole ------------------------------------------------------------------------------------------------------

gcap_runtime_t* gcap_runtime_begin_turn(gcap_runtime_t* runtime) {
  if (runtime->supports_concurrent_runs) return NULL;
  pthread_mutex_lock(&runtime->turns);
  return runtime;
}

void gcap_runtime_end_turn(gcap_runtime_t** turn) {
  if (*turn != NULL) pthread_mutex_unlock(&(*turn)->turns);
}

static void end(whole_run_t* whole) {
  if (whole->held != NULL) gcap_graph_manager_let_go(whole->held);
  if (whole->is_inside) atomic_fetch_sub(&whole->runtime->num_inside, 1);
  free(whole->addresses);
}

static gcap_status_t run_in_turn(gcap_runtime_t* runtime, const gcap_run_t* run, gcap_run_result_t* result) {
  GCAP_AT_SCOPE_END(gcap_runtime_end_turn) gcap_runtime_t* turn = gcap_runtime_begin_turn(runtime);
  (void)turn;
  // The work may not return.
  GCAP_AT_SCOPE_END(end) whole_run_t whole = {.runtime = runtime, .run = *run};
  if (run->buffers != NULL) GCAP_RETURN_IF_ERROR(gcap_graph_buffers_copy_addresses(run->buffers, &whole.addresses));
  const bool reruns = runtime->own == NULL || runtime->own->options.graph.rerun_failed_capture;
  gcap_run_steps_t steps = {.self = &whole,
                            .replay = replay_step,
                            .issue = issue_step,
                            .id = gcap_run_step_id(run),
                            .captures_only = run->capture_only,
                            .reruns_failed_capture = reruns && !run->capture_only};
  GCAP_RETURN_IF_ERROR(verify(&whole, run, &steps));
  gcap_status_t status = gcap_run_by_steps(&steps, result);
  return status != NULL ? status : give_taps(&whole, run, result);
}

gcap_status_t gcap_runtime_run(gcap_runtime_t* runtime, const gcap_run_t* run) {
  GCAP_RETURN_IF_NULL(runtime);
  GCAP_RETURN_IF_NULL(run);
  gcap_run_copy_t copy;
  GCAP_RETURN_IF_ERROR(gcap_run_read(run, &copy, &run));
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  GCAP_RETURN_IF_NULL(run->work);
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_status_t status = run_in_turn(runtime, run, &result);
  gcap_run_give_result(run, &result);
  return status;
}
