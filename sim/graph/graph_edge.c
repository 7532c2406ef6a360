// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Questions about a graph's nodes and edges, and edges added and removed by hand.
//
// The idea: every question fills the caller's arrays as far as they reach. One that would have to leave out what an
// edge carries is refused as lossy. Several edges are added or removed all or not at all. Locking: the global mutex.
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/graph/edges.h"
#include "sim/graph/graph.h"

// --- Nodes ----------------------------------------------------------------------------------------------------------

// Writes the nodes that `roots_only` selects into `out`, room permitting; without `out`, only counts them. Measured:
// all nodes come as they were added, and roots the other way round.
static cudaError_t list_nodes(const gcap_sim_graph_t* graph, cudaGraphNode_t* out, size_t* count, bool roots_only) {
  if (graph == NULL || count == NULL) return cudaErrorInvalidValue;
  size_t room = *count;
  size_t found = 0;
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    const gcap_sim_node_t* node = graph->nodes[roots_only ? graph->num_nodes - 1 - i : i];
    if (roots_only && node->in.count > 0) continue;
    if (out != NULL && found == room) return cudaSuccess;
    if (out != NULL) out[found] = node->handle;
    ++found;
  }
  for (size_t i = found; out != NULL && i < room; ++i) out[i] = NULL;
  *count = found;
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* numNodes) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphGetNodes);
  if (code == cudaSuccess) code = list_nodes(gcap_sim_handle_get(GCAP_SIM_GRAPH, graph), nodes, numNodes, false);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* pRootNodes, size_t* pNumRootNodes) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphGetRootNodes);
  if (code == cudaSuccess) {
    code = list_nodes(gcap_sim_handle_get(GCAP_SIM_GRAPH, graph), pRootNodes, pNumRootNodes, true);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType* pType) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphNodeGetType);
  if (code == cudaSuccess) {
    const gcap_sim_node_t* n = gcap_sim_handle_get(GCAP_SIM_NODE, node);
    if (n != NULL && pType != NULL) {
      *pType = gcap_sim_node_type(n);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}

// --- Edges ----------------------------------------------------------------------------------------------------------

// What a question about edges fills. `data` may be NULL; `from` too when one end is known.
typedef struct edge_arrays {
  cudaGraphNode_t* from;
  cudaGraphNode_t* to;
  cudaGraphEdgeData* data;
  size_t room;
  size_t found;
  bool lossy;
} edge_arrays_t;

static void write_edge(edge_arrays_t* out, cudaGraphNode_t from, cudaGraphNode_t to, const cudaGraphEdgeData* data) {
  if (out->found == out->room) return;
  if (out->from != NULL) out->from[out->found] = from;
  if (out->to != NULL) out->to[out->found] = to;
  if (out->data != NULL) out->data[out->found] = *data;
  if (out->data == NULL && gcap_sim_edge_has_data(data)) out->lossy = true;
  ++out->found;
}

static cudaError_t finish_edges(const edge_arrays_t* out, size_t* count) {
  if (out->lossy) return cudaErrorLossyQuery;
  for (size_t i = out->found; i < out->room; ++i) {
    if (out->from != NULL) out->from[i] = NULL;
    if (out->to != NULL) out->to[i] = NULL;
  }
  *count = out->found;
  return cudaSuccess;
}

static cudaError_t list_edges(const gcap_sim_graph_t* graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* data, size_t* count) {
  if (graph == NULL || count == NULL || (from == NULL) != (to == NULL) || (data != NULL && from == NULL)) {
    return cudaErrorInvalidValue;
  }
  if (from == NULL) {
    *count = graph->num_edges;
    return cudaSuccess;
  }
  edge_arrays_t out = {.from = from, .to = to, .data = data, .room = *count};
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    const gcap_sim_node_t* node = graph->nodes[i];
    for (size_t k = 0; k < node->in.count; ++k) {
      write_edge(&out, node->in.items[k].node->handle, node->handle, &node->in.items[k].data);
    }
  }
  return finish_edges(&out, count);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edgeData, size_t* numEdges) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphGetEdges);
  if (code == cudaSuccess) code = list_edges(gcap_sim_handle_get(GCAP_SIM_GRAPH, graph), from, to, edgeData, numEdges);
  return gcap_sim_leave(code);
}

// The edges at one end of a node.
static cudaError_t list_neighbours(const gcap_sim_edges_t* edges, cudaGraphNode_t* nodes, cudaGraphEdgeData* data,
                                   size_t* count) {
  if (edges == NULL || count == NULL || (data != NULL && nodes == NULL)) return cudaErrorInvalidValue;
  if (nodes == NULL) {
    *count = edges->count;
    return cudaSuccess;
  }
  edge_arrays_t out = {.to = nodes, .data = data, .room = *count};
  for (size_t i = 0; i < edges->count; ++i) {
    write_edge(&out, NULL, edges->items[i].node->handle, &edges->items[i].data);
  }
  return finish_edges(&out, count);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* pDependencies,
                                         cudaGraphEdgeData* edgeData, size_t* pNumDependencies) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphNodeGetDependencies);
  if (code == cudaSuccess) {
    const gcap_sim_node_t* n = gcap_sim_handle_get(GCAP_SIM_NODE, node);
    code = list_neighbours(n != NULL ? &n->in : NULL, pDependencies, edgeData, pNumDependencies);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* pDependentNodes,
                                           cudaGraphEdgeData* edgeData, size_t* pNumDependentNodes) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphNodeGetDependentNodes);
  if (code == cudaSuccess) {
    const gcap_sim_node_t* n = gcap_sim_handle_get(GCAP_SIM_NODE, node);
    code = list_neighbours(n != NULL ? &n->out : NULL, pDependentNodes, edgeData, pNumDependentNodes);
  }
  return gcap_sim_leave(code);
}

// --- Changes --------------------------------------------------------------------------------------------------------

typedef struct edit {
  gcap_sim_graph_t* graph;
  const cudaGraphNode_t* from;
  const cudaGraphNode_t* to;
  const cudaGraphEdgeData* data;
  size_t count;
} edit_t;

static gcap_sim_node_t* node_of(const edit_t* edit, cudaGraphNode_t handle) {
  gcap_sim_node_t* node = gcap_sim_handle_get(GCAP_SIM_NODE, handle);
  return node != NULL && node->graph == edit->graph ? node : NULL;
}

static cudaGraphEdgeData data_of(const edit_t* edit, size_t i) {
  return edit->data != NULL ? edit->data[i] : (cudaGraphEdgeData){0};
}

// The edge as the node after it has it; NULL when there is none. Looks at the shorter list first: a node with many
// edges at one end is mostly asked about together with many nodes that have few.
static const gcap_sim_edge_t* find_edge(const gcap_sim_node_t* from, const gcap_sim_node_t* to) {
  if (from->out.count < to->in.count && gcap_sim_edges_find(&from->out, to) == from->out.count) return NULL;
  size_t at = gcap_sim_edges_find(&to->in, from);
  return at < to->in.count ? &to->in.items[at] : NULL;
}

static bool add_edge(const edit_t* edit, size_t i) {
  gcap_sim_node_t* from = node_of(edit, edit->from[i]);
  gcap_sim_node_t* to = node_of(edit, edit->to[i]);
  if (find_edge(from, to) != NULL) return false;
  cudaGraphEdgeData data = data_of(edit, i);
  if (!gcap_sim_edge_is_valid(&data, gcap_sim_node_type(from), gcap_sim_node_type(to))) return false;
  gcap_sim_edges_push(&from->out, to, data);
  gcap_sim_edges_push(&to->in, from, data);
  ++edit->graph->num_edges;
  return true;
}

// The ends of an edge that could be one: two nodes of the graph.
static bool has_ends(const edit_t* edit, size_t i) {
  const gcap_sim_node_t* from = node_of(edit, edit->from[i]);
  const gcap_sim_node_t* to = node_of(edit, edit->to[i]);
  return from != NULL && to != NULL && from != to;
}

static void drop_edge(const edit_t* edit, size_t i) {
  gcap_sim_node_t* from = gcap_sim_handle_get(GCAP_SIM_NODE, edit->from[i]);
  gcap_sim_node_t* to = gcap_sim_handle_get(GCAP_SIM_NODE, edit->to[i]);
  gcap_sim_edges_remove(&from->out, to);
  gcap_sim_edges_remove(&to->in, from);
  --edit->graph->num_edges;
}

static cudaError_t judge_edit(const edit_t* edit) {
  if (edit->graph == NULL) return cudaErrorInvalidValue;
  return edit->count > 0 && (edit->from == NULL || edit->to == NULL) ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t add_edges(const edit_t* edit) {
  cudaError_t code = judge_edit(edit);
  for (size_t i = 0; code == cudaSuccess && i < edit->count; ++i) {
    if (!has_ends(edit, i)) code = cudaErrorInvalidValue;
  }
  // Measured: an edge that is there already, or cannot be, is refused with those before it added.
  for (size_t i = 0; code == cudaSuccess && i < edit->count; ++i) {
    if (!add_edge(edit, i)) code = cudaErrorInvalidValue;
  }
  return code;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edgeData, size_t numDependencies) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddDependencies);
  if (code == cudaSuccess) {
    edit_t edit = {gcap_sim_handle_get(GCAP_SIM_GRAPH, graph), from, to, edgeData, numDependencies};
    code = add_edges(&edit);
  }
  return gcap_sim_leave(code);
}

// Measured: two nodes have one edge, and what data is given with them does not matter here.
static bool has_edge(const edit_t* edit, size_t i) {
  const gcap_sim_node_t* from = node_of(edit, edit->from[i]);
  const gcap_sim_node_t* to = node_of(edit, edit->to[i]);
  return from != NULL && to != NULL && find_edge(from, to) != NULL;
}

// In an open capture nobody has to join a node that lost its way to others by an edit.
static void remove_edge(const edit_t* edit, size_t i) {
  drop_edge(edit, i);
  if (edit->graph->capturing) node_of(edit, edit->from[i])->detached = true;
}

static cudaError_t remove_edges(const edit_t* edit) {
  cudaError_t code = judge_edit(edit);
  if (code == cudaSuccess && edit->count > 0 && edit->graph->num_memory_nodes > 0) code = cudaErrorNotSupported;
  for (size_t i = 0; code == cudaSuccess && i < edit->count; ++i) {
    if (!has_edge(edit, i)) code = cudaErrorInvalidValue;
  }
  for (size_t i = 0; code == cudaSuccess && i < edit->count; ++i) {
    // An edge that is named twice is there for the first time only.
    if (has_edge(edit, i)) remove_edge(edit, i);
  }
  return code;
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData* edgeData, size_t numDependencies) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphRemoveDependencies);
  if (code == cudaSuccess) {
    edit_t edit = {gcap_sim_handle_get(GCAP_SIM_GRAPH, graph), from, to, edgeData, numDependencies};
    code = remove_edges(&edit);
  }
  return gcap_sim_leave(code);
}
