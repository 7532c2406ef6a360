// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// edges.h: lists of dependencies.
#ifndef GCAP_SIM_GRAPH_EDGES_H_
#define GCAP_SIM_GRAPH_EDGES_H_

#include <stdbool.h>
#include <stddef.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"

// One end of a dependency, kept at the other end: the node there and what the edge carries.
typedef struct gcap_sim_edge {
  gcap_sim_node_t* node;
  cudaGraphEdgeData data;
} gcap_sim_edge_t;

typedef struct gcap_sim_edges {
  gcap_sim_edge_t* items;
  size_t count;
  size_t capacity;
} gcap_sim_edges_t;

// Appends to a list of edges; the other end's list is the caller's to care for.
void gcap_sim_edges_push(gcap_sim_edges_t* edges, gcap_sim_node_t* node, cudaGraphEdgeData data);
void gcap_sim_edges_remove(gcap_sim_edges_t* edges, const gcap_sim_node_t* node);
// The place of the node in the list; its count when it is not there.
size_t gcap_sim_edges_find(const gcap_sim_edges_t* edges, const gcap_sim_node_t* node);
bool gcap_sim_edges_have_data(const gcap_sim_edges_t* edges);
bool gcap_sim_edge_has_data(const cudaGraphEdgeData* data);
// May an edge with this data leave the first node and enter the second? NULL for a node that is still to be made.
bool gcap_sim_edge_is_valid(const cudaGraphEdgeData* data, enum cudaGraphNodeType from, enum cudaGraphNodeType to);

// Dependencies as callers give them, checked against a graph; `repeated` lets one node come more than once. On success
// *out is a block to be freed.
cudaError_t gcap_sim_resolve_edges(const gcap_sim_graph_t* graph, const cudaGraphNode_t* nodes,
                                   const cudaGraphEdgeData* data, size_t count, bool repeated, gcap_sim_edge_t** out);

#endif  // GCAP_SIM_GRAPH_EDGES_H_
