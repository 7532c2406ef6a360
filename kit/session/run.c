// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// One run: it is begun on each EP that is used, its steps are issued, and it is ended on each EP with its outcome,
// whatever happened. The main EP is told the outcome; the others ran eagerly, and have nothing to undo.
//
// What the device may still read after the run's end must not end before: the run's memory on the host, and the plan of
// a model whose shapes come and go. Both are counted, and each stream of the run has a part until it has passed the
// run. A graph has a part in its id, so that the id means the same shapes as long as the graph exists.
//
// Locking: none; in a turn of the EPs.

#include "kit/session/run.h"

#include <stdlib.h>
#include <string.h>

#include "gcap/capture.h"
#include "kit/session/issue.h"
#include "kit/session/run_holes.h"
#include "lib/graph/inner.h"
#include "lib/internal/unwind.h"

// --- State ----------------------------------------------------------------------------------------------------------

static gcap_status_t allocate_state(gcap_run_state_t* run) {
  const gcap_session_parts_t* parts = run->parts;
  const size_t num_slots = (size_t)parts->program.num_slots;
  const size_t num_node_values = (size_t)parts->model.max_node_values;
  run->resources = calloc(parts->num_eps, sizeof(*run->resources));
  run->tensors = malloc((num_slots + 2 * num_node_values) * sizeof(gcap_tensor_t));
  const bool needs_host = run->holes == NULL && run->plan->host_bytes > 0;
  if (needs_host) run->host = malloc(GCAP_HOST_MEMORY_OFFSET + run->plan->host_bytes);
  if (needs_host && run->host != NULL) atomic_init(&run->host->parts, 1);
  if (run->resources == NULL || run->tensors == NULL || (needs_host && run->host == NULL)) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a run");
  }
  run->node_inputs = run->tensors + num_slots;
  run->node_outputs = run->node_inputs + num_node_values;
  if (run->holes == NULL) return NULL;
  run->host = run->holes->hold;
  gcap_hold_take(run->host);
  return NULL;
}

static gcap_status_t init_state(gcap_run_state_t* run, const gcap_tensor_t* inputs, const gcap_tensor_t* outputs) {
  const gcap_session_parts_t* parts = run->parts;
  const gcap_model_t* model = &run->plan->model;
  GCAP_RETURN_IF_ERROR(allocate_state(run));
  memcpy(run->tensors, run->plan->tensors, (size_t)parts->program.num_slots * sizeof(gcap_tensor_t));
  for (int i = 0; i < model->num_inputs; ++i) run->tensors[model->inputs[i]].data = inputs[i].data;
  for (int i = 0; i < model->num_outputs; ++i) run->tensors[model->outputs[i]].data = outputs[i].data;
  for (int i = 0; i < parts->num_used; ++i) {
    const int ep = parts->used[i];
    GCAP_RETURN_IF_ERROR(gcap_session_get_resources(parts, ep, &run->resources[ep]));
  }
  return NULL;
}

static void free_state(gcap_run_state_t* run) {
  free(run->resources);
  free(run->tensors);
  if (run->host != NULL) gcap_hold_let_go(run->host);
}

// --- Begin and end on all EPs ---------------------------------------------------------------------------------------

// The run as an EP is told of it.
static gcap_run_t run_of(const gcap_run_state_t* run, int ep) {
  gcap_run_t told;
  gcap_run_init(&told);
  if (ep == run->parts->main_ep) told = *run->asked;
  told.stream = GCAP_RUN_OWN_STREAM;  // the session orders its caller's stream
  told.synchronize = run->synchronize;
  told.num_taps = 0;  // kernels find them by their thread
  return told;
}

// An EP on the host has no run to begin.
static gcap_status_t begin_one(const gcap_run_state_t* run, int ep, gcap_run_moving_t* moving) {
  gcap_runtime_t* runtime = run->parts->ep_facts[ep].runtime;
  if (runtime == NULL) return NULL;
  const gcap_run_t told = run_of(run, ep);
  const bool moves = moving != NULL && ep == run->parts->main_ep;
  return gcap_runtime_begin_run(runtime, &told, moves ? &moving->kind : NULL, moves ? moving->addresses : NULL);
}

static gcap_status_t begin_all(gcap_run_state_t* run, gcap_run_moving_t* moving) {
  const gcap_session_parts_t* parts = run->parts;
  for (int i = 0; i < parts->num_used; ++i) {
    const int ep = parts->used[i];
    GCAP_RETURN_IF_ERROR(gcap_device_visit_enter(&run->devices, parts, ep));
    GCAP_RETURN_IF_ERROR(begin_one(run, ep, moving));
    run->num_begun = i + 1;
  }
  return NULL;
}

static gcap_status_t end_one(gcap_run_state_t* run, int ep, gcap_status_t run_status) {
  gcap_runtime_t* runtime = run->parts->ep_facts[ep].runtime;
  if (runtime == NULL) return run_status;
  gcap_status_t status = gcap_device_visit_enter(&run->devices, run->parts, ep);
  const gcap_run_t told = run_of(run, ep);
  return gcap_status_join(gcap_runtime_end_run(runtime, &told, run_status), status);
}

// Ends what was begun, the main EP's run first, whose outcome comes first. `status` is the run's. The end of a run that
// is captured calls the functions of its holes, which may not return: what is not ended then, end_state ends.
static gcap_status_t end_all(gcap_run_state_t* run, gcap_status_t status) {
  const gcap_session_parts_t* parts = run->parts;
  for (int i = 0; i < run->num_begun && !run->is_main_ended; ++i) {
    if (parts->used[i] != parts->main_ep) continue;
    run->is_main_ended = true;
    status = end_one(run, parts->main_ep, status);
  }
  while (run->num_begun > 0) {
    const int ep = parts->used[--run->num_begun];
    if (ep != parts->main_ep) status = gcap_status_join(status, end_one(run, ep, NULL));
  }
  return gcap_status_join(status, gcap_device_visit_leave(&run->devices));
}

static void end_state(gcap_run_state_t* run) {
  run->synchronize = false;
  if (run->num_begun > 0) gcap_status_ignore(end_all(run, GCAP_STATUS_OF_UNWINDING()));  // the exception tells
  free_state(run);
}

// --- What outlives the run ------------------------------------------------------------------------------------------

static void keep_what_is_read(gcap_run_state_t* run) {
  const gcap_session_parts_t* parts = run->parts;
  for (int i = 0; i < parts->num_used; ++i) {
    const int ep = parts->used[i];
    gcap_runtime_t* runtime = parts->ep_facts[ep].runtime;
    if (runtime == NULL) continue;
    gcap_stream_t* stream = run->resources[ep].stream;
    if (run->host != NULL) gcap_hold_give_to_stream(run->host, runtime, stream);
    if (parts->model.is_open) gcap_hold_give_to_stream(run->plan->hold, runtime, stream);
  }
}

// In a run that was begun: if it is captured, the graph gets a part in its id, and in what the run holds.
static gcap_status_t retain_all(const gcap_shapes_use_t* use, gcap_capture_t* capture) {
  if (capture == NULL) return NULL;
  if (use->id_hold != NULL) GCAP_RETURN_IF_ERROR(gcap_hold_give_to_capture(use->id_hold, capture));
  for (size_t i = 0; i < use->held.count; ++i) {
    GCAP_RETURN_IF_ERROR(gcap_hold_give_to_capture(use->held.items[i], capture));
  }
  return NULL;
}

// --- The run --------------------------------------------------------------------------------------------------------

static gcap_status_t issue(gcap_run_state_t* run, const gcap_shapes_use_t* use, gcap_capture_t* before,
                           gcap_run_moving_t* moving) {
  gcap_capture_t* capture = gcap_capture_current();
  GCAP_RETURN_IF_ERROR(retain_all(use, capture != before ? capture : NULL));
  if (run->holes != NULL) GCAP_RETURN_IF_ERROR(gcap_run_holes_enter(run->holes, moving, capture));
  if (moving == NULL) return gcap_run_issue_steps(run);
  gcap_status_t status = gcap_run_moving_enter(moving, run);
  if (status == NULL) status = gcap_run_issue_steps(run);
  return gcap_run_moving_leave(moving, run, status);
}

gcap_status_t gcap_session_run_once(const gcap_session_parts_t* parts, const gcap_shapes_use_t* use,
                                    const gcap_run_t* asked, gcap_run_moving_t* moving, const gcap_tensor_t* inputs,
                                    const gcap_tensor_t* outputs) {
  GCAP_AT_SCOPE_END(end_state)
  gcap_run_state_t run = {.parts = parts, .plan = use->plan, .asked = asked, .synchronize = asked->synchronize};
  run.holes = use->holes;
  GCAP_RETURN_IF_ERROR(init_state(&run, inputs, outputs));
  gcap_capture_t* before = gcap_capture_current();
  gcap_status_t status = begin_all(&run, moving);
  GCAP_AT_SCOPE_END(gcap_graph_leave_work)
  gcap_graph_work_call_t call = {.taps = asked->taps, .num_taps = asked->num_taps};
  const gcap_graph_work_call_t* outer = gcap_graph_innermost_work();
  call.frame = outer != NULL ? outer->frame : NULL;
  gcap_graph_enter_work(&call);
  if (status == NULL) status = issue(&run, use, before, moving);
  status = end_all(&run, status);
  if (status != NULL || !asked->synchronize) keep_what_is_read(&run);
  return status;
}
