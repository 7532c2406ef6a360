// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs: which run of an id is captured, and a run's way from begin to commit or failure. The capture module does the
// capture itself.
//
// A run belongs to the thread that opened it. A thread is identified by its life, which is never reused. If that thread
// has exited, an eager run is abandoned. A capture is abandoned only when its scope has been closed, which the end of
// the thread does too: until then the thread's end may still write to the manager.
//
// Locking: the manager's mutex, but not while the caller's work runs.

#include "lib/graph/run.h"

#include <stdlib.h>

#include "gcap/log.h"
#include "lib/capture/fail_once.h"
#include "lib/graph/open_run.h"
#include "lib/internal/synchronize.h"

// A failed capture doubles the back-off at most this often: 1,024 times the first.
#define MAX_BACKOFF_DOUBLINGS 10u

// --- The open run ---------------------------------------------------------------------------------------------------

// A scope may be closed behind the manager's back, and the next one may lie at its address: the scope itself must tell.
static void note_scope_closed(void* user, bool committed) {
  (void)committed;
  ((gcap_graph_manager_t*)user)->scope_open = false;
}

// Begins the capture of a run. On failure none is open.
static gcap_status_t open_scope(gcap_graph_manager_t* manager, gcap_graph_open_run_t* run) {
  run->begin_ns = gcap_now_ns();
  GCAP_RETURN_IF_ERROR(gcap_capture_begin(run->stream, &manager->options.capture, &run->capture));
  manager->scope_open = true;
  gcap_status_t status = gcap_capture_on_close(run->capture, note_scope_closed, manager);
  if (status != NULL) {
    gcap_capture_abort(run->capture);
    run->capture = NULL;
  }
  return status;
}

bool gcap_graph_run_is_own_capture(const gcap_graph_manager_t* manager) {
  const gcap_graph_open_run_t* run = &manager->run;
  return run->capture != NULL && manager->scope_open && run->capture == gcap_capture_current();
}

static void forget_run(gcap_graph_open_run_t* run) {
  gcap_life_release(run->thread);
  free(run->signature);
  *run = (gcap_graph_open_run_t){0};
}

gcap_status_t gcap_graph_run_check_abandoned(const gcap_graph_manager_t* manager) {
  const gcap_graph_open_run_t* run = &manager->run;
  if (!run->is_open) return NULL;
  const bool is_orphan = run->capture != NULL ? !manager->scope_open : !gcap_life_goes_on(run->thread);
  if (is_orphan || run->thread == gcap_thread_life()) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "another thread has a run of id %d open in this graph manager", run->id);
}

gcap_status_t gcap_graph_run_close_abandoned(gcap_graph_manager_t* manager) {
  gcap_graph_open_run_t* run = &manager->run;
  if (!run->is_open) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_graph_run_check_abandoned(manager));
  gcap_log(GCAP_LOG_WARNING, "a run of id %d was never ended; it is aborted", run->id);
  if (gcap_graph_run_is_own_capture(manager)) gcap_capture_abort(run->capture);
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, run->id);
  if (run->capture != NULL && slot != NULL)
    slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_GIVE_UP);
  forget_run(run);
  return NULL;
}

// Whether the calling thread has a run open.
static gcap_status_t check_own_run(const gcap_graph_open_run_t* run) {
  if (!run->is_open) return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "no run is open: call gcap_graph_manager_begin_run");
  if (run->thread != gcap_thread_life()) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "the open run of id %d belongs to another thread", run->id);
  }
  return NULL;
}

bool gcap_graph_manager_has_own_run(gcap_graph_manager_t* manager) {
  pthread_mutex_lock(&manager->mutex);
  const bool has_run = manager->run.is_open && manager->run.thread == gcap_thread_life();
  pthread_mutex_unlock(&manager->mutex);
  return has_run;
}

// --- Before a run ---------------------------------------------------------------------------------------------------

static gcap_status_t find_or_add_slot(gcap_graph_manager_t* manager, int id, gcap_graph_slot_t** out_slot) {
  *out_slot = gcap_graph_find_slot(manager, id);
  if (*out_slot == NULL) *out_slot = gcap_graph_slot_add(manager, id);
  if (*out_slot != NULL) return NULL;
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for graph id %d", id);
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

// Sends an id whose capture failed into its back-off.
static void cool_down(const gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, gcap_status_t failure) {
  uint32_t doublings =
      slot->failures_in_a_row < MAX_BACKOFF_DOUBLINGS ? slot->failures_in_a_row : MAX_BACKOFF_DOUBLINGS;
  slot->cooling_runs = (uint64_t)manager->options.backoff_runs << doublings;
  ++slot->failures_in_a_row;
  ++slot->info.failures;
  slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_FAILURE);
  gcap_status_free(slot->last_failure);
  slot->last_failure = gcap_status_clone(failure);
}

// Begins to capture the run. Where the driver would not start one it becomes an eager run.
static gcap_status_t begin_capture(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, gcap_graph_open_run_t* run) {
  gcap_status_t status = open_scope(manager, run);
  if (gcap_status_code(status) == GCAP_CUDA_ERROR) {
    gcap_log(GCAP_LOG_WARNING, "graph id %d runs eagerly: %s", slot->id, gcap_status_message(status));
    cool_down(manager, slot, status);
    gcap_status_free(status);
    status = NULL;
  }
  if (run->capture != NULL) slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_BEGIN);
  return status;
}

static gcap_status_t begin_id(gcap_graph_manager_t* manager, gcap_graph_open_run_t* run) {
  gcap_graph_slot_t* slot = NULL;
  GCAP_RETURN_IF_ERROR(find_or_add_slot(manager, run->id, &slot));
  if (slot->info.state == GCAP_GRAPH_CAPTURED) {
    return GCAP_STATUS(GCAP_ALREADY_EXISTS, "graph id %d is captured: replay it, or release it first", run->id);
  }
  return plan_run(manager, slot) ? begin_capture(manager, slot, run) : NULL;
}

static gcap_status_t begin_run_locked(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                      gcap_graph_run_kind_t* out_kind) {
  GCAP_RETURN_IF_ERROR(gcap_graph_run_close_abandoned(manager));
  gcap_graph_open_run_t run = {.is_open = true, .id = id, .stream = stream};
  run.thread = gcap_life_retain(gcap_thread_life());
  if (run.thread == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to open a run of id %d", id);
  gcap_status_t status = id == GCAP_GRAPH_ID_NONE ? NULL : begin_id(manager, &run);
  if (status != NULL) {
    forget_run(&run);
    return status;
  }
  run.trace = gcap_graph_trace_begin();
  manager->run = run;
  *out_kind = run.capture != NULL ? GCAP_GRAPH_RUN_CAPTURE : GCAP_GRAPH_RUN_EAGER;
  return NULL;
}

gcap_status_t gcap_graph_manager_begin_run(gcap_graph_manager_t* manager, int id, cudaStream_t stream,
                                           gcap_graph_run_kind_t* out_kind) {
  GCAP_RETURN_IF_NULL(out_kind);
  *out_kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_RETURN_IF_NULL(manager);
  if (id < GCAP_GRAPH_ID_NONE) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "graph id is %d, allowed are ids >= 0, and -1 for no capture", id);
  }
  if (id != GCAP_GRAPH_ID_NONE && stream == cudaStreamPerThread) {
    return GCAP_STATUS(
        GCAP_INVALID_ARGUMENT,
        "graph id %d: the stream is cudaStreamPerThread, which is another stream on each thread; pass one "
        "created with cudaStreamNonBlocking",
        id);
  }
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = begin_run_locked(manager, id, stream, out_kind);
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

bool gcap_graph_captures_next(const gcap_graph_manager_t* manager, int id, const gcap_graph_slot_t* slot) {
  if (id < 0) return false;
  gcap_graph_slot_t rehearsed = {0};
  if (slot != NULL) rehearsed = *slot;
  return plan_run(manager, &rehearsed);
}

gcap_status_t gcap_graph_manager_recapture(gcap_graph_manager_t* manager, int id) {
  GCAP_RETURN_IF_NULL(manager);
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_slot_t* slot = NULL;
  gcap_status_t status = gcap_graph_find(manager, id, &slot);
  if (status == NULL) slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_RECAPTURE);
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

gcap_status_t gcap_graph_manager_sign(gcap_graph_manager_t* manager, const gcap_graph_binding_t* bindings, size_t n) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_ERROR(gcap_graph_bindings_check(bindings, n));
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_open_run_t* run = &manager->run;
  gcap_status_t status = check_own_run(run);
  if (status == NULL && run->capture != NULL) {
    free(run->signature);
    status = gcap_graph_signature_create(bindings, n, &run->signature);
  }
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

// --- After a run ----------------------------------------------------------------------------------------------------

// Puts a new graph in its slot, and what it replaces on the list of retired ones.
static gcap_status_t commit(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, gcap_graph_captured_t* captured,
                            gcap_graph_captured_t** out_evicted) {
  gcap_graph_captured_t* old = slot->graph;
  slot->graph = captured;
  slot->failures_in_a_row = 0;
  slot->last_used = ++manager->clock;
  slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_COMMIT);
  ++slot->info.captures;
  ++slot->info.replays;
  if (old != NULL && captured->updated) ++slot->info.updates;
  if (old != NULL && !captured->updated) ++slot->info.reinstantiations;
  gcap_status_t status = old != NULL ? gcap_graph_retire(manager, old) : NULL;
  return gcap_status_join(status, gcap_graph_evict(manager, slot, out_evicted));
}

static gcap_status_t finish_capture(gcap_graph_manager_t* manager, gcap_graph_open_run_t* run, gcap_graph_slot_t* slot,
                                    gcap_status_t run_status, gcap_graph_captured_t** out_evicted) {
  gcap_capture_fail_once(run->capture, run_status);
  cudaGraph_t source = NULL;
  gcap_retained_t* retained = NULL;
  gcap_graph_captured_t* captured = NULL;
  gcap_status_t status = gcap_capture_end(run->capture, &source, &retained);
  slot->info.capture_ns = gcap_now_ns() - run->begin_ns;
  if (status == NULL) status = gcap_graph_captured_build(manager, slot, run, source, retained, &captured);
  if (captured != NULL) return gcap_status_join(status, commit(manager, slot, captured, out_evicted));
  status = gcap_status_annotate(status, GCAP_CAPTURE_INVALIDATED, "graph id %d", run->id);
  cool_down(manager, slot, status);
  return status;
}

static gcap_status_t finish_run(gcap_graph_manager_t* manager, gcap_graph_open_run_t* run, gcap_status_t run_status,
                                gcap_graph_captured_t** out_evicted) {
  const gcap_run_trace_t trace = gcap_graph_trace_end(run->trace);
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, run->id);
  if (run->capture == NULL) {
    if (slot != NULL && run_status == NULL) {
      ++slot->info.eager_runs;
      gcap_graph_history_add(&slot->history, trace);
    }
    return NULL;
  }
  if (gcap_graph_run_is_own_capture(manager)) return finish_capture(manager, run, slot, run_status, out_evicted);
  gcap_status_t status =
      GCAP_STATUS(GCAP_CAPTURE_INVALIDATED, "the capture of graph id %d was ended behind the manager's back", run->id);
  cool_down(manager, slot, status);
  return status;
}

// Closes the open run of this thread, and tells whether the device was given its work. What went wrong in a capture has
// the cause in it already; what went wrong beside an eager run comes behind its own failure.
static gcap_status_t close_run(gcap_graph_manager_t* manager, gcap_status_t run_status, bool* out_issued,
                               gcap_graph_captured_t** out_evicted) {
  const bool captures = manager->run.capture != NULL;
  gcap_status_t status = finish_run(manager, &manager->run, run_status, out_evicted);
  forget_run(&manager->run);
  *out_issued = run_status == NULL && gcap_status_code(status) != GCAP_CAPTURE_INVALIDATED;
  if (!captures) return gcap_status_join(run_status, status);
  gcap_status_free(run_status);
  return status;
}

gcap_status_t gcap_graph_manager_end_run(gcap_graph_manager_t* manager, gcap_status_t run_status, bool synchronize) {
  GCAP_RETURN_JOINED_IF_NULL(run_status, manager);
  gcap_graph_captured_t* evicted = NULL;
  pthread_mutex_lock(&manager->mutex);
  gcap_status_t status = check_own_run(&manager->run);
  if (status != NULL) {
    pthread_mutex_unlock(&manager->mutex);
    if (run_status == NULL) return status;
    gcap_status_ignore(status);  // no run is open because its begin failed, which `run_status` tells
    return run_status;
  }
  const cudaStream_t stream = manager->run.stream;
  bool was_issued = false;
  status = close_run(manager, run_status, &was_issued, &evicted);
  pthread_mutex_unlock(&manager->mutex);
  if (was_issued && synchronize) status = gcap_status_join(status, gcap_synchronize_stream(stream));
  return gcap_status_join(status, gcap_graph_clean_up(manager, evicted));
}

// --- A run in one call ----------------------------------------------------------------------------------------------

static gcap_status_t run_once(gcap_graph_manager_t* manager, int id, cudaStream_t stream, gcap_graph_work_t work,
                              void* user, bool synchronize, gcap_graph_run_kind_t* out_kind) {
  GCAP_RETURN_IF_ERROR(gcap_graph_manager_begin_run(manager, id, stream, out_kind));
  return gcap_graph_manager_end_run(manager, work(user, stream), synchronize);
}

gcap_status_t gcap_graph_manager_run(gcap_graph_manager_t* manager, int id, cudaStream_t stream, gcap_graph_work_t work,
                                     void* user, bool synchronize) {
  GCAP_RETURN_IF_NULL(manager);
  GCAP_RETURN_IF_NULL(work);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing(__func__));
  bool replayed = false;
  gcap_graph_replay_options_t replay;
  gcap_graph_replay_options_init(&replay);
  replay.on_stream = true;
  replay.stream = stream;
  replay.synchronize = synchronize;
  gcap_status_t status = gcap_graph_manager_replay(manager, id, &replay, &replayed);
  if (replayed || status != NULL) return status;
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  status = run_once(manager, id, stream, work, user, synchronize, &kind);
  const bool failed = kind == GCAP_GRAPH_RUN_CAPTURE && gcap_status_code(status) == GCAP_CAPTURE_INVALIDATED;
  if (!failed || !manager->options.rerun_failed_capture) return status;
  gcap_log(GCAP_LOG_WARNING, "graph id %d is run again, eagerly: %s", id, gcap_status_message(status));
  gcap_status_free(status);  // gcap_graph_manager_explain has a copy
  return run_once(manager, GCAP_GRAPH_ID_NONE, stream, work, user, synchronize, &kind);
}
