// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// bind.h: the buffers of a captured graph, at other addresses.
#ifndef GCAP_LIB_GRAPH_BIND_H_
#define GCAP_LIB_GRAPH_BIND_H_

#include "lib/graph/manager.h"

// Binds the graph's buffers, one address for each; NULL: that buffer stays. The caller holds the manager's mutex.
// Errors: as gcap_graph_manager_bind
gcap_status_t gcap_graph_bind_all(gcap_graph_slot_t* slot, void* const* addresses, size_t count);

// Whether the graph of `id` replays, but cannot be moved to these buffers. Takes the mutex.
//   INVALID_ARGUMENT  the graph was captured with other numbers or sizes of buffers
gcap_status_t gcap_graph_check_fixed(gcap_graph_manager_t* manager, int id, const gcap_graph_buffers_t* buffers,
                                     bool* out_is_fixed);

#endif  // GCAP_LIB_GRAPH_BIND_H_
