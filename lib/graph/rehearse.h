// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rehearse.h: rehearsals of captures, of which plans are made.
#ifndef GCAP_LIB_GRAPH_REHEARSE_H_
#define GCAP_LIB_GRAPH_REHEARSE_H_

#include "gcap/graph.h"

// Begins a plan of the library's layout, and makes the caller's one of nothing.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_graph_plan_begin(gcap_graph_plan_t* out_plan, gcap_graph_plan_t* plan) GCAP_NODISCARD;
// Gives the caller the plan.
void gcap_graph_plan_give(const gcap_graph_plan_t* plan, gcap_graph_plan_t* out_plan);

// Captures the work of `id` on `stream` and adds what its graph would hold to `plan`, but for what it would retain,
// which `*out_retained` is; then the graph is gone. On failure the plan is unchanged. The work may end with an
// exception.
//   CAPTURE_INVALIDATED  the capture or the work failed
//   others               as gcap_capture_begin
gcap_status_t gcap_graph_rehearse(int id, cudaStream_t stream, const gcap_capture_options_t* options,
                                  gcap_graph_work_t work, void* user, gcap_retained_t** out_retained,
                                  gcap_graph_plan_t* plan) GCAP_NODISCARD;

// Adds what a rehearsed graph would retain now.
void gcap_graph_plan_add_retained(gcap_graph_plan_t* plan, const gcap_retained_t* retained);

// Adds what the graph of `id` holds; false: it has none that replays.
bool gcap_graph_plan_add_captured(gcap_graph_plan_t* plan, gcap_graph_manager_t* manager, int id);

#endif  // GCAP_LIB_GRAPH_REHEARSE_H_
