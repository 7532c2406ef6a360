// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Programs: graphs laid out flat to be run, and launches, which are runs under way.
//
// The idea: arrays of tasks and successors, so that a launch is a copy of one array of counters, and a step looks at
// nothing but the node's own successors. A graph that a node holds takes two empty entries, one before all its nodes
// and one after. An edge that carries data is an edge like others: a kernel that starts early here still finds all
// that went before done, which is one of the orders that a GPU may choose. Locking: the global mutex.
#include "sim/graph/program.h"

#include <stdlib.h>
#include <string.h>

#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/bridge/chains.h"
#include "sim/bridge/task_access.h"
#include "sim/check/origin.h"
#include "sim/graph/graph.h"
#include "sim/graph/user_object.h"
#include "sim/stream/event.h"
#include "sim/stream/mark.h"
#include "sim/stream/task.h"

// --- Layout ---------------------------------------------------------------------------------------------------------

static void count_entries(const gcap_sim_graph_t* graph, size_t* nodes) {
  *nodes += graph->num_nodes;
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    if (graph->nodes[i]->child == NULL) continue;
    ++*nodes;
    count_entries(graph->nodes[i]->child, nodes);
  }
}

static size_t append_task(gcap_sim_program_t* program, gcap_sim_task_t* task) {
  gcap_sim_access_bind(task);
  program->num_holding += gcap_sim_task_holds_host(task);
  switch (task->kind) {
    case GCAP_SIM_TASK_HOST: ++program->num_host; break;
    case GCAP_SIM_TASK_EVENT_RECORD:
    case GCAP_SIM_TASK_EVENT_WAIT: program->has_events = true; break;
    case GCAP_SIM_TASK_ALLOC:
    case GCAP_SIM_TASK_FREE: ++program->num_memory; break;
    default: break;
  }
  program->tasks[program->num_nodes] = gcap_sim_task_retain(task);
  return program->num_nodes++;
}

static void place_nodes(gcap_sim_program_t* program, gcap_sim_graph_t* graph) {
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    gcap_sim_node_t* node = graph->nodes[i];
    node->first = node->last = append_task(program, node->task);
    if (node->child == NULL) continue;
    place_nodes(program, node->child);
    node->last = append_task(program, node->task);
  }
  gcap_sim_object_refs_copy(&program->objects, &graph->objects);
}

typedef void (*edge_fn_t)(gcap_sim_program_t* program, size_t from, size_t to);

static void for_each_edge(gcap_sim_program_t* program, const gcap_sim_graph_t* graph, edge_fn_t fn);

// What a held graph's nodes have to do with the entries before and after them.
static void for_each_edge_of_child(gcap_sim_program_t* program, const gcap_sim_node_t* node, edge_fn_t fn) {
  const gcap_sim_graph_t* child = node->child;
  if (child->num_nodes == 0) fn(program, node->first, node->last);
  for (size_t i = 0; i < child->num_nodes; ++i) {
    if (child->nodes[i]->in.count == 0) fn(program, node->first, child->nodes[i]->first);
    if (child->nodes[i]->out.count == 0) fn(program, child->nodes[i]->last, node->last);
  }
  for_each_edge(program, child, fn);
}

static void for_each_edge(gcap_sim_program_t* program, const gcap_sim_graph_t* graph, edge_fn_t fn) {
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    const gcap_sim_node_t* node = graph->nodes[i];
    for (size_t k = 0; k < node->in.count; ++k) fn(program, node->in.items[k].node->last, node->first);
    if (node->child != NULL) for_each_edge_of_child(program, node, fn);
  }
}

static void count_edge(gcap_sim_program_t* program, size_t from, size_t to) {
  ++program->num_deps[to];
  ++program->first_successor[from];
}

// Fills each node's share of the array from its end, and so leaves in `first_successor` where the share begins.
static void write_edge(gcap_sim_program_t* program, size_t from, size_t to) {
  program->successors[--program->first_successor[from]] = (uint32_t)to;
}

static void link_nodes(gcap_sim_program_t* program, const gcap_sim_graph_t* graph) {
  program->num_deps = gcap_sim_calloc(program->num_nodes, sizeof(uint32_t));
  program->first_successor = gcap_sim_calloc(program->num_nodes + 1, sizeof(uint32_t));
  for_each_edge(program, graph, count_edge);
  for (size_t i = 1; i <= program->num_nodes; ++i) program->first_successor[i] += program->first_successor[i - 1];
  program->successors = gcap_sim_calloc(program->first_successor[program->num_nodes], sizeof(uint32_t));
  for_each_edge(program, graph, write_edge);
}

gcap_sim_program_t* gcap_sim_program_create(gcap_sim_graph_t* graph) {
  size_t nodes = 0;
  count_entries(graph, &nodes);
  if (nodes >= UINT32_MAX) {
    gcap_sim_die("%s: a graph of %zu nodes is more than is modelled", gcap_sim_thread()->call, nodes);
  }
  gcap_sim_program_t* program = gcap_sim_calloc(1, sizeof(*program));
  program->refs = 1;
  program->tasks = gcap_sim_calloc(nodes, sizeof(gcap_sim_task_t*));
  place_nodes(program, graph);
  link_nodes(program, graph);
  program->memory = gcap_sim_calloc(program->num_memory, sizeof(uint32_t));
  for (size_t i = 0, found = 0; found < program->num_memory; ++i) {
    gcap_sim_task_kind_t kind = program->tasks[i]->kind;
    if (kind == GCAP_SIM_TASK_ALLOC || kind == GCAP_SIM_TASK_FREE) program->memory[found++] = (uint32_t)i;
  }
  return program;
}

static void* copied(const void* items, size_t count, size_t bytes) {
  void* copy = gcap_sim_calloc(count, bytes);
  if (count) memcpy(copy, items, count * bytes);
  return copy;
}

gcap_sim_program_t* gcap_sim_program_copy(const gcap_sim_program_t* program) {
  gcap_sim_program_t* copy = gcap_sim_calloc(1, sizeof(*copy));
  *copy = *program;
  copy->refs = 1;
  copy->chains = NULL;
  copy->tasks = copied(program->tasks, program->num_nodes, sizeof(gcap_sim_task_t*));
  for (size_t i = 0; i < copy->num_nodes; ++i) gcap_sim_task_retain(copy->tasks[i]);
  copy->num_deps = copied(program->num_deps, program->num_nodes, sizeof(uint32_t));
  copy->first_successor = copied(program->first_successor, program->num_nodes + 1, sizeof(uint32_t));
  copy->successors = copied(program->successors, program->first_successor[program->num_nodes], sizeof(uint32_t));
  copy->memory = copied(program->memory, program->num_memory, sizeof(uint32_t));
  copy->objects = (gcap_sim_object_refs_t){0};
  gcap_sim_object_refs_copy(&copy->objects, &program->objects);
  return copy;
}

void gcap_sim_program_release(gcap_sim_program_t* program) {
  if (--program->refs > 0) return;
  gcap_sim_order_program_destroyed(program);
  for (size_t i = 0; i < program->num_nodes; ++i) gcap_sim_task_release(program->tasks[i]);
  gcap_sim_object_refs_clear(&program->objects);
  free(program->tasks);
  free(program->num_deps);
  free(program->first_successor);
  free(program->successors);
  free(program->memory);
  free(program);
}

// --- Launches -------------------------------------------------------------------------------------------------------

// What nodes will wait for, or what they will reach: both are fixed at the launch. A wait looks for the last record
// before the launch, never for one of its own, which could come after it.
static void set_marks(gcap_sim_kernel_launch_t* launch, gcap_sim_stream_t* stream) {
  const gcap_sim_program_t* program = launch->program;
  launch->marks = gcap_sim_calloc(program->num_nodes, sizeof(gcap_sim_mark_t*));
  for (size_t i = 0; i < program->num_nodes; ++i) {
    const gcap_sim_task_t* task = program->tasks[i];
    if (task->kind == GCAP_SIM_TASK_EVENT_WAIT) launch->marks[i] = gcap_sim_mark_retain(task->u.event->mark);
    if (gcap_sim_task_holds_host(task)) launch->marks[i] = gcap_sim_mark_create(stream);
  }
  for (size_t i = 0; i < program->num_nodes; ++i) {
    const gcap_sim_task_t* task = program->tasks[i];
    if (task->kind != GCAP_SIM_TASK_EVENT_RECORD) continue;
    launch->marks[i] = gcap_sim_mark_create(stream);
    gcap_sim_event_set_mark(task->u.event, gcap_sim_mark_retain(launch->marks[i]));
  }
}

static void add_ready(gcap_sim_kernel_launch_t* launch, uint32_t node) {
  launch->ready[launch->num_ready++] = node;
  if (launch->program->tasks[node]->kind == GCAP_SIM_TASK_HOST) ++launch->num_ready_host;
}

gcap_sim_kernel_launch_t* gcap_sim_launch_create(gcap_sim_program_t* program, gcap_sim_stream_t* stream) {
  gcap_sim_kernel_launch_t* launch = gcap_sim_calloc(1, sizeof(*launch));
  launch->program = program;
  ++program->refs;
  launch->origin = gcap_sim_origin_retain(gcap_sim_origin_current());
  launch->num_left = program->num_nodes;
  launch->deps_left = copied(program->num_deps, program->num_nodes, sizeof(uint32_t));
  launch->ready = gcap_sim_calloc(program->num_nodes, sizeof(uint32_t));
  for (size_t i = 0; i < program->num_nodes; ++i) {
    if (program->num_deps[i] == 0) add_ready(launch, (uint32_t)i);
  }
  if (program->has_events || program->num_holding > 0) set_marks(launch, stream);
  return launch;
}

uint32_t gcap_sim_launch_take(gcap_sim_kernel_launch_t* launch, size_t pick) {
  uint32_t node = launch->ready[pick];
  launch->ready[pick] = launch->ready[--launch->num_ready];
  if (launch->program->tasks[node]->kind == GCAP_SIM_TASK_HOST) --launch->num_ready_host;
  return node;
}

void gcap_sim_launch_node_done(gcap_sim_kernel_launch_t* launch, uint32_t node) {
  const gcap_sim_program_t* program = launch->program;
  --launch->num_left;
  for (uint32_t i = program->first_successor[node]; i < program->first_successor[node + 1]; ++i) {
    uint32_t successor = program->successors[i];
    if (--launch->deps_left[successor] == 0) add_ready(launch, successor);
  }
}

void gcap_sim_launch_destroy(gcap_sim_kernel_launch_t* launch) {
  for (size_t i = 0; launch->marks != NULL && i < launch->program->num_nodes; ++i) {
    gcap_sim_mark_release(launch->marks[i]);
  }
  gcap_sim_order_launch_destroyed(launch);
  gcap_sim_origin_release(launch->origin);
  gcap_sim_program_release(launch->program);
  free(launch->deps_left);
  free(launch->ready);
  free(launch->marks);
  free(launch);
}
