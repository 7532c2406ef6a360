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
#include "sim/stream/event.h"
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

cudaError_t gcap_sim_judge_cooperative(const void* function, dim3 grid, dim3 block, size_t shared_bytes) {
  size_t threads = (size_t)block.x * block.y * block.z;
  size_t blocks = (size_t)grid.x * grid.y * grid.z;
  const gcap_sim_needs_t needs = gcap_sim_kernel_needs(function);
  size_t most = gcap_sim_occupancy(needs, threads, shared_bytes) * GCAP_SIM_MULTIPROCESSORS;
  return blocks <= most ? cudaSuccess : cudaErrorCooperativeLaunchTooLarge;
}

static cudaError_t judge_cooperative(const launch_t* launch) {
  return gcap_sim_judge_cooperative(launch->function, launch->grid, launch->block, launch->shared_bytes);
}

static bool divides(dim3 cluster, dim3 grid) {
  if (cluster.x == 0 || cluster.y == 0 || cluster.z == 0) return false;
  return grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0;
}

static bool is_required(const gcap_sim_twin_t* twin, dim3 cluster) {
  const int* required = twin->required_cluster;
  if (!gcap_sim_requires_cluster(twin)) return true;
  return cluster.x == (unsigned int)required[0] && cluster.y == (unsigned int)required[1] &&
         cluster.z == (unsigned int)required[2];
}

cudaError_t gcap_sim_judge_cluster(const gcap_sim_twin_t* twin, dim3 grid, dim3 cluster) {
  const uint64_t most = twin->any_cluster ? GCAP_SIM_MAX_ANY_CLUSTER : GCAP_SIM_MAX_CLUSTER;
  bool fits = (uint64_t)cluster.x * cluster.y <= most && (uint64_t)cluster.x * cluster.y * cluster.z <= most;
  bool ok = fits && divides(cluster, grid) && is_required(twin, cluster);
  return ok ? cudaSuccess : cudaErrorInvalidClusterSize;
}

static const cudaLaunchAttribute* find_attribute(const launch_t* launch, cudaLaunchAttributeID id) {
  for (size_t i = 0; i < launch->num_attributes; ++i) {
    if (launch->attributes[i].id == id) return &launch->attributes[i];
  }
  return NULL;
}

static dim3 cluster_of(const cudaLaunchAttribute* attribute) {
  const cudaLaunchAttributeValue* value = &attribute->val;
  return (dim3){.x = value->clusterDim.x, .y = value->clusterDim.y, .z = value->clusterDim.z};
}

// Measured: the preferred clusters are made of those that the launch asks for. Which a GPU takes is the GPU's choice;
// here it is always the latter.
static cudaError_t judge_preferred(const launch_t* launch, const cudaLaunchAttributeValue* value) {
  const cudaLaunchAttribute* cluster = find_attribute(launch, cudaLaunchAttributeClusterDimension);
  const dim3 preferred = {
      .x = value->preferredClusterDim.x, .y = value->preferredClusterDim.y, .z = value->preferredClusterDim.z};
  return cluster != NULL && divides(cluster_of(cluster), preferred) ? cudaSuccess : cudaErrorInvalidClusterSize;
}

static cudaError_t judge_event(const launch_t* launch, cudaEvent_t event) {
  if (find_attribute(launch, cudaLaunchAttributeProgrammaticEvent) != NULL &&
      find_attribute(launch, cudaLaunchAttributeLaunchCompletionEvent) != NULL) {
    gcap_sim_die("%s: two events of one launch: the real runtime does not survive them", gcap_sim_thread()->call);
  }
  return gcap_sim_event_judge_launch(event, launch->stream->device);
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
      return gcap_sim_judge_cluster(gcap_sim_twin_find(launch->function), launch->grid, cluster_of(attribute));
    case cudaLaunchAttributePreferredClusterDimension: return judge_preferred(launch, value);
    case cudaLaunchAttributeProgrammaticEvent: return judge_event(launch, value->programmaticEvent.event);
    case cudaLaunchAttributeLaunchCompletionEvent: return judge_event(launch, value->launchCompletionEvent.event);
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
    case cudaLaunchAttributeDeviceUpdatableKernelNode:
      gcap_sim_die("%s: launch attribute %d is not modelled", gcap_sim_thread()->call, (int)attribute->id);
    default: return cudaErrorInvalidValue;
  }
}

// What a node keeps; the others become edges, or nothing.
static bool is_kept(const cudaLaunchAttribute* attribute) {
  switch (attribute->id) {
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributeProgrammaticStreamSerialization:
    case cudaLaunchAttributeProgrammaticEvent:
    case cudaLaunchAttributePreferredClusterDimension:
    case cudaLaunchAttributeLaunchCompletionEvent: return false;
    default: return true;
  }
}

// The kernel may start when the kernels before it say so: the edges between them carry that.
static void serialize_programmatically(gcap_sim_member_t* member) {
  const gcap_sim_edges_t* deps = gcap_sim_member_deps(member);
  for (size_t i = 0; i < deps->count; ++i) {
    if (gcap_sim_node_type(deps->items[i].node) != cudaGraphNodeTypeKernel) continue;
    deps->items[i].data = (cudaGraphEdgeData){.from_port = cudaGraphKernelNodePortProgrammatic,
                                              .type = cudaGraphDependencyTypeProgrammatic};
  }
}

// The events of a launch, once it is under way.
static void record_events(const launch_t* launch) {
  for (size_t i = 0; i < launch->num_attributes; ++i) {
    const cudaLaunchAttributeValue* value = &launch->attributes[i].val;
    cudaGraphEdgeData data = {.from_port = cudaGraphKernelNodePortLaunchCompletion};
    if (launch->attributes[i].id == cudaLaunchAttributeLaunchCompletionEvent) {
      gcap_sim_event_record_launch(value->launchCompletionEvent.event, launch->stream, data);
    }
    if (launch->attributes[i].id == cudaLaunchAttributeProgrammaticEvent) {
      data.type = cudaGraphDependencyTypeProgrammatic;
      if (!value->programmaticEvent.triggerAtBlockStart) data.from_port = cudaGraphKernelNodePortProgrammatic;
      gcap_sim_event_record_launch(value->programmaticEvent.event, launch->stream, data);
    }
  }
}

static cudaError_t capture(const launch_t* launch, gcap_sim_task_t* task) {
  gcap_sim_member_t* member = launch->stream->member;
  for (size_t i = 0; i < launch->num_attributes; ++i) {
    const cudaLaunchAttribute* attribute = &launch->attributes[i];
    if (attribute->id != cudaLaunchAttributeProgrammaticStreamSerialization) continue;
    if (attribute->val.programmaticStreamSerializationAllowed) serialize_programmatically(member);
  }
  cudaError_t code = gcap_sim_submit_task(launch->stream, task);
  if (code != cudaSuccess) return code;
  gcap_sim_node_t* node = gcap_sim_member_deps(member)->items[0].node;
  for (size_t i = 0; i < launch->num_attributes; ++i) {
    const cudaLaunchAttribute* attribute = &launch->attributes[i];
    if (is_kept(attribute)) gcap_sim_node_set_attribute(node, attribute->id, &attribute->val);
  }
  return cudaSuccess;
}

static gcap_sim_task_t* with_cluster(gcap_sim_task_t* task, const launch_t* launch) {
  for (size_t i = 0; i < launch->num_attributes; ++i) {
    if (launch->attributes[i].id != cudaLaunchAttributeClusterDimension) continue;
    task = gcap_sim_kernel_task_with_cluster(task, cluster_of(&launch->attributes[i]));
  }
  return task;
}

static cudaError_t launch_kernel(const launch_t* launch) {
  if (is_too_large(launch)) return refuse(launch, cudaErrorCooperativeLaunchTooLarge);
  cudaError_t code = cudaSuccess;
  gcap_sim_task_t* task =
      gcap_sim_kernel_task(launch->function, launch->grid, launch->block, launch->args, launch->shared_bytes, &code);
  if (task == NULL) return refuse(launch, code);
  for (size_t i = 0; i < launch->num_attributes && code == cudaSuccess; ++i) {
    code = judge_attribute(launch, &launch->attributes[i]);
  }
  if (code != cudaSuccess) {
    gcap_sim_task_release(task);
    return code == cudaErrorInvalidValue ? code : refuse(launch, code);
  }
  task = with_cluster(task, launch);
  code = gcap_sim_gate_ordered(launch->stream);
  if (code == cudaSuccess && launch->stream->member != NULL && launch->num_attributes) {
    code = capture(launch, task);
  } else {
    code = gcap_sim_submit_task(launch->stream, task);
  }
  if (code == cudaSuccess) record_events(launch);
  return code;
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
