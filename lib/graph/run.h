// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run.h: the open run, for the files that must know of it. Called with the manager's mutex held.
#ifndef GCAP_LIB_GRAPH_RUN_H_
#define GCAP_LIB_GRAPH_RUN_H_

#include "lib/graph/manager.h"

// Whether the open run is a capture whose scope is still there to be ended by this thread.
bool gcap_graph_run_is_own_capture(const gcap_graph_manager_t* manager);

// The refusal of the next function; NULL: there is none.
gcap_status_t gcap_graph_run_check_abandoned(const gcap_graph_manager_t* manager);
// Aborts a run that this thread, or one that has exited, left open. Drops the mutex meanwhile, since the abort calls
// back; when it returns NULL no run is open.
//   FAILED_PRECONDITION  another thread has a run open, or closes an abandoned one; or this thread is beginning or ending
//                        one, and calls back
//   RESOURCE_EXHAUSTED   no host memory for the thread's life
gcap_status_t gcap_graph_run_close_abandoned(gcap_graph_manager_t* manager);

// Lets go of all that the open run has: no run is open then.
void gcap_graph_run_forget(gcap_graph_open_run_t* run);

// What opens, ends or aborts the run calls back between these two, without the mutex.
void gcap_graph_run_begin_busy(gcap_graph_manager_t* manager);
void gcap_graph_run_end_busy(gcap_graph_manager_t* manager);

// Whether the open run is just being begun or ended: by a call of the manager, or by the end of this thread's scope
// behind the manager's back. Then the scope is not the thread's any more, and the step that tells the manager so is
// still to come.
bool gcap_graph_run_is_in_passing(const gcap_graph_manager_t* manager);

// Memory of an eager run goes in the order of its stream. Nothing is in flight on a stream that ended through gcap.
gcap_status_t gcap_graph_run_end_eager_values(const gcap_graph_open_run_t* run) GCAP_NODISCARD;

#endif  // GCAP_LIB_GRAPH_RUN_H_
