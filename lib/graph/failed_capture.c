// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Failed captures. An id whose capture failed stays eager for some runs, and for more after each further failure in a
// row: a capture costs, and most reasons stay. A step that is a hole from the next capture on is a reason that does not
// stay, so the next run may be captured. The number of such failures of an id is bounded by
// GCAP_GRAPH_MAX_REFUSED_STEPS.
//
// Locking: the manager's mutex, but not over the log.

#include "lib/graph/failed_capture.h"

#include "gcap/log.h"

bool gcap_graph_learn_refused(gcap_graph_open_run_t* run, const gcap_graph_slot_t* slot, gcap_status_t why) {
  const gcap_graph_hole_list_t* holes = &run->stated.holes;
  if (why == NULL || !holes->is_refused || run->is_left || gcap_status_code(why) == GCAP_DEVICE_LOST) return false;
  run->learned = gcap_graph_refused_with(holes->refused, &holes->tried);
  if (run->learned == NULL) return false;
  char name[GCAP_GRAPH_SLOT_NAME_BYTES];
  gcap_graph_slot_write_name(slot, name);
  gcap_log(GCAP_LOG_WARNING,
           "%s: a capture refused the step '%s', which is a hole from the next capture on, and costs each replay one "
           "launch and one call more (%zu segments up to there): %s",
           name, holes->tried.name, holes->count + 2, gcap_status_message(why));
  return true;
}

void gcap_graph_keep_refused(gcap_graph_manager_t* manager, gcap_graph_slot_t* first) {
  gcap_graph_refused_t* learned = manager->run.learned;
  if (learned == NULL) return;
  manager->run.learned = NULL;
  for (gcap_graph_slot_t* slot = first; slot != NULL; slot = slot->variant) {
    gcap_graph_refused_release(slot->refused);
    slot->refused = gcap_graph_refused_retain(learned);
  }
  gcap_graph_refused_release(learned);
}

void gcap_graph_capture_failed(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot, gcap_status_t failure) {
  if (manager->run.learned == NULL) {
    gcap_graph_slot_cool_down(manager, slot, GCAP_GRAPH_STEP_FAILURE, failure);
    return;
  }
  gcap_graph_keep_refused(manager, slot);
  ++slot->info.failures;
  gcap_status_free(slot->last_failure);
  slot->last_failure = gcap_status_clone(failure);
  slot->info.state = gcap_graph_state_after(slot->info.state, GCAP_GRAPH_STEP_GIVE_UP);
  slot->why_eager = manager->run.why_eager = GCAP_EAGER_STEP_REFUSED;
}
