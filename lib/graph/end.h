// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// end.h: the end of a run.
#ifndef GCAP_LIB_GRAPH_END_H_
#define GCAP_LIB_GRAPH_END_H_

#include "lib/graph/manager.h"

// Ends the run of the calling thread, as gcap_graph_manager_end_run does. Without the mutex.
gcap_status_t gcap_graph_end(gcap_graph_manager_t* manager, bool synchronize, gcap_status_t run_status,
                             gcap_run_result_t* result) GCAP_NODISCARD;

#endif  // GCAP_LIB_GRAPH_END_H_
