// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_plan.h: what graphs will hold, before they are captured.
#ifndef GCAP_GRAPH_PLAN_H_
#define GCAP_GRAPH_PLAN_H_

#include <stddef.h>

#include "gcap/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the graphs of some ids hold together; of ids that have no graph, what they will hold once they are captured.
// Thread:   plain data. One thread at a time writes the struct.
// Capture:  a plan captures by itself, so no plan is made on a thread that is capturing.
// Lifetime: the caller's. The struct is a copy, and does not follow the graphs.
typedef struct gcap_graph_plan {
  size_t struct_size;     // set by gcap_graph_plan_init
  size_t graphs;          // of how many ids
  size_t nodes;           // the sum of gcap_graph_info_t.nodes
  size_t kernel_nodes;    // and so on
  size_t retained_bytes;  // what the graphs retain, as scratch reservations, allocation nodes, values in memory
  size_t exec_bytes;
  size_t bytes;  // retained_bytes + exec_bytes
} gcap_graph_plan_t;

// A plan of nothing. Programs call it before they have a plan made.
static inline void gcap_graph_plan_init(gcap_graph_plan_t* plan) {
  const gcap_graph_plan_t nothing = {sizeof(*plan), 0, 0, 0, 0, 0, 0};
  *plan = nothing;
}

// Plans the graphs of `runs`, an id each. An id that is captured counts with what it holds. Any other run is rehearsed:
// its work is captured on the run's stream, with its buffers at their own addresses; the nodes of the graph and what it
// retains are counted, and the graph is destroyed. So the plan is right where the capture to come issues the same work
// and makes the same allocations, which it does after an eager run of the id: make one first, since a rehearsal is
// refused what a capture is refused. Its part for executables is an estimate (gcap_graph_info_t.exec_bytes). Nothing is
// executed, and the state of the id stays. What a rehearsal retains is released before the next one: what several
// graphs of `runs` will share counts for each of them (gcap_runtime_plan counts it once). On failure `*out_plan` is a
// plan of nothing.
//   INVALID_ARGUMENT     an id below 0, no stream, no work, a plan that was not initialized; a value that
//                        gcap_graph_manager_begin_run refuses; or as gcap_capture_begin
//   FAILED_PRECONDITION  the calling thread is capturing, or a run's stream is
//   CAPTURE_INVALIDATED  a rehearsal failed; the message has the id and the first failure
//   RESOURCE_EXHAUSTED   no host memory
//   CUDA_ERROR           the runtime refused
GCAP_API gcap_status_t gcap_graph_manager_plan(gcap_graph_manager_t* manager, const gcap_run_t* runs, size_t num_runs,
                                               gcap_graph_plan_t* out_plan) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_GRAPH_PLAN_H_
