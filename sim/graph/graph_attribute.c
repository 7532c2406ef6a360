// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Attributes of kernel nodes.
//
// The idea: a node keeps a short list of the attributes that were set; the others are zero, which is every attribute's
// default but of two. What they mean to a device is not modelled, but for the cluster, which the task tells its twin;
// updates and launches compare some of them. Locking: the global mutex.
#include "sim/graph/graph_attribute.h"

#include <string.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/bridge/task_access.h"
#include "sim/device/kernel.h"
#include "sim/device/launch.h"
#include "sim/graph/graph.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

static cudaLaunchAttribute* find(const gcap_sim_node_t* node, cudaLaunchAttributeID id) {
  for (size_t i = 0; i < node->num_attributes; ++i) {
    if (node->attributes[i].id == id) return &node->attributes[i];
  }
  return NULL;
}

cudaLaunchAttributeValue gcap_sim_node_attribute(const gcap_sim_node_t* node, cudaLaunchAttributeID id) {
  const cudaLaunchAttribute* attribute = find(node, id);
  if (attribute != NULL) return attribute->val;
  cudaLaunchAttributeValue value = {.pad = {0}};
  if (id == cudaLaunchAttributeMemSyncDomainMap) value.memSyncDomainMap.remote = 1;
  if (id == cudaLaunchAttributeClusterSchedulingPolicyPreference) {
    value.clusterSchedulingPolicyPreference = cudaClusterSchedulingPolicySpread;
  }
  return value;
}

void gcap_sim_node_set_attribute(gcap_sim_node_t* node, cudaLaunchAttributeID id,
                                 const cudaLaunchAttributeValue* value) {
  cudaLaunchAttribute* attribute = find(node, id);
  if (attribute == NULL) {
    gcap_sim_reserve(&node->attributes, &node->attribute_capacity, node->num_attributes + 1,
                     sizeof(cudaLaunchAttribute));
    attribute = &node->attributes[node->num_attributes++];
  }
  *attribute = (cudaLaunchAttribute){.id = id, .val = *value};
  if (id == cudaLaunchAttributePriority) attribute->val.priority = gcap_sim_clamp_priority(value->priority);
}

static dim3 cluster_of(const gcap_sim_node_t* node) {
  const cudaLaunchAttributeValue value = gcap_sim_node_attribute(node, cudaLaunchAttributeClusterDimension);
  return (dim3){.x = value.clusterDim.x, .y = value.clusterDim.y, .z = value.clusterDim.z};
}

// All zero stands for none.
static bool asks(dim3 cluster) { return cluster.x != 0 || cluster.y != 0 || cluster.z != 0; }

cudaError_t gcap_sim_node_judge_task(const gcap_sim_node_t* node, const gcap_sim_task_t* task) {
  const dim3 cluster = cluster_of(node);
  if (task->kind != GCAP_SIM_TASK_KERNEL || !asks(cluster)) return cudaSuccess;
  return gcap_sim_judge_cluster(task->u.kernel.twin, task->u.kernel.launch.grid, cluster);
}

gcap_sim_task_t* gcap_sim_node_give_cluster(const gcap_sim_node_t* node, gcap_sim_task_t* task) {
  if (task == NULL || task->kind != GCAP_SIM_TASK_KERNEL) return task;
  return gcap_sim_kernel_task_with_cluster(task, cluster_of(node));
}

void gcap_sim_node_copy_attributes(gcap_sim_node_t* to, const gcap_sim_node_t* from) {
  to->num_attributes = 0;
  for (size_t i = 0; i < from->num_attributes; ++i) {
    gcap_sim_node_set_attribute(to, from->attributes[i].id, &from->attributes[i].val);
  }
}

// Those that a kernel node has, of all that a launch may have.
static bool is_of_nodes(cudaLaunchAttributeID id) {
  switch (id) {
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeCooperative:
    case cudaLaunchAttributeClusterDimension:
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributeMemSyncDomain:
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
    case cudaLaunchAttributeNvlinkUtilCentricScheduling: return true;
    case cudaLaunchAttributeDeviceUpdatableKernelNode:
      gcap_sim_die("%s: nodes that a device updates are not modelled", gcap_sim_thread()->call);
    default: return false;
  }
}

// Measured: one of them may be set and not be asked for.
static bool is_told(cudaLaunchAttributeID id) {
  return is_of_nodes(id) && id != cudaLaunchAttributeNvlinkUtilCentricScheduling;
}

static bool is_kernel(const gcap_sim_node_t* node) {
  return node != NULL && gcap_sim_node_type(node) == cudaGraphNodeTypeKernel;
}

// Measured: the clusters that a kernel requires are told as its node's.
static cudaLaunchAttributeValue tell(const gcap_sim_node_t* node, cudaLaunchAttributeID id) {
  cudaLaunchAttributeValue value = gcap_sim_node_attribute(node, id);
  const gcap_sim_task_t* task = node->task;
  if (id != cudaLaunchAttributeClusterDimension || task->kind != GCAP_SIM_TASK_KERNEL) return value;
  if (asks(cluster_of(node)) || !gcap_sim_requires_cluster(task->u.kernel.twin)) return value;
  const int* required = task->u.kernel.twin->required_cluster;
  value.clusterDim.x = (unsigned int)required[0];
  value.clusterDim.y = (unsigned int)required[1];
  value.clusterDim.z = (unsigned int)required[2];
  return value;
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t hNode, cudaLaunchAttributeID attr,
                                            cudaLaunchAttributeValue* value_out) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphKernelNodeGetAttribute);
  if (code == cudaSuccess) {
    const gcap_sim_node_t* node = gcap_sim_handle_get(GCAP_SIM_NODE, hNode);
    if (is_kernel(node) && is_told(attr)) {
      if (value_out == NULL) {
        gcap_sim_die("cudaGraphKernelNodeGetAttribute: the value is NULL: the real runtime writes it");
      }
      *value_out = tell(node, attr);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}

// The task follows the attributes.
static void refresh_task(gcap_sim_node_t* node) {
  node->task = gcap_sim_node_give_cluster(node, node->task);
  gcap_sim_access_bind(node->task);
}

static cudaError_t set_attribute(gcap_sim_node_t* node, cudaLaunchAttributeID id, cudaLaunchAttributeValue value) {
  if (id == cudaLaunchAttributeClusterDimension) {
    const dim3 cluster = {.x = value.clusterDim.x, .y = value.clusterDim.y, .z = value.clusterDim.z};
    const gcap_sim_task_t* task = node->task;
    cudaError_t code =
        asks(cluster) ? gcap_sim_judge_cluster(task->u.kernel.twin, task->u.kernel.launch.grid, cluster) : cudaSuccess;
    if (code != cudaSuccess) return code;
  }
  if (id == cudaLaunchAttributeAccessPolicyWindow && !gcap_sim_is_window(&value.accessPolicyWindow)) {
    return cudaErrorInvalidValue;
  }
  if (id == cudaLaunchAttributeCooperative && value.cooperative) {
    const gcap_sim_launch_t* launch = &node->task->u.kernel.launch;
    const void* function = node->task->u.kernel.twin->kernel.function;
    cudaError_t code = gcap_sim_judge_cooperative(function, launch->grid, launch->block, launch->shared_bytes);
    if (code != cudaSuccess) return code;
  }
  gcap_sim_node_set_attribute(node, id, &value);
  refresh_task(node);
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t hNode, cudaLaunchAttributeID attr,
                                            const cudaLaunchAttributeValue* value) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphKernelNodeSetAttribute);
  if (code == cudaSuccess) {
    gcap_sim_node_t* node = gcap_sim_handle_get(GCAP_SIM_NODE, hNode);
    if (is_kernel(node) && is_of_nodes(attr)) {
      if (value == NULL) gcap_sim_die("cudaGraphKernelNodeSetAttribute: the value is NULL: the real runtime reads it");
      code = set_attribute(node, attr, *value);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}

static cudaError_t copy_attributes(gcap_sim_node_t* to, const gcap_sim_node_t* from) {
  if (!is_kernel(to) || !is_kernel(from) || to->device != from->device) return cudaErrorInvalidValue;
  if (to != from) gcap_sim_node_copy_attributes(to, from);
  refresh_task(to);
  return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t hDst, cudaGraphNode_t hSrc) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphKernelNodeCopyAttributes);
  if (code == cudaSuccess) {
    code = copy_attributes(gcap_sim_handle_get(GCAP_SIM_NODE, hDst), gcap_sim_handle_get(GCAP_SIM_NODE, hSrc));
  }
  return gcap_sim_leave(code);
}
