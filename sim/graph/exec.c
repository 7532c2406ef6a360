// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Executable graphs: instantiation, launch, the end.
//
// The idea: instantiation keeps a copy of the graph, which callers' nodes lead to and updates compare with, and lays
// it out as a program. A launch holds the program it started with, and who changes a held program changes a copy, so
// neither updates nor destruction disturb work in flight. The launch is one operation of its stream; inside, a node is
// ready when those before it are done. Launches of one executable follow one another. Locking: the global mutex.
#include "sim/graph/exec.h"

#include <stdio.h>
#include <stdlib.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/bridge/task_access.h"
#include "sim/check/origin.h"
#include "sim/check/report.h"
#include "sim/device/peer.h"
#include "sim/graph/exec_memory.h"
#include "sim/graph/graph.h"
#include "sim/graph/graph_memory.h"
#include "sim/graph/program.h"
#include "sim/memory/allocation.h"
#include "sim/memory/copy.h"
#include "sim/stream/capture.h"
#include "sim/stream/mark.h"
#include "sim/stream/rules.h"
#include "sim/stream/scheduler.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

// --- Launches -------------------------------------------------------------------------------------------------------

typedef bool (*memory_fn_t)(gcap_sim_allocation_t* allocation, bool flag);

// Tells of each allocation, or of each free, of the program until one answers false. Allocations and frees go apart,
// since the order of nodes is that of their creation, not that of their edges.
static bool for_each(const gcap_sim_program_t* program, gcap_sim_task_kind_t kind, memory_fn_t fn, bool flag) {
  for (size_t i = 0; i < program->num_memory; ++i) {
    const gcap_sim_task_t* task = program->tasks[program->memory[i]];
    if (task->kind == kind && !fn(task->u.allocation, flag)) return false;
  }
  return true;
}

static bool announce(gcap_sim_allocation_t* allocation, bool coming) {
  allocation->coming = coming;
  return true;
}

static bool may_allocate(gcap_sim_allocation_t* allocation, bool auto_free) {
  return auto_free || !allocation->claimed;
}

static bool may_free(gcap_sim_allocation_t* allocation, bool unused) {
  (void)unused;
  return allocation->claimed || allocation->coming;
}

static bool bring(gcap_sim_allocation_t* allocation, bool unused) {
  (void)unused;
  return gcap_sim_graph_memory_bring(allocation);
}

static bool claim(gcap_sim_allocation_t* allocation, bool claimed) {
  if (claimed) {
    gcap_sim_allocation_claim(allocation);
  } else {
    gcap_sim_allocation_disclaim(allocation);
  }
  return true;
}

// What an earlier launch left allocated, the first of it.
static const gcap_sim_memory_t* find_unfreed(const gcap_sim_program_t* program) {
  for (size_t i = 0; i < program->num_memory; ++i) {
    const gcap_sim_task_t* task = program->tasks[program->memory[i]];
    if (task->kind == GCAP_SIM_TASK_ALLOC && task->u.allocation->claimed) return task->u.allocation->memory;
  }
  return NULL;
}

static void report_unfreed(const gcap_sim_exec_t* exec) {
  const gcap_sim_memory_t* memory = find_unfreed(exec->program);
  const gcap_sim_origin_t* call = gcap_sim_origin_current();
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_REFUSED_CALL, memory->allocated, call)) return;
  gcap_sim_rule_t rule = GCAP_SIM_RULE_UNFREED_RELAUNCH;
  gcap_sim_report_print("gcap sim: refused call: %s (%s), ", gcap_sim_rule_situation(rule), gcap_sim_rule_id(rule));
  gcap_sim_report_memory(memory, (const void*)memory->begin);
  gcap_sim_report_origin("launched by ", exec->launched);
  gcap_sim_report_origin("launched again by ", call);
  char remedy[256];
  snprintf(remedy, sizeof(remedy), "Nobody has freed it since. Remedy: %s.", gcap_sim_rule_remedy(rule));
  gcap_sim_report_end(remedy);
}

// Makes the caller the owner of what the launch will allocate, and no longer of what it will free. Fails when the
// launch would allocate what an earlier one left allocated, or free what is not allocated.
static cudaError_t claim_memory(gcap_sim_exec_t* exec) {
  const gcap_sim_program_t* program = exec->program;
  bool auto_free = (exec->flags & cudaGraphInstantiateFlagAutoFreeOnLaunch) != 0;
  if (!for_each(program, GCAP_SIM_TASK_ALLOC, may_allocate, auto_free)) {
    report_unfreed(exec);
    return cudaErrorInvalidValue;
  }
  for_each(program, GCAP_SIM_TASK_ALLOC, announce, true);
  bool ok = for_each(program, GCAP_SIM_TASK_FREE, may_free, false);
  for_each(program, GCAP_SIM_TASK_ALLOC, announce, false);
  if (!ok) return cudaErrorInvalidValue;
  if (!for_each(program, GCAP_SIM_TASK_ALLOC, bring, false)) return cudaErrorMemoryAllocation;
  for_each(program, GCAP_SIM_TASK_ALLOC, claim, true);
  for_each(program, GCAP_SIM_TASK_FREE, claim, false);
  gcap_sim_origin_release(exec->launched);
  exec->launched = gcap_sim_origin_retain(gcap_sim_origin_current());
  return cudaSuccess;
}

// The rules that launching and uploading share.
static cudaError_t gate_launch(const gcap_sim_exec_t* exec, gcap_sim_stream_t* stream) {
  cudaError_t code = gcap_sim_gate_not_capturing(stream);
  if (code == cudaSuccess) code = gcap_sim_gate_ordered(stream);
  return code == cudaSuccess && exec == NULL ? cudaErrorInvalidValue : code;
}

// The marks of the copies into pageable memory: a block of as many as the program has of them.
static gcap_sim_mark_t** marks_of_host(const gcap_sim_kernel_launch_t* launch) {
  const gcap_sim_program_t* program = launch->program;
  gcap_sim_mark_t** marks = gcap_sim_calloc(program->num_holding, sizeof(gcap_sim_mark_t*));
  for (size_t i = 0, found = 0; found < program->num_holding; ++i) {
    if (gcap_sim_task_holds_host(program->tasks[i])) marks[found++] = gcap_sim_mark_retain(launch->marks[i]);
  }
  return marks;
}

// Measured: the host goes on when those copies are done. Nothing promises that, so it is no order: who reads what they
// wrote is to wait for the stream.
static cudaError_t launch(gcap_sim_exec_t* exec, gcap_sim_stream_t* stream) {
  cudaError_t code = gate_launch(exec, stream);
  if (code == cudaSuccess && exec->program->num_memory > 0) code = claim_memory(exec);
  if (code != cudaSuccess) return code;
  gcap_sim_capture_escaped(stream, "graph launch");
  gcap_sim_kernel_launch_t* launched = gcap_sim_launch_create(exec->program, stream);
  const size_t num_marks = exec->program->num_holding;
  gcap_sim_mark_t** marks = num_marks > 0 ? marks_of_host(launched) : NULL;
  gcap_sim_enqueue(stream, NULL, launched, exec->last_launch);
  gcap_sim_mark_release(exec->last_launch);
  exec->last_launch = gcap_sim_stream_tail_mark(stream);
  for (size_t i = 0; i < num_marks; ++i) {
    gcap_sim_run_until(marks[i]);
    gcap_sim_mark_release(marks[i]);
  }
  free(marks);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphLaunch);
  if (code == cudaSuccess) code = launch(gcap_sim_handle_get(GCAP_SIM_EXEC, graphExec), gcap_sim_stream_get(stream));
  return gcap_sim_leave(code);
}

// Brings the memory of the graph; there is nothing else to upload to.
static cudaError_t upload(gcap_sim_exec_t* exec, gcap_sim_stream_t* stream) {
  cudaError_t code = gate_launch(exec, stream);
  if (code != cudaSuccess || exec->program->num_memory == 0) return code;
  return for_each(exec->program, GCAP_SIM_TASK_ALLOC, bring, false) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphUpload);
  if (code == cudaSuccess) code = upload(gcap_sim_handle_get(GCAP_SIM_EXEC, graphExec), gcap_sim_stream_get(stream));
  return gcap_sim_leave(code);
}

// --- Changes --------------------------------------------------------------------------------------------------------

gcap_sim_node_t* gcap_sim_exec_find(const gcap_sim_exec_t* exec, const gcap_sim_node_t* node) {
  const gcap_sim_graph_t* own = exec->graph;
  if (node->graph->owner != NULL) {
    const gcap_sim_node_t* holder = gcap_sim_exec_find(exec, node->graph->owner);
    own = holder != NULL ? holder->child : NULL;
  }
  if (own == NULL || own->source != node->graph->serial) return NULL;
  return gcap_sim_graph_find_source(own, node->serial);
}

gcap_sim_program_t* gcap_sim_exec_own_program(gcap_sim_exec_t* exec) {
  if (exec->program->refs > 1) {
    gcap_sim_program_t* copy = gcap_sim_program_copy(exec->program);
    gcap_sim_program_release(exec->program);
    exec->program = copy;
  }
  return exec->program;
}

static void set_program_task(gcap_sim_exec_t* exec, size_t at, gcap_sim_task_t* task) {
  gcap_sim_program_t* program = gcap_sim_exec_own_program(exec);
  gcap_sim_access_bind(task);
  program->num_holding += gcap_sim_task_holds_host(task);
  program->num_holding -= gcap_sim_task_holds_host(program->tasks[at]);
  gcap_sim_task_release(program->tasks[at]);
  program->tasks[at] = task;
}

void gcap_sim_exec_set_task(gcap_sim_exec_t* exec, gcap_sim_node_t* node, gcap_sim_task_t* task) {
  gcap_sim_task_release(node->task);
  node->task = task;
  if (!node->disabled) set_program_task(exec, node->first, gcap_sim_task_retain(task));
}

void gcap_sim_exec_set_enabled(gcap_sim_exec_t* exec, gcap_sim_node_t* node, bool enabled) {
  if (node->disabled == !enabled) return;
  node->disabled = !enabled;
  set_program_task(exec, node->first,
                   enabled ? gcap_sim_task_retain(node->task) : gcap_sim_task_create(GCAP_SIM_TASK_EMPTY, "disabled"));
}

// --- Instantiation --------------------------------------------------------------------------------------------------

void gcap_sim_exec_forget_graph(gcap_sim_exec_t* exec) { exec->memory_graph = NULL; }

void gcap_sim_exec_adopt_graph(gcap_sim_exec_t* exec, gcap_sim_graph_t* graph) {
  if (exec->memory_graph != NULL) exec->memory_graph->memory_exec = NULL;
  exec->memory_graph = graph->num_memory_nodes > 0 ? graph : NULL;
  if (exec->memory_graph != NULL) graph->memory_exec = exec;
}

// A fill needs memory, and such as its device can reach: measured, and found at the instantiation, not in a capture.
static bool fills_out_of_reach(const gcap_sim_node_t* node) {
  const gcap_sim_task_t* task = node->task;
  if (task->kind != GCAP_SIM_TASK_FILL) return false;
  if (!gcap_sim_fill_has_memory(&task->u.fill)) return true;
  if (task->u.fill.type != cudaMemoryTypeDevice) return false;
  int device = task->u.fill.device;
  return device != node->device && !gcap_sim_peer_enabled(node->device, device);
}

static bool is_runnable(const gcap_sim_graph_t* graph) {
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    const gcap_sim_node_t* node = graph->nodes[i];
    if (fills_out_of_reach(node) || (node->child != NULL && !is_runnable(node->child))) return false;
  }
  return true;
}

static cudaError_t judge_flags(unsigned long long flags, unsigned long long allowed) {
  if ((flags & ~allowed) != 0) return cudaErrorInvalidValue;
  if (!(flags & cudaGraphInstantiateFlagDeviceLaunch)) return cudaSuccess;
  return flags & cudaGraphInstantiateFlagAutoFreeOnLaunch ? cudaErrorInvalidValue : cudaSuccess;
}

// The first node that a graph for launch from a device may not have; NULL when there is none.
static const gcap_sim_node_t* find_host_work(const gcap_sim_graph_t* graph) {
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    const gcap_sim_node_t* node = graph->nodes[i];
    gcap_sim_task_kind_t kind = node->task->kind;
    bool of_device = kind == GCAP_SIM_TASK_KERNEL || kind == GCAP_SIM_TASK_COPY || kind == GCAP_SIM_TASK_FILL;
    const gcap_sim_node_t* found = node->child != NULL ? find_host_work(node->child) : of_device ? NULL : node;
    if (found != NULL) return found;
  }
  return NULL;
}

// An executable for launch from a device is launched from the host as others are; no twin has a way to launch one.
static cudaError_t judge_device_launch(const gcap_sim_graph_t* graph, cudaGraphInstantiateParams* info) {
  const gcap_sim_node_t* host_work = find_host_work(graph);
  if (host_work == NULL) return cudaSuccess;
  info->errNode_out = host_work->handle;
  info->result_out = cudaGraphInstantiateNodeOperationNotSupported;
  return cudaErrorInvalidValue;
}

// On failure `info` tells why.
static cudaError_t judge_graph(gcap_sim_graph_t* graph, cudaGraphInstantiateParams* info) {
  if (graph == NULL || graph->moved) return cudaErrorInvalidValue;
  if (graph->memory_exec != NULL) return cudaErrorNotSupported;
  const gcap_sim_node_t* on_cycle = gcap_sim_graph_find_cycle(graph);
  if (on_cycle != NULL) {
    info->errNode_out = on_cycle->handle;
    info->result_out = cudaGraphInstantiateInvalidStructure;
    return cudaErrorInvalidValue;
  }
  if (info->flags & cudaGraphInstantiateFlagDeviceLaunch) {
    cudaError_t code = judge_device_launch(graph, info);
    if (code != cudaSuccess) return code;
  }
  return is_runnable(graph) ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaGraphExec_t exec_create(gcap_sim_graph_t* graph, unsigned long long flags) {
  gcap_sim_exec_t* exec = gcap_sim_calloc(1, sizeof(*exec));
  exec->graph = gcap_sim_graph_copy(graph, false);
  exec->program = gcap_sim_program_create(exec->graph);
  exec->flags = flags;
  exec->handle = gcap_sim_handle_create(GCAP_SIM_EXEC, exec);
  gcap_sim_exec_adopt_graph(exec, graph);
  return exec->handle;
}

static cudaError_t instantiate(cudaGraphExec_t* out, cudaGraph_t handle, unsigned long long allowed,
                               cudaGraphInstantiateParams* info) {
  info->errNode_out = NULL;
  info->result_out = cudaGraphInstantiateError;
  gcap_sim_graph_t* graph = gcap_sim_handle_get(GCAP_SIM_GRAPH, handle);
  cudaError_t code = out != NULL ? judge_flags(info->flags, allowed) : cudaErrorInvalidValue;
  if (code == cudaSuccess) code = judge_graph(graph, info);
  if (code == cudaSuccess && (info->flags & cudaGraphInstantiateFlagUpload)) {
    code = gcap_sim_gate_not_capturing(gcap_sim_stream_get(info->uploadStream));
  }
  // Not measured: what a device without memory answers.
  if (code == cudaSuccess && !gcap_sim_exec_memory_take(graph)) code = cudaErrorMemoryAllocation;
  if (code != cudaSuccess) return code;
  *out = exec_create(graph, info->flags);
  info->result_out = cudaGraphInstantiateSuccess;
  return cudaSuccess;
}

#define PLAIN_FLAGS                                                                  \
  (cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagDeviceLaunch | \
   cudaGraphInstantiateFlagUseNodePriority)

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphInstantiate);
  cudaGraphInstantiateParams info = {.flags = flags};
  if (code == cudaSuccess) code = instantiate(pGraphExec, graph, PLAIN_FLAGS, &info);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* pGraphExec, cudaGraph_t graph, unsigned long long flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphInstantiateWithFlags);
  cudaGraphInstantiateParams info = {.flags = flags};
  if (code == cudaSuccess) code = instantiate(pGraphExec, graph, PLAIN_FLAGS, &info);
  return gcap_sim_leave(code);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* pGraphExec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* instantiateParams) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphInstantiateWithParams);
  if (code == cudaSuccess && instantiateParams == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) {
    code = instantiate(pGraphExec, graph, PLAIN_FLAGS | cudaGraphInstantiateFlagUpload, instantiateParams);
  }
  return gcap_sim_leave(code);
}

// --- The executable itself ------------------------------------------------------------------------------------------

// Measured: what the instantiation alone is about is not told, nor is the use of priorities.
#define UNTOLD_FLAGS ((unsigned long long)(cudaGraphInstantiateFlagUpload | cudaGraphInstantiateFlagUseNodePriority))

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long* flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecGetFlags);
  if (code == cudaSuccess) {
    const gcap_sim_exec_t* exec = gcap_sim_handle_get(GCAP_SIM_EXEC, graphExec);
    if (exec != NULL && flags != NULL) {
      *flags = exec->flags & ~UNTOLD_FLAGS;
    } else {
      code = cudaErrorInvalidValue;
    }
  }
  return gcap_sim_leave(code);
}

static cudaError_t destroy(gcap_sim_exec_t* exec) {
  if (exec == NULL) return cudaErrorInvalidValue;
  if (exec->memory_graph != NULL) exec->memory_graph->memory_exec = NULL;
  gcap_sim_exec_memory_let_go(exec->graph);
  gcap_sim_graph_destroy(exec->graph);
  gcap_sim_program_release(exec->program);
  gcap_sim_mark_release(exec->last_launch);
  gcap_sim_origin_release(exec->launched);
  gcap_sim_handle_destroy(exec->handle);
  free(exec);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaGraphExecDestroy);
  if (code == cudaSuccess) code = destroy(gcap_sim_handle_get(GCAP_SIM_EXEC, graphExec));
  return gcap_sim_leave(code);
}
