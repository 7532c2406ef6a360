// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// prefix.h: the steps of a captured graph (lib/capture/steps.h), and launches of its beginning: for who looks where a
// replay and the work part. Functions here take the manager's mutex themselves, and are for a thread that does not
// capture and has no run of the manager open.
#ifndef GCAP_LIB_GRAPH_PREFIX_H_
#define GCAP_LIB_GRAPH_PREFIX_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

#include "gcap/graph.h"
#include "lib/capture/steps.h"

#ifdef __cplusplus
extern "C" {
#endif

// Has the captures of the manager keep their steps, from the next one on, or no more. Such a graph keeps its source and
// its arguments.
void gcap_graph_keep_steps(gcap_graph_manager_t* manager, bool keep);

// Gives a copy of the steps of the graph that a replay of the run would launch: gcap_capture_steps_free.
//   NOT_FOUND            no graph of the run's id, or none for its guards and buffers, replays
//   FAILED_PRECONDITION  the graph was captured without steps
//   RESOURCE_EXHAUSTED   no host memory
gcap_status_t gcap_graph_read_steps(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                    gcap_capture_steps_t* out_steps) GCAP_NODISCARD;

// Launches of the graph that a replay of the run would launch what its first `num_steps` steps made: the segments and
// the functions of holes before the last step's segment, and of that one the nodes up to the last of the step. On the
// run's stream, ordered as a replay; the call does not wait. Buffers and values are those of the last bind: who wants
// others replays first. Not counted as a replay.
//
// Where nodes lie behind the step the launch is that of a clone of the source, which is cut there.
//   INVALID_ARGUMENT     more steps than were kept
//   FAILED_PRECONDITION  the graph was captured without steps; or no clone can be made, as of a graph with allocations,
//                        or a moved argument is in a child graph: the message names the node. Or as of a replay
//   NOT_FOUND            as above
//   CUDA_ERROR           the driver refused a call
//   others               what the function of a hole returned
gcap_status_t gcap_graph_launch_prefix(gcap_graph_manager_t* manager, const gcap_run_t* run,
                                       size_t num_steps) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_GRAPH_PREFIX_H_
