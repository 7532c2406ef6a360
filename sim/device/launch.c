// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Launches of kernels, plain, cooperative or with attributes.
//
// The idea: a launch is judged, becomes a task, and goes to its stream. A configuration that no device can run breaks a
// capture, as measured; another refusal does not. In a capture the attributes become the node's. A twin is told the
// size of its clusters and sees nothing of other attributes: a cooperative grid is computed as one, and a kernel that
// may start before the one ahead of it has ended starts after it, which is one of the orders allowed. Locking: the
// global mutex.
#include "sim/device/launch.h"

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/base/die.h"
#include "sim/base/thread.h"
#include "sim/device/kernel.h"
#include "sim/device/occupancy.h"
#include "sim/device/properties.h"
#include "sim/graph/edges.h"
#include "sim/graph/graph.h"
#include "sim/graph/graph_attribute.h"
#include "sim/nvcc/nvcc.h"
#include "sim/stream/capture.h"
#include "sim/stream/rules.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

typedef struct launch {
  const void* function;
  dim3 grid;
  dim3 block;
  void** args;
  size_t shared_bytes;
  gcap_sim_stream_t* stream;
  const cudaLaunchAttribute* attributes;
  size_t num_attributes;
} launch_t;

// A configuration that cannot be breaks a capture, with its own code.
static cudaError_t refuse(const launch_t* launch, cudaError_t code) {
  bool bad = code == gcap_sim_rule_code(GCAP_SIM_RULE_BAD_LAUNCH) || code == cudaErrorCooperativeLaunchTooLarge ||
             code == cudaErrorInvalidClusterSize;
  if (bad && launch->stream->member != NULL) {
    gcap_sim_capture_invalidate(launch->stream->member->capture, GCAP_SIM_RULE_BAD_LAUNCH);
  }
  return code;
}

cudaError_t gcap_sim_judge_cooperative(dim3 grid, dim3 block, size_t shared_bytes) {
  size_t threads = (size_t)block.x * block.y * block.z;
  size_t blocks = (size_t)grid.x * grid.y * grid.z;
  size_t most = gcap_sim_occupancy(threads, shared_bytes) * GCAP_SIM_MULTIPROCESSORS;
  return blocks <= most ? cudaSuccess : cudaErrorCooperativeLaunchTooLarge;
}

static cudaError_t judge_cooperative(const launch_t* launch) {
  return gcap_sim_judge_cooperative(launch->grid, launch->block, launch->shared_bytes);
}

static cudaError_t judge_cluster(const launch_t* launch, unsigned int x, unsigned int y, unsigned int z) {
  if (x == 0 || y == 0 || z == 0) return cudaErrorInvalidClusterSize;
  if ((uint64_t)x * y > GCAP_SIM_MAX_CLUSTER || (uint64_t)x * y * z > GCAP_SIM_MAX_CLUSTER) {
    return cudaErrorInvalidClusterSize;
  }
  bool divides = launch->grid.x % x == 0 && launch->grid.y % y == 0 && launch->grid.z % z == 0;
  return divides ? cudaSuccess : cudaErrorInvalidClusterSize;
}

// Measured: a cooperative launch with too much shared memory fits nowhere, before its configuration is looked at.
static bool is_too_large(const launch_t* launch) {
  size_t most;
  bool known = gcap_sim_kernel_max_shared(launch->function, &most) == cudaSuccess;
  for (size_t i = 0; known && i < launch->num_attributes; ++i) {
    const cudaLaunchAttribute* attribute = &launch->attributes[i];
    if (attribute->id != cudaLaunchAttributeCooperative || !attribute->val.cooperative) continue;
    return launch->shared_bytes > most;
  }
  return false;
}

static cudaError_t judge_attribute(const launch_t* launch, const cudaLaunchAttribute* attribute) {
  const cudaLaunchAttributeValue* value = &attribute->val;
  switch (attribute->id) {
    case cudaLaunchAttributeCooperative: return value->cooperative ? judge_cooperative(launch) : cudaSuccess;
    case cudaLaunchAttributeClusterDimension:
      return judge_cluster(launch, value->clusterDim.x, value->clusterDim.y, value->clusterDim.z);
    case cudaLaunchAttributeMemSyncDomain:
      return (unsigned int)value->memSyncDomain <= cudaLaunchMemSyncDomainRemote ? cudaSuccess : cudaErrorInvalidValue;
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
    case cudaLaunchAttributeProgrammaticStreamSerialization:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
    case cudaLaunchAttributeNvlinkUtilCentricScheduling: return cudaSuccess;
    case cudaLaunchAttributeProgrammaticEvent:
    case cudaLaunchAttributePreferredClusterDimension:
    case cudaLaunchAttributeLaunchCompletionEvent:
    case cudaLaunchAttributeDeviceUpdatableKernelNode:
      gcap_sim_die("%s: launch attribute %d is not modelled", gcap_sim_thread()->call, (int)attribute->id);
    default: return cudaErrorInvalidValue;
  }
}

static bool is_serialization(const cudaLaunchAttribute* attribute) {
  return attribute->id == cudaLaunchAttributeProgrammaticStreamSerialization;
}

// The kernel may start when the one kernel before it says so: the edge between them carries that.
static void serialize_programmatically(gcap_sim_member_t* member) {
  const gcap_sim_edges_t* deps = gcap_sim_member_deps(member);
  if (deps->count != 1 || gcap_sim_node_type(deps->items[0].node) != cudaGraphNodeTypeKernel) return;
  deps->items[0].data = (cudaGraphEdgeData){.from_port = cudaGraphKernelNodePortProgrammatic,
                                            .type = cudaGraphDependencyTypeProgrammatic};
}

static cudaError_t capture(const launch_t* launch, gcap_sim_task_t* task) {
  gcap_sim_member_t* member = launch->stream->member;
  for (size_t i = 0; i < launch->num_attributes; ++i) {
    const cudaLaunchAttribute* attribute = &launch->attributes[i];
    if (!is_serialization(attribute) || !attribute->val.programmaticStreamSerializationAllowed) continue;
    serialize_programmatically(member);
  }
  cudaError_t code = gcap_sim_submit_task(launch->stream, task);
  if (code != cudaSuccess) return code;
  gcap_sim_node_t* node = gcap_sim_member_deps(member)->items[0].node;
  for (size_t i = 0; i < launch->num_attributes; ++i) {
    const cudaLaunchAttribute* attribute = &launch->attributes[i];
    if (attribute->id == cudaLaunchAttributeIgnore || is_serialization(attribute)) continue;
    gcap_sim_node_set_attribute(node, attribute->id, &attribute->val);
  }
  return cudaSuccess;
}

static gcap_sim_task_t* with_cluster(gcap_sim_task_t* task, const launch_t* launch) {
  for (size_t i = 0; i < launch->num_attributes; ++i) {
    const cudaLaunchAttributeValue* value = &launch->attributes[i].val;
    if (launch->attributes[i].id != cudaLaunchAttributeClusterDimension) continue;
    const dim3 cluster = {.x = value->clusterDim.x, .y = value->clusterDim.y, .z = value->clusterDim.z};
    task = gcap_sim_kernel_task_with_cluster(task, cluster);
  }
  return task;
}

static cudaError_t launch_kernel(const launch_t* launch) {
  if (is_too_large(launch)) return refuse(launch, cudaErrorCooperativeLaunchTooLarge);
  cudaError_t code = cudaSuccess;
  gcap_sim_task_t* task =
      gcap_sim_kernel_task(launch->function, launch->grid, launch->block, launch->args, launch->shared_bytes, &code);
  for (size_t i = 0; task != NULL && i < launch->num_attributes && code == cudaSuccess; ++i) {
    code = judge_attribute(launch, &launch->attributes[i]);
  }
  if (code != cudaSuccess) {
    gcap_sim_task_release(task);
    return refuse(launch, code);
  }
  task = with_cluster(task, launch);
  code = gcap_sim_gate_ordered(launch->stream);
  if (code == cudaSuccess && launch->stream->member != NULL && launch->num_attributes) return capture(launch, task);
  return gcap_sim_submit_task(launch->stream, task);
}

static cudaError_t launch_plain(const void* function, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                                cudaStream_t stream) {
  launch_t launch = {function, grid, block, args, shared_bytes, gcap_sim_stream_get(stream), NULL, 0};
  return launch_kernel(&launch);
}

cudaError_t cudaLaunchKernel(const void* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                             cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaLaunchKernel);
  if (code == cudaSuccess) code = launch_plain(func, gridDim, blockDim, args, sharedMem, stream);
  return gcap_sim_leave(code);
}

// A launch with <<<>>>: counted, logged and told as the call that it stands for.
cudaError_t __cudaLaunchKernel(struct CUkern_st* kernel, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                               cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaLaunchKernel);
  if (code == cudaSuccess) code = launch_plain(kernel, gridDim, blockDim, args, sharedMem, stream);
  return gcap_sim_leave(code);
}

cudaError_t cudaLaunchCooperativeKernel(const void* func, dim3 gridDim, dim3 blockDim, void** args, size_t sharedMem,
                                        cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaLaunchCooperativeKernel);
  if (code == cudaSuccess) {
    const cudaLaunchAttribute cooperative = {.id = cudaLaunchAttributeCooperative, .val = {.cooperative = 1}};
    launch_t launch = {func, gridDim, blockDim, args, sharedMem, gcap_sim_stream_get(stream), &cooperative, 1};
    code = launch_kernel(&launch);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* func, void** args) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaLaunchKernelExC);
  if (code == cudaSuccess && config == NULL) {
    gcap_sim_die("cudaLaunchKernelExC: no configuration: the real runtime reads it");
  }
  if (code == cudaSuccess && config->numAttrs > 0 && config->attrs == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) {
    launch_t launch = {func,          config->gridDim,          config->blockDim,
                       args,          config->dynamicSmemBytes, gcap_sim_stream_get(config->stream),
                       config->attrs, config->numAttrs};
    code = launch_kernel(&launch);
  }
  return gcap_sim_leave(code);
}
