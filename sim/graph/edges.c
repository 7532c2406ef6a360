// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Lists of dependencies, and what callers may say of them. Locking: the global mutex.
#include "sim/graph/edges.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/handle.h"
#include "sim/base/heap.h"
#include "sim/graph/graph.h"

void gcap_sim_edges_push(gcap_sim_edges_t* edges, gcap_sim_node_t* node, cudaGraphEdgeData data) {
  gcap_sim_reserve(&edges->items, &edges->capacity, edges->count + 1, sizeof(gcap_sim_edge_t));
  edges->items[edges->count++] = (gcap_sim_edge_t){.node = node, .data = data};
}

size_t gcap_sim_edges_find(const gcap_sim_edges_t* edges, const gcap_sim_node_t* node) {
  size_t i = 0;
  while (i < edges->count && edges->items[i].node != node) ++i;
  return i;
}

void gcap_sim_edges_remove(gcap_sim_edges_t* edges, const gcap_sim_node_t* node) {
  size_t at = gcap_sim_edges_find(edges, node);
  --edges->count;
  memmove(&edges->items[at], &edges->items[at + 1], (edges->count - at) * sizeof(gcap_sim_edge_t));
}

bool gcap_sim_edge_has_data(const cudaGraphEdgeData* data) {
  static const cudaGraphEdgeData none;
  return memcmp(data, &none, sizeof(none)) != 0;
}

bool gcap_sim_edges_have_data(const gcap_sim_edges_t* edges) {
  for (size_t i = 0; i < edges->count; ++i) {
    if (gcap_sim_edge_has_data(&edges->items[i].data)) return true;
  }
  return false;
}

// Only a kernel has another port than its end, and only another kernel can be told to start at it and to wait itself.
bool gcap_sim_edge_is_valid(const cudaGraphEdgeData* data, enum cudaGraphNodeType from, enum cudaGraphNodeType to) {
  static const unsigned char zero[sizeof(data->reserved)];
  if (data->to_port != 0 || memcmp(data->reserved, zero, sizeof(zero)) != 0) return false;
  if (data->from_port != cudaGraphKernelNodePortDefault && from != cudaGraphNodeTypeKernel) return false;
  if (data->type == cudaGraphDependencyTypeDefault) {
    return data->from_port == cudaGraphKernelNodePortDefault ||
           data->from_port == cudaGraphKernelNodePortLaunchCompletion;
  }
  return data->type == cudaGraphDependencyTypeProgrammatic && to == cudaGraphNodeTypeKernel &&
         (data->from_port == cudaGraphKernelNodePortProgrammatic ||
          data->from_port == cudaGraphKernelNodePortLaunchCompletion);
}

cudaError_t gcap_sim_resolve_edges(const gcap_sim_graph_t* graph, const cudaGraphNode_t* nodes,
                                   const cudaGraphEdgeData* data, size_t count, bool repeated, gcap_sim_edge_t** out) {
  *out = NULL;
  if (count > 0 && nodes == NULL) return cudaErrorInvalidValue;
  uint64_t visit = gcap_sim_graph_new_visit();
  gcap_sim_edge_t* edges = gcap_sim_calloc(count, sizeof(gcap_sim_edge_t));
  for (size_t i = 0; i < count; ++i) {
    gcap_sim_node_t* node = gcap_sim_handle_get(GCAP_SIM_NODE, nodes[i]);
    if (node == NULL || node->graph != graph || (node->visit == visit && !repeated)) {
      free(edges);
      return cudaErrorInvalidValue;
    }
    node->visit = visit;
    edges[i].node = node;
    if (data != NULL) edges[i].data = data[i];
  }
  *out = edges;
  return cudaSuccess;
}
