// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs: which run of an id is captured, and a run's way from begin to commit or failure. The capture module does the
// capture itself.
//
// A run belongs to the thread that opened it. A thread is identified by its life, which is never reused. If that thread
// has exited, an eager run is abandoned. A capture is abandoned only when its scope has been closed, which the end of
// the thread does too: until then the thread's end may still write to the manager.
//
// A graph with holes is launched for the first time when its run was closed: the functions may not return.
//
// Locking: the manager's mutex, but not over what calls back: the begin, the end and the abort of a capture, the log
// sink, the caller's work. The run is busy meanwhile: other threads, and callbacks of this one, are refused.

#include "lib/graph/run.h"

#include <stdio.h>
#include <stdlib.h>

#include "gcap/log.h"
#include "lib/capture/inner.h"
#include "lib/graph/bind.h"
#include "lib/graph/failed_capture.h"
#include "lib/graph/inner.h"
#include "lib/graph/segment_launch.h"
#include "lib/graph/variants.h"
#include "lib/internal/forked.h"
#include "lib/internal/stream_table.h"
#include "lib/internal/synchronize.h"
#include "lib/internal/unwind.h"

// --- The open run ---------------------------------------------------------------------------------------------------

// A scope may be closed behind the manager's back, and the next one may lie at its address: the scope itself must tell.
static void note_scope_closed(void* user, bool committed) {
  (void)committed;
  ((gcap_graph_manager_t*)user)->scope_open = false;
}

// Lets the events of a capture name the id or the key of the slot, which stays, since it is CAPTURING.
static void label_scope(const gcap_graph_slot_t* slot, bool is_rehearsal, gcap_capture_t* capture) {
  char name[GCAP_GRAPH_SLOT_NAME_BYTES], label[GCAP_CAPTURE_LABEL_BYTES];
  gcap_graph_slot_write_name(slot, name);
  snprintf(label, sizeof(label), "%s%s", name, is_rehearsal ? ", a rehearsal" : "");
  gcap_capture_set_label(capture, label);
}

// Begins to capture `stream`. On failure no scope is open. Called without the mutex.
static gcap_status_t open_scope(gcap_graph_manager_t* manager, const gcap_graph_slot_t* slot, cudaStream_t stream,
                                gcap_capture_t** out_capture) {
  GCAP_RETURN_IF_ERROR(gcap_capture_begin(stream, &manager->options.capture, out_capture));
  label_scope(slot, manager->run.is_rehearsal, *out_capture);
  gcap_capture_set_work(*out_capture, gcap_graph_key_of(manager->run.id), manager->run.is_rehearsal);
  const gcap_graph_moving_t* moving = manager->run.moving;
  const bool was_rehearsed = moving != NULL && moving->num_rehearsed > 0;
  manager->run.stated.taps.rehearsed = was_rehearsed ? &moving->stated.taps : NULL;
  gcap_capture_set_owner(*out_capture, &manager->run.stated);
  if (manager->run.keeps_steps && !manager->run.is_rehearsal) {
    gcap_capture_keep_steps(*out_capture, &manager->run.steps);
  }
  gcap_status_t status = gcap_capture_on_close(*out_capture, note_scope_closed, manager);
  if (status == NULL) return NULL;
  gcap_capture_abort(*out_capture);
  *out_capture = NULL;
  return status;
}

bool gcap_graph_run_is_own_capture(const gcap_graph_manager_t* manager) {
  const gcap_graph_open_run_t* run = &manager->run;
  return run->capture != NULL && manager->scope_open && run->capture == gcap_capture_current();
}

static void forget_run(gcap_graph_open_run_t* run) {
  gcap_life_release(run->thread);
  gcap_life_release(run->stream_life);
  gcap_graph_refused_release(run->learned);
  free(run->signature);
  gcap_graph_stated_free(&run->stated);
  gcap_capture_steps_free(&run->steps);
  gcap_status_ignore(gcap_graph_moving_destroy(run->moving));  // its stand-ins are gone already
  *run = (gcap_graph_open_run_t){0};
}

// What opens, ends or aborts the run calls back between these two, without the mutex.
static void begin_busy(gcap_graph_manager_t* manager) {
  manager->run.is_busy = true;
  gcap_graph_hold_locked(manager);
  pthread_mutex_unlock(&manager->mutex);
}

static void end_busy(gcap_graph_manager_t* manager) {
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_let_go_locked(manager);
  manager->run.is_busy = false;
}

// Gives the buffers and the taps of a busy run back, without the mutex, since that may free device memory.
static gcap_status_t drop_memory(gcap_graph_manager_t* manager) {
  gcap_graph_moving_t* moving = manager->run.moving;
  gcap_graph_tap_list_t* taps = &manager->run.stated.taps;
  if (moving == NULL && taps->count == 0) return NULL;
  manager->run.moving = NULL;
  pthread_mutex_unlock(&manager->mutex);
  gcap_graph_tap_list_free(taps);
  gcap_status_t status = gcap_graph_moving_destroy(moving);
  pthread_mutex_lock(&manager->mutex);
  return status;
}

// Whether the open run is just being begun or ended: by a call of the manager, or by the end of this thread's scope
// behind the manager's back. Then the scope is not the thread's any more, and the step that tells the manager so is
// still to come.
static bool is_in_passing(const gcap_graph_manager_t* manager) {
  const gcap_graph_open_run_t* run = &manager->run;
  const bool is_closing = run->thread == gcap_thread_life() && run->capture != NULL && manager->scope_open &&
                          run->capture != gcap_capture_current();
  return run->is_busy || is_closing;
}

gcap_status_t gcap_graph_run_check_abandoned(const gcap_graph_manager_t* manager) {
  const gcap_graph_open_run_t* run = &manager->run;
  GCAP_RETURN_IF_ERROR(gcap_graph_check_no_hole(manager));
  if (!run->is_open) return NULL;
  const gcap_life_t* self = gcap_thread_life();
  if (self == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to close a run of id %d", run->id);
  const bool is_orphan = run->capture != NULL ? !manager->scope_open : !gcap_life_goes_on(run->thread);
  const bool is_own = run->thread == self;
  if (is_in_passing(manager)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "a run of id %d is just being begun or ended in this graph manager%s",
                       run->id, is_own ? ", by the call that this one is a callback of" : "");
  }
  if (is_orphan || is_own) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "another thread has a run of id %d open in this graph manager: let one thread at a time run, or "
                     "give each a manager",
                     run->id);
}

// Memory of an eager run goes in the order of its stream. Nothing is in flight on a stream that ended through gcap.
static gcap_status_t end_eager_values(const gcap_graph_open_run_t* run) {
  if (run->moving == NULL || run->capture != NULL) return NULL;
  const bool is_drained = !gcap_life_goes_on(run->stream_life);
  return gcap_graph_values_end_eager(&run->moving->values, run->stream, is_drained);
}

gcap_status_t gcap_graph_run_close_abandoned(gcap_graph_manager_t* manager) {
  gcap_graph_open_run_t* run = &manager->run;
  GCAP_RETURN_IF_ERROR(gcap_graph_run_check_abandoned(manager));
  if (!run->is_open) return NULL;
  const bool is_own_capture = gcap_graph_run_is_own_capture(manager);
  // A stream that only a thread knew, which is gone, may be gone too: what memory its work uses is kept.
  const bool knows_stream = run->thread == gcap_thread_life() || run->stream_life != NULL;
  // Who closes it owns it: a run of a thread that has exited is nobody's, and only one may take it.
  if (run->thread == gcap_thread_life() && run->capture == NULL) gcap_graph_eager_run_ends();
  gcap_life_release(run->thread);
  run->thread = gcap_life_retain(gcap_thread_life());
  begin_busy(manager);
  if (is_own_capture) gcap_capture_abort(run->capture);
  // Behind the abort: a sink that began a capture would abort this one.
  gcap_log(GCAP_LOG_WARNING, "a run of id %d was never ended; it was aborted", run->id);
  gcap_status_t status = knows_stream ? end_eager_values(run) : NULL;
  gcap_graph_tap_list_free(&run->stated.taps);
  gcap_status_ignore(gcap_status_join(status, gcap_graph_moving_destroy(run->moving)));  // nobody asked for this end
  run->moving = NULL;
  end_busy(manager);
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, run->id);
  if (run->capture != NULL && slot != NULL)
    slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_GIVE_UP);
  forget_run(run);
  return NULL;
}

// Whether the calling thread has a run open.
static gcap_status_t check_own_run(const gcap_graph_manager_t* manager) {
  const gcap_graph_open_run_t* run = &manager->run;
  GCAP_RETURN_IF_ERROR(gcap_graph_check_no_hole(manager));
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_attempt("the end of a run"));
  if (!run->is_open) return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "no run is open: call gcap_graph_manager_begin_run");
  if (run->thread != gcap_thread_life()) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the open run of id %d belongs to another thread", run->id);
  }
  if (is_in_passing(manager)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "the run of id %d is just being begun or ended, and this is a callback", run->id);
  }
  return NULL;
}

bool gcap_graph_manager_has_own_run(gcap_graph_manager_t* manager, int* out_id) {
  pthread_mutex_lock(&manager->mutex);
  const gcap_graph_open_run_t* run = &manager->run;
  const bool has_run = run->is_open && run->thread == gcap_thread_life() && !is_in_passing(manager);
  *out_id = has_run ? run->id : GCAP_GRAPH_ID_NONE;
  pthread_mutex_unlock(&manager->mutex);
  return has_run;
}

// --- Before a run ---------------------------------------------------------------------------------------------------

static gcap_status_t find_or_add_slot(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                      gcap_graph_slot_t** out_slot) {
  *out_slot = gcap_graph_find_slot_of_run(manager, run);
  if (*out_slot == NULL) {
    *out_slot = run->key != NULL ? gcap_graph_slot_add_key(manager, run->key) : gcap_graph_slot_add(manager, run->id);
  }
  if (*out_slot == NULL && run->key != NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for graph key '%s'",
                       run->key->name != NULL ? run->key->name : "");
  }
  if (*out_slot == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for graph id %d", run->id);
  gcap_graph_slot_touch(manager, *out_slot);
  return NULL;
}

// Makes an id ready for its capture, whatever the policy and a back-off say.
static void skip_to_capture(gcap_graph_slot_t* slot) {
  gcap_graph_state_t state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_FIRST_RUN);
  state = gcap_graph_state_after(state, GCAP_GRAPH_STEP_WARM);
  slot->info.state = gcap_graph_state_after(state, GCAP_GRAPH_STEP_COOLED);
  slot->cooling_runs = 0;
}

// Moves an id that does not replay on by one run, and tells whether that run is to be captured.
static bool plan_run(const gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  gcap_graph_state_t state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_FIRST_RUN);
  if (gcap_graph_is_warm(&manager->options, &slot->info, &slot->history))
    state = gcap_graph_state_after(state, GCAP_GRAPH_STEP_WARM);
  if (slot->cooling_runs == 0) {
    state = gcap_graph_state_after(state, GCAP_GRAPH_STEP_COOLED);
  } else {
    --slot->cooling_runs;
  }
  slot->info.state = state;
  return gcap_graph_state_after(state, GCAP_GRAPH_STEP_BEGIN) == GCAP_GRAPH_CAPTURING;
}

// A run on buffers that may move is rehearsed, as far as earlier ones were not.
static gcap_status_t take_rehearsed(gcap_graph_open_run_t* run, gcap_graph_slot_t* slot) {
  if (run->moving == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_moving_adopt(run->moving, slot->rehearsed));
  gcap_status_ignore(gcap_graph_moving_destroy(slot->rehearsed));  // its stand-ins are gone already
  slot->rehearsed = NULL;
  return NULL;
}

// Begins to capture the busy run, or to rehearse it.
static gcap_status_t open_scope_of_run(gcap_graph_manager_t* manager, const gcap_graph_slot_t* slot,
                                       gcap_capture_t** out_capture) {
  gcap_graph_open_run_t* run = &manager->run;
  gcap_graph_moving_t* moving = run->moving;
  bool has_new_block = false;
  if (moving != NULL) GCAP_RETURN_IF_ERROR(gcap_graph_values_prepare(&moving->values, run->stream, &has_new_block));
  if (has_new_block) gcap_graph_moving_forget_rehearsals(moving);
  run->is_rehearsal = moving != NULL && gcap_graph_moving_needs_rehearsal(moving) &&
                      gcap_graph_moving_open_rehearsal(moving, run->stream);
  gcap_status_t status = open_scope(manager, slot, run->stream, out_capture);
  if (status == NULL || !run->is_rehearsal) return status;
  run->is_rehearsal = false;
  return gcap_status_join(status, gcap_stand_ins_destroy(&moving->stand_ins));
}

// Begins to capture the open run. Where the driver would not start one the run becomes an eager one.
static gcap_status_t begin_capture(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, const gcap_run_t* given) {
  gcap_graph_open_run_t* run = &manager->run;
  if (given->bindings != NULL) {
    GCAP_RETURN_IF_ERROR(gcap_graph_signature_create(given->bindings, given->num_bindings, &run->signature));
  }
  GCAP_RETURN_IF_ERROR(take_rehearsed(run, slot));
  run->stated.holes.refused = gcap_graph_refused_retain(slot->refused);
  const gcap_graph_state_t before = slot->info.state;
  slot->info.state = gcap_graph_state_after(before, GCAP_GRAPH_STEP_BEGIN);
  manager->scope_open = true;
  gcap_capture_t* capture = NULL;
  begin_busy(manager);
  const uint64_t begin_ns = gcap_now_ns();
  gcap_status_t status = open_scope_of_run(manager, slot, &capture);
  const bool is_refused = gcap_status_code(status) == GCAP_CUDA_ERROR;
  if (is_refused && !run->capture_only) {
    gcap_log(GCAP_LOG_WARNING, "graph id %d runs eagerly: %s", slot->id, gcap_status_message(status));
  }
  end_busy(manager);
  run->begin_ns = begin_ns;
  run->capture = capture;
  if (status == NULL) return NULL;
  manager->scope_open = false;
  slot->info.state = before;
  if (!is_refused) return status;
  gcap_graph_capture_failed(manager, slot, status);
  if (run->capture_only) return status;
  run->why_eager = GCAP_EAGER_REFUSED;
  gcap_status_free(status);
  return NULL;
}

// A function of a guard did not return, and nobody has the mutex. The run is not begun.
static void forget_run_on_unwind(gcap_graph_manager_t** asking) {
  gcap_graph_manager_t* manager = *asking;
  if (manager == NULL) return;
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_moving_t* moving = manager->run.moving;
  manager->run.moving = NULL;
  forget_run(&manager->run);
  pthread_mutex_unlock(&manager->mutex);
  gcap_status_ignore(gcap_graph_moving_destroy(moving));  // the exception tells
}

// Finds the graph of the run's id that is for the run, or the slot of its next capture. Functions of guards are asked
// with the run busy, and may release the id.
static gcap_status_t begin_guarded(gcap_graph_manager_t* manager, const gcap_run_t* given,
                                   gcap_graph_slot_t** out_slot) {
  gcap_graph_open_run_t* run = &manager->run;
  gcap_graph_choice_t choice;
  *out_slot = NULL;  // it may be gone
  run->is_busy = true;
  GCAP_AT_SCOPE_END(forget_run_on_unwind) gcap_graph_manager_t* asking = manager;
  gcap_status_t status = gcap_graph_choose(manager, given, &choice);
  asking = NULL;
  run->is_busy = false;
  if (status == NULL) status = find_or_add_slot(manager, given, out_slot);
  if (status != NULL) return status;
  run->id = (*out_slot)->id;
  if (choice.held != NULL) *out_slot = choice.held;
  if (choice.held != NULL || !choice.has_graph) return NULL;
  if (choice.has_failed && run->capture_only) {
    return gcap_status_annotate(gcap_graph_why_other(*out_slot), GCAP_UNAVAILABLE, "the run is capture_only");
  }
  if (choice.has_failed) run->why_eager = GCAP_EAGER_GUARD;
  if (choice.has_failed) return NULL;
  gcap_graph_slot_t* slot = gcap_graph_slot_to_capture(manager, *out_slot);
  if (slot != NULL) *out_slot = slot;
  return slot != NULL ? NULL : GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for graph id %d", run->id);
}

// Finds the slot of the run's id, and tells whether the run is to be captured.
static gcap_status_t begin_id(gcap_graph_manager_t* manager, const gcap_run_t* given, gcap_graph_slot_t** out_slot,
                              bool* out_captures) {
  GCAP_RETURN_IF_ERROR(find_or_add_slot(manager, given, out_slot));
  gcap_graph_open_run_t* run = &manager->run;
  run->id = (*out_slot)->id;
  const bool may_lie_otherwise = run->moving != NULL && (*out_slot)->info.state == GCAP_GRAPH_CAPTURED;
  if ((*out_slot)->is_guarded || may_lie_otherwise) GCAP_RETURN_IF_ERROR(begin_guarded(manager, given, out_slot));
  if (run->why_eager != GCAP_EAGER_NOT) return NULL;
  if ((*out_slot)->info.state == GCAP_GRAPH_CAPTURED) {
    if (!run->capture_only && run->moving != NULL && gcap_graph_is_fixed_for(*out_slot, run->moving)) {
      run->tells_of_fixed = !(*out_slot)->graph->told_of_fixed;
      (*out_slot)->graph->told_of_fixed = true;
      run->why_eager = GCAP_EAGER_NOT_MOVABLE;
      return NULL;
    }
    return GCAP_STATUS(GCAP_ALREADY_EXISTS, "graph id %d is captured: replay it, or release it first", run->id);
  }
  if (run->capture_only) skip_to_capture(*out_slot);
  *out_captures = plan_run(manager, *out_slot);
  if (*out_captures) return NULL;
  run->why_eager = (*out_slot)->info.state == GCAP_GRAPH_COOLING ? GCAP_EAGER_COOLING : GCAP_EAGER_WARMING;
  return NULL;
}

static gcap_graph_run_kind_t kind_of(const gcap_graph_open_run_t* run) {
  if (run->capture == NULL) return GCAP_GRAPH_RUN_EAGER;
  return run->is_rehearsal ? GCAP_GRAPH_RUN_REHEARSAL : GCAP_GRAPH_RUN_CAPTURE;
}

// Takes `moving` if it succeeds.
static gcap_status_t begin_run_locked(gcap_graph_manager_t* manager, const gcap_run_t* given,
                                      gcap_graph_moving_t* moving, gcap_graph_run_kind_t* out_kind) {
  const int id = given->id;
  if (manager->is_ending) return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the graph manager is being destroyed");
  GCAP_RETURN_IF_ERROR(gcap_graph_run_close_abandoned(manager));
  gcap_graph_open_run_t* run = &manager->run;
  gcap_life_t* thread = gcap_life_retain(gcap_thread_life());
  if (thread == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to open a run of id %d", id);
  *run = (gcap_graph_open_run_t){.is_open = true, .id = id, .stream = given->stream, .thread = thread};
  run->stream_life = gcap_stream_table_life(given->stream);
  run->moving = moving;
  run->capture_only = given->capture_only;
  run->pinned = given->pinned;
  run->keeps_steps = manager->keeps_steps;
  gcap_graph_slot_t* slot = NULL;
  bool captures = false;
  const bool has_id = id != GCAP_GRAPH_ID_NONE || given->key != NULL;
  if (!has_id) run->why_eager = GCAP_EAGER_NO_ID;
  gcap_status_t status = has_id ? begin_id(manager, given, &slot, &captures) : NULL;
  if (captures) status = begin_capture(manager, slot, given);
  if (status == NULL && run->capture == NULL && moving != NULL) {
    status = gcap_graph_values_begin_eager(&moving->values, run->stream);
  }
  if (slot != NULL) gcap_graph_find_slot(manager, slot->id)->why_eager = slot->why_eager = run->why_eager;
  if (status != NULL) {
    run->moving = NULL;
    forget_run(run);
    return gcap_graph_name_failure(slot, status);
  }
  if (run->capture == NULL) gcap_graph_eager_run_begins();
  run->trace = gcap_graph_trace_begin();
  *out_kind = kind_of(run);
  return NULL;
}

gcap_status_t gcap_graph_check_id(const gcap_run_t* run) {
  const cudaStream_t stream = run->stream;
  const int id = run->id;
  if (id < GCAP_GRAPH_ID_NONE) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id is %d, allowed are ids >= 0, and -1 for no capture", id);
  }
  if (stream == GCAP_RUN_OWN_STREAM) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id %d: a run of a graph manager names its stream: set stream", id);
  }
  if ((id == GCAP_GRAPH_ID_NONE && run->key == NULL) || !gcap_stream_is_alias(stream)) return NULL;
  return GCAP_STATUS(
      GCAP_INVALID_ARGUMENT,
      "graph id %d: the stream is %s; pass one created with cudaStreamNonBlocking, or the id -1, which is "
      "never captured",
      id,
      stream == cudaStreamPerThread ? "cudaStreamPerThread, which is another stream on each thread"
                                    : "the legacy default stream (0), which cannot be captured");
}

// The variant that the id's last run found and could not move.
static const gcap_graph_slot_t* find_fixed(const gcap_graph_slot_t* first) {
  const gcap_graph_slot_t* found = NULL;
  for (const gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    if (slot->graph == NULL || slot->why_eager != GCAP_EAGER_NOT_MOVABLE) continue;
    if (found == NULL || slot->last_use > found->last_use) found = slot;
  }
  return found;
}

gcap_status_t gcap_graph_why_fixed(const gcap_graph_slot_t* first) {
  const gcap_graph_slot_t* slot = find_fixed(first);
  const gcap_graph_moving_t* moving = slot != NULL ? slot->graph->moving : NULL;
  if (moving != NULL && moving->refusal != NULL) return gcap_status_clone(moving->refusal);
  if (moving != NULL) return gcap_status_clone(moving->conflict);
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "it was captured without buffers");
}

// Why the open run is eager although its id has a graph, once for each graph; else NULL.
static gcap_status_t explain_fixed(const gcap_graph_manager_t* manager) {
  if (!manager->run.tells_of_fixed) return NULL;
  const gcap_graph_slot_t* first = gcap_graph_find_slot(manager, manager->run.id);
  const gcap_graph_moving_t* moving = find_fixed(first)->graph->moving;
  const bool is_here_alone = moving != NULL && moving->refusal == NULL;
  return gcap_status_annotate(
      gcap_graph_why_fixed(first), GCAP_FAILED_PRECONDITION, "graph id %d cannot be moved%s", first->id,
      is_here_alone ? " to the buffers of a run, which is eager" : ", so its runs on other buffers are eager");
}

// Without the mutex. Consumes `why`.
static void tell_of_fixed(gcap_status_t why) {
  if (why == NULL) return;
  gcap_log(GCAP_LOG_WARNING, "%s", gcap_status_message(why));
  gcap_status_free(why);
}

// Begins a run that takes `moving`, and tells where the work finds the buffers.
static gcap_status_t begin_and_place(gcap_graph_manager_t* manager, const gcap_run_t* given,
                                     gcap_graph_moving_t* moving, gcap_graph_run_kind_t* out_kind,
                                     void** out_addresses) {
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = begin_run_locked(manager, given, moving, out_kind);
  if (status == NULL && moving != NULL) {
    gcap_graph_moving_place(moving, *out_kind == GCAP_GRAPH_RUN_REHEARSAL, out_addresses);
  }
  gcap_status_t why = status == NULL ? explain_fixed(manager) : NULL;
  pthread_mutex_unlock(&manager->mutex);
  tell_of_fixed(why);
  return status;
}

gcap_status_t gcap_graph_begin(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind,
                               void** out_addresses) {
  *out_kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_guard("the begin of a run"));
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_attempt("the begin of a run"));
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_work(manager));
  GCAP_RETURN_IF_ERROR(gcap_graph_check_id(run));
  GCAP_RETURN_IF_ERROR(gcap_run_check_capture_only(run));
  GCAP_RETURN_IF_ERROR(gcap_run_refuse_verify(run, "a begin"));
  GCAP_RETURN_IF_ERROR(gcap_run_refuse_taps(run, "a begin"));
  GCAP_RETURN_IF_ERROR(gcap_graph_bindings_check(run->bindings, run->num_bindings));
  gcap_graph_moving_t* moving = NULL;
  if (run->buffers != NULL) {
    if (run->buffers->count > 0 || run->buffers->num_values > 0) GCAP_RETURN_IF_NULL(out_addresses);
    GCAP_RETURN_IF_ERROR(gcap_graph_moving_check_buffers(run->buffers));
    GCAP_RETURN_IF_ERROR(gcap_graph_moving_create(run->buffers, &moving));
  }
  gcap_status_t status = begin_and_place(manager, run, moving, out_kind, out_addresses);
  if (status != NULL) status = gcap_status_join(status, gcap_graph_moving_destroy(moving));
  return status;
}

gcap_status_t gcap_graph_manager_begin_run(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                           gcap_graph_run_kind_t* out_kind, void** out_addresses) {
  GCAP_RETURN_IF_NULL(out_kind);
  *out_kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_NULL(run);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_run_copy_t copy;
  GCAP_RETURN_IF_ERROR(gcap_run_read(run, &copy, &run));
  return gcap_graph_begin(manager, run, out_kind, out_addresses);
}

bool gcap_graph_captures_next(const gcap_graph_manager_t* manager, const gcap_graph_slot_t* slot, bool has_graph) {
  if (has_graph) return false;
  if (slot != NULL && slot->info.state == GCAP_GRAPH_CAPTURED) return true;
  gcap_graph_slot_t rehearsed = {0};
  if (slot != NULL) rehearsed = *slot;
  return plan_run(manager, &rehearsed);
}

int gcap_graph_manager_id_of(gcap_graph_manager_t* manager, const gcap_run_t* run) {
  if (run->key == NULL) return run->id;
  pthread_mutex_lock(&manager->mutex);
  const gcap_graph_slot_t* slot = gcap_graph_find_slot_of_run(manager, run);
  const int id = slot != NULL ? slot->id : GCAP_GRAPH_ID_NONE;
  pthread_mutex_unlock(&manager->mutex);
  return id;
}

bool gcap_graph_manager_has_graph(gcap_graph_manager_t* manager, const gcap_run_t* run) {
  gcap_graph_choice_t choice;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = gcap_graph_choose(manager, run, &choice);
  pthread_mutex_unlock(&manager->mutex);
  gcap_status_ignore(status);  // the begin of the run tells
  return choice.held != NULL || choice.is_one_of_many;
}

bool gcap_graph_manager_captures_next(gcap_graph_manager_t* manager, const gcap_run_t* run) {
  pthread_mutex_lock(&manager->mutex);
  const bool has_id = run->key != NULL || run->id != GCAP_GRAPH_ID_NONE;
  gcap_graph_slot_t* slot = gcap_graph_find_slot_of_run(manager, run);
  const bool has_graph = gcap_graph_may_hold(manager, slot, run->buffers);
  const bool captures = has_id && (gcap_graph_asks(slot) || gcap_graph_captures_next(manager, slot, has_graph));
  pthread_mutex_unlock(&manager->mutex);
  return captures;
}

gcap_status_t gcap_graph_manager_recapture(gcap_graph_manager_t* manager, int id) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* slot = NULL;
  gcap_status_t status = gcap_graph_find(manager, id, &slot);
  status = gcap_graph_name_failure(slot, status);
  for (; status == NULL && slot != NULL; slot = slot->variant) {
    slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_RECAPTURE);
  }
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

// --- After a run ----------------------------------------------------------------------------------------------------

// Puts a new graph in its slot, and what it replaces on the list of retired ones.
static gcap_status_t commit(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, const gcap_graph_build_t* build,
                            gcap_graph_captured_t** out_evicted) {
  gcap_graph_captured_t* captured = build->captured;
  gcap_graph_captured_t* old = gcap_graph_slot_set_graph(manager, slot, captured);
  slot->last_use = ++manager->num_uses;
  gcap_graph_slot_note_named(manager, slot);
  slot->failures_in_a_row = 0;
  slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_COMMIT);
  slot->info.nodes = build->nodes;
  gcap_graph_holes_count(captured->holes, &slot->info);
  ++slot->info.captures;
  if (captured->holes == NULL) slot->info.replays += !manager->run.capture_only;
  slot->is_pinned = manager->run.pinned;
  if (old != NULL && captured->updated) ++slot->info.updates;
  if (old != NULL && !captured->updated) ++slot->info.reinstantiations;
  gcap_status_t status = old != NULL ? gcap_graph_retire(manager, old) : NULL;
  return gcap_status_join(status, gcap_graph_evict(manager, captured->id, out_evicted));
}

static void note_build(gcap_graph_slot_t* slot, const gcap_graph_build_t* build) {
  if (build->instantiate_ns != 0) slot->info.instantiate_ns = build->instantiate_ns;
  if (build->captured != NULL) {
    gcap_status_free(slot->change);
    slot->change = build->change;
  } else {
    gcap_status_free(build->change);
  }
  if (build->update_refusal == NULL) return;
  gcap_status_free(slot->update_refusal);
  slot->update_refusal = build->update_refusal;
}

// A lost device runs nothing eagerly either.
static gcap_code_t failure_code(const gcap_graph_open_run_t* run, gcap_status_t failure) {
  if (gcap_status_code(failure) == GCAP_DEVICE_LOST) return GCAP_DEVICE_LOST;
  return run->is_left ? GCAP_CUDA_ERROR : GCAP_CAPTURE_INVALIDATED;
}

// Notes whether a split left the stream without a capture: the device has executed what the work issued since, so
// nobody issues the work again.
static void note_left(gcap_graph_open_run_t* run, gcap_run_result_t* result) {
  run->is_left = gcap_capture_is_left(run->capture);
  result->was_issued = run->is_left;
}

static gcap_status_t finish_capture(gcap_graph_manager_t* manager, gcap_status_t run_status, gcap_run_result_t* result,
                                    gcap_graph_captured_t** out_evicted) {
  gcap_graph_open_run_t* run = &manager->run;
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, run->id);  // it stays, since it is CAPTURING
  gcap_graph_build_t build = {0};
  cudaGraph_t source = NULL;
  gcap_retained_t* retained = NULL;
  pthread_mutex_unlock(&manager->mutex);
  gcap_capture_fail_once(run->capture, run_status);
  note_left(run, result);
  gcap_status_t status = gcap_capture_end(run->capture, &source, &retained);
  const uint64_t capture_ns = gcap_now_ns() - run->begin_ns;
  (void)gcap_graph_learn_refused(run, slot, status);
  if (status == NULL) status = gcap_graph_captured_build(manager, slot, run, source, retained, &build);
  pthread_mutex_lock(&manager->mutex);
  slot->info.capture_ns = capture_ns;
  note_build(slot, &build);
  if (build.captured != NULL) {
    result->outcome = run->capture_only ? GCAP_RUN_RECORDED : GCAP_RUN_CAPTURED;
    result->was_issued = !run->capture_only;
    if (build.captured->holes != NULL && !run->capture_only) gcap_graph_enter_holes(manager, build.captured);
    return gcap_status_join(status, commit(manager, slot, &build, out_evicted));
  }
  status = gcap_status_annotate(status, failure_code(run, status), "graph id %d", run->id);
  gcap_graph_capture_failed(manager, slot, status);
  return status;
}

// Keeps what the work stated in the first rehearsal; another one must state the same.
static gcap_status_t keep_stated(gcap_graph_open_run_t* run, bool is_first) {
  gcap_graph_moving_t* moving = run->moving;
  if (is_first) {
    gcap_graph_stated_free(&moving->stated);
    moving->stated = run->stated;
    run->stated = (gcap_graph_stated_list_t){0};
    return NULL;
  }
  gcap_status_t undecided = gcap_graph_stated_compare(&moving->stated, &run->stated);
  run->is_undecided = undecided != NULL;
  return undecided;
}

// Reads the segments of a rehearsal, and keeps what the work stated.
static gcap_status_t end_rehearsal(gcap_graph_open_run_t* run, cudaGraph_t last) {
  gcap_graph_hole_list_t* holes = &run->stated.holes;
  cudaGraph_t* segments = NULL;
  gcap_status_t status = gcap_graph_hole_list_segments(holes, last, &segments);
  if (status != NULL) return gcap_status_join(status, gcap_stand_ins_destroy(&run->moving->stand_ins));
  const bool is_first = run->moving->num_rehearsed == 0;
  status = gcap_graph_moving_end_rehearsal(run->moving, segments, holes->count + 1);
  free(segments);
  status = gcap_status_join(status, gcap_graph_hole_list_drop_graphs(holes));
  gcap_status_t undecided = keep_stated(run, is_first);
  return undecided != NULL ? gcap_status_join(undecided, status) : status;
}

// Keeps what a rehearsal recorded for the capture to come. Called without the mutex.
static gcap_status_t keep_rehearsed(gcap_graph_open_run_t* run, gcap_status_t run_status, gcap_run_result_t* result) {
  cudaGraph_t graph = NULL;
  gcap_retained_t* retained = NULL;
  gcap_capture_fail_once(run->capture, run_status);
  note_left(run, result);
  gcap_status_t status = gcap_capture_end(run->capture, &graph, &retained);
  if (status != NULL) return gcap_status_join(status, gcap_stand_ins_destroy(&run->moving->stand_ins));
  status = end_rehearsal(run, graph);
  status = gcap_status_join(status, GCAP_CUDA(cudaGraphDestroy(graph)));
  gcap_retained_release(retained);
  return status;
}

// A rehearsal that failed is done again: with memory behind its addresses, or with a hole where a step was refused.
static gcap_status_t finish_rehearsal(gcap_graph_manager_t* manager, gcap_status_t run_status,
                                      gcap_run_result_t* result) {
  gcap_graph_open_run_t* run = &manager->run;
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, run->id);  // it stays, since it is CAPTURING
  pthread_mutex_unlock(&manager->mutex);
  gcap_status_t status = keep_rehearsed(run, run_status, result);
  const bool is_last = run->moving->needs_memory || run->is_undecided || run->is_left;
  const bool has_learned = is_last && gcap_graph_learn_refused(run, slot, status);
  if (has_learned) gcap_graph_moving_forget_rehearsals(run->moving);
  if (status != NULL && !is_last) {
    gcap_log(GCAP_LOG_INFO, "graph id %d is rehearsed again, with memory: %s", run->id, gcap_status_message(status));
  }
  pthread_mutex_lock(&manager->mutex);
  if (status != NULL && is_last && !has_learned) {
    status = gcap_status_annotate(status, failure_code(run, status), "graph id %d, in its rehearsal", run->id);
    gcap_graph_capture_failed(manager, slot, status);
    return status;
  }
  gcap_graph_keep_refused(manager, slot);
  if (status != NULL) run->moving->needs_memory = true;
  gcap_status_free(status);
  slot->rehearsed = run->moving;
  run->moving = NULL;
  slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_GIVE_UP);
  return NULL;
}

static void finish_eager(gcap_graph_manager_t* manager, gcap_run_trace_t trace, bool went_well) {
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, manager->run.id);
  if (slot == NULL || !went_well) return;
  ++slot->info.eager_runs;
  gcap_graph_history_add(&slot->history, trace);
}

static gcap_status_t fail_lost_capture(gcap_graph_manager_t* manager) {
  const int id = manager->run.id;
  gcap_status_t status =
      GCAP_STATUS(GCAP_CAPTURE_INVALIDATED, "the capture of graph id %d was ended behind the manager's back", id);
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, id);
  pthread_mutex_unlock(&manager->mutex);
  (void)gcap_graph_learn_refused(&manager->run, slot, status);
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_capture_failed(manager, slot, status);
  return status;
}

static gcap_status_t finish_recorded(gcap_graph_manager_t* manager, gcap_status_t run_status, gcap_run_result_t* result,
                                     gcap_graph_captured_t** out_evicted) {
  if (!gcap_graph_run_is_own_capture(manager)) return fail_lost_capture(manager);
  if (manager->run.is_rehearsal) return finish_rehearsal(manager, run_status, result);
  return finish_capture(manager, run_status, result, out_evicted);
}

// The work stopped on purpose, and may have aborted the capture itself. Nothing failed: the id does not cool down.
static void give_up(gcap_graph_manager_t* manager) {
  gcap_graph_open_run_t* run = &manager->run;
  if (gcap_graph_run_is_own_capture(manager)) {
    pthread_mutex_unlock(&manager->mutex);
    gcap_capture_abort(run->capture);
    pthread_mutex_lock(&manager->mutex);
  }
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, run->id);  // it stays, since it is CAPTURING
  slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_GIVE_UP);
}

// Closes the open run of this thread, and tells what became of it. What went wrong in a capture has the cause in it
// already; what went wrong beside an eager run comes behind its own failure.
static gcap_status_t close_run(gcap_graph_manager_t* manager, gcap_status_t run_status, gcap_run_result_t* result,
                               gcap_graph_captured_t** out_evicted) {
  const gcap_graph_open_run_t* run = &manager->run;
  const gcap_run_trace_t trace = gcap_graph_trace_end(run->trace);
  gcap_status_t status = run_status;
  if (run->capture == NULL) {
    gcap_graph_eager_run_ends();
    const bool is_complete = run_status == NULL;
    finish_eager(manager, trace, is_complete);
    result->outcome = is_complete ? GCAP_RUN_EAGER : GCAP_RUN_NOT_DONE;
    result->was_issued = true;
    status = gcap_status_join(status, end_eager_values(run));
  } else if (gcap_status_code(run_status) == GCAP_CANCELLED) {
    give_up(manager);
  } else {
    status = finish_recorded(manager, run_status, result, out_evicted);
    gcap_status_free(run_status);
  }
  result->why_eager = run->why_eager;
  status = gcap_status_join(status, drop_memory(manager));
  forget_run(&manager->run);
  return status;
}

// The wait at the end of a run. A stream that ended with its gcap_stream_t was waited for then, and its handle is dead.
// A wait would break a capture that the user has begun on the stream of an eager run.
static gcap_status_t wait_for_run(int id, bool is_eager, cudaStream_t stream, const gcap_life_t* stream_life) {
  if (!gcap_life_goes_on(stream_life)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "the run of id %d was issued, and cannot be waited for: its stream %p was destroyed meanwhile",
                       id, (void*)stream);
  }
  if (is_eager) GCAP_RETURN_IF_ERROR(gcap_check_stream_not_capturing(stream, "the wait for the run of id %d", id));
  return gcap_synchronize_stream(stream);
}

// `ending`: the manager of a run whose end calls functions of guards; NULL: they returned. One did not when its capture
// had ended, and nobody has the mutex.
static void fail_capture_on_unwind(gcap_graph_manager_t** ending) {
  gcap_graph_manager_t* manager = *ending;
  if (manager == NULL) return;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t left =
      GCAP_STATUS(GCAP_CAPTURE_INVALIDATED, "the function of a guard of graph id %d did not return", manager->run.id);
  gcap_graph_capture_failed(manager, gcap_graph_find_slot(manager, manager->run.id), left);
  gcap_status_ignore(left);  // the exception tells
  forget_run(&manager->run);
  gcap_graph_let_go_locked(manager);
  pthread_mutex_unlock(&manager->mutex);
}

static void release_life(gcap_life_t** life) { gcap_life_release(*life); }

// The first launch of a graph with holes, which entered them. Its run is closed: the functions may not return.
static gcap_status_t launch_captured(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                     gcap_run_result_t* result) {
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, id);  // the newest is the first, and it stays
  const uint64_t replays = slot->info.replays;
  gcap_status_t status = gcap_graph_launch_entered(manager, slot, stream);
  if (status != NULL) result->outcome = GCAP_RUN_NOT_DONE;
  result->was_issued = slot->info.replays != replays;
  status = gcap_graph_name_failure(slot, status);
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

// Called with the mutex, which it gives back.
static gcap_status_t end_own_run(gcap_graph_manager_t* manager, gcap_status_t run_status, bool synchronize,
                                 gcap_run_result_t* result) {
  const int id = manager->run.id;
  result->id = id;
  const cudaStream_t stream = manager->run.stream;
  const bool is_eager = manager->run.capture == NULL;
  GCAP_AT_SCOPE_END(release_life) gcap_life_t* stream_life = gcap_life_retain(manager->run.stream_life);
  gcap_graph_captured_t* evicted = NULL;
  manager->run.is_busy = true;  // until it is closed
  gcap_graph_hold_locked(manager);
  GCAP_AT_SCOPE_END(fail_capture_on_unwind) gcap_graph_manager_t* ending = manager;
  gcap_status_t status = close_run(manager, run_status, result, &evicted);
  ending = NULL;
  gcap_graph_captured_t* entered = manager->in_hole;
  const bool is_issued = result->outcome != GCAP_RUN_NOT_DONE && entered == NULL;
  pthread_mutex_unlock(&manager->mutex);
  if (is_issued && synchronize) status = gcap_status_join(status, wait_for_run(id, is_eager, stream, stream_life));
  status = gcap_status_join(status, gcap_graph_clean_up(manager, evicted));
  if (status != run_status) status = gcap_graph_name_failure_of(manager, id, status);
  gcap_graph_manager_let_go(manager);
  if (entered == NULL) return status;
  status = gcap_status_join(status, launch_captured(manager, id, stream, result));
  if (result->outcome != GCAP_RUN_NOT_DONE && synchronize) {
    status = gcap_status_join(status, wait_for_run(id, is_eager, stream, stream_life));
  }
  return status;
}

gcap_status_t gcap_graph_end(gcap_graph_manager_t* manager, bool synchronize, gcap_status_t run_status,
                             gcap_run_result_t* result) {
  gcap_run_result_init(result);
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = check_own_run(manager);
  if (status == NULL) return end_own_run(manager, run_status, synchronize, result);
  pthread_mutex_unlock(&manager->mutex);
  if (run_status == NULL) return status;
  gcap_status_ignore(status);  // no run is open because its begin failed, which `run_status` tells
  return run_status;
}

gcap_status_t gcap_graph_manager_end_run(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                         gcap_status_t run_status) {
  GCAP_RETURN_JOINED_IF_NULL(run_status, manager);
  if (gcap_is_forked()) return gcap_status_join(run_status, gcap_refuse_forked(__func__));
  gcap_run_t known;
  gcap_status_t bad = gcap_run_read_end(run, &known);
  gcap_run_result_t result;
  gcap_status_t status = gcap_graph_end(manager, known.synchronize, run_status, &result);
  gcap_run_give_result(&known, &result);
  return gcap_status_join(status, bad);
}
