// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Programs: graphs laid out flat to be run, and launches, which are runs under way.
//
// The idea: arrays of tasks and successors, so that a launch is a copy of one array of counters, and a step looks at
// nothing but the node's own successors. A graph that a node holds takes two empty entries, one before all its nodes
// and one after. An edge that carries data is an edge like others: a kernel that starts early here still finds all
// that went before done, which is one of the orders that a GPU may choose. Locking: the global mutex.
#include <stdlib.h>
#include <string.h>

#include "graph.h"

// --- Layout ---------------------------------------------------------------------------------------------------------

static void count_entries(const sim_graph_t* graph, size_t* nodes) {
  *nodes += graph->num_nodes;
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    if (!graph->nodes[i]->child) continue;
    *nodes += 1;
    count_entries(graph->nodes[i]->child, nodes);
  }
}

static size_t append_task(sim_program_t* program, sim_task_t* task) {
  sim_access_bind(task);
  switch (task->kind) {
    case SIM_TASK_HOST: program->num_host += 1; break;
    case SIM_TASK_EVENT_RECORD:
    case SIM_TASK_EVENT_WAIT: program->has_events = true; break;
    case SIM_TASK_ALLOC:
    case SIM_TASK_FREE: program->num_memory += 1; break;
    default: break;
  }
  program->tasks[program->num_nodes] = sim_task_retain(task);
  return program->num_nodes++;
}

static void place_nodes(sim_program_t* program, sim_graph_t* graph) {
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    sim_node_t* node = graph->nodes[i];
    node->first = node->last = append_task(program, node->task);
    if (!node->child) continue;
    place_nodes(program, node->child);
    node->last = append_task(program, node->task);
  }
  sim_object_refs_copy(&program->objects, &graph->objects);
}

typedef void (*edge_fn_t)(sim_program_t* program, size_t from, size_t to);

static void for_each_edge(sim_program_t* program, const sim_graph_t* graph, edge_fn_t fn);

// What a held graph's nodes have to do with the entries before and after them.
static void for_each_edge_of_child(sim_program_t* program, const sim_node_t* node, edge_fn_t fn) {
  const sim_graph_t* child = node->child;
  if (child->num_nodes == 0) fn(program, node->first, node->last);
  for (size_t i = 0; i < child->num_nodes; ++i) {
    if (child->nodes[i]->in.count == 0) fn(program, node->first, child->nodes[i]->first);
    if (child->nodes[i]->out.count == 0) fn(program, child->nodes[i]->last, node->last);
  }
  for_each_edge(program, child, fn);
}

static void for_each_edge(sim_program_t* program, const sim_graph_t* graph, edge_fn_t fn) {
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    const sim_node_t* node = graph->nodes[i];
    for (size_t k = 0; k < node->in.count; ++k) fn(program, node->in.items[k].node->last, node->first);
    if (node->child) for_each_edge_of_child(program, node, fn);
  }
}

static void count_edge(sim_program_t* program, size_t from, size_t to) {
  program->num_deps[to] += 1;
  program->first_successor[from] += 1;
}

// Fills each node's share of the array from its end, and so leaves in `first_successor` where the share begins.
static void write_edge(sim_program_t* program, size_t from, size_t to) {
  program->successors[--program->first_successor[from]] = (uint32_t)to;
}

static void link_nodes(sim_program_t* program, const sim_graph_t* graph) {
  program->num_deps = sim_calloc(program->num_nodes, sizeof(uint32_t));
  program->first_successor = sim_calloc(program->num_nodes + 1, sizeof(uint32_t));
  for_each_edge(program, graph, count_edge);
  for (size_t i = 1; i <= program->num_nodes; ++i) program->first_successor[i] += program->first_successor[i - 1];
  program->successors = sim_calloc(program->first_successor[program->num_nodes], sizeof(uint32_t));
  for_each_edge(program, graph, write_edge);
}

sim_program_t* sim_program_create(sim_graph_t* graph) {
  size_t nodes = 0;
  count_entries(graph, &nodes);
  if (nodes >= UINT32_MAX) sim_die("%s: a graph of %zu nodes is more than is modelled", sim_thread()->call, nodes);
  sim_program_t* program = sim_calloc(1, sizeof(*program));
  program->refs = 1;
  program->tasks = sim_calloc(nodes, sizeof(sim_task_t*));
  place_nodes(program, graph);
  link_nodes(program, graph);
  program->memory = sim_calloc(program->num_memory, sizeof(uint32_t));
  for (size_t i = 0, found = 0; found < program->num_memory; ++i) {
    sim_task_kind_t kind = program->tasks[i]->kind;
    if (kind == SIM_TASK_ALLOC || kind == SIM_TASK_FREE) program->memory[found++] = (uint32_t)i;
  }
  return program;
}

static void* copied(const void* items, size_t count, size_t bytes) {
  void* copy = sim_calloc(count, bytes);
  if (count) memcpy(copy, items, count * bytes);
  return copy;
}

sim_program_t* sim_program_copy(const sim_program_t* program) {
  sim_program_t* copy = sim_calloc(1, sizeof(*copy));
  *copy = *program;
  copy->refs = 1;
  copy->chains = NULL;
  copy->tasks = copied(program->tasks, program->num_nodes, sizeof(sim_task_t*));
  for (size_t i = 0; i < copy->num_nodes; ++i) sim_task_retain(copy->tasks[i]);
  copy->num_deps = copied(program->num_deps, program->num_nodes, sizeof(uint32_t));
  copy->first_successor = copied(program->first_successor, program->num_nodes + 1, sizeof(uint32_t));
  copy->successors = copied(program->successors, program->first_successor[program->num_nodes], sizeof(uint32_t));
  copy->memory = copied(program->memory, program->num_memory, sizeof(uint32_t));
  copy->objects = (sim_object_refs_t){0};
  sim_object_refs_copy(&copy->objects, &program->objects);
  return copy;
}

void sim_program_release(sim_program_t* program) {
  if (--program->refs > 0) return;
  sim_order_program_destroyed(program);
  for (size_t i = 0; i < program->num_nodes; ++i) sim_task_release(program->tasks[i]);
  sim_object_refs_clear(&program->objects);
  free(program->tasks);
  free(program->num_deps);
  free(program->first_successor);
  free(program->successors);
  free(program->memory);
  free(program);
}

// --- Launches -------------------------------------------------------------------------------------------------------

// What event nodes will wait for, or what they will reach: both are fixed at the launch. A wait looks for the last
// record before the launch, never for one of its own, which could come after it.
static void set_marks(sim_launch_t* launch, sim_stream_t* stream) {
  const sim_program_t* program = launch->program;
  launch->marks = sim_calloc(program->num_nodes, sizeof(sim_mark_t*));
  for (size_t i = 0; i < program->num_nodes; ++i) {
    const sim_task_t* task = program->tasks[i];
    if (task->kind == SIM_TASK_EVENT_WAIT) launch->marks[i] = sim_mark_retain(task->u.event->mark);
  }
  for (size_t i = 0; i < program->num_nodes; ++i) {
    const sim_task_t* task = program->tasks[i];
    if (task->kind != SIM_TASK_EVENT_RECORD) continue;
    launch->marks[i] = sim_mark_create(stream);
    sim_event_set_mark(task->u.event, sim_mark_retain(launch->marks[i]));
  }
}

static void add_ready(sim_launch_t* launch, uint32_t node) {
  launch->ready[launch->num_ready++] = node;
  if (launch->program->tasks[node]->kind == SIM_TASK_HOST) launch->num_ready_host += 1;
}

sim_launch_t* sim_launch_create(sim_program_t* program, sim_stream_t* stream) {
  sim_launch_t* launch = sim_calloc(1, sizeof(*launch));
  launch->program = program;
  program->refs += 1;
  launch->origin = sim_origin_retain(sim_origin_current());
  launch->num_left = program->num_nodes;
  launch->deps_left = copied(program->num_deps, program->num_nodes, sizeof(uint32_t));
  launch->ready = sim_calloc(program->num_nodes, sizeof(uint32_t));
  for (size_t i = 0; i < program->num_nodes; ++i) {
    if (program->num_deps[i] == 0) add_ready(launch, (uint32_t)i);
  }
  if (program->has_events) set_marks(launch, stream);
  return launch;
}

uint32_t sim_launch_take(sim_launch_t* launch, size_t pick) {
  uint32_t node = launch->ready[pick];
  launch->ready[pick] = launch->ready[--launch->num_ready];
  if (launch->program->tasks[node]->kind == SIM_TASK_HOST) launch->num_ready_host -= 1;
  return node;
}

void sim_launch_node_done(sim_launch_t* launch, uint32_t node) {
  const sim_program_t* program = launch->program;
  launch->num_left -= 1;
  for (uint32_t i = program->first_successor[node]; i < program->first_successor[node + 1]; ++i) {
    uint32_t successor = program->successors[i];
    if (--launch->deps_left[successor] == 0) add_ready(launch, successor);
  }
}

void sim_launch_destroy(sim_launch_t* launch) {
  for (size_t i = 0; launch->marks && i < launch->program->num_nodes; ++i) sim_mark_release(launch->marks[i]);
  sim_order_launch_destroyed(launch);
  sim_origin_release(launch->origin);
  sim_program_release(launch->program);
  free(launch->deps_left);
  free(launch->ready);
  free(launch->marks);
  free(launch);
}
