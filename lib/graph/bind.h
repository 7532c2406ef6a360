// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// bind.h: the buffers of a captured graph, at other addresses. Called with the manager's mutex held.
#ifndef GCAP_LIB_GRAPH_BIND_H_
#define GCAP_LIB_GRAPH_BIND_H_

#include "lib/graph/manager.h"

// Binds the graph's buffers, one address for each; NULL: that buffer stays.
// Errors: as gcap_graph_manager_bind
gcap_status_t gcap_graph_bind_all(gcap_graph_slot_t* slot, void* const* addresses, size_t count);

// Whether the captured slot's graph cannot be moved to these addresses, of which NULL is the present one.
bool gcap_graph_is_fixed(const gcap_graph_slot_t* slot, void* const* addresses, size_t count);
// The same for the buffers of a run.
bool gcap_graph_is_fixed_for(const gcap_graph_slot_t* slot, const gcap_graph_moving_t* run);

#endif  // GCAP_LIB_GRAPH_BIND_H_
