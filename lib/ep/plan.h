// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// plan.h: plans of an EP's graphs, for hosts.
#ifndef GCAP_LIB_EP_PLAN_H_
#define GCAP_LIB_EP_PLAN_H_

#include "gcap/ep.h"

// Plans the calling thread's graphs of these ids (gcap_runtime_plan), in a turn. `work(user, index)` issues the run of
// graph_ids[index] into the scope that the calling thread has open, its begin and its end included. `plan` is zero
// before, and of this version.
//   UNIMPLEMENTED  the EP has no runtime
//   others         of gcap_runtime_plan
gcap_status_t gcap_ep_plan(gcap_ep_t* ep, const int* graph_ids, size_t num_ids,
                           gcap_status_t (*work)(void* user, size_t index), void* user,
                           gcap_graph_plan_t* plan) GCAP_NODISCARD;

#endif  // GCAP_LIB_EP_PLAN_H_
