// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The open run: who has it, and what becomes of one that nobody ends.
//
// A run belongs to the thread that opened it. A thread is identified by its life, which is never reused. If that thread
// has exited, an eager run is abandoned. A capture is abandoned only when its scope has been closed, which the end of
// the thread does too: until then the thread's end may still write to the manager.
//
// Locking: the manager's mutex, but not over what calls back: the begin, the end and the abort of a capture, the log
// sink, the caller's work. The run is busy meanwhile: other threads, and callbacks of this one, are refused.

#include "lib/graph/run.h"

#include <stdlib.h>

#include "gcap/log.h"
#include "lib/capture/inner.h"
#include "lib/graph/inner.h"

bool gcap_graph_run_is_own_capture(const gcap_graph_manager_t* manager) {
  const gcap_graph_open_run_t* run = &manager->run;
  return run->capture != NULL && manager->scope_open && run->capture == gcap_capture_current();
}

void gcap_graph_run_forget(gcap_graph_open_run_t* run) {
  gcap_life_release(run->thread);
  gcap_life_release(run->stream_life);
  gcap_graph_refused_release(run->learned);
  free(run->signature);
  gcap_graph_stated_free(&run->stated);
  gcap_capture_steps_free(&run->steps);
  gcap_status_ignore(gcap_graph_moving_destroy(run->moving));  // its stand-ins are gone already
  *run = (gcap_graph_open_run_t){0};
}

void gcap_graph_run_begin_busy(gcap_graph_manager_t* manager) {
  manager->run.is_busy = true;
  gcap_graph_hold_locked(manager);
  pthread_mutex_unlock(&manager->mutex);
}

void gcap_graph_run_end_busy(gcap_graph_manager_t* manager) {
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_let_go_locked(manager);
  manager->run.is_busy = false;
}

bool gcap_graph_run_is_in_passing(const gcap_graph_manager_t* manager) {
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
  if (gcap_graph_run_is_in_passing(manager)) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "a run of id %d is just being begun or ended in this graph manager%s",
                       run->id, is_own ? ", by the call that this one is a callback of" : "");
  }
  if (is_orphan || is_own) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "another thread has a run of id %d open in this graph manager: let one thread at a time run, or "
                     "give each a manager",
                     run->id);
}

gcap_status_t gcap_graph_run_end_eager_values(const gcap_graph_open_run_t* run) {
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
  gcap_graph_run_begin_busy(manager);
  if (is_own_capture) gcap_capture_abort(run->capture);
  // Behind the abort: a sink that began a capture would abort this one.
  gcap_log(GCAP_LOG_WARNING, "a run of id %d was never ended; it was aborted", run->id);
  gcap_status_t status = knows_stream ? gcap_graph_run_end_eager_values(run) : NULL;
  gcap_graph_tap_list_free(&run->stated.taps);
  gcap_status_ignore(gcap_status_join(status, gcap_graph_moving_destroy(run->moving)));  // nobody asked for this end
  run->moving = NULL;
  gcap_graph_run_end_busy(manager);
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, run->id);
  if (run->capture != NULL && slot != NULL)
    slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_GIVE_UP);
  gcap_graph_run_forget(run);
  return NULL;
}

bool gcap_graph_manager_has_own_run(gcap_graph_manager_t* manager, int* out_id) {
  pthread_mutex_lock(&manager->mutex);
  const gcap_graph_open_run_t* run = &manager->run;
  const bool has_run = run->is_open && run->thread == gcap_thread_life() && !gcap_graph_run_is_in_passing(manager);
  *out_id = has_run ? run->id : GCAP_GRAPH_ID_NONE;
  pthread_mutex_unlock(&manager->mutex);
  return has_run;
}
