// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run.h: the open run, for the files that must know of it. Called with the manager's mutex held.
#ifndef GCAP_LIB_GRAPH_RUN_H_
#define GCAP_LIB_GRAPH_RUN_H_

#include "lib/graph/manager.h"

// Whether the open run is a capture whose scope is still there to be ended by this thread.
bool gcap_graph_run_is_own_capture(const gcap_graph_manager_t* manager);

// Whether a run of `id` that is begun now would be captured. `slot` is that of the id; NULL: there is none.
bool gcap_graph_captures_next(const gcap_graph_manager_t* manager, int id, const gcap_graph_slot_t* slot);

// The refusal of the next function; NULL: there is none.
gcap_status_t gcap_graph_run_check_abandoned(const gcap_graph_manager_t* manager);
// Aborts a run that this thread, or one that has exited, left open. Drops the mutex meanwhile, since the abort calls
// back; when it returns NULL no run is open.
//   FAILED_PRECONDITION  another thread has a run open, or closes an abandoned one; or this thread is beginning or ending
//                        one, and calls back
//   RESOURCE_EXHAUSTED   no host memory for the thread's life
gcap_status_t gcap_graph_run_close_abandoned(gcap_graph_manager_t* manager);

#endif  // GCAP_LIB_GRAPH_RUN_H_
