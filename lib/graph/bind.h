// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// bind.h: the buffers of a captured graph, at other addresses. Called with the manager's mutex held.
#ifndef GCAP_LIB_GRAPH_BIND_H_
#define GCAP_LIB_GRAPH_BIND_H_

#include "lib/graph/manager.h"

// Binds the graph's buffers to those of a run.
//   INVALID_ARGUMENT  other numbers or sizes of buffers than were captured
//   others            as gcap_graph_manager_bind
gcap_status_t gcap_graph_bind_all(gcap_graph_slot_t* slot, const gcap_graph_buffers_t* buffers);

// Whether the captured slot's graph cannot be moved to these buffers.
bool gcap_graph_is_fixed(const gcap_graph_slot_t* slot, const gcap_graph_buffers_t* buffers);
// The same for the buffers of a run that was begun.
bool gcap_graph_is_fixed_for(const gcap_graph_slot_t* slot, const gcap_graph_moving_t* run);

#endif  // GCAP_LIB_GRAPH_BIND_H_
