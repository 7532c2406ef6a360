// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Parameters of an executable's nodes, and which of them run.
//
// The idea: callers name a node of the graph that the executable was made from; it leads to the executable's own copy.
// What an update of the whole may not change, a new parameter may not either, and is then an invalid value. Locking:
// the global mutex.
#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/base/die.h"
#include "sim/graph/exec.h"
#include "sim/graph/graph.h"
#include "sim/graph/graph_attribute.h"
#include "sim/graph/graph_params.h"
#include "sim/graph/update.h"
#include "sim/stream/task.h"

// The executable's copy of the node, of the type asked for; NULL when there is none.
static gcap_sim_node_t* find(gcap_sim_exec_t* exec, cudaGraphNode_t handle, enum cudaGraphNodeType type) {
  const gcap_sim_node_t* node = gcap_sim_handle_get(GCAP_SIM_NODE, handle);
  gcap_sim_node_t* own = exec != NULL && node != NULL ? gcap_sim_exec_find(exec, node) : NULL;
  return own != NULL && gcap_sim_node_type(own) == type ? own : NULL;
}

static gcap_sim_task_t* refused(cudaError_t* code) {
  *code = cudaErrorInvalidValue;
  return NULL;
}

// Gives the node the task that its new parameters made; `task` is NULL when they were refused with `code`.
static cudaError_t replace(gcap_sim_exec_t* exec, gcap_sim_node_t* own, gcap_sim_task_t* task, cudaError_t code) {
  if (task == NULL) return code;
  code = gcap_sim_node_judge_task(own, task);
  if (gcap_sim_compare_tasks(own->task, task) != cudaGraphExecUpdateSuccess) code = cudaErrorInvalidValue;
  if (code != cudaSuccess) {
    gcap_sim_task_release(task);
    return code;
  }
  gcap_sim_exec_set_task(exec, own, gcap_sim_node_give_cluster(own, task));
  return cudaSuccess;
}

cudaError_t gcap_sim_exec_set_kernel(cudaGraphExec_t handle, cudaGraphNode_t node, gcap_sim_task_t* task,
                                     cudaError_t code) {
  gcap_sim_exec_t* exec = gcap_sim_handle_get(GCAP_SIM_EXEC, handle);
  gcap_sim_node_t* own = find(exec, node, cudaGraphNodeTypeKernel);
  if (own != NULL) return replace(exec, own, task, code);
  gcap_sim_task_release(task);
  return cudaErrorInvalidValue;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecKernelNodeSetParams);
  if (code == cudaSuccess) {
    gcap_sim_exec_t* exec = gcap_sim_handle_get(GCAP_SIM_EXEC, hGraphExec);
    gcap_sim_node_t* own = find(exec, node, cudaGraphNodeTypeKernel);
    if (own != NULL && pNodeParams == NULL) {
      gcap_sim_die("cudaGraphExecKernelNodeSetParams: no parameters: the real runtime reads them");
    }
    gcap_sim_task_t* task = own != NULL ? gcap_sim_kernel_params_task(pNodeParams, &code) : refused(&code);
    code = replace(exec, own, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecMemcpyNodeSetParams);
  if (code == cudaSuccess) {
    gcap_sim_exec_t* exec = gcap_sim_handle_get(GCAP_SIM_EXEC, hGraphExec);
    gcap_sim_node_t* own = find(exec, node, cudaGraphNodeTypeMemcpy);
    gcap_sim_task_t* task = own != NULL ? gcap_sim_memcpy_params_task(pNodeParams, &code) : refused(&code);
    code = replace(exec, own, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t gcap_sim_exec_set_row(cudaGraphExec_t handle, cudaGraphNode_t node, void* dst, const void* src,
                                  size_t count, enum cudaMemcpyKind kind) {
  cudaError_t code = cudaSuccess;
  gcap_sim_exec_t* exec = gcap_sim_handle_get(GCAP_SIM_EXEC, handle);
  gcap_sim_node_t* own = find(exec, node, cudaGraphNodeTypeMemcpy);
  gcap_sim_task_t* task = own != NULL ? gcap_sim_memcpy_1d_task(dst, src, count, kind, &code) : refused(&code);
  return replace(exec, own, task, code);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec, cudaGraphNode_t node, void* dst,
                                               const void* src, size_t count, enum cudaMemcpyKind kind) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecMemcpyNodeSetParams1D);
  if (code == cudaSuccess) code = gcap_sim_exec_set_row(hGraphExec, node, dst, src, count, kind);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecMemsetNodeSetParams);
  if (code == cudaSuccess) {
    gcap_sim_exec_t* exec = gcap_sim_handle_get(GCAP_SIM_EXEC, hGraphExec);
    gcap_sim_node_t* own = find(exec, node, cudaGraphNodeTypeMemset);
    gcap_sim_task_t* task = own != NULL ? gcap_sim_memset_params_task(pNodeParams, &code) : refused(&code);
    code = replace(exec, own, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams* pNodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecHostNodeSetParams);
  if (code == cudaSuccess) {
    gcap_sim_exec_t* exec = gcap_sim_handle_get(GCAP_SIM_EXEC, hGraphExec);
    gcap_sim_node_t* own = find(exec, node, cudaGraphNodeTypeHost);
    gcap_sim_task_t* task = own != NULL ? gcap_sim_host_params_task(pNodeParams, &code) : refused(&code);
    code = replace(exec, own, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, cudaEvent_t event) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecEventRecordNodeSetEvent);
  if (code == cudaSuccess) {
    gcap_sim_exec_t* exec = gcap_sim_handle_get(GCAP_SIM_EXEC, hGraphExec);
    gcap_sim_node_t* own = find(exec, hNode, cudaGraphNodeTypeEventRecord);
    gcap_sim_task_t* task =
        own != NULL ? gcap_sim_event_params_task(GCAP_SIM_TASK_EVENT_RECORD, event, &code) : refused(&code);
    code = replace(exec, own, task, code);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, cudaEvent_t event) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecEventWaitNodeSetEvent);
  if (code == cudaSuccess) {
    gcap_sim_exec_t* exec = gcap_sim_handle_get(GCAP_SIM_EXEC, hGraphExec);
    gcap_sim_node_t* own = find(exec, hNode, cudaGraphNodeTypeWaitEvent);
    gcap_sim_task_t* task =
        own != NULL ? gcap_sim_event_params_task(GCAP_SIM_TASK_EVENT_WAIT, event, &code) : refused(&code);
    code = replace(exec, own, task, code);
  }
  return gcap_sim_leave(code);
}

static cudaError_t set_child(gcap_sim_exec_t* exec, gcap_sim_node_t* own, gcap_sim_graph_t* graph) {
  if (own == NULL || graph == NULL) return cudaErrorInvalidValue;
  enum cudaGraphExecUpdateResult result = gcap_sim_exec_update(exec, own->child, graph, NULL);
  return result == cudaGraphExecUpdateSuccess ? cudaSuccess : cudaErrorGraphExecUpdateFailure;
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t hGraphExec, cudaGraphNode_t node,
                                                 cudaGraph_t childGraph) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecChildGraphNodeSetParams);
  if (code == cudaSuccess) {
    gcap_sim_exec_t* exec = gcap_sim_handle_get(GCAP_SIM_EXEC, hGraphExec);
    code = set_child(exec, find(exec, node, cudaGraphNodeTypeGraph), gcap_sim_handle_get(GCAP_SIM_GRAPH, childGraph));
  }
  return gcap_sim_leave(code);
}

static cudaError_t set_any(gcap_sim_exec_t* exec, gcap_sim_node_t* own, struct cudaGraphNodeParams* params) {
  if (own == NULL) return cudaErrorInvalidValue;
  if (own->child != NULL) return set_child(exec, own, gcap_sim_handle_get(GCAP_SIM_GRAPH, params->graph.graph));
  cudaError_t code;
  gcap_sim_task_t* task = gcap_sim_node_params_task(params, &code);
  return replace(exec, own, task, code);
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams* nodeParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecNodeSetParams);
  if (code == cudaSuccess) {
    gcap_sim_exec_t* exec = gcap_sim_handle_get(GCAP_SIM_EXEC, graphExec);
    code = set_any(exec, nodeParams != NULL ? find(exec, node, nodeParams->type) : NULL, nodeParams);
  }
  return gcap_sim_leave(code);
}

// --- Which nodes run ------------------------------------------------------------------------------------------------

// The node, if it is of a kind that can be switched off.
static gcap_sim_node_t* find_switchable(cudaGraphExec_t handle, cudaGraphNode_t node) {
  gcap_sim_exec_t* exec = gcap_sim_handle_get(GCAP_SIM_EXEC, handle);
  gcap_sim_node_t* own = find(exec, node, cudaGraphNodeTypeKernel);
  if (own == NULL) own = find(exec, node, cudaGraphNodeTypeMemcpy);
  return own != NULL ? own : find(exec, node, cudaGraphNodeTypeMemset);
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int isEnabled) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphNodeSetEnabled);
  if (code == cudaSuccess) {
    gcap_sim_node_t* own = find_switchable(hGraphExec, hNode);
    if (own != NULL) {
      gcap_sim_exec_set_enabled(gcap_sim_handle_get(GCAP_SIM_EXEC, hGraphExec), own, isEnabled != 0);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int* isEnabled) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphNodeGetEnabled);
  if (code == cudaSuccess) {
    const gcap_sim_node_t* own = find_switchable(hGraphExec, hNode);
    if (own != NULL && isEnabled != NULL) {
      *isEnabled = !own->disabled;
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}
