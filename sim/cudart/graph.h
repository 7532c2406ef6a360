// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph.h: what the files of graphs and of their executables share with one another.
#ifndef GCAP_SIM_CUDART_GRAPH_H_
#define GCAP_SIM_CUDART_GRAPH_H_

#include "core.h"

// --- Structure (graph.c) --------------------------------------------------------------------------------------------

enum cudaGraphNodeType sim_node_type(const sim_node_t* node);
// Sets each node's index to its place.
void sim_graph_number(sim_graph_t* graph);
// A copy of the graph, with those it holds; `handles` tells whether callers may know it.
sim_graph_t* sim_graph_copy(sim_graph_t* graph, bool handles);
// The node of a copy that was made from the node with this serial; NULL when it is gone.
sim_node_t* sim_graph_find_source(const sim_graph_t* copy, uint64_t source);
// Some node on a cycle of the graph or of one that it holds; NULL when there is no cycle.
sim_node_t* sim_graph_find_cycle(sim_graph_t* graph);
// A number that no node's `visit` has.
uint64_t sim_graph_new_visit(void);

// Appends to a list of edges; the other end's list is the caller's to care for.
void sim_edges_push(sim_edges_t* edges, sim_node_t* node, cudaGraphEdgeData data);
void sim_edges_remove(sim_edges_t* edges, const sim_node_t* node);
// The place of the node in the list; its count when it is not there.
size_t sim_edges_find(const sim_edges_t* edges, const sim_node_t* node);
bool sim_edges_have_data(const sim_edges_t* edges);
bool sim_edge_has_data(const cudaGraphEdgeData* data);
// May an edge with this data leave the first node and enter the second? NULL for a node that is still to be made.
bool sim_edge_is_valid(const cudaGraphEdgeData* data, enum cudaGraphNodeType from, enum cudaGraphNodeType to);

// Dependencies as callers give them, checked against a graph; `repeated` lets one node come more than once. On success
// *out is a block to be freed.
cudaError_t sim_resolve_edges(const sim_graph_t* graph, const cudaGraphNode_t* nodes, const cudaGraphEdgeData* data,
                              size_t count, bool repeated, sim_edge_t** out);

// --- Parameters of nodes (graph_params.c) ---------------------------------------------------------------------------

// Is anything set that must be zero?
bool sim_has_reserved_bits(const struct cudaGraphNodeParams* params);

// Each makes the task that a node's parameters describe; on failure it returns NULL and sets the code.
sim_task_t* sim_kernel_params_task(const struct cudaKernelNodeParams* params, cudaError_t* code);
sim_task_t* sim_memcpy_params_task(const struct cudaMemcpy3DParms* params, cudaError_t* code);
sim_task_t* sim_memcpy_1d_task(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind, cudaError_t* code);
sim_task_t* sim_memset_params_task(const struct cudaMemsetParams* params, cudaError_t* code);
sim_task_t* sim_host_params_task(const struct cudaHostNodeParams* params, cudaError_t* code);
sim_task_t* sim_event_params_task(sim_task_kind_t kind, cudaEvent_t event, cudaError_t* code);
// The task of the tagged parameters, for kinds whose parameters can be set again.
sim_task_t* sim_node_params_task(const struct cudaGraphNodeParams* params, cudaError_t* code);

// --- Attributes of kernel nodes (graph_attribute.c) -----------------------------------------------------------------

// The value of an attribute; all zero when it was never set.
cudaLaunchAttributeValue sim_node_attribute(const sim_node_t* node, cudaLaunchAttributeID id);
void sim_node_set_attribute(sim_node_t* node, cudaLaunchAttributeID id, const cudaLaunchAttributeValue* value);
void sim_node_copy_attributes(sim_node_t* to, const sim_node_t* from);

// --- Executables (program.c, exec.c, update.c) ----------------------------------------------------------------------

struct sim_exec {
  cudaGraphExec_t handle;
  sim_graph_t* graph;  // its own copy of what it was made from, which update compares with and callers' nodes lead to
  sim_program_t* program;
  unsigned long long flags;
  sim_mark_t* last_launch;
  sim_graph_t* memory_graph;  // the graph it came from, if that has memory nodes
};

// The program of a graph without cycles. Sets `first` and `last` of the graph's nodes.
sim_program_t* sim_program_create(sim_graph_t* graph);
sim_program_t* sim_program_copy(const sim_program_t* program);
void sim_program_release(sim_program_t* program);

void sim_exec_forget_graph(sim_exec_t* exec);
// From here on the executable is the one that the graph with memory nodes may have, and no other graph's.
void sim_exec_adopt_graph(sim_exec_t* exec, sim_graph_t* graph);
// The copy of the node that the executable runs; NULL when it was not made from the node's graph.
sim_node_t* sim_exec_find(const sim_exec_t* exec, const sim_node_t* node);
// The executable's program, copied first when a launch holds it, to be changed.
sim_program_t* sim_exec_own_program(sim_exec_t* exec);
// Sets what a node does in launches to come; takes over the task's reference.
void sim_exec_set_task(sim_exec_t* exec, sim_node_t* node, sim_task_t* task);
void sim_exec_set_enabled(sim_exec_t* exec, sim_node_t* node, bool enabled);

// May a node of an executable whose task is `a` get the task `b`?
enum cudaGraphExecUpdateResult sim_compare_tasks(const sim_task_t* a, const sim_task_t* b);
// Compares the copy that an executable keeps with another graph, recursively, and when they match gives the executable
// the tasks of the other.
enum cudaGraphExecUpdateResult sim_exec_update(sim_exec_t* exec, sim_graph_t* own, sim_graph_t* graph,
                                               cudaGraphExecUpdateResultInfo* info);

#endif  // GCAP_SIM_CUDART_GRAPH_H_
