// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Nodes that copy to and from variables of a device.
//
// The idea: such a node is one that copies a row, with the address of the variable's part on the thread's device: so it
// tells of itself afterwards, as measured. Locking: the global mutex.
#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/device/variable.h"
#include "sim/graph/graph_params.h"

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                           const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                           const void* symbol, const void* src, size_t count, size_t offset,
                                           enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddMemcpyNodeToSymbol);
  void* part = NULL;
  if (code == cudaSuccess) code = gcap_sim_variable_part(symbol, count, offset, kind, false, &part);
  if (code == cudaSuccess) {
    code = gcap_sim_graph_add_row(pGraphNode, graph, pDependencies, numDependencies, part, src, count, kind);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                             const cudaGraphNode_t* pDependencies, size_t numDependencies, void* dst,
                                             const void* symbol, size_t count, size_t offset,
                                             enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddMemcpyNodeFromSymbol);
  void* part = NULL;
  if (code == cudaSuccess) code = gcap_sim_variable_part(symbol, count, offset, kind, true, &part);
  if (code == cudaSuccess) {
    code = gcap_sim_graph_add_row(pGraphNode, graph, pDependencies, numDependencies, dst, part, count, kind);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void* symbol, const void* src,
                                                 size_t count, size_t offset, enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphMemcpyNodeSetParamsToSymbol);
  void* part = NULL;
  if (code == cudaSuccess) code = gcap_sim_variable_part(symbol, count, offset, kind, false, &part);
  if (code == cudaSuccess) code = gcap_sim_node_set_row(node, part, src, count, kind);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void* dst, const void* symbol, size_t count,
                                                   size_t offset, enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphMemcpyNodeSetParamsFromSymbol);
  void* part = NULL;
  if (code == cudaSuccess) code = gcap_sim_variable_part(symbol, count, offset, kind, true, &part);
  if (code == cudaSuccess) code = gcap_sim_node_set_row(node, dst, part, count, kind);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                     const void* symbol, const void* src, size_t count, size_t offset,
                                                     enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecMemcpyNodeSetParamsToSymbol);
  void* part = NULL;
  if (code == cudaSuccess) code = gcap_sim_variable_part(symbol, count, offset, kind, false, &part);
  if (code == cudaSuccess) code = gcap_sim_exec_set_row(hGraphExec, node, part, src, count, kind);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void* dst,
                                                       const void* symbol, size_t count, size_t offset,
                                                       enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecMemcpyNodeSetParamsFromSymbol);
  void* part = NULL;
  if (code == cudaSuccess) code = gcap_sim_variable_part(symbol, count, offset, kind, true, &part);
  if (code == cudaSuccess) code = gcap_sim_exec_set_row(hGraphExec, node, dst, part, count, kind);
  return gcap_sim_leave(code);
}
