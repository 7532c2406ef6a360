// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph.h: graphs and their nodes.
#ifndef GCAP_SIM_GRAPH_GRAPH_H_
#define GCAP_SIM_GRAPH_GRAPH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"
#include "sim/graph/edges.h"
#include "sim/graph/user_object.h"

struct gcap_sim_node {
  cudaGraphNode_t handle;  // NULL in the copy that an executable keeps
  gcap_sim_graph_t* graph;
  uint64_t serial;  // never used again; ascending within a graph
  uint64_t source;  // the serial of the node that it was cloned from; 0 for none
  size_t index;     // its place in the graph, valid after gcap_sim_graph_number
  size_t first;     // of an executable's copy: its place in the program, and its last when it holds a graph
  size_t last;
  int device;
  gcap_sim_task_t* task;
  gcap_sim_graph_t* child;  // what a child graph node holds
  gcap_sim_edges_t in;      // whom it comes after, in the order in which it was told
  gcap_sim_edges_t out;
  cudaLaunchAttribute* attributes;  // of a kernel node: those that are not at their defaults
  size_t num_attributes, attribute_capacity;
  bool detached;   // in an open capture: taken out of its stream's dependencies, so nobody has to join it
  bool disabled;   // in an executable's copy
  uint64_t visit;  // scratch of graph walks
};

struct gcap_sim_graph {
  cudaGraph_t handle;       // NULL in the copy that an executable keeps
  uint64_t serial;          // never used again
  gcap_sim_node_t* owner;   // the child graph node that holds it
  bool moved;               // into that node, whole, instead of being copied
  gcap_sim_node_t** nodes;  // by ascending serial
  size_t num_nodes;
  size_t node_capacity;
  size_t num_edges;
  size_t num_memory_nodes;  // with those of the graphs it holds
  uint64_t source;          // the serial of the graph that it was cloned from; 0 for none
  gcap_sim_object_refs_t objects;
  bool capturing;                // belongs to an open capture
  gcap_sim_exec_t* memory_exec;  // the one executable that a graph with memory nodes may have
};

gcap_sim_graph_t* gcap_sim_graph_create(void);
void gcap_sim_graph_destroy(gcap_sim_graph_t* graph);
// Adds a node for the thread's device; takes over the task's reference.
gcap_sim_node_t* gcap_sim_graph_add(gcap_sim_graph_t* graph, gcap_sim_task_t* task, const gcap_sim_edge_t* deps,
                                    size_t num_deps);

enum cudaGraphNodeType gcap_sim_node_type(const gcap_sim_node_t* node);
// Sets each node's index to its place.
void gcap_sim_graph_number(gcap_sim_graph_t* graph);
// A copy of the graph, with those it holds; `handles` tells whether callers may know it.
gcap_sim_graph_t* gcap_sim_graph_copy(gcap_sim_graph_t* graph, bool handles);
// The node of a copy that was made from the node with this serial; NULL when it is gone.
gcap_sim_node_t* gcap_sim_graph_find_source(const gcap_sim_graph_t* copy, uint64_t source);
// Some node on a cycle of the graph or of one that it holds; NULL when there is no cycle.
gcap_sim_node_t* gcap_sim_graph_find_cycle(gcap_sim_graph_t* graph);
// A number that no node's `visit` has.
uint64_t gcap_sim_graph_new_visit(void);

#endif  // GCAP_SIM_GRAPH_GRAPH_H_
