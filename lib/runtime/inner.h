// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// inner.h: for who issues whole runs, their begins and their ends included: whether there is a graph for a run,
// warm-ups, and plans, by runs into the scope that the calling thread has open.
#ifndef GCAP_LIB_RUNTIME_INNER_H_
#define GCAP_LIB_RUNTIME_INNER_H_

#include "gcap/graph_plan.h"
#include "gcap/runtime.h"

// Whether the calling thread has a graph for the run, as gcap_graph_manager_has_graph says.
bool gcap_runtime_has_graph(gcap_runtime_t* runtime, const gcap_run_t* run);

// As gcap_runtime_warm_up of a runtime that captures, in the caller's turn. The work of a run is a whole run, and gets
// no resources; what became of it, the work knows, and not the result that `on_run` gets.
gcap_status_t gcap_runtime_warm_up_whole(gcap_runtime_t* runtime, const gcap_run_t* runs, size_t num_runs,
                                         gcap_warm_up_fn on_run, void* user) GCAP_NODISCARD;

// As gcap_runtime_plan, in the caller's turn; `plan` is of this version. `work` is called with the id of each run that
// is rehearsed and its place in `graph_ids`.
gcap_status_t gcap_runtime_rehearse(gcap_runtime_t* runtime, const int* graph_ids, size_t num_ids,
                                    gcap_status_t (*work)(void* user, size_t index), void* user,
                                    gcap_graph_plan_t* plan) GCAP_NODISCARD;

struct gcap_graph_recording;  // lib/graph

// Captures `work` once more, as a run of the graph is captured, on the calling thread's stream: gcap_graph_record says
// what comes of it. In the caller's turn, of gcap's own runtime.
gcap_status_t gcap_runtime_record(gcap_runtime_t* runtime, int graph_id, gcap_status_t (*work)(void* user), void* user,
                                  struct gcap_graph_recording* recording) GCAP_NODISCARD;

#endif  // GCAP_LIB_RUNTIME_INNER_H_
