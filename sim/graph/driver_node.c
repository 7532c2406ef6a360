// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Kernel nodes as the driver tells them.
//
// The idea: the same tasks as the runtime's functions make and read, under the driver's names, and those of libraries,
// which the runtime tells nothing of. Locking: the global mutex.
#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/base/die.h"
#include "sim/base/thread.h"
#include "sim/device/driver.h"
#include "sim/device/kernel.h"
#include "sim/device/library.h"
#include "sim/graph/graph.h"
#include "sim/graph/graph_params.h"
#include "sim/stream/task.h"

// A device's context has no contents: its address is what names it.
static char contexts[GCAP_SIM_MAX_DEVICES];

static cudaError_t get(const gcap_sim_node_t* node, gcap_sim_driver_node_t* out) {
  if (node == NULL || out == NULL || gcap_sim_node_type(node) != cudaGraphNodeTypeKernel) return cudaErrorInvalidValue;
  const struct cudaKernelNodeParams params = node->task->kind == GCAP_SIM_TASK_LIBRARY
                                                 ? gcap_sim_library_task_params(node->task)
                                                 : gcap_sim_kernel_task_params(node->task);
  *out = (gcap_sim_driver_node_t){.func = params.func,
                                  .grid = {params.gridDim.x, params.gridDim.y, params.gridDim.z},
                                  .block = {params.blockDim.x, params.blockDim.y, params.blockDim.z},
                                  .shared_bytes = params.sharedMemBytes,
                                  .params = params.kernelParams,
                                  .extra = params.extra,
                                  .kern = params.func,
                                  .ctx = &contexts[node->device]};
  return cudaSuccess;
}

// Of a thread that has none the driver tells NULL, and answers success. Measured.
int gcap_sim_driver_current_context(void** out) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cuCtxGetCurrent);
  if (code == cudaSuccess && out == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) *out = gcap_sim_thread()->has_context ? &contexts[gcap_sim_thread()->device] : NULL;
  return gcap_sim_leave_driver(code);
}

int gcap_sim_driver_get_node(cudaGraphNode_t node, gcap_sim_driver_node_t* params) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cuGraphKernelNodeGetParams);
  if (code == cudaSuccess) code = get(gcap_sim_handle_get(GCAP_SIM_NODE, node), params);
  return gcap_sim_leave_driver(code);
}

static gcap_sim_task_t* task_of(const gcap_sim_driver_node_t* params, cudaError_t* code) {
  if (params == NULL) gcap_sim_die("%s: no parameters: the real driver reads them", gcap_sim_thread()->call);
  const void* function = params->func != NULL ? params->func : params->kern;
  const struct cudaKernelNodeParams kernel = {.func = (void*)(uintptr_t)function,
                                              .gridDim = {params->grid[0], params->grid[1], params->grid[2]},
                                              .blockDim = {params->block[0], params->block[1], params->block[2]},
                                              .sharedMemBytes = params->shared_bytes,
                                              .kernelParams = params->params,
                                              .extra = params->extra};
  const gcap_sim_library_kernel_t* of_library = gcap_sim_library_kernel_find(function);
  return of_library != NULL ? gcap_sim_library_params_task(of_library, &kernel, code)
                            : gcap_sim_kernel_params_task(&kernel, code);
}

int gcap_sim_driver_set_exec_node(cudaGraphExec_t exec, cudaGraphNode_t node, const gcap_sim_driver_node_t* params) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cuGraphExecKernelNodeSetParams);
  if (code == cudaSuccess) {
    if (!gcap_sim_thread()->has_context) {
      gcap_sim_die("cuGraphExecKernelNodeSetParams: the thread has no current context: the real driver crashes");
    }
    gcap_sim_task_t* task = task_of(params, &code);
    // For no kernel at all, and for a shape that cannot be, the driver has no code of its own.
    if (code == cudaErrorInvalidDeviceFunction || code == cudaErrorInvalidConfiguration) code = cudaErrorInvalidValue;
    code = gcap_sim_exec_set_kernel(exec, node, task, code);
  }
  return gcap_sim_leave_driver(code);
}
