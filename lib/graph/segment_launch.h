// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// segment_launch.h: launches of graphs with holes. Called with the manager's mutex held.
#ifndef GCAP_LIB_GRAPH_SEGMENT_LAUNCH_H_
#define GCAP_LIB_GRAPH_SEGMENT_LAUNCH_H_

#include "lib/graph/manager.h"

// From here on the graph is in its holes, until it leaves them, as gcap_graph_launch_entered does, or a function does
// not return.
void gcap_graph_enter_holes(gcap_graph_manager_t* manager, gcap_graph_captured_t* captured);
void gcap_graph_leave_holes(gcap_graph_manager_t* manager);
// Launches the first `count` segments of a graph that is in its holes, with the function behind each of them. Counts
// once in `*launches` if anything was launched or called. Drops the mutex and fails as the next function.
gcap_status_t gcap_graph_launch_first(gcap_graph_manager_t* manager, gcap_graph_captured_t* captured, size_t count,
                                      cudaStream_t stream, uint64_t* launches) GCAP_NODISCARD;
// Launches the slot's graph, which has holes, on a stream that was checked. Drops the mutex around the functions, which
// may not return: then the mutex stays free. `info.replays` tells whether anything was launched or called.
//   FAILED_PRECONDITION  a function left a capture open
//   others               a function's, or of a launch
gcap_status_t gcap_graph_launch_entered(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot,
                                        cudaStream_t stream) GCAP_NODISCARD;
// The same of a graph that is not in its holes yet.
gcap_status_t gcap_graph_launch_segments(gcap_graph_manager_t* manager, gcap_graph_slot_t* slot,
                                         cudaStream_t stream) GCAP_NODISCARD;

#endif  // GCAP_LIB_GRAPH_SEGMENT_LAUNCH_H_
