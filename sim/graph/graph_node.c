// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Nodes that callers add by hand.
//
// The idea: an addition first resolves graph and dependencies, then makes the task, then adds the node, so that a
// refused one leaves nothing behind. Conditional nodes are not modelled and answer as a driver without them would.
// Locking: the global mutex.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/api/log.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/device/device.h"
#include "sim/graph/edges.h"
#include "sim/graph/graph.h"
#include "sim/graph/graph_params.h"
#include "sim/memory/allocation.h"
#include "sim/stream/task.h"

typedef struct addition {
  gcap_sim_graph_t* graph;
  gcap_sim_edge_t* deps;  // a block to be freed
  size_t num_deps;
} addition_t;

// Checks what all node functions share. On success the caller finishes with add_node.
static cudaError_t prepare(addition_t* add, const cudaGraphNode_t* out, cudaGraph_t graph,
                           const cudaGraphNode_t* handles, const cudaGraphEdgeData* data, size_t count) {
  *add = (addition_t){.graph = gcap_sim_handle_get(GCAP_SIM_GRAPH, graph), .num_deps = count};
  if (add->graph == NULL || out == NULL) return cudaErrorInvalidValue;
  return gcap_sim_resolve_edges(add->graph, handles, data, count, false, &add->deps);
}

static bool can_enter(const addition_t* add, enum cudaGraphNodeType type) {
  for (size_t i = 0; i < add->num_deps; ++i) {
    if (!gcap_sim_edge_is_valid(&add->deps[i].data, gcap_sim_node_type(add->deps[i].node), type)) return false;
  }
  return true;
}

// Adds the node, unless `task` is NULL because its parameters were refused with `code`.
static cudaError_t add_node(addition_t* add, cudaGraphNode_t* out, gcap_sim_task_t* task, cudaError_t code) {
  if (task != NULL && !can_enter(add, gcap_sim_task_node_type(task))) {
    gcap_sim_task_release(task);
    task = NULL;
    code = cudaErrorInvalidValue;
  }
  if (task != NULL) {
    gcap_sim_node_t* node = gcap_sim_graph_add(add->graph, task, add->deps, add->num_deps);
    // Measured: a fill made by hand goes to the device that has the memory, not to the current one.
    if (task->kind == GCAP_SIM_TASK_FILL && task->u.fill.type == cudaMemoryTypeDevice) {
      node->device = task->u.fill.device;
    }
    *out = node->handle;
  }
  free(add->deps);
  return task != NULL ? cudaSuccess : code;
}

// --- One function a kind --------------------------------------------------------------------------------------------

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                   size_t numDependencies, const struct cudaKernelNodeParams* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddKernelNode);
  addition_t add;
  if (code == cudaSuccess) code = prepare(&add, pGraphNode, graph, pDependencies, NULL, numDependencies);
  if (code == cudaSuccess) {
    gcap_sim_task_t* task = gcap_sim_kernel_params_task(pNodeParams, &code);
    code = add_node(&add, pGraphNode, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                   size_t numDependencies, const struct cudaMemcpy3DParms* pCopyParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddMemcpyNode);
  addition_t add;
  if (code == cudaSuccess) code = prepare(&add, pGraphNode, graph, pDependencies, NULL, numDependencies);
  if (code == cudaSuccess) {
    gcap_sim_task_t* task = gcap_sim_memcpy_params_task(pCopyParams, &code);
    code = add_node(&add, pGraphNode, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t gcap_sim_graph_add_row(cudaGraphNode_t* out, cudaGraph_t graph, const cudaGraphNode_t* deps,
                                   size_t num_deps, void* dst, const void* src, size_t count,
                                   enum cudaMemcpyKind kind) {
  addition_t add;
  cudaError_t code = prepare(&add, out, graph, deps, NULL, num_deps);
  if (code != cudaSuccess) return code;
  gcap_sim_task_t* task = gcap_sim_memcpy_1d_task(dst, src, count, kind, &code);
  return add_node(&add, out, task, code);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t* pDependencies, size_t numDependencies, void* dst,
                                     const void* src, size_t count, enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddMemcpyNode1D);
  if (code == cudaSuccess) {
    code = gcap_sim_graph_add_row(pGraphNode, graph, pDependencies, numDependencies, dst, src, count, kind);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                   size_t numDependencies, const struct cudaMemsetParams* pMemsetParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddMemsetNode);
  addition_t add;
  if (code == cudaSuccess) code = prepare(&add, pGraphNode, graph, pDependencies, NULL, numDependencies);
  if (code == cudaSuccess) {
    gcap_sim_task_t* task = gcap_sim_memset_params_task(pMemsetParams, &code);
    code = add_node(&add, pGraphNode, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                 size_t numDependencies, const struct cudaHostNodeParams* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddHostNode);
  addition_t add;
  if (code == cudaSuccess) code = prepare(&add, pGraphNode, graph, pDependencies, NULL, numDependencies);
  if (code == cudaSuccess) {
    gcap_sim_task_t* task = gcap_sim_host_params_task(pNodeParams, &code);
    code = add_node(&add, pGraphNode, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                                  size_t numDependencies) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddEmptyNode);
  addition_t add;
  if (code == cudaSuccess) code = prepare(&add, pGraphNode, graph, pDependencies, NULL, numDependencies);
  if (code == cudaSuccess) code = add_node(&add, pGraphNode, gcap_sim_task_create(GCAP_SIM_TASK_EMPTY, "empty"), code);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                        const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                        cudaEvent_t event) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddEventRecordNode);
  addition_t add;
  if (code == cudaSuccess) code = prepare(&add, pGraphNode, graph, pDependencies, NULL, numDependencies);
  if (code == cudaSuccess) {
    gcap_sim_task_t* task = gcap_sim_event_params_task(GCAP_SIM_TASK_EVENT_RECORD, event, &code);
    code = add_node(&add, pGraphNode, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                      const cudaGraphNode_t* pDependencies, size_t numDependencies, cudaEvent_t event) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddEventWaitNode);
  addition_t add;
  if (code == cudaSuccess) code = prepare(&add, pGraphNode, graph, pDependencies, NULL, numDependencies);
  if (code == cudaSuccess) {
    gcap_sim_task_t* task = gcap_sim_event_params_task(GCAP_SIM_TASK_EVENT_WAIT, event, &code);
    code = add_node(&add, pGraphNode, task, code);
  }
  return gcap_sim_leave(code);
}

// --- Graphs in graphs -----------------------------------------------------------------------------------------------

static bool holds(const gcap_sim_graph_t* outer, const gcap_sim_graph_t* graph) {
  while (graph != NULL && graph != outer) graph = graph->owner != NULL ? graph->owner->graph : NULL;
  return graph != NULL;
}

// Memory nodes stay unique: a graph that has some cannot be copied, only moved.
static cudaError_t judge_child(const gcap_sim_graph_t* graph, const gcap_sim_graph_t* child, bool move) {
  if (child == NULL) return cudaErrorInvalidValue;
  if (holds(child, graph)) {
    gcap_sim_die("%s: a graph cannot hold itself: the real runtime recurses until its stack is gone",
                 gcap_sim_thread()->call);
  }
  if (!move) return child->num_memory_nodes > 0 ? cudaErrorNotSupported : cudaSuccess;
  if (child->owner != NULL || child->memory_exec != NULL || child->capturing) return cudaErrorInvalidValue;
  return graph->owner != NULL && child->num_memory_nodes > 0 ? cudaErrorNotSupported : cudaSuccess;
}

static void give_child(gcap_sim_node_t* node, gcap_sim_graph_t* child, bool move) {
  node->child = move ? child : gcap_sim_graph_copy(child, true);
  node->child->owner = node;
  node->child->moved = move;
  node->graph->num_memory_nodes += node->child->num_memory_nodes;
}

static cudaError_t add_child(addition_t* add, cudaGraphNode_t* out, gcap_sim_graph_t* child, bool move) {
  cudaError_t code = judge_child(add->graph, child, move);
  if (code == cudaSuccess && !can_enter(add, cudaGraphNodeTypeGraph)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) {
    gcap_sim_task_t* task = gcap_sim_task_create(GCAP_SIM_TASK_EMPTY, "child graph");
    gcap_sim_node_t* node = gcap_sim_graph_add(add->graph, task, add->deps, add->num_deps);
    give_child(node, child, move);
    *out = node->handle;
  }
  free(add->deps);
  return code;
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                       const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                       cudaGraph_t childGraph) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddChildGraphNode);
  addition_t add;
  if (code == cudaSuccess) code = prepare(&add, pGraphNode, graph, pDependencies, NULL, numDependencies);
  if (code == cudaSuccess) code = add_child(&add, pGraphNode, gcap_sim_handle_get(GCAP_SIM_GRAPH, childGraph), false);
  return gcap_sim_leave(code);
}

// --- Memory ---------------------------------------------------------------------------------------------------------

static bool is_device(struct cudaMemLocation location) {
  return location.type == cudaMemLocationTypeDevice && location.id >= 0 && location.id < gcap_sim_device_count();
}

// Measured: a graph's memory is read and written by whoever has access to it, and the host may be named.
static cudaError_t judge_access(const struct cudaMemAccessDesc* desc) {
  const enum cudaMemLocationType type = desc->location.type;
  if (type != cudaMemLocationTypeDevice && type != cudaMemLocationTypeHost) return cudaErrorInvalidValue;
  if (type == cudaMemLocationTypeDevice && !is_device(desc->location)) return cudaErrorInvalidDevice;
  switch (desc->flags) {
    case cudaMemAccessFlagsProtReadWrite: return cudaSuccess;
    case cudaMemAccessFlagsProtNone:
    case cudaMemAccessFlagsProtRead: return cudaErrorNotSupported;
    default: return cudaErrorInvalidValue;
  }
}

// Measured: no more than there are devices; one may be named twice.
static cudaError_t judge_accesses(const struct cudaMemAccessDesc* descs, size_t count) {
  if (count > (size_t)gcap_sim_device_count() || (count > 0 && descs == NULL)) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; ++i) {
    cudaError_t code = judge_access(&descs[i]);
    if (code != cudaSuccess) return code;
  }
  return cudaSuccess;
}

static cudaError_t judge_alloc(const struct cudaMemAllocNodeParamsV2* params) {
  if (params->poolProps.handleTypes != cudaMemHandleTypeNone) return cudaErrorNotSupported;
  bool is_pool = params->poolProps.allocType == cudaMemAllocationTypePinned && is_device(params->poolProps.location);
  if (!is_pool || params->bytesize == 0) return cudaErrorInvalidValue;
  return judge_accesses(params->accessDescs, params->accessDescCount);
}

static void keep_accesses(gcap_sim_allocation_t* allocation, const struct cudaMemAccessDesc* descs, size_t count) {
  if (count == 0) return;
  allocation->access = gcap_sim_calloc(count, sizeof(*descs));
  allocation->num_access = count;
  memcpy(allocation->access, descs, count * sizeof(*descs));
}

static cudaError_t add_alloc(addition_t* add, cudaGraphNode_t* out, struct cudaMemAllocNodeParamsV2* params) {
  gcap_sim_task_t* task = NULL;
  cudaError_t code = add->graph->owner != NULL ? cudaErrorNotSupported : judge_alloc(params);
  if (code == cudaSuccess) {
    task = gcap_sim_graph_alloc_task(add->graph, add->deps, add->num_deps, params->bytesize,
                                     params->poolProps.location.id, &code);
  }
  if (task != NULL) keep_accesses(task->u.allocation, params->accessDescs, params->accessDescCount);
  void* address = task != NULL ? task->u.allocation->base : NULL;
  code = add_node(add, out, task, code);
  params->dptr = code == cudaSuccess ? address : NULL;
  return code;
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                     const cudaGraphNode_t* pDependencies, size_t numDependencies,
                                     struct cudaMemAllocNodeParams* nodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddMemAllocNode);
  addition_t add;
  if (code == cudaSuccess && nodeParams == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) code = prepare(&add, pGraphNode, graph, pDependencies, NULL, numDependencies);
  if (code == cudaSuccess) {
    struct cudaMemAllocNodeParamsV2 params = {.poolProps = nodeParams->poolProps,
                                              .accessDescs = nodeParams->accessDescs,
                                              .accessDescCount = nodeParams->accessDescCount,
                                              .bytesize = nodeParams->bytesize};
    code = add_alloc(&add, pGraphNode, &params);
    nodeParams->dptr = params.dptr;
  }
  return gcap_sim_leave(code);
}

static cudaError_t add_free(addition_t* add, cudaGraphNode_t* out, void* address) {
  cudaError_t code = cudaErrorNotSupported;
  gcap_sim_task_t* task = add->graph->owner != NULL ? NULL : gcap_sim_graph_free_task(add->graph, address, &code);
  return add_node(add, out, task, code);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph,
                                    const cudaGraphNode_t* pDependencies, size_t numDependencies, void* dptr) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddMemFreeNode);
  addition_t add;
  if (code == cudaSuccess) code = prepare(&add, pGraphNode, graph, pDependencies, NULL, numDependencies);
  if (code == cudaSuccess) code = add_free(&add, pGraphNode, dptr);
  return gcap_sim_leave(code);
}

// --- Any kind -------------------------------------------------------------------------------------------------------

static cudaError_t add_any(addition_t* add, cudaGraphNode_t* out, struct cudaGraphNodeParams* params) {
  cudaError_t code = cudaErrorInvalidValue;
  switch (params->type) {
    case cudaGraphNodeTypeGraph: {
      enum cudaGraphChildGraphNodeOwnership ownership = params->graph.ownership;
      if (ownership == cudaGraphChildGraphOwnershipClone || ownership == cudaGraphChildGraphOwnershipMove) {
        return add_child(add, out, gcap_sim_handle_get(GCAP_SIM_GRAPH, params->graph.graph),
                         ownership == cudaGraphChildGraphOwnershipMove);
      }
      return add_node(add, out, NULL, code);
    }
    case cudaGraphNodeTypeEmpty: return add_node(add, out, gcap_sim_task_create(GCAP_SIM_TASK_EMPTY, "empty"), code);
    case cudaGraphNodeTypeMemAlloc: return add_alloc(add, out, &params->alloc);
    case cudaGraphNodeTypeMemFree: return add_free(add, out, params->free.dptr);
    default: {
      gcap_sim_task_t* task = gcap_sim_node_params_task(params, &code);
      return add_node(add, out, task, code);
    }
  }
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t* pGraphNode, cudaGraph_t graph, const cudaGraphNode_t* pDependencies,
                             const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                             struct cudaGraphNodeParams* nodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphAddNode);
  addition_t add;
  if (code == cudaSuccess && (nodeParams == NULL || gcap_sim_has_reserved_bits(nodeParams))) {
    code = cudaErrorInvalidValue;
  }
  if (code == cudaSuccess) code = prepare(&add, pGraphNode, graph, pDependencies, dependencyData, numDependencies);
  if (code == cudaSuccess) code = add_any(&add, pGraphNode, nodeParams);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* pHandle_out, cudaGraph_t graph,
                                             unsigned int defaultLaunchValue, unsigned int flags) {
  (void)defaultLaunchValue;
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphConditionalHandleCreate);
  if (code == cudaSuccess) {
    bool valid = pHandle_out != NULL && gcap_sim_handle_get(GCAP_SIM_GRAPH, graph) != NULL &&
                 (flags & ~(unsigned int)cudaGraphCondAssignDefault) == 0;
    code = valid ? cudaErrorNotSupported : cudaErrorInvalidValue;
    gcap_sim_note_argument("conditional nodes are not modelled");
  }
  return gcap_sim_leave(code);
}
