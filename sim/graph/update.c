// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Updates of whole executables: is the other graph the same but for what nodes do?
//
// The idea: nodes are paired as the runtime documents it: the exit nodes of both graphs in their order, and from each
// pair on back along the edges in theirs. So two captures match when each stream made its calls in the same order,
// whatever the streams did beside one another. First all is paired and compared, then everything changes at once.
// Locking: the global mutex.
#include "sim/graph/update.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/base/heap.h"
#include "sim/check/origin.h"
#include "sim/check/report.h"
#include "sim/graph/edges.h"
#include "sim/graph/exec.h"
#include "sim/graph/graph.h"
#include "sim/graph/graph_attribute.h"
#include "sim/graph/program.h"
#include "sim/graph/user_object.h"
#include "sim/memory/copy.h"
#include "sim/stream/task.h"

// --- Tasks ----------------------------------------------------------------------------------------------------------

// Pinned host memory may take the place of pageable memory, and the other way round.
static bool is_same_kind(enum cudaMemoryType a, enum cudaMemoryType b) {
  return (a == cudaMemoryTypeDevice) == (b == cudaMemoryTypeDevice);
}

// Managed memory may take the place of any memory, and the other way round.
static bool is_same_side(enum cudaMemoryType a, int device_a, enum cudaMemoryType b, int device_b) {
  if (a == cudaMemoryTypeManaged || b == cudaMemoryTypeManaged) return true;
  return is_same_kind(a, b) && device_a == device_b;
}

// Of several rows or slices.
static bool has_rows(const gcap_sim_copy_t* copy) { return copy->height > 1 || copy->depth > 1; }

static bool is_equal_copy(const gcap_sim_copy_t* a, const gcap_sim_copy_t* b) {
  const bool same_slices = (a->depth <= 1 && b->depth <= 1) ||
                           (a->depth == b->depth && a->dst_slice == b->dst_slice && a->src_slice == b->src_slice);
  return a->dst == b->dst && a->dst_pitch == b->dst_pitch && a->src == b->src && a->src_pitch == b->src_pitch &&
         a->width == b->width && a->height == b->height && same_slices;
}

// The kind counts as well as the memory: `default` asks for unified addresses, which is another type of operand.
// Measured on an H200 (probe.single.rows_in_an_executable): a copy of several rows may be set to what it is alone.
static bool is_same_copy(const gcap_sim_copy_t* a, const gcap_sim_copy_t* b) {
  if (a->kind != b->kind || !is_same_side(a->dst_type, a->dst_device, b->dst_type, b->dst_device)) return false;
  if (!is_same_side(a->src_type, a->src_device, b->src_type, b->src_device)) return false;
  return (!has_rows(a) && !has_rows(b)) || is_equal_copy(a, b);
}

// One row may change in all; of several only the address and the value.
static bool is_same_fill(const gcap_sim_fill_t* a, const gcap_sim_fill_t* b) {
  bool other_device = a->type == cudaMemoryTypeDevice && b->type == cudaMemoryTypeDevice && a->device != b->device;
  if (other_device || a->height != b->height) return false;
  if (a->height == 1) return true;
  return a->width == b->width && a->pitch == b->pitch && a->element_bytes == b->element_bytes;
}

enum cudaGraphExecUpdateResult gcap_sim_compare_tasks(const gcap_sim_task_t* a, const gcap_sim_task_t* b) {
  if (gcap_sim_task_node_type(a) != gcap_sim_task_node_type(b)) return cudaGraphExecUpdateErrorNodeTypeChanged;
  bool same = true;
  if (a->kind == GCAP_SIM_TASK_COPY) same = is_same_copy(&a->u.copy.copy, &b->u.copy.copy);
  if (a->kind == GCAP_SIM_TASK_FILL) same = is_same_fill(&a->u.fill, &b->u.fill);
  // Measured: no other allocation takes the place of one, be it of the same size.
  bool memory = a->kind == GCAP_SIM_TASK_ALLOC || a->kind == GCAP_SIM_TASK_FREE;
  if (memory && a->u.allocation != b->u.allocation) return cudaGraphExecUpdateError;
  return same ? cudaGraphExecUpdateSuccess : cudaGraphExecUpdateErrorParametersChanged;
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

typedef struct comparison {
  const gcap_sim_exec_t* exec;
  cudaGraphExecUpdateResultInfo info;
} comparison_t;

static bool fail(comparison_t* comparison, enum cudaGraphExecUpdateResult result, const gcap_sim_node_t* node,
                 const gcap_sim_node_t* from) {
  comparison->info.result = result;
  comparison->info.errorNode = node != NULL ? node->handle : NULL;
  comparison->info.errorFromNode = from != NULL ? from->handle : NULL;
  return false;
}

static bool compare_kernels(comparison_t* comparison, const gcap_sim_node_t* own, const gcap_sim_node_t* node) {
  if (own->device != node->device) {
    return fail(comparison, cudaGraphExecUpdateErrorUnsupportedFunctionChange, node, NULL);
  }
  int cooperative = gcap_sim_node_attribute(own, cudaLaunchAttributeCooperative).cooperative;
  bool same = cooperative == gcap_sim_node_attribute(node, cudaLaunchAttributeCooperative).cooperative;
  if (comparison->exec->flags & cudaGraphInstantiateFlagUseNodePriority) {
    int priority = gcap_sim_node_attribute(own, cudaLaunchAttributePriority).priority;
    same = same && priority == gcap_sim_node_attribute(node, cudaLaunchAttributePriority).priority;
  }
  return same || fail(comparison, cudaGraphExecUpdateErrorAttributesChanged, node, NULL);
}

static bool compare_graphs(comparison_t* comparison, gcap_sim_graph_t* own, gcap_sim_graph_t* graph,
                           gcap_sim_node_t*** pairs);

static bool compare_nodes(comparison_t* comparison, const gcap_sim_node_t* own, const gcap_sim_node_t* node) {
  if (own->child != NULL) {
    gcap_sim_node_t** pairs;
    bool same = compare_graphs(comparison, own->child, node->child, &pairs);
    free(pairs);
    return same;
  }
  enum cudaGraphExecUpdateResult result = gcap_sim_compare_tasks(own->task, node->task);
  if (result != cudaGraphExecUpdateSuccess) return fail(comparison, result, node, NULL);
  return gcap_sim_node_type(node) != cudaGraphNodeTypeKernel || compare_kernels(comparison, own, node);
}

// --- Pairs ----------------------------------------------------------------------------------------------------------

typedef struct pairing {
  comparison_t* comparison;
  gcap_sim_node_t** of_own;    // the partner of each own node, by index; NULL while it has none
  gcap_sim_node_t** of_other;  // and the other way round
  gcap_sim_node_t** stack;     // own nodes that are paired, and whose edges are not looked at yet
  size_t depth;
} pairing_t;

// Pairs the two, which come before `to` unless that is NULL.
static bool pair(pairing_t* pairing, gcap_sim_node_t* own, gcap_sim_node_t* node, const gcap_sim_node_t* to) {
  if (pairing->of_own[own->index] == node) return true;
  if (pairing->of_own[own->index] != NULL || pairing->of_other[node->index] != NULL) {
    return fail(pairing->comparison, cudaGraphExecUpdateErrorTopologyChanged, to, node);
  }
  if (gcap_sim_node_type(own) != gcap_sim_node_type(node)) {
    return fail(pairing->comparison, cudaGraphExecUpdateErrorNodeTypeChanged, node, NULL);
  }
  if (own->in.count != node->in.count) {
    return fail(pairing->comparison, cudaGraphExecUpdateErrorTopologyChanged, node, NULL);
  }
  pairing->of_own[own->index] = node;
  pairing->of_other[node->index] = own;
  pairing->stack[pairing->depth++] = own;
  return true;
}

static bool pair_dependencies(pairing_t* pairing) {
  while (pairing->depth > 0) {
    const gcap_sim_node_t* own = pairing->stack[--pairing->depth];
    const gcap_sim_node_t* node = pairing->of_own[own->index];
    for (size_t i = 0; i < own->in.count; ++i) {
      const gcap_sim_edge_t* a = &own->in.items[i];
      const gcap_sim_edge_t* b = &node->in.items[i];
      if (memcmp(&a->data, &b->data, sizeof(a->data)) != 0) {
        return fail(pairing->comparison, cudaGraphExecUpdateErrorTopologyChanged, node, b->node);
      }
      if (!pair(pairing, a->node, b->node, node)) return false;
    }
  }
  return true;
}

// The exit nodes before the place `*at`, last first: the order in which the runtime is seen to pair them.
static gcap_sim_node_t* next_exit(const gcap_sim_graph_t* graph, size_t* at) {
  while (*at > 0 && graph->nodes[*at - 1]->out.count > 0) --*at;
  return *at > 0 ? graph->nodes[--*at] : NULL;
}

static size_t count_exits(const gcap_sim_graph_t* graph) {
  size_t count = 0;
  size_t at = graph->num_nodes;
  while (next_exit(graph, &at) != NULL) ++count;
  return count;
}

static bool pair_exits(pairing_t* pairing, const gcap_sim_graph_t* own, const gcap_sim_graph_t* graph) {
  size_t count = count_exits(own);
  size_t at_own = own->num_nodes;
  size_t at = graph->num_nodes;
  if (count_exits(graph) != count) {
    // The first exit that has no partner, if it is the other graph's.
    gcap_sim_node_t* extra = next_exit(graph, &at);
    for (size_t i = 0; i < count && extra != NULL; ++i) extra = next_exit(graph, &at);
    return fail(pairing->comparison, cudaGraphExecUpdateErrorTopologyChanged, extra, NULL);
  }
  for (gcap_sim_node_t* node = next_exit(graph, &at); node != NULL; node = next_exit(graph, &at)) {
    if (!pair(pairing, next_exit(own, &at_own), node, node)) return false;
  }
  return true;
}

static bool pair_graphs(comparison_t* comparison, gcap_sim_graph_t* own, gcap_sim_graph_t* graph,
                        gcap_sim_node_t** of_own) {
  gcap_sim_graph_number(own);
  gcap_sim_graph_number(graph);
  pairing_t pairing = {.comparison = comparison, .of_own = of_own};
  pairing.of_other = gcap_sim_calloc(graph->num_nodes, sizeof(gcap_sim_node_t*));
  pairing.stack = gcap_sim_calloc(graph->num_nodes, sizeof(gcap_sim_node_t*));
  bool same = pair_exits(&pairing, own, graph) && pair_dependencies(&pairing);
  // What is left has lost the edge to an exit that it had, or is on a cycle.
  for (size_t i = 0; same && i < graph->num_nodes; ++i) {
    if (pairing.of_other[i] != NULL) continue;
    same = fail(comparison, cudaGraphExecUpdateErrorTopologyChanged, graph->nodes[i], NULL);
  }
  free(pairing.of_other);
  free(pairing.stack);
  return same;
}

// On return *pairs is a block to be freed: the partner of each of the executable's nodes, when the graphs match.
static bool compare_graphs(comparison_t* comparison, gcap_sim_graph_t* own, gcap_sim_graph_t* graph,
                           gcap_sim_node_t*** pairs) {
  *pairs = gcap_sim_calloc(own->num_nodes, sizeof(gcap_sim_node_t*));
  if (own->num_nodes != graph->num_nodes) {
    return fail(comparison, cudaGraphExecUpdateErrorTopologyChanged, NULL, NULL);
  }
  if (!pair_graphs(comparison, own, graph, *pairs)) return false;
  for (size_t i = 0; i < own->num_nodes; ++i) {
    if (!compare_nodes(comparison, own->nodes[i], (*pairs)[i])) return false;
  }
  return true;
}

// --- The change -----------------------------------------------------------------------------------------------------

// Measured: only another kernel that asks for clusters itself gets them. Otherwise the executable's old ones go on,
// though the update tells of success.
static bool keeps_cluster(const gcap_sim_node_t* own, const gcap_sim_node_t* node) {
  if (own->task->kind != GCAP_SIM_TASK_KERNEL || node->task->kind != GCAP_SIM_TASK_KERNEL) return false;
  bool asks = gcap_sim_node_attribute(node, cudaLaunchAttributeClusterDimension).clusterDim.x != 0;
  return own->task->u.kernel.twin == node->task->u.kernel.twin || !asks;
}

// The clusters with which the task runs are those that the node asks for, where it asks for none: of one block.
static bool is_stale(const gcap_sim_task_t* own, const gcap_sim_task_t* task) {
  const dim3 a = own->u.kernel.launch.cluster, b = task->u.kernel.launch.cluster;
  return a.x != b.x || a.y != b.y || a.z != b.z;
}

static void report_stale(const gcap_sim_task_t* own, const gcap_sim_task_t* task) {
  const gcap_sim_origin_t* call = gcap_sim_origin_current();
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_STALE_UPDATE, task->origin, call)) return;
  const dim3 kept = own->u.kernel.launch.cluster, wanted = task->u.kernel.launch.cluster;
  gcap_sim_report_print(
      "gcap sim: stale update: a kernel goes on in clusters of %u x %u x %u blocks, not %u x %u x %u\n", kept.x, kept.y,
      kept.z, wanted.x, wanted.y, wanted.z);
  const gcap_sim_site_t before = {.what = "kernel", .name = own->name, .origin = own->origin};
  const gcap_sim_site_t after = {.what = "kernel", .name = task->name, .origin = task->origin};
  gcap_sim_report_site("kept clusters", &before);
  gcap_sim_report_site("wanted clusters", &after);
  gcap_sim_report_origin("updated by ", call);
  gcap_sim_report_end(
      "The update answers success all the same, as a GPU's does. Remedy: instantiate the new graph when the clusters "
      "of a kernel change.");
}

static void assign_node(gcap_sim_exec_t* exec, gcap_sim_node_t* own, const gcap_sim_node_t* node) {
  const cudaLaunchAttributeValue cluster = gcap_sim_node_attribute(own, cudaLaunchAttributeClusterDimension);
  bool keeps = keeps_cluster(own, node);
  if (keeps && is_stale(own->task, node->task)) report_stale(own->task, node->task);
  gcap_sim_node_copy_attributes(own, node);
  if (keeps) gcap_sim_node_set_attribute(own, cudaLaunchAttributeClusterDimension, &cluster);
  gcap_sim_exec_set_task(exec, own, gcap_sim_node_give_cluster(own, gcap_sim_task_retain(node->task)));
}

static void assign(gcap_sim_exec_t* exec, gcap_sim_graph_t* own, gcap_sim_graph_t* graph,
                   gcap_sim_node_t* const* pairs) {
  for (size_t i = 0; i < own->num_nodes; ++i) {
    gcap_sim_node_t* node = own->nodes[i];
    if (node->child != NULL) {
      gcap_sim_node_t** inner;
      comparison_t again = {.exec = exec};
      compare_graphs(&again, node->child, pairs[i]->child, &inner);
      assign(exec, node->child, pairs[i]->child, inner);
      free(inner);
    } else {
      assign_node(exec, node, pairs[i]);
    }
  }
  gcap_sim_object_refs_clear(&own->objects);
  gcap_sim_object_refs_copy(&own->objects, &graph->objects);
}

// The program holds what all its graphs hold.
static void collect_objects(gcap_sim_program_t* program, const gcap_sim_graph_t* graph) {
  gcap_sim_object_refs_copy(&program->objects, &graph->objects);
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    if (graph->nodes[i]->child != NULL) collect_objects(program, graph->nodes[i]->child);
  }
}

enum cudaGraphExecUpdateResult gcap_sim_exec_update(gcap_sim_exec_t* exec, gcap_sim_graph_t* own,
                                                    gcap_sim_graph_t* graph, cudaGraphExecUpdateResultInfo* info) {
  comparison_t comparison = {.exec = exec};
  gcap_sim_node_t** pairs;
  if (compare_graphs(&comparison, own, graph, &pairs)) {
    assign(exec, own, graph, pairs);
    gcap_sim_program_t* program = gcap_sim_exec_own_program(exec);
    gcap_sim_object_refs_clear(&program->objects);
    collect_objects(program, exec->graph);
  }
  free(pairs);
  if (info != NULL) *info = comparison.info;
  return comparison.info.result;
}

static cudaError_t update(gcap_sim_exec_t* exec, gcap_sim_graph_t* graph, cudaGraphExecUpdateResultInfo* info) {
  if (exec == NULL || graph == NULL || graph->moved) return cudaErrorInvalidValue;
  if (graph->memory_exec != NULL && graph->memory_exec != exec) {
    if (info != NULL) *info = (cudaGraphExecUpdateResultInfo){0};
    return cudaErrorNotSupported;
  }
  if (gcap_sim_exec_update(exec, exec->graph, graph, info) != cudaGraphExecUpdateSuccess) {
    return cudaErrorGraphExecUpdateFailure;
  }
  gcap_sim_exec_adopt_graph(exec, graph);
  return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                cudaGraphExecUpdateResultInfo* resultInfo) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecUpdate);
  if (code == cudaSuccess) {
    code =
        update(gcap_sim_handle_get(GCAP_SIM_EXEC, hGraphExec), gcap_sim_handle_get(GCAP_SIM_GRAPH, hGraph), resultInfo);
  }
  return gcap_sim_leave(code);
}
