// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// begin.h: the begin of a run.
#ifndef GCAP_LIB_GRAPH_BEGIN_H_
#define GCAP_LIB_GRAPH_BEGIN_H_

#include "lib/graph/manager.h"

// Begins a run of the library's layout, as gcap_graph_manager_begin_run does. Without the mutex, as the next one.
gcap_status_t gcap_graph_begin(gcap_graph_manager_t* manager, const gcap_run_t* run, gcap_graph_run_kind_t* out_kind,
                               void** out_addresses) GCAP_NODISCARD;
//   INVALID_ARGUMENT  no stream; an id below -1; or an id or a key together with a default stream
gcap_status_t gcap_graph_check_id(const gcap_run_t* run) GCAP_NODISCARD;

// With the mutex held. Why the id's last run, which was NOT_MOVABLE, could not be moved.
gcap_status_t gcap_graph_why_fixed(const gcap_graph_slot_t* first);

#endif  // GCAP_LIB_GRAPH_BEGIN_H_
