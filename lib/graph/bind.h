// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// bind.h: the buffers of a captured graph, at other addresses. Called with the manager's mutex held.
#ifndef GCAP_LIB_GRAPH_BIND_H_
#define GCAP_LIB_GRAPH_BIND_H_

#include "lib/graph/manager.h"

// Plans to bind the captured slot's graph to the buffers of a run: changes nothing. `*out_is_fixed`: the graph cannot
// be moved there, so the run is left to its work. NULL: that is a refusal.
//   INVALID_ARGUMENT  other numbers or sizes of buffers than were captured
//   others            as gcap_graph_manager_bind
gcap_status_t gcap_graph_plan_bind(gcap_graph_slot_t* slot, const gcap_graph_buffers_t* buffers, bool* out_is_fixed);
// Does what was planned last, with the mutex held since. `*out_is_refused`: the driver refused a node.
//   errors of gcap_graph_manager_bind
gcap_status_t gcap_graph_apply_bind(gcap_graph_slot_t* slot, bool* out_is_refused);
// The driver refused to move the graph for a run that does its work all the same: if the nodes could be put back the
// graph stays where it is from now on, for the reason `refusal`; else it is captured again.
void gcap_graph_give_up_moving(gcap_graph_slot_t* slot, gcap_status_t refusal);

// Whether buffers lie to one another as those of the captured slot's graph may; else the graph keeps how they do not.
// True of buffers that the graph has not: who binds them refuses.
bool gcap_graph_lies(gcap_graph_slot_t* slot, const gcap_graph_buffers_t* buffers);

// Refuses what is to be done with one graph of an id that has several: the others would replay on the addresses before.
gcap_status_t gcap_graph_check_alone(const gcap_graph_slot_t* slot);

// Whether the captured slot's graph cannot be moved to the buffers of a run that was begun; the reason is kept, for
// gcap_graph_why_fixed.
bool gcap_graph_is_fixed_for(gcap_graph_slot_t* slot, const gcap_graph_moving_t* run);

#endif  // GCAP_LIB_GRAPH_BIND_H_
