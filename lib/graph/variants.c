// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Variants. The slots of one id are a chain, newest capture first; the table and the key lead to the first. Each has a
// graph with guards and buffers of its own, and its own place in the lists by last use, so budget and eviction count
// variants. All but the first have a graph. A slot that is being captured is the first, which is how the end of a run
// finds it.
//
// A run takes the first graph that replays, whose guards hold, and whose buffers lie to one another as the run's. If
// there is none, the run's capture fills another slot, so the capture of one variant leaves the others alone. There are
// max_variants at most. Then another decision takes the place of a graph, since no graph is right for it. Buffers that
// lie otherwise take none: their run is left to its work. An engine's decisions are few and come back; how the blocks
// of an allocator touch is chance, and each run would be a capture.
//
// Locking: the manager's mutex. It is dropped around the functions of guards, on guards that are retained meanwhile;
// afterwards the graph is looked for again.

#include "lib/graph/variants.h"

#include "lib/graph/bind.h"
#include "lib/internal/unwind.h"

// The slot of the chain that has these guards and replays.
static gcap_graph_slot_t* find_guarded(gcap_graph_slot_t* first, const gcap_graph_guards_t* guards) {
  for (gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    if (slot->info.state == GCAP_GRAPH_CAPTURED && slot->graph->guards == guards) return slot;
  }
  return NULL;
}

// Guards whose functions are asked without the mutex; no manager: they have answered.
typedef struct asking {
  gcap_graph_manager_t* manager;
  gcap_graph_guards_t* guards;
} asking_t;

static void end_asking_locked(asking_t* asking) {
  gcap_graph_let_go_locked(asking->manager);
  asking->manager = NULL;
}

// A function did not return. The mutex is free then, and stays so.
static void end_on_unwind(asking_t* asking) {
  if (asking->manager == NULL) return;
  pthread_mutex_t* mutex = &asking->manager->mutex;
  pthread_mutex_lock(mutex);
  end_asking_locked(asking);
  pthread_mutex_unlock(mutex);
  gcap_graph_guards_release(asking->guards);
}

// Asks the functions of guards. `*out_slot`: the slot that has them still; NULL: the graph is gone.
static gcap_status_t ask(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_graph_guards_t* guards,
                         gcap_graph_slot_t** out_slot) {
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_guard("a replay of a graph with guards"));
  gcap_graph_guards_retain(guards);
  gcap_graph_hold_locked(manager);
  GCAP_AT_SCOPE_END(end_on_unwind) asking_t asking = {manager, guards};
  pthread_mutex_unlock(&manager->mutex);
  gcap_graph_asked_t asked;
  gcap_graph_guards_ask(guards, &asked);
  gcap_status_t left_open = gcap_check_thread_not_capturing("a replay, behind the function of a guard");
  pthread_mutex_lock(&manager->mutex);
  end_asking_locked(&asking);
  gcap_graph_guards_note(guards, &asked);
  *out_slot = find_guarded(gcap_graph_find_slot_of_run(manager, run), guards);
  gcap_graph_guards_release(guards);
  return left_open;
}

// Whether the guards of a graph hold. What a function may have changed is looked at once more behind it. `*slot` is
// NULL afterwards if the graph is gone.
static gcap_status_t look(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_graph_slot_t** slot,
                          bool* out_holds) {
  gcap_graph_guards_t* guards = (*slot)->graph->guards;
  *out_holds = guards == NULL || gcap_graph_guards_look(guards);
  if (!*out_holds || guards == NULL || guards->num_asks == 0) return NULL;
  GCAP_RETURN_IF_ERROR(ask(manager, run, guards, slot));
  *out_holds = *slot != NULL && guards->flipped == 0 && gcap_graph_guards_look(guards);
  return NULL;
}

static void keep_why(gcap_graph_slot_t* first) {
  gcap_status_free(first->why_other);
  first->why_other = gcap_graph_why_other(first);
}

// Notes what the guards of a captured slot's graph say, and whether buffers lie as its own. NULL: however they lie.
static bool is_for(gcap_graph_slot_t* slot, bool holds, const gcap_graph_buffers_t* buffers,
                   gcap_graph_choice_t* choice) {
  gcap_graph_moving_t* moving = slot->graph->moving;
  choice->has_graph = true;
  choice->has_failed |= !holds && slot->graph->guards->failure != NULL;
  if (!holds && moving != NULL) moving->passed_by.what = NULL;
  const bool lies = !holds || buffers == NULL || gcap_graph_lies(slot, buffers);
  choice->lies_otherwise |= !lies;
  slot->is_passed = !holds || !lies;
  return !slot->is_passed;
}

static gcap_status_t walk(gcap_graph_manager_t* manager, const gcap_run_t* run, const gcap_graph_buffers_t* buffers,
                          gcap_graph_choice_t* out_choice) {
  *out_choice = (gcap_graph_choice_t){0};
  gcap_graph_slot_t* slot = gcap_graph_find_slot_of_run(manager, run);
  for (; slot != NULL; slot = slot->variant) {
    if (slot->info.state != GCAP_GRAPH_CAPTURED) continue;
    bool holds = false;
    GCAP_RETURN_IF_ERROR(look(manager, run, &slot, &holds));
    if (slot == NULL) return walk(manager, run, buffers, out_choice);  // the graph went meanwhile
    if (!is_for(slot, holds, buffers, out_choice)) continue;
    slot->last_use = ++manager->num_uses;
    out_choice->held = slot;
    return NULL;
  }
  return NULL;
}

// Whether the id may have a graph more.
static bool has_room(const gcap_graph_manager_t* manager, const gcap_graph_slot_t* first) {
  const size_t most = manager->options.max_variants;
  size_t count = 0;
  for (const gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    if (slot->info.state != GCAP_GRAPH_CAPTURED) return true;
    ++count;
  }
  return most == 0 || count < most;
}

static bool has_buffers(const gcap_graph_slot_t* slot) {
  return slot->graph->moving != NULL && slot->graph->moving->count != 0;
}

// Of a run without buffers, and the graph that was chosen for it: another one may be for the run too.
static gcap_status_t check_whose_buffers(gcap_graph_slot_t* first, const gcap_graph_slot_t* held) {
  if (held->has_lost_later) return gcap_graph_check_alone(held);
  for (gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    if (slot == held || slot->info.state != GCAP_GRAPH_CAPTURED || !has_buffers(slot)) continue;
    if (slot->graph->guards == NULL || gcap_graph_guards_look(slot->graph->guards)) return gcap_graph_check_alone(slot);
  }
  return NULL;
}

gcap_status_t gcap_graph_choose(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_graph_choice_t* out_choice) {
  GCAP_RETURN_IF_ERROR(walk(manager, run, run->buffers, out_choice));
  const bool is_held = out_choice->held != NULL;
  if (is_held && (run->buffers != NULL || !has_buffers(out_choice->held))) return NULL;
  gcap_graph_slot_t* first = gcap_graph_find_slot_of_run(manager, run);
  if (is_held) {
    gcap_status_t status = check_whose_buffers(first, out_choice->held);
    out_choice->is_one_of_many = status != NULL;
    if (status != NULL) out_choice->held = NULL;
    return status;
  }
  if (out_choice->lies_otherwise && first != NULL && !has_room(manager, first)) {
    return walk(manager, run, /*buffers=*/NULL, out_choice);
  }
  if (out_choice->has_graph && first != NULL) keep_why(first);
  return NULL;
}

// --- The slot of the next capture -----------------------------------------------------------------------------------

static gcap_graph_slot_t* find_pending(gcap_graph_slot_t* first) {
  gcap_graph_slot_t* slot = first;
  while (slot != NULL && slot->info.state == GCAP_GRAPH_CAPTURED) slot = slot->variant;
  return slot;
}

// Of graphs that are not pinned, if there are any.
static gcap_graph_slot_t* find_least_used(gcap_graph_slot_t* first) {
  gcap_graph_slot_t* least = first;
  for (gcap_graph_slot_t* slot = first->variant; slot != NULL; slot = slot->variant) {
    if (slot->is_pinned > least->is_pinned) continue;
    if (slot->is_pinned < least->is_pinned || slot->last_use <= least->last_use) least = slot;
  }
  return least;
}

gcap_graph_slot_t* gcap_graph_slot_to_capture(gcap_graph_manager_t* manager, gcap_graph_slot_t* first) {
  gcap_graph_slot_t* slot = find_pending(first);
  if (slot == NULL) {
    if (has_room(manager, first)) return gcap_graph_slot_add_variant(manager, first);
    slot = find_least_used(first);
    slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_RECAPTURE);
  }
  gcap_graph_slot_make_first(manager, slot);
  return slot;
}

// --- Questions ------------------------------------------------------------------------------------------------------

bool gcap_graph_may_hold(const gcap_graph_manager_t* manager, gcap_graph_slot_t* first,
                         const gcap_graph_buffers_t* buffers) {
  bool lies_otherwise = false;
  for (gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    if (slot->info.state != GCAP_GRAPH_CAPTURED) continue;
    if (slot->graph->guards != NULL && !gcap_graph_guards_look(slot->graph->guards)) continue;
    if (buffers == NULL || gcap_graph_lies(slot, buffers)) return true;
    lies_otherwise = true;
  }
  return lies_otherwise && !has_room(manager, first);
}

bool gcap_graph_held_last(const gcap_graph_slot_t* first) {
  const gcap_graph_slot_t* slot = first;
  while (slot != NULL && (slot->info.state != GCAP_GRAPH_CAPTURED || (slot->is_passed && first->is_guarded))) {
    slot = slot->variant;
  }
  return slot != NULL;
}

bool gcap_graph_asks(const gcap_graph_slot_t* first) {
  for (const gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    if (slot->graph != NULL && slot->graph->guards != NULL && slot->graph->guards->num_asks > 0) return true;
  }
  return false;
}

// Of the two, what was found last.
static gcap_status_t why_passed(const gcap_graph_slot_t* slot) {
  const gcap_graph_moving_t* moving = slot->graph->moving;
  gcap_status_t why = moving != NULL ? gcap_graph_moving_explain_passed(moving) : NULL;
  if (why == NULL) return gcap_graph_guards_explain(slot->graph->guards, slot->id);
  return gcap_status_annotate(why, gcap_status_code(why), "graph id %d", slot->id);
}

gcap_status_t gcap_graph_why_other(const gcap_graph_slot_t* first) {
  for (const gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    gcap_status_t why = slot->graph != NULL ? why_passed(slot) : NULL;
    if (why != NULL) return why;
  }
  return gcap_status_clone(first->why_other);
}

gcap_graph_slot_t* gcap_graph_find_launched(gcap_graph_manager_t* manager, int id) {
  gcap_graph_slot_t* launched = NULL;
  for (gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, id); slot != NULL; slot = slot->variant) {
    if (slot->graph == NULL || slot->info.state != GCAP_GRAPH_CAPTURED) continue;
    if (launched == NULL || slot->last_use > launched->last_use) launched = slot;
  }
  return launched;
}

gcap_graph_slot_t* gcap_graph_find_verified(gcap_graph_manager_t* manager, int id, uint64_t ticket) {
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, id);
  while (slot != NULL && (slot->graph == NULL || slot->graph->verify.ticket != ticket)) slot = slot->variant;
  return slot;
}
