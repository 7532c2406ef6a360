// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs: nodes and edges, made by a capture or by hand, copied and taken apart.
//
// The idea: a node is a task, or a graph that it holds, and the edges at both of its ends. Serials of nodes never
// repeat and ascend in a graph, so that a node is found by bisection: in its graph when it is removed, and in a copy,
// whose nodes keep the serials they come from. Edges made by hand may close a cycle, which instantiation refuses, so a
// walk here must end in spite of one. Invariant: an edge is in the lists of both its ends. Locking: the global mutex.
#include "sim/graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/bridge/task_access.h"
#include "sim/graph/edges.h"
#include "sim/graph/exec.h"
#include "sim/graph/graph_attribute.h"
#include "sim/graph/user_object.h"
#include "sim/memory/allocation.h"
#include "sim/stream/task.h"

static uint64_t last_serial;  // of graphs and nodes
static uint64_t last_visit;

// --- Structure ------------------------------------------------------------------------------------------------------

uint64_t gcap_sim_graph_new_visit(void) { return ++last_visit; }

enum cudaGraphNodeType gcap_sim_node_type(const gcap_sim_node_t* node) {
  return node->child != NULL ? cudaGraphNodeTypeGraph : gcap_sim_task_node_type(node->task);
}

static gcap_sim_graph_t* graph_create(bool handles) {
  gcap_sim_graph_t* graph = gcap_sim_calloc(1, sizeof(*graph));
  graph->serial = ++last_serial;
  if (handles) graph->handle = gcap_sim_handle_create(GCAP_SIM_GRAPH, graph);
  return graph;
}

gcap_sim_graph_t* gcap_sim_graph_create(void) { return graph_create(true); }

static void node_free(gcap_sim_node_t* node) {
  if (node->handle != NULL) gcap_sim_handle_destroy(node->handle);
  if (node->child != NULL) gcap_sim_graph_destroy(node->child);
  gcap_sim_task_release(node->task);
  free(node->in.items);
  free(node->out.items);
  free(node->attributes);
  free(node);
}

void gcap_sim_graph_destroy(gcap_sim_graph_t* graph) {
  if (graph->capturing) gcap_sim_die("%s: the graph belongs to a capture that is still open", gcap_sim_thread()->call);
  for (size_t i = 0; i < graph->num_nodes; ++i) node_free(graph->nodes[i]);
  if (graph->memory_exec != NULL) gcap_sim_exec_forget_graph(graph->memory_exec);
  gcap_sim_object_refs_clear(&graph->objects);
  if (graph->handle != NULL) gcap_sim_handle_destroy(graph->handle);
  free(graph->nodes);
  free(graph);
}

// A node without edges, at the end of the graph.
static gcap_sim_node_t* append_node(gcap_sim_graph_t* graph, gcap_sim_task_t* task, bool handles) {
  gcap_sim_node_t* node = gcap_sim_calloc(1, sizeof(*node));
  node->serial = ++last_serial;
  node->graph = graph;
  node->task = task;
  if (handles) node->handle = gcap_sim_handle_create(GCAP_SIM_NODE, node);
  gcap_sim_reserve(&graph->nodes, &graph->node_capacity, graph->num_nodes + 1, sizeof(gcap_sim_node_t*));
  graph->nodes[graph->num_nodes++] = node;
  if (task->kind == GCAP_SIM_TASK_ALLOC || task->kind == GCAP_SIM_TASK_FREE) ++graph->num_memory_nodes;
  return node;
}

gcap_sim_node_t* gcap_sim_graph_add(gcap_sim_graph_t* graph, gcap_sim_task_t* task, const gcap_sim_edge_t* deps,
                                    size_t num_deps) {
  gcap_sim_access_bind(task);
  gcap_sim_node_t* node = append_node(graph, task, true);
  node->device = gcap_sim_thread()->device;
  if (num_deps) {
    node->in.items = gcap_sim_calloc(num_deps, sizeof(gcap_sim_edge_t));
    node->in.count = node->in.capacity = num_deps;
    memcpy(node->in.items, deps, num_deps * sizeof(gcap_sim_edge_t));
  }
  for (size_t i = 0; i < num_deps; ++i) gcap_sim_edges_push(&deps[i].node->out, node, deps[i].data);
  graph->num_edges += num_deps;
  if (task->kind == GCAP_SIM_TASK_ALLOC) task->u.allocation->graph = graph->serial;
  if (task->kind == GCAP_SIM_TASK_FREE) task->u.allocation->freeing_graph = graph->serial;
  return node;
}

void gcap_sim_graph_number(gcap_sim_graph_t* graph) {
  for (size_t i = 0; i < graph->num_nodes; ++i) graph->nodes[i]->index = i;
}

// The place of the first node whose key is not below `key`. The key is the serial, or, in a copy, where it came from;
// nodes that were added to a copy later came from nowhere and stand behind all others.
static size_t rank(const gcap_sim_graph_t* graph, uint64_t key, bool by_source) {
  size_t low = 0;
  size_t high = graph->num_nodes;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const gcap_sim_node_t* node = graph->nodes[middle];
    uint64_t at = by_source ? node->source : node->serial;
    if (at != 0 && at < key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

gcap_sim_node_t* gcap_sim_graph_find_source(const gcap_sim_graph_t* copy, uint64_t source) {
  size_t at = rank(copy, source, true);
  return at < copy->num_nodes && copy->nodes[at]->source == source ? copy->nodes[at] : NULL;
}

// --- Cycles ---------------------------------------------------------------------------------------------------------

// Takes away what has nothing before it, again and again, and leaves in `left` how many edges still enter each node.
static size_t peel(const gcap_sim_graph_t* graph, size_t* left, size_t* queue) {
  size_t done = 0;
  size_t queued = 0;
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    left[i] = graph->nodes[i]->in.count;
    if (left[i] == 0) queue[queued++] = i;
  }
  for (; done < queued; ++done) {
    const gcap_sim_edges_t* out = &graph->nodes[queue[done]]->out;
    for (size_t k = 0; k < out->count; ++k) {
      size_t next = out->items[k].node->index;
      if (--left[next] == 0) queue[queued++] = next;
    }
  }
  return done;
}

// From a node that was not taken away, back along edges that were not: after as many steps as there are nodes, the walk
// is on a cycle.
static gcap_sim_node_t* walk_back(const gcap_sim_graph_t* graph, const size_t* left) {
  size_t at = 0;
  while (left[at] == 0) ++at;
  for (size_t steps = 0; steps < graph->num_nodes; ++steps) {
    const gcap_sim_edges_t* in = &graph->nodes[at]->in;
    size_t k = 0;
    while (left[in->items[k].node->index] == 0) ++k;
    at = in->items[k].node->index;
  }
  return graph->nodes[at];
}

gcap_sim_node_t* gcap_sim_graph_find_cycle(gcap_sim_graph_t* graph) {
  gcap_sim_graph_number(graph);
  size_t* left = gcap_sim_calloc(graph->num_nodes, sizeof(size_t));
  size_t* queue = gcap_sim_calloc(graph->num_nodes, sizeof(size_t));
  gcap_sim_node_t* found = peel(graph, left, queue) < graph->num_nodes ? walk_back(graph, left) : NULL;
  free(left);
  free(queue);
  for (size_t i = 0; i < graph->num_nodes && found == NULL; ++i) {
    if (graph->nodes[i]->child != NULL) found = gcap_sim_graph_find_cycle(graph->nodes[i]->child);
  }
  return found;
}

// --- Copies ---------------------------------------------------------------------------------------------------------

static void copy_edges(gcap_sim_edges_t* to, const gcap_sim_edges_t* from, const gcap_sim_graph_t* copy) {
  if (from->count == 0) return;
  to->items = gcap_sim_calloc(from->count, sizeof(gcap_sim_edge_t));
  to->count = to->capacity = from->count;
  for (size_t i = 0; i < from->count; ++i) {
    to->items[i] = (gcap_sim_edge_t){.node = copy->nodes[from->items[i].node->index], .data = from->items[i].data};
  }
}

static void copy_node(gcap_sim_graph_t* copy, const gcap_sim_node_t* node, bool handles) {
  gcap_sim_node_t* added = append_node(copy, gcap_sim_task_retain(node->task), handles);
  added->source = node->serial;
  added->device = node->device;
  gcap_sim_node_copy_attributes(added, node);
  if (node->child == NULL) return;
  added->child = gcap_sim_graph_copy(node->child, handles);
  added->child->owner = added;
}

gcap_sim_graph_t* gcap_sim_graph_copy(gcap_sim_graph_t* graph, bool handles) {
  gcap_sim_graph_t* copy = graph_create(handles);
  copy->source = graph->serial;
  copy->num_edges = graph->num_edges;
  gcap_sim_graph_number(graph);
  for (size_t i = 0; i < graph->num_nodes; ++i) copy_node(copy, graph->nodes[i], handles);
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    copy_edges(&copy->nodes[i]->in, &graph->nodes[i]->in, copy);
    copy_edges(&copy->nodes[i]->out, &graph->nodes[i]->out, copy);
  }
  copy->num_memory_nodes = graph->num_memory_nodes;
  gcap_sim_object_refs_copy(&copy->objects, &graph->objects);
  return copy;
}

// --- Graphs as callers see them -------------------------------------------------------------------------------------

cudaError_t cudaGraphCreate(cudaGraph_t* pGraph, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphCreate);
  if (code == cudaSuccess && (pGraph == NULL || flags != 0)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *pGraph = gcap_sim_graph_create()->handle;
  return gcap_sim_leave(code);
}

static cudaError_t destroy(gcap_sim_graph_t* graph) {
  if (graph == NULL) return cudaErrorInvalidValue;
  if (graph->owner != NULL) return cudaErrorInvalidValue;  // a child graph goes with its node
  if (graph->capturing) return cudaErrorIllegalState;
  gcap_sim_graph_destroy(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphDestroy);
  if (code == cudaSuccess) code = destroy(gcap_sim_handle_get(GCAP_SIM_GRAPH, graph));
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphClone(cudaGraph_t* pGraphClone, cudaGraph_t originalGraph) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphClone);
  if (code == cudaSuccess) {
    gcap_sim_graph_t* graph = gcap_sim_handle_get(GCAP_SIM_GRAPH, originalGraph);
    if (graph == NULL || pGraphClone == NULL) {
      code = cudaErrorInvalidValue;
    } else if (graph->num_memory_nodes > 0) {
      code = cudaErrorNotSupported;
    } else {
      *pGraphClone = gcap_sim_graph_copy(graph, true)->handle;
    }
  }
  return gcap_sim_leave(code);
}

static cudaError_t find_in_clone(cudaGraphNode_t* out, const gcap_sim_node_t* original, const gcap_sim_graph_t* clone) {
  if (out == NULL || original == NULL || clone == NULL || clone->source != original->graph->serial) {
    return cudaErrorInvalidValue;
  }
  const gcap_sim_node_t* found = gcap_sim_graph_find_source(clone, original->serial);
  if (found == NULL) return cudaErrorInvalidValue;
  *out = found->handle;
  return cudaSuccess;
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* pNode, cudaGraphNode_t originalNode, cudaGraph_t clonedGraph) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphNodeFindInClone);
  if (code == cudaSuccess) {
    code = find_in_clone(pNode, gcap_sim_handle_get(GCAP_SIM_NODE, originalNode),
                         gcap_sim_handle_get(GCAP_SIM_GRAPH, clonedGraph));
  }
  return gcap_sim_leave(code);
}

// --- Removal --------------------------------------------------------------------------------------------------------

static cudaError_t destroy_node(gcap_sim_node_t* node) {
  if (node == NULL) return cudaErrorInvalidValue;
  gcap_sim_graph_t* graph = node->graph;
  if (graph->num_memory_nodes > 0) return cudaErrorNotSupported;
  if (graph->capturing) return cudaErrorIllegalState;
  for (size_t i = 0; i < node->in.count; ++i) gcap_sim_edges_remove(&node->in.items[i].node->out, node);
  for (size_t i = 0; i < node->out.count; ++i) gcap_sim_edges_remove(&node->out.items[i].node->in, node);
  graph->num_edges -= node->in.count + node->out.count;
  size_t at = rank(graph, node->serial, false);
  --graph->num_nodes;
  memmove(&graph->nodes[at], &graph->nodes[at + 1], (graph->num_nodes - at) * sizeof(gcap_sim_node_t*));
  node_free(node);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphDestroyNode);
  if (code == cudaSuccess) code = destroy_node(gcap_sim_handle_get(GCAP_SIM_NODE, node));
  return gcap_sim_leave(code);
}
