// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// plan.h: plans of a runtime's graphs for who issues a whole run, its begin and its end included, into the scope that
// the calling thread has open.
#ifndef GCAP_LIB_RUNTIME_PLAN_H_
#define GCAP_LIB_RUNTIME_PLAN_H_

#include "gcap/graph_plan.h"
#include "gcap/runtime.h"

// As gcap_runtime_plan, in the caller's turn; `plan` is of this version. `work` is called with the id of each run that
// is rehearsed and its place in `graph_ids`.
gcap_status_t gcap_runtime_rehearse(gcap_runtime_t* runtime, const int* graph_ids, size_t num_ids,
                                    gcap_status_t (*work)(void* user, size_t index), void* user,
                                    gcap_graph_plan_t* plan) GCAP_NODISCARD;

#endif  // GCAP_LIB_RUNTIME_PLAN_H_
