// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// open_run.h: what else lib/context and lib/runtime want of a manager: whether a run is open, whether the manager could
// end now, and that it does not end.
#ifndef GCAP_LIB_GRAPH_OPEN_RUN_H_
#define GCAP_LIB_GRAPH_OPEN_RUN_H_

#include "gcap/graph.h"

// Tells whether the calling thread has a run of the manager open. Takes the manager's mutex.
bool gcap_graph_manager_has_own_run(gcap_graph_manager_t* manager);

// Tells whether a run of `id` that is begun now would be captured. Takes the manager's mutex.
bool gcap_graph_manager_captures_next(gcap_graph_manager_t* manager, int id);

// The refusal that gcap_graph_manager_destroy would answer now; NULL: it would end the manager. Changes nothing. Takes
// the manager's mutex.
//   FAILED_PRECONDITION  as gcap_graph_manager_destroy
gcap_status_t gcap_graph_manager_check_end(gcap_graph_manager_t* manager) GCAP_NODISCARD;

// Between these two the caller uses callbacks, and the manager afterwards: nobody destroys it. They take the mutex.
void gcap_graph_manager_hold(gcap_graph_manager_t* manager);
void gcap_graph_manager_let_go(gcap_graph_manager_t* manager);

#endif  // GCAP_LIB_GRAPH_OPEN_RUN_H_
