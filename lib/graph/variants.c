// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Variants. The slots of one id are a chain, newest capture first; the table and the key lead to the first. Each has a
// graph with guards of its own, and its own place in the lists by last use, so budget and eviction count variants. All
// but the first have a graph. A slot that is being captured is the first, which is how the end of a run finds it.
//
// A run takes the first graph that replays and whose guards hold. If there is none, the run's capture fills another
// slot, so the capture of one variant leaves the others alone, until there are max_variants of them.
//
// Locking: the manager's mutex. It is dropped around the functions of guards, on guards that are retained meanwhile;
// afterwards the graph is looked for again.

#include "lib/graph/variants.h"

// The slot of the chain that has these guards and replays.
static gcap_graph_slot_t* find_guarded(gcap_graph_slot_t* first, const gcap_graph_guards_t* guards) {
  for (gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    if (slot->info.state == GCAP_GRAPH_CAPTURED && slot->graph->guards == guards) return slot;
  }
  return NULL;
}

// Asks the functions of guards. `*out_slot`: the slot that has them still; NULL: the graph is gone.
static gcap_status_t ask(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_graph_guards_t* guards,
                         gcap_graph_slot_t** out_slot) {
  GCAP_RETURN_IF_ERROR(gcap_graph_refuse_in_guard("a replay of a graph with guards"));
  gcap_graph_guards_retain(guards);
  gcap_graph_hold_locked(manager);
  pthread_mutex_unlock(&manager->mutex);
  gcap_graph_asked_t asked;
  gcap_graph_guards_ask(guards, &asked);
  gcap_status_t left_open = gcap_check_thread_not_capturing("a replay, behind the function of a guard");
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_let_go_locked(manager);
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

gcap_status_t gcap_graph_choose(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_graph_choice_t* out_choice) {
  *out_choice = (gcap_graph_choice_t){0};
  gcap_graph_slot_t* slot = gcap_graph_find_slot_of_run(manager, run);
  while (slot != NULL) {
    bool holds = false;
    if (slot->info.state == GCAP_GRAPH_CAPTURED) {
      GCAP_RETURN_IF_ERROR(look(manager, run, &slot, &holds));
      if (slot == NULL) return gcap_graph_choose(manager, run, out_choice);  // the graph went meanwhile
      out_choice->has_graph = true;
      out_choice->has_failed |= !holds && slot->graph->guards->failure != NULL;
    }
    if (holds) {
      slot->last_use = ++manager->num_uses;
      out_choice->held = slot;
      return NULL;
    }
    slot = slot->variant;
  }
  gcap_graph_slot_t* first = gcap_graph_find_slot_of_run(manager, run);
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
    const size_t most = manager->options.max_variants;
    size_t count = 0;
    for (const gcap_graph_slot_t* variant = first; variant != NULL; variant = variant->variant) ++count;
    if (most == 0 || count < most) return gcap_graph_slot_add_variant(manager, first);
    slot = find_least_used(first);
    slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_RECAPTURE);
  }
  gcap_graph_slot_make_first(manager, slot);
  return slot;
}

// --- Questions ------------------------------------------------------------------------------------------------------

bool gcap_graph_may_hold(gcap_graph_slot_t* first) {
  for (gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    if (slot->info.state != GCAP_GRAPH_CAPTURED) continue;
    if (slot->graph->guards == NULL || gcap_graph_guards_look(slot->graph->guards)) return true;
  }
  return false;
}

bool gcap_graph_asks(const gcap_graph_slot_t* first) {
  for (const gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    if (slot->graph != NULL && slot->graph->guards != NULL && slot->graph->guards->num_asks > 0) return true;
  }
  return false;
}

gcap_status_t gcap_graph_why_other(const gcap_graph_slot_t* first) {
  for (const gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    gcap_status_t why = slot->graph != NULL ? gcap_graph_guards_explain(slot->graph->guards, slot->id) : NULL;
    if (why != NULL) return why;
  }
  return gcap_status_clone(first->why_other);
}
