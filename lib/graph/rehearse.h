// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rehearse.h: rehearsals of captures, of which plans are made.
#ifndef GCAP_LIB_GRAPH_REHEARSE_H_
#define GCAP_LIB_GRAPH_REHEARSE_H_

#include "gcap/graph_plan.h"
#include "lib/graph/options.h"

// Begins a plan of the library's layout, and makes the caller's one of nothing.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_graph_plan_begin(gcap_graph_plan_t* out_plan, gcap_graph_plan_t* plan) GCAP_NODISCARD;
// Gives the caller the plan.
void gcap_graph_plan_give(const gcap_graph_plan_t* plan, gcap_graph_plan_t* out_plan);

// Captures the work of a run, in the library's layout, and adds what its graph would hold to `plan`, but for what it
// would retain, which `*out_retained` is; then the graph is gone. `resources` is what the work gets. On failure the
// plan is unchanged. The work may end with an exception.
//   CAPTURE_INVALIDATED  the capture or the work failed
//   others               as gcap_capture_begin
gcap_status_t gcap_graph_rehearse(const gcap_run_t* run, const gcap_run_resources_t* resources,
                                  const gcap_capture_options_t* options, gcap_retained_t** out_retained,
                                  gcap_graph_plan_t* plan) GCAP_NODISCARD;

// The runs of an array, whose structs may be of another version: run number `index`, read into the library's layout and
// checked.
//   INVALID_ARGUMENT  an id below 0, or no work; the message has the index
gcap_status_t gcap_planned_run_read(const gcap_run_t* runs, size_t index, gcap_run_copy_t* copy,
                                    const gcap_run_t** out_run) GCAP_NODISCARD;

// Adds what a rehearsed graph would retain now.
void gcap_graph_plan_add_retained(gcap_graph_plan_t* plan, const gcap_retained_t* retained);

// Adds what the graph of `id` holds; false: it has none that replays.
bool gcap_graph_plan_add_captured(gcap_graph_plan_t* plan, gcap_graph_manager_t* manager, int id);

#endif  // GCAP_LIB_GRAPH_REHEARSE_H_
