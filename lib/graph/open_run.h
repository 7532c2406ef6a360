// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// open_run.h: whether a run is open, for lib/runtime, which opens and ends more than the manager's part of a run.
#ifndef GCAP_LIB_GRAPH_OPEN_RUN_H_
#define GCAP_LIB_GRAPH_OPEN_RUN_H_

#include "gcap/graph.h"

// Tells whether the calling thread has a run of the manager open. Takes the manager's mutex.
bool gcap_graph_manager_has_own_run(gcap_graph_manager_t* manager);

#endif  // GCAP_LIB_GRAPH_OPEN_RUN_H_
