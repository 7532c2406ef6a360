// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The slots of ids: found, measured, freed. The caller holds the manager's mutex, except to free a slot.

#include <stdlib.h>

#include "lib/graph/manager.h"
#include "lib/internal/cache_line.h"

gcap_status_t gcap_graph_not_captured(int id, gcap_graph_state_t state) {
  return GCAP_STATUS(GCAP_NOT_FOUND, "graph id %d is not captured: it is %s", id, gcap_graph_state_name(state));
}

static gcap_status_t find_if(gcap_graph_manager_t* manager, int id, bool must_replay, gcap_graph_slot_t** out_slot) {
  gcap_graph_slot_t* slot = gcap_graph_find_slot(manager, id);
  *out_slot = slot;
  const gcap_graph_state_t state = slot != NULL ? slot->info.state : GCAP_GRAPH_COLD;
  if (slot != NULL && (must_replay ? state == GCAP_GRAPH_CAPTURED : slot->graph != NULL)) return NULL;
  return gcap_graph_not_captured(id, state);
}

gcap_status_t gcap_graph_find(gcap_graph_manager_t* manager, int id, gcap_graph_slot_t** out_slot) {
  return find_if(manager, id, /*must_replay=*/false, out_slot);
}

gcap_status_t gcap_graph_find_replayable(gcap_graph_manager_t* manager, int id, gcap_graph_slot_t** out_slot) {
  return find_if(manager, id, /*must_replay=*/true, out_slot);
}

void gcap_graph_slot_free(gcap_graph_slot_t* slot) {
  gcap_status_free(slot->last_failure);
  gcap_status_free(slot->update_refusal);
  free(slot);
}

void gcap_graph_slot_measure(gcap_graph_slot_t* slot) {
  const gcap_graph_captured_t* graph = slot->graph;
  slot->info.bytes = graph == NULL ? 0 : graph->node_bytes + gcap_retained_bytes(graph->retained);
}

gcap_graph_slot_t* gcap_graph_slot_add(gcap_graph_manager_t* manager, int id) {
  gcap_graph_slot_t* slot = gcap_calloc_line(sizeof(*slot));
  gcap_graph_slot_cell_t* cell = slot != NULL ? gcap_hash_table_insert(&manager->slots, gcap_graph_key_of(id)) : NULL;
  if (cell == NULL) {
    free(slot);
    return NULL;
  }
  slot->id = id;
  cell->slot = slot;
  return slot;
}

void gcap_graph_slot_remove(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot) {
  gcap_hash_table_remove(&manager->slots, gcap_hash_table_find(&manager->slots, gcap_graph_key_of(slot->id)));
  gcap_graph_slot_free(slot);
}
