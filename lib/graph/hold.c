// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Who uses a manager: a count of the calls that do so after their callbacks, by which its destroy is refused, and a
// graph that is in a hole. The manager's mutex guards both.

#include "lib/graph/inner.h"
#include "lib/graph/manager.h"

void gcap_graph_manager_hold(gcap_graph_manager_t* manager) {
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_hold_locked(manager);
  pthread_mutex_unlock(&manager->mutex);
}

void gcap_graph_manager_let_go(gcap_graph_manager_t* manager) {
  pthread_mutex_lock(&manager->mutex);
  gcap_graph_let_go_locked(manager);
  pthread_mutex_unlock(&manager->mutex);
}

gcap_status_t gcap_graph_check_no_hole(const gcap_graph_manager_t* manager) {
  if (manager->in_hole == NULL) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "graph id %d is being launched, and is in a hole: let one thread at a time run, or give each a "
                     "manager; the function of a hole may not",
                     manager->in_hole->id);
}
