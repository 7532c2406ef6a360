// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Parameters of nodes: from parameters to tasks, and back.
//
// The idea: a node's parameters are its task and nothing else. To set them makes a new task and leaves the old one to
// the executables and clones that share it; to get them reads the task. Each kind has its own functions, and the
// tagged form goes through the same ones. Locking: the global mutex.
#include "sim/graph/graph_params.h"

#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/base/die.h"
#include "sim/base/thread.h"
#include "sim/device/kernel.h"
#include "sim/device/twin.h"
#include "sim/graph/graph.h"
#include "sim/graph/graph_attribute.h"
#include "sim/graph/graph_memory.h"
#include "sim/memory/allocation.h"
#include "sim/memory/copy.h"
#include "sim/stream/event.h"
#include "sim/stream/task.h"

// --- From parameters to tasks ---------------------------------------------------------------------------------------

static gcap_sim_task_t* refused(cudaError_t* code) {
  *code = cudaErrorInvalidValue;
  return NULL;
}

gcap_sim_task_t* gcap_sim_kernel_params_task(const struct cudaKernelNodeParams* params, cudaError_t* code) {
  if (params == NULL || (params->kernelParams != NULL && params->extra != NULL)) return refused(code);
  if (params->extra != NULL) {
    return gcap_sim_kernel_task_of_extra(params->func, params->gridDim, params->blockDim, params->extra,
                                         params->sharedMemBytes, code);
  }
  return gcap_sim_kernel_task(params->func, params->gridDim, params->blockDim, params->kernelParams,
                              params->sharedMemBytes, code);
}

gcap_sim_task_t* gcap_sim_memcpy_params_task(const struct cudaMemcpy3DParms* params, cudaError_t* code) {
  *code = gcap_sim_judge_copy_params(params);
  if (*code != cudaSuccess) return NULL;
  gcap_sim_copy_t copy = gcap_sim_copy_of_params(params);
  return gcap_sim_copy_task(&copy, code);
}

gcap_sim_task_t* gcap_sim_memcpy_1d_task(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind,
                                         cudaError_t* code) {
  gcap_sim_copy_t copy = {.dst = dst, .src = src, .width = count, .height = 1, .kind = kind};
  return gcap_sim_copy_task(&copy, code);
}

gcap_sim_task_t* gcap_sim_memset_params_task(const struct cudaMemsetParams* params, cudaError_t* code) {
  if (params == NULL) return refused(code);
  gcap_sim_fill_t fill = {.dst = params->dst,
                          .pitch = params->pitch,
                          .value = params->value,
                          .element_bytes = params->elementSize,
                          .width = params->width,
                          .height = params->height};
  return gcap_sim_fill_task(&fill, code);
}

gcap_sim_task_t* gcap_sim_host_params_task(const struct cudaHostNodeParams* params, cudaError_t* code) {
  if (params == NULL || params->fn == NULL) return refused(code);
  *code = cudaSuccess;
  gcap_sim_task_t* task = gcap_sim_task_create(GCAP_SIM_TASK_HOST, "host function");
  task->u.host.function = params->fn;
  task->u.host.data = params->userData;
  return task;
}

gcap_sim_task_t* gcap_sim_event_params_task(gcap_sim_task_kind_t kind, cudaEvent_t event, cudaError_t* code) {
  gcap_sim_event_t* e = gcap_sim_handle_get(GCAP_SIM_EVENT, event);
  if (e == NULL) return refused(code);
  *code = cudaSuccess;
  return gcap_sim_event_task(kind, e);
}

gcap_sim_task_t* gcap_sim_graph_alloc_task(const gcap_sim_graph_t* graph, const gcap_sim_edge_t* deps, size_t num_deps,
                                           size_t bytes, int device, cudaError_t* code) {
  gcap_sim_allocation_t* allocation = gcap_sim_graph_allocation_create(graph, deps, num_deps, bytes, device);
  *code = allocation != NULL ? cudaSuccess : cudaErrorMemoryAllocation;
  if (allocation == NULL) return NULL;
  gcap_sim_task_t* task = gcap_sim_task_create(GCAP_SIM_TASK_ALLOC, "mem alloc");
  task->u.allocation = allocation;
  return task;
}

// Freed in the graph that allocates it, an allocation is freed nowhere else; freed by another graph, not in its own;
// and never twice by one.
static bool may_free(const gcap_sim_graph_t* graph, const gcap_sim_allocation_t* allocation) {
  if (allocation->freeing_graph == 0) return true;
  if (allocation->freeing_graph == graph->serial || allocation->freeing_graph == allocation->graph) return false;
  return allocation->graph != graph->serial;
}

gcap_sim_task_t* gcap_sim_graph_free_task(const gcap_sim_graph_t* graph, void* address, cudaError_t* code) {
  gcap_sim_allocation_t* allocation = gcap_sim_allocation_find(address);
  bool ok = allocation != NULL && allocation->base == address && allocation->of_graph && may_free(graph, allocation);
  if (!ok) return refused(code);
  *code = cudaSuccess;
  ++allocation->refs;
  gcap_sim_task_t* task = gcap_sim_task_create(GCAP_SIM_TASK_FREE, "mem free");
  task->u.allocation = allocation;
  return task;
}

bool gcap_sim_has_reserved_bits(const struct cudaGraphNodeParams* params) {
  return params->reserved0[0] || params->reserved0[1] || params->reserved0[2] || params->reserved2;
}

gcap_sim_task_t* gcap_sim_node_params_task(const struct cudaGraphNodeParams* params, cudaError_t* code) {
  switch (params->type) {
    case cudaGraphNodeTypeKernel: {
      const struct cudaKernelNodeParamsV2* p = &params->kernel;
      struct cudaKernelNodeParams kernel = {p->func,           p->gridDim,      p->blockDim,
                                            p->sharedMemBytes, p->kernelParams, p->extra};
      return gcap_sim_kernel_params_task(&kernel, code);
    }
    case cudaGraphNodeTypeMemcpy:
      return params->memcpy.flags ? refused(code) : gcap_sim_memcpy_params_task(&params->memcpy.copyParams, code);
    case cudaGraphNodeTypeMemset: {
      const struct cudaMemsetParamsV2* p = &params->memset;
      struct cudaMemsetParams memset = {p->dst, p->pitch, p->value, p->elementSize, p->width, p->height};
      return gcap_sim_memset_params_task(&memset, code);
    }
    case cudaGraphNodeTypeHost: {
      struct cudaHostNodeParams host = {params->host.fn, params->host.userData};
      return gcap_sim_host_params_task(&host, code);
    }
    case cudaGraphNodeTypeEventRecord:
      return gcap_sim_event_params_task(GCAP_SIM_TASK_EVENT_RECORD, params->eventRecord.event, code);
    case cudaGraphNodeTypeWaitEvent:
      return gcap_sim_event_params_task(GCAP_SIM_TASK_EVENT_WAIT, params->eventWait.event, code);
    case cudaGraphNodeTypeConditional:
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree: *code = cudaErrorNotSupported; return NULL;
    case cudaGraphNodeTypeExtSemaphoreSignal:
    case cudaGraphNodeTypeExtSemaphoreWait:
      gcap_sim_die("%s: nodes of external semaphores are not modelled", gcap_sim_thread()->call);
    default: return refused(code);
  }
}

// --- Setting --------------------------------------------------------------------------------------------------------

// The node behind the handle if it is of this type; else NULL.
static gcap_sim_node_t* node_of_type(cudaGraphNode_t handle, enum cudaGraphNodeType type) {
  gcap_sim_node_t* node = gcap_sim_handle_get(GCAP_SIM_NODE, handle);
  return node != NULL && gcap_sim_node_type(node) == type ? node : NULL;
}

// Gives the node the task that its new parameters made; `task` is NULL when they were refused with `code`.
static cudaError_t replace(gcap_sim_node_t* node, gcap_sim_task_t* task, cudaError_t code) {
  if (task != NULL) code = gcap_sim_node_judge_task(node, task);
  if (code != cudaSuccess) {
    gcap_sim_task_release(task);
    return code;
  }
  gcap_sim_task_release(node->task);
  node->task = gcap_sim_node_give_cluster(node, task);
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphKernelNodeSetParams);
  if (code == cudaSuccess) {
    gcap_sim_node_t* n = node_of_type(node, cudaGraphNodeTypeKernel);
    gcap_sim_task_t* task = n != NULL ? gcap_sim_kernel_params_task(pNodeParams, &code) : refused(&code);
    code = replace(n, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphMemcpyNodeSetParams);
  if (code == cudaSuccess) {
    gcap_sim_node_t* n = node_of_type(node, cudaGraphNodeTypeMemcpy);
    gcap_sim_task_t* task = n != NULL ? gcap_sim_memcpy_params_task(pNodeParams, &code) : refused(&code);
    code = replace(n, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t gcap_sim_node_set_row(cudaGraphNode_t node, void* dst, const void* src, size_t count,
                                  enum cudaMemcpyKind kind) {
  cudaError_t code = cudaSuccess;
  gcap_sim_node_t* n = node_of_type(node, cudaGraphNodeTypeMemcpy);
  gcap_sim_task_t* task = n != NULL ? gcap_sim_memcpy_1d_task(dst, src, count, kind, &code) : refused(&code);
  return replace(n, task, code);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* dst, const void* src, size_t count,
                                           enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphMemcpyNodeSetParams1D);
  if (code == cudaSuccess) code = gcap_sim_node_set_row(node, dst, src, count, kind);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphMemsetNodeSetParams);
  if (code == cudaSuccess) {
    gcap_sim_node_t* n = node_of_type(node, cudaGraphNodeTypeMemset);
    gcap_sim_task_t* task = n != NULL ? gcap_sim_memset_params_task(pNodeParams, &code) : refused(&code);
    code = replace(n, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphHostNodeSetParams);
  if (code == cudaSuccess) {
    gcap_sim_node_t* n = node_of_type(node, cudaGraphNodeTypeHost);
    gcap_sim_task_t* task = n != NULL ? gcap_sim_host_params_task(pNodeParams, &code) : refused(&code);
    code = replace(n, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphEventRecordNodeSetEvent);
  if (code == cudaSuccess) {
    gcap_sim_node_t* n = node_of_type(node, cudaGraphNodeTypeEventRecord);
    gcap_sim_task_t* task =
        n != NULL ? gcap_sim_event_params_task(GCAP_SIM_TASK_EVENT_RECORD, event, &code) : refused(&code);
    code = replace(n, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphEventWaitNodeSetEvent);
  if (code == cudaSuccess) {
    gcap_sim_node_t* n = node_of_type(node, cudaGraphNodeTypeWaitEvent);
    gcap_sim_task_t* task =
        n != NULL ? gcap_sim_event_params_task(GCAP_SIM_TASK_EVENT_WAIT, event, &code) : refused(&code);
    code = replace(n, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams* nodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphNodeSetParams);
  if (code == cudaSuccess) {
    gcap_sim_node_t* n = nodeParams != NULL ? node_of_type(node, nodeParams->type) : NULL;
    gcap_sim_task_t* task = n != NULL ? gcap_sim_node_params_task(nodeParams, &code) : refused(&code);
    code = replace(n, task, code);
  }
  return gcap_sim_leave(code);
}

// --- Getting --------------------------------------------------------------------------------------------------------

static cudaError_t get_kernel(const gcap_sim_node_t* node, struct cudaKernelNodeParams* params) {
  if (node == NULL || params == NULL) return cudaErrorInvalidValue;
  // Measured: the runtime knows no function of a library's.
  if (node->task->kind == GCAP_SIM_TASK_LIBRARY) return cudaErrorInvalidDeviceFunction;
  *params = gcap_sim_kernel_task_params(node->task);
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphKernelNodeGetParams);
  if (code == cudaSuccess) code = get_kernel(node_of_type(node, cudaGraphNodeTypeKernel), pNodeParams);
  return gcap_sim_leave(code);
}

// An operand as a pitched pointer. Measured: a row that was given without a pitch is told without.
static struct cudaPitchedPtr pitched(const void* address, size_t pitch, size_t slice, const gcap_sim_copy_t* copy) {
  const size_t rows = slice ? slice / pitch : copy->height;
  return (struct cudaPitchedPtr){.ptr = (void*)(uintptr_t)address, .pitch = pitch, .xsize = copy->width, .ysize = rows};
}

static cudaError_t get_memcpy(const gcap_sim_node_t* node, struct cudaMemcpy3DParms* params) {
  if (node == NULL || params == NULL) return cudaErrorInvalidValue;
  const gcap_sim_copy_t* copy = &node->task->u.copy.copy;
  memset(params, 0, sizeof(*params));
  params->srcPtr = pitched(copy->src, copy->src_pitch, copy->src_slice, copy);
  params->dstPtr = pitched(copy->dst, copy->dst_pitch, copy->dst_slice, copy);
  params->extent = (struct cudaExtent){copy->width, copy->height, copy->depth ? copy->depth : 1};
  params->kind = copy->kind;
  return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphMemcpyNodeGetParams);
  if (code == cudaSuccess) code = get_memcpy(node_of_type(node, cudaGraphNodeTypeMemcpy), pNodeParams);
  return gcap_sim_leave(code);
}

static cudaError_t get_memset(const gcap_sim_node_t* node, struct cudaMemsetParams* params) {
  if (node == NULL || params == NULL) return cudaErrorInvalidValue;
  const gcap_sim_fill_t* fill = &node->task->u.fill;
  *params = (struct cudaMemsetParams){.dst = fill->dst,
                                      .pitch = fill->pitch,
                                      .value = fill->value,
                                      .elementSize = fill->element_bytes,
                                      .width = fill->width,
                                      .height = fill->height};
  return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphMemsetNodeGetParams);
  if (code == cudaSuccess) code = get_memset(node_of_type(node, cudaGraphNodeTypeMemset), pNodeParams);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphHostNodeGetParams);
  if (code == cudaSuccess) {
    const gcap_sim_node_t* n = node_of_type(node, cudaGraphNodeTypeHost);
    if (n != NULL && pNodeParams != NULL) {
      *pNodeParams = (struct cudaHostNodeParams){n->task->u.host.function, n->task->u.host.data};
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}

// A node may outlive its event's handle; the question then has no answer.
static cudaError_t get_event(const gcap_sim_node_t* node, cudaEvent_t* out) {
  if (node == NULL || out == NULL) return cudaErrorInvalidValue;
  if (node->task->u.event->handle == NULL) gcap_sim_die("%s: the node's event was destroyed", gcap_sim_thread()->call);
  *out = node->task->u.event->handle;
  return cudaSuccess;
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event_out) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphEventRecordNodeGetEvent);
  if (code == cudaSuccess) code = get_event(node_of_type(node, cudaGraphNodeTypeEventRecord), event_out);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event_out) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphEventWaitNodeGetEvent);
  if (code == cudaSuccess) code = get_event(node_of_type(node, cudaGraphNodeTypeWaitEvent), event_out);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* pGraph) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphChildGraphNodeGetGraph);
  if (code == cudaSuccess) {
    const gcap_sim_node_t* n = node_of_type(node, cudaGraphNodeTypeGraph);
    if (n != NULL && pGraph != NULL) {
      *pGraph = n->child->handle;
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}

// What an allocation node was asked for, as far as this simulator knows memory: pinned memory of one device.
static cudaError_t get_alloc(const gcap_sim_node_t* node, struct cudaMemAllocNodeParams* params) {
  if (node == NULL || params == NULL) return cudaErrorInvalidValue;
  const gcap_sim_allocation_t* allocation = node->task->u.allocation;
  memset(params, 0, sizeof(*params));
  params->poolProps.allocType = cudaMemAllocationTypePinned;
  params->poolProps.location.type = cudaMemLocationTypeDevice;
  params->poolProps.location.id = allocation->device;
  params->accessDescs = allocation->access;
  params->accessDescCount = allocation->num_access;
  params->bytesize = allocation->bytes;
  params->dptr = allocation->base;
  return cudaSuccess;
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, struct cudaMemAllocNodeParams* params_out) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphMemAllocNodeGetParams);
  if (code == cudaSuccess) code = get_alloc(node_of_type(node, cudaGraphNodeTypeMemAlloc), params_out);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* dptr_out) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphMemFreeNodeGetParams);
  if (code == cudaSuccess) {
    const gcap_sim_node_t* n = node_of_type(node, cudaGraphNodeTypeMemFree);
    if (n != NULL && dptr_out != NULL) {
      memcpy(dptr_out, &n->task->u.allocation->base, sizeof(void*));
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}
