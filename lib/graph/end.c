// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The end of a run: a capture becomes a graph, or fails; a rehearsal is kept for the capture to come.
//
// A graph with holes is launched for the first time when its run was closed: the functions may not return.
//
// Locking: the manager's mutex; as run.c says.

#include "lib/graph/end.h"

#include <stdlib.h>

#include "gcap/log.h"
#include "lib/capture/inner.h"
#include "lib/graph/failed_capture.h"
#include "lib/graph/inner.h"
#include "lib/graph/run.h"
#include "lib/graph/segment_launch.h"
#include "lib/internal/capture_check.h"
#include "lib/internal/forked.h"
#include "lib/internal/synchronize.h"
#include "lib/internal/unwind.h"

// Whether the calling thread has a run open.
static gcap_status_t check_own_run(const gcap_graph_manager_t* manager) {
  const gcap_graph_open_run_t* run = &manager->run;
  GCAP_RETURN_IF_ERROR(gcap_graph_check_no_hole(manager));
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_attempt("the end of a run"));
  if (!run->is_open) return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "no run is open: call gcap_graph_manager_begin_run");
  if (run->thread != gcap_thread_life()) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the open run of id %d belongs to another thread", run->id);
  }
  if (gcap_graph_run_is_in_passing(manager)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "the run of id %d is just being begun or ended, and this is a callback", run->id);
  }
  return NULL;
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
    status = gcap_status_join(status, gcap_graph_run_end_eager_values(run));
  } else if (gcap_status_code(run_status) == GCAP_CANCELLED) {
    give_up(manager);
  } else {
    status = finish_recorded(manager, run_status, result, out_evicted);
    gcap_status_free(run_status);
  }
  result->why_eager = run->why_eager;
  status = gcap_status_join(status, drop_memory(manager));
  gcap_graph_run_forget(&manager->run);
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
  gcap_graph_run_forget(&manager->run);
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
