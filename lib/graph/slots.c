// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The slots of ids: found, measured, forgotten. Each is in one of two lists by last use: those with a graph, of which
// the budget evicts the oldest, and those without, of which the oldest are forgotten. So neither needs a walk over all
// ids. The caller holds the manager's mutex.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rename.h"
#include "lib/graph/manager.h"
#include "lib/internal/cache_line.h"

// A failure doubles the back-off at most this often: 1,024 times the first.
#define MAX_BACKOFF_DOUBLINGS 10u

gcap_status_t gcap_graph_not_captured(int id, gcap_graph_state_t state) {
  return GCAP_STATUS(GCAP_NOT_FOUND, "graph id %d is not captured: it is %s", id, gcap_graph_state_name(state));
}

gcap_status_t gcap_graph_name_failure(const gcap_graph_slot_t* slot, gcap_status_t status) {
  if (status == NULL || slot == NULL || slot->info.name[0] == '\0') return status;
  char id[32], name[GCAP_GRAPH_NAME_BYTES + 48];
  snprintf(id, sizeof(id), "graph id %d", slot->id);
  snprintf(name, sizeof(name), "graph key '%s' (id %d)", slot->info.name, slot->id);
  if (strstr(gcap_status_message(status), name) != NULL) return status;
  return gcap_status_rename(status, id, name);
}

void gcap_graph_slot_write_name(const gcap_graph_slot_t* slot, char* name) {
  const bool has_key_name = slot->info.name[0] != '\0';
  snprintf(name, GCAP_GRAPH_SLOT_NAME_BYTES, "graph id %d%s%s%s", slot->id, has_key_name ? ", key '" : "",
           slot->info.name, has_key_name ? "'" : "");
}

gcap_status_t gcap_graph_name_failure_of(gcap_graph_manager_t* manager, int id, gcap_status_t status) {
  if (status == NULL || id >= GCAP_GRAPH_ID_NONE) return status;
  pthread_mutex_lock(&manager->mutex);
  status = gcap_graph_name_failure(gcap_graph_find_slot(manager, id), status);
  pthread_mutex_unlock(&manager->mutex);
  return status;
}

static gcap_status_t find_if(gcap_graph_manager_t* manager, int id, bool must_replay, gcap_graph_slot_t** out_slot) {
  gcap_graph_slot_t* first = gcap_graph_find_slot(manager, id);
  for (gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    *out_slot = slot;
    if (must_replay ? slot->info.state == GCAP_GRAPH_CAPTURED : slot->graph != NULL) return NULL;
  }
  *out_slot = first;
  return gcap_graph_not_captured(id, first != NULL ? first->info.state : GCAP_GRAPH_COLD);
}

gcap_status_t gcap_graph_find(gcap_graph_manager_t* manager, int id, gcap_graph_slot_t** out_slot) {
  return find_if(manager, id, /*must_replay=*/false, out_slot);
}

gcap_status_t gcap_graph_find_replayable(gcap_graph_manager_t* manager, int id, gcap_graph_slot_t** out_slot) {
  return find_if(manager, id, /*must_replay=*/true, out_slot);
}

// --- Back-off -------------------------------------------------------------------------------------------------------

void gcap_graph_slot_cool_down(const gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, gcap_graph_step_t step,
                               gcap_status_t failure) {
  const uint32_t doublings =
      slot->failures_in_a_row < MAX_BACKOFF_DOUBLINGS ? slot->failures_in_a_row : MAX_BACKOFF_DOUBLINGS;
  slot->cooling_runs = (uint64_t)manager->options.backoff_runs << doublings;
  ++slot->failures_in_a_row;
  ++slot->info.failures;
  slot->info.state = gcap_graph_state_after(slot->info.state, step);
  gcap_status_free(slot->last_failure);
  slot->last_failure = gcap_status_clone(failure);
  slot->why_eager = GCAP_EAGER_CAPTURE_FAILED;
}

// --- Lists ----------------------------------------------------------------------------------------------------------

static gcap_graph_slot_list_t* list_of(gcap_graph_manager_t* manager, const gcap_graph_slot_t* slot) {
  return slot->graph != NULL ? &manager->captured : &manager->idle;
}

static void list_add_newest(gcap_graph_slot_list_t* list, gcap_graph_slot_t* slot) {
  slot->newer = NULL;
  slot->older = list->newest;
  *(slot->older != NULL ? &slot->older->newer : &list->oldest) = slot;
  list->newest = slot;
  ++list->count;
}

static void list_remove(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  gcap_graph_slot_list_t* list = list_of(manager, slot);
  *(slot->newer != NULL ? &slot->newer->older : &list->newest) = slot->older;
  *(slot->older != NULL ? &slot->older->newer : &list->oldest) = slot->newer;
  --list->count;
}

void gcap_graph_slot_make_newest(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  list_remove(manager, slot);
  list_add_newest(list_of(manager, slot), slot);
}

// The newest one stays, so no slot that is being used goes.
static void forget_idle(gcap_graph_manager_t* manager) {
  const size_t most = manager->options.max_ids_without_graph;
  while (most != 0 && manager->idle.count > most) gcap_graph_slot_remove(manager, manager->idle.oldest);
}

// --- Slots ----------------------------------------------------------------------------------------------------------

gcap_graph_slot_t* gcap_graph_slot_add(gcap_graph_manager_t* manager, int id) {
  gcap_graph_slot_t* slot = gcap_calloc_line(sizeof(*slot));
  gcap_graph_slot_cell_t* cell = slot != NULL ? gcap_hash_table_insert(&manager->slots, gcap_graph_key_of(id)) : NULL;
  if (cell == NULL) {
    free(slot);
    return NULL;
  }
  slot->id = id;
  cell->slot = slot;
  list_add_newest(&manager->idle, slot);
  forget_idle(manager);
  return slot;
}

// Ids of keys are given anew only after some two thousand millions, of which few are still there.
static int find_free_id(gcap_graph_manager_t* manager) {
  int id = gcap_graph_keys_next_id(&manager->keys);
  while (gcap_graph_find_slot(manager, id) != NULL) id = gcap_graph_keys_next_id(&manager->keys);
  return id;
}

gcap_graph_slot_t* gcap_graph_slot_add_key(gcap_graph_manager_t* manager, const gcap_graph_key_t* key) {
  gcap_graph_known_key_t* known = gcap_graph_keys_add(&manager->keys, key);
  gcap_graph_slot_t* slot = known != NULL ? gcap_graph_slot_add(manager, find_free_id(manager)) : NULL;
  if (slot == NULL) {
    gcap_graph_keys_remove(&manager->keys, known);
    return NULL;
  }
  slot->key = known;
  gcap_graph_keys_lead(&manager->keys, known, slot);
  if (key->name != NULL) snprintf(slot->info.name, sizeof(slot->info.name), "%s", key->name);
  return slot;
}

// --- Variants -------------------------------------------------------------------------------------------------------

static void note_guarded(gcap_graph_slot_t* slot) {
  slot->is_guarded =
      slot->variant != NULL || slot->has_lost_later || (slot->graph != NULL && slot->graph->guards != NULL);
}

void gcap_graph_slot_note_named(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  slot->last_named = ++manager->num_uses;
  if (!slot->has_lost_later) return;
  slot->has_lost_later = false;
  note_guarded(slot);
}

// Lets the table and the key lead to the slot.
static void lead_to(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  gcap_graph_slot_cell_t* cell = gcap_hash_table_find(&manager->slots, gcap_graph_key_of(slot->id));
  cell->slot = slot;
  if (slot->key != NULL) gcap_graph_keys_lead(&manager->keys, slot->key, slot);
  slot->is_variant = false;
}

// Takes the slot out of its chain. The id keeps its place in the table while it has another slot.
static void unchain(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  gcap_graph_slot_t* newer = gcap_graph_find_slot(manager, slot->id);
  if (newer == slot) {
    if (slot->variant != NULL) lead_to(manager, slot->variant);
    return;
  }
  while (newer->variant != slot) newer = newer->variant;
  newer->variant = slot->variant;
  note_guarded(newer);
}

// Puts a slot that is in no chain before the first of its id.
static void put_first(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, gcap_graph_slot_t* first) {
  slot->variant = first;
  first->is_variant = true;
  slot->why_eager = first->why_eager;
  slot->why_other = first->why_other;
  first->why_other = NULL;
  lead_to(manager, slot);
  note_guarded(slot);
}

void gcap_graph_slot_make_first(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  gcap_graph_slot_t* first = gcap_graph_find_slot(manager, slot->id);
  if (first == slot) return;
  unchain(manager, slot);
  put_first(manager, slot, first);
}

gcap_graph_slot_t* gcap_graph_slot_add_variant(gcap_graph_manager_t* manager, gcap_graph_slot_t* first) {
  gcap_graph_slot_t* slot = gcap_calloc_line(sizeof(*slot));
  if (slot == NULL) return NULL;
  slot->id = first->id;
  slot->key = first->key;
  slot->refused = gcap_graph_refused_retain(first->refused);
  memcpy(slot->info.name, first->info.name, sizeof(slot->info.name));
  slot->info.state =
      gcap_graph_state_after(gcap_graph_state_after(GCAP_GRAPH_COLD, GCAP_GRAPH_STEP_FIRST_RUN), GCAP_GRAPH_STEP_WARM);
  put_first(manager, slot, first);
  list_add_newest(&manager->idle, slot);
  forget_idle(manager);
  return slot;
}

void gcap_graph_info_add(gcap_graph_info_t* sum, const gcap_graph_info_t* info) {
  sum->replays += info->replays;
  sum->eager_runs += info->eager_runs;
  sum->captures += info->captures;
  sum->failures += info->failures;
  sum->nodes += info->nodes;
  sum->bytes += info->bytes;
  sum->updates += info->updates;
  sum->reinstantiations += info->reinstantiations;
  sum->evictions += info->evictions;
  sum->kernel_nodes += info->kernel_nodes;
  sum->exec_bytes += info->exec_bytes;
  sum->holes += info->holes;
  sum->refused_steps += info->refused_steps;
}

void gcap_graph_slot_merge(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  gcap_graph_slot_t* other = gcap_graph_find_slot(manager, slot->id);
  if (other == slot) other = slot->variant;
  if (other == NULL) return;
  for (gcap_graph_slot_t* left = gcap_graph_find_slot(manager, slot->id); left != NULL; left = left->variant) {
    if (left == slot || left->last_named > slot->last_named) continue;
    left->has_lost_later = true;
    note_guarded(left);
  }
  gcap_graph_info_add(&other->info, &slot->info);
  gcap_graph_slot_remove(manager, slot);
}

// --- Graphs ---------------------------------------------------------------------------------------------------------

static void set_bytes(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, size_t bytes) {
  manager->captured_bytes += bytes - slot->info.bytes;
  slot->info.bytes = bytes;
}

void gcap_graph_slot_remove(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  list_remove(manager, slot);
  set_bytes(manager, slot, 0);
  unchain(manager, slot);
  gcap_graph_slot_cell_t* cell = gcap_hash_table_find(&manager->slots, gcap_graph_key_of(slot->id));
  if (cell->slot == slot) {
    gcap_hash_table_remove(&manager->slots, cell);
    gcap_graph_keys_remove(&manager->keys, slot->key);
  }
  gcap_status_free(slot->last_failure);
  gcap_status_free(slot->update_refusal);
  gcap_status_free(slot->change);
  gcap_status_free(slot->why_other);
  gcap_graph_refused_release(slot->refused);
  gcap_status_ignore(gcap_graph_moving_destroy(slot->rehearsed));  // its stand-ins are gone already
  free(slot);
}

gcap_graph_captured_t* gcap_graph_slot_set_graph(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot,
                                                 gcap_graph_captured_t* graph) {
  gcap_graph_captured_t* old = slot->graph;
  list_remove(manager, slot);
  if (graph == NULL) set_bytes(manager, slot, 0);
  slot->graph = graph;
  slot->is_passed = false;
  note_guarded(slot);
  list_add_newest(list_of(manager, slot), slot);
  forget_idle(manager);
  return old;
}

// Measures one graph, without the mutex meanwhile, and gives the slot after it: the next older one of where it is then.
static gcap_graph_slot_t* measure(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  const int id = slot->id;
  const gcap_graph_captured_t* graph = slot->graph;
  const gcap_graph_memory_use_t use = graph->use;
  gcap_retained_t* retained = gcap_retained_share(graph->retained);
  slot->walk = manager->num_walks;
  pthread_mutex_unlock(&manager->mutex);
  gcap_graph_info_t measured = {0};
  gcap_graph_measure(&use, retained, &measured);
  gcap_retained_release(retained);
  pthread_mutex_lock(&manager->mutex);
  slot = gcap_graph_find_slot(manager, id);
  while (slot != NULL && slot->graph != graph) slot = slot->variant;
  if (slot == NULL) return manager->captured.newest;  // it was released
  set_bytes(manager, slot, measured.bytes);
  return slot->older;
}

// A replay makes its slot the newest, behind the back of a walk: the list is walked until all in it were measured.
void gcap_graph_slots_measure(gcap_graph_manager_t* manager) {
  ++manager->num_walks;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (gcap_graph_slot_t* slot = manager->captured.newest; slot != NULL;) {
      const bool is_measured = slot->walk == manager->num_walks;
      goes_on = goes_on || !is_measured;
      slot = is_measured ? slot->older : measure(manager, slot);
    }
  }
}
