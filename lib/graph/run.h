// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run.h: the open run, for the files that must know of it. Called with the manager's mutex held.
#ifndef GCAP_LIB_GRAPH_RUN_H_
#define GCAP_LIB_GRAPH_RUN_H_

#include "lib/graph/manager.h"

// Begins a run of the library's layout, as gcap_graph_manager_begin_run does. Without the mutex, as the next two.
gcap_status_t gcap_graph_begin(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind,
                               void** out_addresses) GCAP_NODISCARD;
// Ends the run of the calling thread, as gcap_graph_manager_end_run does.
gcap_status_t gcap_graph_end(gcap_graph_manager_t* manager, bool synchronize, gcap_status_t run_status,
                             gcap_run_result_t* result) GCAP_NODISCARD;
//   INVALID_ARGUMENT  no stream; an id below -1; or an id or a key together with a default stream
gcap_status_t gcap_graph_check_id(const gcap_run_t* run) GCAP_NODISCARD;

// Whether the open run is a capture whose scope is still there to be ended by this thread.
bool gcap_graph_run_is_own_capture(const gcap_graph_manager_t* manager);

// Why the id's last run, which was NOT_MOVABLE, could not be moved.
gcap_status_t gcap_graph_why_fixed(const gcap_graph_slot_t* first);

// Whether a run of an id that is begun now would be captured. `slot` is that of the id; NULL: there is none.
// `has_graph`: one of the id's graphs is for the run.
bool gcap_graph_captures_next(const gcap_graph_manager_t* manager, const gcap_graph_slot_t* slot, bool has_graph);

// The refusal of the next function; NULL: there is none.
gcap_status_t gcap_graph_run_check_abandoned(const gcap_graph_manager_t* manager);
// Aborts a run that this thread, or one that has exited, left open. Drops the mutex meanwhile, since the abort calls
// back; when it returns NULL no run is open.
//   FAILED_PRECONDITION  another thread has a run open, or closes an abandoned one; or this thread is beginning or ending
//                        one, and calls back
//   RESOURCE_EXHAUSTED   no host memory for the thread's life
gcap_status_t gcap_graph_run_close_abandoned(gcap_graph_manager_t* manager);

#endif  // GCAP_LIB_GRAPH_RUN_H_
