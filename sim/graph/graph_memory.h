// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_memory.h: memory of graphs.
#ifndef GCAP_SIM_GRAPH_GRAPH_MEMORY_H_
#define GCAP_SIM_GRAPH_GRAPH_MEMORY_H_

#include <stdbool.h>
#include <stddef.h>

#include "sim/api/types.h"
#include "sim/graph/edges.h"

// For a node of the graph that will depend on `deps`. The address is the graph's for good, a launch brings the memory,
// and it stays until a trim or the end of the graph and its executable.
gcap_sim_allocation_t* gcap_sim_graph_allocation_create(const gcap_sim_graph_t* graph, const gcap_sim_edge_t* deps,
                                                        size_t num_deps, size_t bytes, int device);
// Brings the memory; false when the device has no more.
bool gcap_sim_graph_memory_bring(gcap_sim_allocation_t* allocation);
void gcap_sim_graph_memory_drop(gcap_sim_allocation_t* allocation);

#endif  // GCAP_SIM_GRAPH_GRAPH_MEMORY_H_
