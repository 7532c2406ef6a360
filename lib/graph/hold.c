// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Holds: a count of the calls that use a manager after their callbacks, by which its destroy is refused. The manager's
// mutex guards the count.

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
