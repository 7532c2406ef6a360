// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph.h: what the files of graphs and of their executables share with one another.
#ifndef GCAP_SIM_CUDART_GRAPH_H_
#define GCAP_SIM_CUDART_GRAPH_H_

#include "core.h"

// --- Structure (graph.c) --------------------------------------------------------------------------------------------

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

// --- Parameters of nodes (graph_params.c) ---------------------------------------------------------------------------

// Is anything set that must be zero?
bool gcap_sim_has_reserved_bits(const struct cudaGraphNodeParams* params);

// Each makes the task that a node's parameters describe; on failure it returns NULL and sets the code.
gcap_sim_task_t* gcap_sim_kernel_params_task(const struct cudaKernelNodeParams* params, cudaError_t* code);
gcap_sim_task_t* gcap_sim_memcpy_params_task(const struct cudaMemcpy3DParms* params, cudaError_t* code);
gcap_sim_task_t* gcap_sim_memcpy_1d_task(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind,
                                         cudaError_t* code);
gcap_sim_task_t* gcap_sim_memset_params_task(const struct cudaMemsetParams* params, cudaError_t* code);
gcap_sim_task_t* gcap_sim_host_params_task(const struct cudaHostNodeParams* params, cudaError_t* code);
gcap_sim_task_t* gcap_sim_event_params_task(gcap_sim_task_kind_t kind, cudaEvent_t event, cudaError_t* code);
// The task of the tagged parameters, for kinds whose parameters can be set again.
gcap_sim_task_t* gcap_sim_node_params_task(const struct cudaGraphNodeParams* params, cudaError_t* code);

// --- Attributes of kernel nodes (graph_attribute.c) -----------------------------------------------------------------

// The value of an attribute; all zero when it was never set.
cudaLaunchAttributeValue gcap_sim_node_attribute(const gcap_sim_node_t* node, cudaLaunchAttributeID id);
void gcap_sim_node_set_attribute(gcap_sim_node_t* node, cudaLaunchAttributeID id,
                                 const cudaLaunchAttributeValue* value);
void gcap_sim_node_copy_attributes(gcap_sim_node_t* to, const gcap_sim_node_t* from);

// --- Executables (program.c, exec.c, update.c) ----------------------------------------------------------------------

struct gcap_sim_exec {
  cudaGraphExec_t handle;
  gcap_sim_graph_t*
      graph;  // its own copy of what it was made from, which update compares with and callers' nodes lead to
  gcap_sim_program_t* program;
  unsigned long long flags;
  gcap_sim_mark_t* last_launch;
  gcap_sim_graph_t* memory_graph;  // the graph it came from, if that has memory nodes
};

// The program of a graph without cycles. Sets `first` and `last` of the graph's nodes.
gcap_sim_program_t* gcap_sim_program_create(gcap_sim_graph_t* graph);
gcap_sim_program_t* gcap_sim_program_copy(const gcap_sim_program_t* program);
void gcap_sim_program_release(gcap_sim_program_t* program);

void gcap_sim_exec_forget_graph(gcap_sim_exec_t* exec);
// From here on the executable is the one that the graph with memory nodes may have, and no other graph's.
void gcap_sim_exec_adopt_graph(gcap_sim_exec_t* exec, gcap_sim_graph_t* graph);
// The copy of the node that the executable runs; NULL when it was not made from the node's graph.
gcap_sim_node_t* gcap_sim_exec_find(const gcap_sim_exec_t* exec, const gcap_sim_node_t* node);
// The executable's program, copied first when a launch holds it, to be changed.
gcap_sim_program_t* gcap_sim_exec_own_program(gcap_sim_exec_t* exec);
// Sets what a node does in launches to come; takes over the task's reference.
void gcap_sim_exec_set_task(gcap_sim_exec_t* exec, gcap_sim_node_t* node, gcap_sim_task_t* task);
void gcap_sim_exec_set_enabled(gcap_sim_exec_t* exec, gcap_sim_node_t* node, bool enabled);

// May a node of an executable whose task is `a` get the task `b`?
enum cudaGraphExecUpdateResult gcap_sim_compare_tasks(const gcap_sim_task_t* a, const gcap_sim_task_t* b);
// Compares the copy that an executable keeps with another graph, recursively, and when they match gives the executable
// the tasks of the other.
enum cudaGraphExecUpdateResult gcap_sim_exec_update(gcap_sim_exec_t* exec, gcap_sim_graph_t* own,
                                                    gcap_sim_graph_t* graph, cudaGraphExecUpdateResultInfo* info);

#endif  // GCAP_SIM_CUDART_GRAPH_H_
