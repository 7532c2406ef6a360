// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Executable graphs: instantiation, launch, update.
//
// The idea: instantiation freezes a graph into a program, and an update swaps the program for a new one; a launch holds
// the program it started with, so neither update nor destruction disturbs work in flight. The launch is one operation
// of its stream; inside, a node is ready when those before it are done. Launches of one executable follow one another.
// Locking: the global mutex.
#include <stdlib.h>
#include <string.h>

#include "core.h"

struct sim_exec {
  cudaGraphExec_t handle;
  sim_program_t* program;
  unsigned long long flags;
  sim_mark_t* last_launch;
  sim_graph_t* memory_graph;  // the graph it came from, if that has memory nodes
};

// --- Programs -------------------------------------------------------------------------------------------------------

// Turns the lists of predecessors into one array of successors, grouped by node.
static void link_successors(sim_program_t* program, const sim_graph_t* graph) {
  uint32_t* first = program->first_successor;
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    for (size_t k = 0; k < graph->nodes[i]->num_deps; ++k) first[graph->nodes[i]->deps[k]->index + 1] += 1;
  }
  for (size_t i = 0; i < graph->num_nodes; ++i) first[i + 1] += first[i];
  uint32_t* next = sim_calloc(graph->num_nodes, sizeof(uint32_t));
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    for (size_t k = 0; k < graph->nodes[i]->num_deps; ++k) {
      size_t from = graph->nodes[i]->deps[k]->index;
      program->successors[first[from] + next[from]++] = (uint32_t)i;
    }
  }
  free(next);
}

static sim_program_t* program_create(const sim_graph_t* graph) {
  sim_program_t* program = sim_calloc(1, sizeof(*program));
  program->refs = 1;
  program->num_nodes = graph->num_nodes;
  program->tasks = sim_calloc(graph->num_nodes, sizeof(sim_task_t*));
  program->num_deps = sim_calloc(graph->num_nodes, sizeof(uint32_t));
  program->first_successor = sim_calloc(graph->num_nodes + 1, sizeof(uint32_t));
  program->successors = sim_calloc(graph->num_edges, sizeof(uint32_t));
  program->has_memory_nodes = sim_graph_has_memory_nodes(graph);
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    program->tasks[i] = sim_task_retain(graph->nodes[i]->task);
    program->num_deps[i] = (uint32_t)graph->nodes[i]->num_deps;
  }
  link_successors(program, graph);
  sim_object_refs_copy(&program->objects, &graph->objects);
  return program;
}

static void program_release(sim_program_t* program) {
  if (--program->refs > 0) return;
  for (size_t i = 0; i < program->num_nodes; ++i) sim_task_release(program->tasks[i]);
  sim_object_refs_clear(&program->objects);
  free(program->tasks);
  free(program->num_deps);
  free(program->first_successor);
  free(program->successors);
  free(program);
}

// --- Launches -------------------------------------------------------------------------------------------------------

// What an event node will wait for, or what it will reach: both are fixed at the launch.
static sim_mark_t* event_node_mark(sim_stream_t* stream, const sim_task_t* task) {
  if (task->kind == SIM_TASK_EVENT_WAIT) return sim_mark_retain(task->u.event->mark);
  if (task->kind != SIM_TASK_EVENT_RECORD) return NULL;
  sim_mark_t* mark = sim_mark_create(stream);
  sim_event_set_mark(task->u.event, sim_mark_retain(mark));
  return mark;
}

static sim_launch_t* launch_create(sim_program_t* program, sim_stream_t* stream) {
  sim_launch_t* launch = sim_calloc(1, sizeof(*launch));
  launch->program = program;
  program->refs += 1;
  launch->num_left = program->num_nodes;
  launch->deps_left = sim_calloc(program->num_nodes, sizeof(uint32_t));
  launch->ready = sim_calloc(program->num_nodes, sizeof(uint32_t));
  launch->marks = sim_calloc(program->num_nodes, sizeof(sim_mark_t*));
  for (size_t i = 0; i < program->num_nodes; ++i) {
    launch->deps_left[i] = program->num_deps[i];
    if (program->num_deps[i] == 0) launch->ready[launch->num_ready++] = (uint32_t)i;
    if (program->tasks[i]->kind == SIM_TASK_HOST) launch->num_host += 1;
    launch->marks[i] = event_node_mark(stream, program->tasks[i]);
  }
  return launch;
}

void sim_launch_node_done(sim_launch_t* launch, uint32_t node) {
  const sim_program_t* program = launch->program;
  launch->num_left -= 1;
  for (uint32_t i = program->first_successor[node]; i < program->first_successor[node + 1]; ++i) {
    uint32_t successor = program->successors[i];
    if (--launch->deps_left[successor] == 0) launch->ready[launch->num_ready++] = successor;
  }
}

void sim_launch_destroy(sim_launch_t* launch) {
  for (size_t i = 0; i < launch->program->num_nodes; ++i) sim_mark_release(launch->marks[i]);
  program_release(launch->program);
  free(launch->deps_left);
  free(launch->ready);
  free(launch->marks);
  free(launch);
}

// Would the launch allocate what the launch before left allocated?
static bool has_unfreed_memory(const sim_program_t* program) {
  for (size_t i = 0; program->has_memory_nodes && i < program->num_nodes; ++i) {
    const sim_task_t* task = program->tasks[i];
    if (task->kind == SIM_TASK_ALLOC && task->u.allocation->claimed) return true;
  }
  return false;
}

// Does the device have the memory that the launch will allocate?
static bool bring_memory(const sim_program_t* program) {
  for (size_t i = 0; program->has_memory_nodes && i < program->num_nodes; ++i) {
    const sim_task_t* task = program->tasks[i];
    if (task->kind == SIM_TASK_ALLOC && !sim_graph_memory_bring(task->u.allocation)) return false;
  }
  return true;
}

// From here on the caller owns what the launch will allocate, and no longer owns what it will free.
static void claim_memory(const sim_program_t* program) {
  for (size_t i = 0; program->has_memory_nodes && i < program->num_nodes; ++i) {
    const sim_task_t* task = program->tasks[i];
    if (task->kind == SIM_TASK_ALLOC) sim_allocation_claim(task->u.allocation);
    if (task->kind == SIM_TASK_FREE) sim_allocation_disclaim(task->u.allocation);
  }
}

// The rules that launching and uploading share.
static cudaError_t gate_launch(const sim_exec_t* exec, sim_stream_t* stream) {
  if (!exec) return cudaErrorInvalidValue;
  cudaError_t code = sim_gate_not_capturing(stream);
  return code == cudaSuccess ? sim_gate_ordered(stream) : code;
}

static cudaError_t launch(sim_exec_t* exec, sim_stream_t* stream) {
  cudaError_t code = gate_launch(exec, stream);
  if (code != cudaSuccess) return code;
  if (has_unfreed_memory(exec->program) && !(exec->flags & cudaGraphInstantiateFlagAutoFreeOnLaunch)) {
    return cudaErrorInvalidValue;
  }
  if (!bring_memory(exec->program)) return cudaErrorMemoryAllocation;
  claim_memory(exec->program);
  sim_enqueue(stream, NULL, launch_create(exec->program, stream), exec->last_launch);
  sim_mark_release(exec->last_launch);
  exec->last_launch = sim_stream_tail_mark(stream);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphLaunch);
  if (code == cudaSuccess) code = launch(sim_handle_get(SIM_EXEC, graphExec), sim_stream_get(stream));
  return sim_leave(code);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphUpload);
  // There is nothing to upload to.
  if (code == cudaSuccess) code = gate_launch(sim_handle_get(SIM_EXEC, graphExec), sim_stream_get(stream));
  return sim_leave(code);
}

// --- Instantiation --------------------------------------------------------------------------------------------------

void sim_exec_forget_graph(sim_exec_t* exec) { exec->memory_graph = NULL; }

static cudaError_t instantiate(cudaGraphExec_t* out, cudaGraph_t handle, unsigned long long flags,
                               unsigned long long allowed) {
  sim_graph_t* graph = sim_handle_get(SIM_GRAPH, handle);
  if (!out || !graph || (flags & ~allowed) != 0) return cudaErrorInvalidValue;
  if (flags & cudaGraphInstantiateFlagDeviceLaunch)
    sim_die("%s: launch from a device is not modelled", sim_thread()->call);
  if (graph->memory_exec) return cudaErrorNotSupported;
  sim_exec_t* exec = sim_calloc(1, sizeof(*exec));
  exec->program = program_create(graph);
  exec->flags = flags;
  exec->handle = sim_handle_create(SIM_EXEC, exec);
  if (exec->program->has_memory_nodes) {
    exec->memory_graph = graph;
    graph->memory_exec = exec;
  }
  *out = exec->handle;
  return cudaSuccess;
}

#define PLAIN_FLAGS                                                                  \
  (cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagDeviceLaunch | \
   cudaGraphInstantiateFlagUseNodePriority)

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long flags) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphInstantiate);
  if (code == cudaSuccess) code = instantiate(pGraphExec, graph, flags, PLAIN_FLAGS);
  return sim_leave(code);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long flags) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphInstantiateWithFlags);
  if (code == cudaSuccess) code = instantiate(pGraphExec, graph, flags, PLAIN_FLAGS);
  return sim_leave(code);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* pGraphExec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* instantiateParams) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphInstantiateWithParams);
  if (code == cudaSuccess && !instantiateParams) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) {
    code = instantiate(pGraphExec, graph, instantiateParams->flags, PLAIN_FLAGS | cudaGraphInstantiateFlagUpload);
    instantiateParams->errNode_out = NULL;
    instantiateParams->result_out = code == cudaSuccess ? cudaGraphInstantiateSuccess : cudaGraphInstantiateError;
  }
  return sim_leave(code);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long* flags) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphExecGetFlags);
  if (code == cudaSuccess) {
    const sim_exec_t* exec = sim_handle_get(SIM_EXEC, graphExec);
    if (exec && flags) {
      *flags = exec->flags & ~(unsigned long long)cudaGraphInstantiateFlagUseNodePriority;
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return sim_leave(code);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphExecDestroy);
  if (code == cudaSuccess) {
    sim_exec_t* exec = sim_handle_get(SIM_EXEC, graphExec);
    if (exec) {
      if (exec->memory_graph) exec->memory_graph->memory_exec = NULL;
      program_release(exec->program);
      sim_mark_release(exec->last_launch);
      sim_handle_destroy(graphExec);
      free(exec);
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return sim_leave(code);
}

// --- Update ---------------------------------------------------------------------------------------------------------

static bool same_copy_kind(const sim_copy_t* a, const sim_copy_t* b) {
  return a->dst_type == b->dst_type && a->src_type == b->src_type && (a->height > 1) == (b->height > 1);
}

static enum cudaGraphExecUpdateResult compare_tasks(const sim_task_t* a, const sim_task_t* b) {
  if (sim_task_node_type(a) != sim_task_node_type(b)) return cudaGraphExecUpdateErrorNodeTypeChanged;
  if (a->kind == SIM_TASK_COPY && !same_copy_kind(&a->u.copy.copy, &b->u.copy.copy)) {
    return cudaGraphExecUpdateErrorParametersChanged;
  }
  if (a->kind == SIM_TASK_FILL && (a->u.fill.height > 1) != (b->u.fill.height > 1)) {
    return cudaGraphExecUpdateErrorParametersChanged;
  }
  return cudaGraphExecUpdateSuccess;
}

static bool same_successors(const sim_program_t* a, const sim_program_t* b, size_t node) {
  size_t count = a->first_successor[node + 1] - a->first_successor[node];
  if (count != b->first_successor[node + 1] - b->first_successor[node]) return false;
  return memcmp(a->successors + a->first_successor[node], b->successors + b->first_successor[node],
                count * sizeof(uint32_t)) == 0;
}

// Nodes are paired in order of creation. Sets the index of the node at fault, if there is one.
static enum cudaGraphExecUpdateResult compare(const sim_program_t* a, const sim_program_t* b, size_t* node) {
  *node = SIZE_MAX;
  if (a->has_memory_nodes || b->has_memory_nodes) return cudaGraphExecUpdateErrorNotSupported;
  if (a->num_nodes != b->num_nodes) return cudaGraphExecUpdateErrorTopologyChanged;
  for (size_t i = 0; i < a->num_nodes; ++i) {
    *node = i;
    enum cudaGraphExecUpdateResult result = compare_tasks(a->tasks[i], b->tasks[i]);
    if (result != cudaGraphExecUpdateSuccess) return result;
    if (!same_successors(a, b, i)) return cudaGraphExecUpdateErrorTopologyChanged;
  }
  *node = SIZE_MAX;
  return cudaGraphExecUpdateSuccess;
}

static cudaError_t update(sim_exec_t* exec, const sim_graph_t* graph, cudaGraphExecUpdateResultInfo* info) {
  if (!exec || !graph) return cudaErrorInvalidValue;
  sim_program_t* program = program_create(graph);
  size_t node;
  enum cudaGraphExecUpdateResult result = compare(exec->program, program, &node);
  if (info) {
    info->result = result;
    info->errorNode = node == SIZE_MAX ? NULL : graph->nodes[node]->handle;
    info->errorFromNode = NULL;
  }
  bool ok = result == cudaGraphExecUpdateSuccess;
  program_release(ok ? exec->program : program);
  if (ok) exec->program = program;
  return ok ? cudaSuccess : cudaErrorGraphExecUpdateFailure;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                cudaGraphExecUpdateResultInfo* resultInfo) {
  cudaError_t code = sim_enter(SIM_API_cudaGraphExecUpdate);
  if (code == cudaSuccess) {
    code = update(sim_handle_get(SIM_EXEC, hGraphExec), sim_handle_get(SIM_GRAPH, hGraph), resultInfo);
  }
  return sim_leave(code);
}
