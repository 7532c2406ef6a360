// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// next_run.h: what the next run of an id is. Called with the manager's mutex held.
#ifndef GCAP_LIB_GRAPH_NEXT_RUN_H_
#define GCAP_LIB_GRAPH_NEXT_RUN_H_

#include "lib/graph/manager.h"

// Makes an id ready for its capture, whatever the policy and a back-off say.
void gcap_graph_skip_to_capture(gcap_graph_slot_t* slot);
// Moves an id that does not replay on by one run, and tells whether that run is to be captured.
bool gcap_graph_plan_run(const gcap_graph_manager_t* manager, gcap_graph_slot_t* slot);

// Whether a run of an id that is begun now would be captured. `slot` is that of the id; NULL: there is none.
// `has_graph`: one of the id's graphs is for the run.
bool gcap_graph_captures_next(const gcap_graph_manager_t* manager, const gcap_graph_slot_t* slot, bool has_graph);

#endif  // GCAP_LIB_GRAPH_NEXT_RUN_H_
