// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The next run of an id: whether it is captured, and what the manager has for it.
//
// Locking: the manager's mutex, which the functions of a gcap_graph_manager_t take themselves.

#include "lib/graph/next_run.h"

#include "lib/graph/inner.h"
#include "lib/graph/variants.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"

void gcap_graph_skip_to_capture(gcap_graph_slot_t* slot) {
  gcap_graph_state_t state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_FIRST_RUN);
  state = gcap_graph_state_after(state, GCAP_GRAPH_STEP_WARM);
  slot->info.state = gcap_graph_state_after(state, GCAP_GRAPH_STEP_COOLED);
  slot->cooling_runs = 0;
}

bool gcap_graph_plan_run(const gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
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

bool gcap_graph_captures_next(const gcap_graph_manager_t* manager, const gcap_graph_slot_t* slot, bool has_graph) {
  if (has_graph) return false;
  if (slot != NULL && slot->info.state == GCAP_GRAPH_CAPTURED) return true;
  gcap_graph_slot_t rehearsed = {0};
  if (slot != NULL) rehearsed = *slot;
  return gcap_graph_plan_run(manager, &rehearsed);
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
