// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Twins are two graphs of an id of which each is for the runs of the other: the later one was captured although the
// earlier one was there. What their works stated is compared, and not what is behind the guards now, so no memory is
// looked at that may be gone.

#include "test/graph/twins.h"

#include "lib/graph/manager.h"

static bool states_alike(const gcap_graph_guards_t* a, const gcap_graph_guards_t* b) {
  if (a == NULL || b == NULL) return a == b;
  gcap_status_t differ = gcap_graph_stated_compare(&a->stated, &b->stated);
  gcap_status_ignore(differ);
  return differ == NULL;
}

// Which groups of buffers touched in the capture.
static bool touches_alike(const gcap_layout_t* a, const gcap_layout_t* b) {
  for (size_t i = 0; i < a->num_groups; ++i) {
    const size_t group = b->group_of[a->groups[i].first], next = a->groups[i].next;
    if ((next == GCAP_LAYOUT_NONE) != (b->groups[group].next == GCAP_LAYOUT_NONE)) return false;
    if (next == GCAP_LAYOUT_NONE) continue;
    if (b->group_of[a->groups[next].first] != b->groups[group].next) return false;
  }
  return true;
}

static bool lie_alike(const gcap_graph_moving_t* a, const gcap_graph_moving_t* b) {
  if (a == NULL || b == NULL || a->count != b->count) return a == b;
  return gcap_layout_is_same(&a->layout, a->buffers, &b->layout, b->buffers) && touches_alike(&a->layout, &b->layout);
}

static bool are_twins(const gcap_graph_slot_t* a, const gcap_graph_slot_t* b) {
  if (a->info.state != GCAP_GRAPH_CAPTURED || b->info.state != GCAP_GRAPH_CAPTURED) return false;
  return states_alike(a->graph->guards, b->graph->guards) && lie_alike(a->graph->moving, b->graph->moving);
}

size_t gcap_test_count_twins(gcap_graph_manager_t* manager) {
  size_t count = 0;
  if (manager == NULL) return 0;
  pthread_mutex_lock(&manager->mutex);
  for (const gcap_graph_slot_t* slot = manager->captured.newest; slot != NULL; slot = slot->older) {
    for (const gcap_graph_slot_t* other = slot->variant; other != NULL; other = other->variant) {
      count += are_twins(slot, other);
    }
  }
  pthread_mutex_unlock(&manager->mutex);
  return count;
}
