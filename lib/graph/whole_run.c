// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A run of a manager in one call: the engine's steps, on a plain stream.
//
// Locking: none. The manager is held from the first begin of a run on: neither the work, which may have ended its run
// against the rules, nor the log sink ends the manager.

#include <stdlib.h>

#include "lib/graph/begin.h"
#include "lib/graph/end.h"
#include "lib/graph/inner.h"
#include "lib/graph/manager.h"
#include "lib/graph/run.h"
#include "lib/internal/unwind.h"

typedef struct whole_run {
  gcap_graph_manager_t* manager;
  const gcap_run_t* run;  // in the library's layout
  void** addresses;       // [run->buffers->count + num_values]; NULL: without buffers
  bool is_held;
  bool is_verified;  // the work that is issued is waited for
} whole_run_t;

static gcap_status_t replay_step(void* self, gcap_run_result_t* result, bool* out_replayed) {
  const whole_run_t* whole = self;
  if (whole->run->capture_only) {
    const bool is_captured = gcap_graph_manager_has_graph(whole->manager, whole->run);
    *out_replayed = gcap_run_is_recorded(is_captured, gcap_graph_manager_id_of(whole->manager, whole->run), result);
    return NULL;
  }
  return gcap_graph_replay(whole->manager, whole->run, result, out_replayed);
}

// Ends the run of a work that did not return.
static void end_run_on_unwind(gcap_graph_manager_t** unfinished) {
  if (*unfinished == NULL) return;
  gcap_status_t left = GCAP_STATUS_OF_UNWINDING();
  gcap_status_ignore(gcap_graph_manager_end_run(*unfinished, NULL, left));  // the exception tells
}

static gcap_status_t call_work(const gcap_graph_manager_t* manager, const gcap_run_t* run,
                               const gcap_run_resources_t* resources) {
  GCAP_AT_SCOPE_END(gcap_graph_leave_work)
  gcap_graph_work_call_t call = {
      .frame = __builtin_frame_address(0), .manager = manager, .taps = run->taps, .num_taps = run->num_taps};
  gcap_graph_enter_work(&call);
  return run->work(run->user, resources);
}

static void hold(whole_run_t* whole) {
  if (!whole->is_held) gcap_graph_manager_hold(whole->manager);
  whole->is_held = true;
}

static gcap_status_t issue_step(void* self, int id, gcap_run_result_t* result, gcap_graph_run_kind_t* out_kind) {
  whole_run_t* whole = self;
  gcap_graph_manager_t* manager = whole->manager;
  hold(whole);
  gcap_run_t run = *whole->run;
  gcap_run_as_step(&run, id);
  run.verify = NULL;
  run.num_taps = 0;  // the work and the end of the whole have them
  run.synchronize |= whole->is_verified;
  gcap_run_result_init(result);
  GCAP_RETURN_IF_ERROR(gcap_graph_begin(manager, &run, out_kind, whole->addresses));
  GCAP_AT_SCOPE_END(end_run_on_unwind) gcap_graph_manager_t* unfinished = manager;
  gcap_run_resources_t resources = {.struct_size = sizeof(resources), .cuda_stream = run.stream};
  gcap_run_give_addresses(run.buffers, whole->addresses, &resources);
  gcap_status_t status = gcap_run_keep_addresses(*out_kind, &resources);
  if (status == NULL) status = call_work(manager, whole->run, &resources);
  unfinished = NULL;
  return gcap_graph_end(manager, run.synchronize, status, result);
}

static gcap_status_t work_step(void* self, gcap_run_result_t* result) {
  whole_run_t* whole = self;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  whole->is_verified = true;
  return issue_step(whole, GCAP_GRAPH_ID_NONE, result, &kind);
}

static gcap_status_t record_step(void* self, void** addresses, struct gcap_graph_recording* recording) {
  const whole_run_t* whole = self;
  gcap_run_resources_t resources = {.struct_size = sizeof(resources), .cuda_stream = whole->run->stream};
  gcap_run_give_addresses(whole->run->buffers, addresses, &resources);
  return gcap_graph_record(whole->run, &resources, &whole->manager->options.capture, recording);
}

static void end(whole_run_t* whole) {
  if (whole->is_held) gcap_graph_manager_let_go(whole->manager);
  free(whole->addresses);
}

static gcap_status_t run_known(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_run_result_t* result) {
  // The work may not return.
  GCAP_AT_SCOPE_END(end) whole_run_t whole = {.manager = manager, .run = run};
  if (run->buffers != NULL) GCAP_RETURN_IF_ERROR(gcap_graph_buffers_copy_addresses(run->buffers, &whole.addresses));
  const bool may_verify = run->verify != NULL && !run->capture_only;
  if (may_verify) hold(&whole);
  const gcap_run_steps_t steps = {.self = &whole,
                                  .replay = replay_step,
                                  .issue = issue_step,
                                  .id = gcap_run_step_id(run),
                                  .captures_only = run->capture_only,
                                  .reruns_failed_capture = manager->options.rerun_failed_capture && !run->capture_only,
                                  .verified = may_verify ? run : NULL,
                                  .manager = manager,
                                  .work = work_step,
                                  .record = record_step};
  gcap_status_t status = gcap_run_by_steps(&steps, result);
  if (status != NULL || whole.is_verified) return status;  // a verification has given the taps of its work
  return gcap_graph_give_taps(manager, run, result, run->stream);
}

gcap_status_t gcap_graph_manager_run(gcap_graph_manager_t* manager, const gcap_run_t* run) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_NULL(run);
  gcap_run_copy_t copy;
  GCAP_RETURN_IF_ERROR(gcap_run_read(run, &copy, &run));
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  GCAP_RETURN_IF_NULL(run->work);
  if (run->stream == GCAP_RUN_OWN_STREAM) return gcap_graph_check_id(run);
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_status_t status = run_known(manager, run, &result);
  gcap_run_give_result(run, &result);
  return status;
}
