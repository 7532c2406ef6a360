// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// graph_params.h: nodes as their parameters describe them.
#ifndef GCAP_SIM_GRAPH_GRAPH_PARAMS_H_
#define GCAP_SIM_GRAPH_GRAPH_PARAMS_H_

#include <stdbool.h>
#include <stddef.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"
#include "sim/graph/edges.h"
#include "sim/stream/task.h"

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

// Gives the executable's copy of a kernel node the task, which its new parameters made; NULL when they were refused
// with `code`. Takes over the reference.
cudaError_t gcap_sim_exec_set_kernel(cudaGraphExec_t handle, cudaGraphNode_t node, gcap_sim_task_t* task,
                                     cudaError_t code);

// A node that copies a row: adds it, sets what it copies, and in an executable.
cudaError_t gcap_sim_graph_add_row(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t* deps,
                                   size_t num_deps, void* dst, const void* src, size_t count, enum cudaMemcpyKind kind);
cudaError_t gcap_sim_node_set_row(cudaGraphNode_t node, void* dst, const void* src, size_t count,
                                  enum cudaMemcpyKind kind);
cudaError_t gcap_sim_exec_set_row(cudaGraphExec_t handle, cudaGraphNode_t node, void* dst, const void* src,
                                  size_t count, enum cudaMemcpyKind kind);

// The tasks of memory nodes, for a node of the graph that will depend on `deps`; on failure they return NULL and set
// the code.
gcap_sim_task_t* gcap_sim_graph_alloc_task(const gcap_sim_graph_t* graph, const gcap_sim_edge_t* deps, size_t num_deps,
                                           size_t bytes, int device, cudaError_t* code);
gcap_sim_task_t* gcap_sim_graph_free_task(const gcap_sim_graph_t* graph, void* address, cudaError_t* code);

#endif  // GCAP_SIM_GRAPH_GRAPH_PARAMS_H_
