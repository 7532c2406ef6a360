// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs of an IO binding: copies to staging memory, the run or runs, copies from staging memory. The copies are issued
// to the stream of the run, before and after its graph, so that a graph never has an address of the caller's host
// memory. On a thread that has a capture scope open they become nodes of the caller's graph: the stream is forked and
// joined for them as for the run.
//
// Locking: the turns of the EPs, over copies and runs.

#include "gcap/capture.h"
#include "kit/session/io_binding_internal.h"
#include "kit/session/run.h"
#include "kit/session/run_options.h"
#include "kit/session/user_stream.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/unwind.h"

static gcap_status_t with_name(gcap_status_t status, const gcap_io_binding_t* binding, int slot) {
  return gcap_status_annotate(status, gcap_status_code(status), "%s '%s'", gcap_io_binding_role(binding, slot),
                              gcap_io_binding_name(binding, slot));
}

// --- Checks ---------------------------------------------------------------------------------------------------------

static gcap_status_t check_bound(const gcap_session_t* session, const gcap_io_binding_t* binding) {
  if (binding->session != session) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the binding is of another session");
  }
  for (int i = 0; i < binding->num_slots; ++i) {
    if (binding->slots[i].is_bound) continue;
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s '%s' is not bound", gcap_io_binding_role(binding, i),
                       gcap_io_binding_name(binding, i));
  }
  return NULL;
}

// Pageable memory where a copy is not done on return, or is repeated.
static gcap_status_t check_pageable(const gcap_io_binding_t* binding, bool synchronize) {
  const bool in_capture = gcap_thread_is_capturing();
  for (int i = 0; i < binding->num_slots; ++i) {
    const gcap_io_slot_t* slot = &binding->slots[i];
    if (slot->staging == NULL || slot->memory.kind != GCAP_MEMORY_HOST) continue;
    if (in_capture) {
      return with_name(GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                                   "is in pageable host memory, at whose address each replay of the caller's graph "
                                   "would copy again: bind pinned or device memory"),
                       binding, i);
    }
    if (synchronize || gcap_io_binding_is_input(binding, i)) continue;
    return with_name(GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                                 "is in pageable host memory, and nobody could say when its data arrives after a run "
                                 "without synchronize: bind pinned or device memory"),
                     binding, i);
  }
  return NULL;
}

// --- Copies ---------------------------------------------------------------------------------------------------------

static gcap_status_t issue_copy(gcap_io_binding_t* binding, int i, gcap_stream_t* stream) {
  const gcap_session_parts_t* parts = &binding->session->parts;
  const gcap_io_slot_t* slot = &binding->slots[i];
  const int ep = slot->staging->ep;
  const gcap_memory_t own = gcap_session_memory_of(parts, ep);
  const bool is_input = gcap_io_binding_is_input(binding, i);
  const gcap_copy_t copy = {.src = is_input ? &slot->tensor : &binding->tensors[i],
                            .src_memory = is_input ? slot->memory : own,
                            .dst = is_input ? &binding->tensors[i] : &slot->tensor,
                            .dst_memory = is_input ? own : slot->memory,
                            .stream = stream};
  return gcap_runtime_copy_tensors(parts->ep_facts[ep].runtime, &copy, 1);
}

// The graph gets a part of the staging memory.
static gcap_status_t copy_in_capture(gcap_io_binding_t* binding, int i, gcap_stream_t* stream,
                                     gcap_capture_t* capture) {
  GCAP_RETURN_IF_ERROR(gcap_hold_give_to_capture(binding->slots[i].staging->hold, capture));
  const cudaStream_t handle = gcap_stream_handle(stream);
  if (handle == gcap_capture_stream(capture)) return issue_copy(binding, i, stream);
  GCAP_RETURN_IF_ERROR(gcap_capture_fork(capture, &handle, 1));
  gcap_status_t status = issue_copy(binding, i, stream);
  return gcap_status_join(status, gcap_capture_join(capture, &handle, 1));
}

// Copies what is staged of the slots [first, end). `capture`: the caller's, or NULL.
static gcap_status_t copy_slots(gcap_io_binding_t* binding, int first, int end, gcap_capture_t* capture) {
  const gcap_session_parts_t* parts = &binding->session->parts;
  gcap_device_visit_t devices = {0};
  gcap_status_t status = NULL;
  for (int i = first; i < end && status == NULL; ++i) {
    const gcap_staging_t* staging = binding->slots[i].staging;
    if (staging == NULL) continue;
    gcap_run_resources_t resources;
    status = gcap_session_get_resources(parts, staging->ep, &resources);
    if (status == NULL) status = gcap_device_visit_enter(&devices, parts, staging->ep);
    if (status != NULL) break;
    status = capture == NULL ? issue_copy(binding, i, resources.stream)
                             : copy_in_capture(binding, i, resources.stream, capture);
    status = with_name(status, binding, i);
  }
  return gcap_status_join(status, gcap_device_visit_leave(&devices));
}

// --- What outlives the run ------------------------------------------------------------------------------------------

// A part that is never let go keeps the memory until the session ends.
static void keep_until_passed(const gcap_io_binding_t* binding, int i) {
  const gcap_session_parts_t* parts = &binding->session->parts;
  const gcap_staging_t* staging = binding->slots[i].staging;
  gcap_run_resources_t resources;
  gcap_status_t status = gcap_session_get_resources(parts, staging->ep, &resources);
  gcap_hold_give_to_stream(staging->hold, parts->ep_facts[staging->ep].runtime,
                           status == NULL ? resources.stream : NULL);
  gcap_status_ignore(status);  // the run's own outcome stands
}

static gcap_status_t wait_for_eps(const gcap_session_parts_t* parts) {
  gcap_status_t status = NULL;
  for (int i = 0; i < parts->num_used; ++i) {
    status = gcap_status_join(status, gcap_session_synchronize(parts, parts->used[i]));
  }
  return status;
}

// --- Runs -----------------------------------------------------------------------------------------------------------

static gcap_status_t run_with(const gcap_io_binding_t* binding, const gcap_run_options_t* options,
                              gcap_run_holds_t held) {
  return gcap_session_run_held_in_turn(binding->session, options, binding->tensors,
                                       binding->tensors + binding->num_inputs, held);
}

static gcap_run_holds_t holds_of(gcap_io_binding_t* binding) {
  gcap_run_holds_t held = {.items = binding->holds};
  for (int i = 0; i < binding->num_slots; ++i) {
    if (binding->slots[i].staging != NULL) binding->holds[held.count++] = binding->slots[i].staging->hold;
  }
  return held;
}

// Copies and runs, which may not return.
typedef struct staged_run {
  gcap_io_binding_t* binding;
  bool is_done;  // no stream uses the staging memory any more, or a graph of the caller has it
} staged_run_t;

static void end_staged_run(staged_run_t* run) {
  for (int i = 0; i < run->binding->num_slots && !run->is_done; ++i) {
    if (run->binding->slots[i].staging != NULL) keep_until_passed(run->binding, i);
  }
}

// With copies around the runs, the wait is behind them. A user's stream is ordered around all of it; a replay that is
// launched there is ordered with the thread's stream, and so with the copies, by the graph manager.
static gcap_status_t run_staged(gcap_io_binding_t* binding, gcap_run_options_t options, gcap_run_holds_t held) {
  gcap_capture_t* capture = gcap_capture_current();  // not one that a kernel begins and does not end
  const bool in_capture = capture != NULL, waits = options.synchronize && !in_capture;
  options.synchronize = false;
  const cudaStream_t user = in_capture ? NULL : (cudaStream_t)options.user_stream;
  GCAP_AT_SCOPE_END(end_staged_run) staged_run_t run = {.binding = binding, .is_done = in_capture};
  gcap_status_t status = user != NULL ? gcap_session_run_after(&binding->session->parts, user) : NULL;
  if (status == NULL) status = copy_slots(binding, 0, binding->num_inputs, capture);
  if (status == NULL) status = run_with(binding, &options, held);
  if (status == NULL) status = copy_slots(binding, binding->num_inputs, binding->num_slots, capture);
  if (user != NULL) status = gcap_status_join(status, gcap_session_run_before(&binding->session->parts, user));
  // What the graph would lack fails it, unless a kernel has ended the scope.
  if (in_capture && gcap_capture_current() == capture) gcap_capture_fail(capture, status);
  if (!waits) return status;
  gcap_status_t waited = wait_for_eps(&binding->session->parts);
  run.is_done = waited == NULL;
  return gcap_status_join(status, waited);
}

static gcap_status_t run_in_turn(gcap_io_binding_t* binding, gcap_run_options_t* options) {
  GCAP_AT_SCOPE_END(gcap_session_leave_turns)
  const gcap_session_parts_t* turns = gcap_session_enter_turns(&binding->session->parts);
  (void)turns;
  const gcap_run_holds_t held = holds_of(binding);
  options->check_bindings |= binding->was_staged && options->bindings == GCAP_BINDINGS_FIXED;
  const bool executes = !options->capture_only || gcap_capture_current() != NULL;
  return held.count > 0 && executes ? run_staged(binding, *options, held) : run_with(binding, options, held);
}

static gcap_status_t run_bound(gcap_session_t* session, gcap_run_options_t* options, gcap_io_binding_t* entered) {
  GCAP_AT_SCOPE_END(gcap_io_binding_leave) gcap_io_binding_t* binding = entered;
  gcap_status_t status = check_bound(session, binding);
  if (status == NULL) status = check_pageable(binding, options->synchronize);
  if (status == NULL) return run_in_turn(binding, options);
  gcap_capture_fail(gcap_capture_current(), status);  // the graph would lack the run
  return status;
}

gcap_status_t gcap_session_run_bound(gcap_session_t* session, const gcap_run_options_t* options,
                                     gcap_io_binding_t* binding) {
  GCAP_RETURN_IF_NULL(session);
  GCAP_RETURN_IF_NULL(binding);
  gcap_run_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_run_options_read(options, &known));
  GCAP_RETURN_IF_ERROR(gcap_io_binding_enter(binding, __func__));
  return run_bound(session, &known, binding);
}

gcap_status_t gcap_session_warm_up_bound(gcap_session_t* session, const gcap_run_options_t* options,
                                         gcap_io_binding_t* binding) {
  GCAP_RETURN_IF_NULL(session);
  GCAP_RETURN_IF_NULL(binding);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  gcap_run_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_run_options_read(options, &known));
  known.capture_in_run = true;
  GCAP_RETURN_IF_ERROR(gcap_session_check_graph(session, known.graph_id));
  GCAP_RETURN_IF_ERROR(gcap_io_binding_enter(binding, __func__));
  return run_bound(session, &known, binding);
}

// --- The wait --------------------------------------------------------------------------------------------------------

gcap_status_t gcap_io_binding_synchronize(gcap_io_binding_t* binding) {
  GCAP_RETURN_IF_NULL(binding);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  GCAP_RETURN_IF_ERROR(gcap_io_binding_enter(binding, __func__));
  GCAP_AT_SCOPE_END(gcap_io_binding_leave) gcap_io_binding_t* entered = binding;
  gcap_session_begin_turns(&entered->session->parts);
  gcap_status_t status = wait_for_eps(&entered->session->parts);
  gcap_session_end_turns(&entered->session->parts);
  return status;
}
