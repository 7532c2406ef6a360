// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Nodes and edges as they are made, and which node of an executable is a copy of which.
//
// These callbacks come within the call that causes them. An instantiation first copies the graph, node by node, and
// then makes the executable of the copy: the pairs of nodes are kept until the executable has its id. A node's
// type is told when the node is about to be made: once it is made, CUPTI 13.0 calls each a kernel (seen on an H200).
//
// The ids of a graph's nodes follow each other, so that one line tells many. Nodes and edges are kept with their thread
// until one comes that does not follow, or the thread writes. Most calls of a capture make one node, which then goes
// with the call's own line. Locking: none.
#include "doctor/record/graphs.h"

#include "doctor/base/grow.h"
#include "doctor/record/audit.h"
#include "doctor/record/calls.h"
#include "doctor/record/handles.h"
#include "doctor/record/switch.h"

enum { kMostOfLine = 1024 };  // nodes, edges or copies; a reader takes no more

static const gcap_doctor_cupti_t* cupti;

void gcap_doctor_graphs_start(const gcap_doctor_cupti_t* functions) { cupti = functions; }

static bool node_id(void* node, uint64_t* out_id) {
  *out_id = 0;
  return node != NULL && cupti->GetGraphNodeId(node, out_id) == GCAP_DOCTOR_CUPTI_SUCCESS;
}

void gcap_doctor_graphs_write_type(gcap_doctor_line_t* out, int32_t type) {
  // In the order of CUgraphNodeType; the others are written as numbers.
  static const char* const names[] = {"kernel",     "memcpy",       "memset", "host", "child", "empty",
                                      "wait_event", "record_event", NULL,     NULL,   "alloc", "free"};
  if (type >= 0 && type < (int32_t)(sizeof(names) / sizeof(names[0])) && names[type] != NULL) {
    gcap_doctor_line_field(out, "type", names[type]);
  } else {
    gcap_doctor_line_number(out, "type", (uint32_t)type);
  }
}

static void write_count(gcap_doctor_line_t* out, uint32_t count) {
  if (count != 1) gcap_doctor_line_number(out, "count", count);
  gcap_doctor_line_end(out);
}

static void spill_nodes(gcap_doctor_thread_t* thread) {
  const gcap_doctor_node_run_t* run = &thread->nodes;
  if (run->count == 0) return;
  gcap_doctor_line_begin(&thread->out, "node");
  gcap_doctor_line_number(&thread->out, "graph", run->graph);
  gcap_doctor_line_hex(&thread->out, "id", run->id);
  gcap_doctor_graphs_write_type(&thread->out, run->type);
  if (run->call != 0) gcap_doctor_line_number(&thread->out, "call", run->call);
  write_count(&thread->out, run->count);
  thread->nodes.count = 0;
}

static void spill_edges(gcap_doctor_thread_t* thread) {
  const gcap_doctor_edge_run_t* run = &thread->edges;
  if (run->count == 0) return;
  gcap_doctor_line_begin(&thread->out, "edge");
  gcap_doctor_line_number(&thread->out, "graph", run->graph);
  gcap_doctor_line_hex(&thread->out, "from", run->from);
  gcap_doctor_line_hex(&thread->out, "to", run->to);
  write_count(&thread->out, run->count);
  thread->edges.count = 0;
}

void gcap_doctor_graphs_spill(gcap_doctor_thread_t* thread) {
  spill_nodes(thread);
  spill_edges(thread);
}

bool gcap_doctor_graphs_take_node(gcap_doctor_thread_t* thread, uint64_t call, gcap_doctor_node_run_t* out_node,
                                  uint64_t* out_back) {
  const gcap_doctor_edge_run_t* edge = &thread->edges;
  *out_back = 0;
  if (thread->nodes.count != 1 || thread->nodes.call != call || edge->count > 1) return false;
  if (edge->count == 1) {
    if (edge->graph != thread->nodes.graph || edge->to != thread->nodes.id || edge->from >= edge->to) return false;
    *out_back = edge->to - edge->from;
  }
  *out_node = thread->nodes;
  thread->nodes.count = thread->edges.count = 0;
  return true;
}

static void add_node(gcap_doctor_thread_t* thread, const gcap_doctor_cupti_graph_t* data) {
  gcap_doctor_node_run_t* run = &thread->nodes;
  gcap_doctor_node_run_t node = {.graph = gcap_doctor_handle_graph(data->graph), .count = 1};
  if (!node_id(data->node, &node.id)) return;
  gcap_doctor_open_call_t* call = gcap_doctor_call_open(thread);
  if (call != NULL) ++call->num_nodes;
  node.type = data->node == thread->new_node ? thread->new_type : data->node_type;
  node.call = gcap_doctor_call_number(thread);
  if (run->count != 0 && run->count < kMostOfLine && run->graph == node.graph && run->type == node.type &&
      run->call == node.call && run->id + run->count == node.id) {
    ++run->count;
    return;
  }
  spill_nodes(thread);
  *run = node;
}

static void add_edge(gcap_doctor_thread_t* thread, const gcap_doctor_cupti_graph_t* data) {
  gcap_doctor_edge_run_t* run = &thread->edges;
  gcap_doctor_edge_run_t edge = {.graph = gcap_doctor_handle_graph(data->graph), .count = 1};
  if (!node_id(data->dependency, &edge.from) || !node_id(data->node, &edge.to)) return;
  if (run->count != 0 && run->count < kMostOfLine && run->graph == edge.graph && run->from + run->count == edge.from &&
      run->to + run->count == edge.to) {
    ++run->count;
    return;
  }
  spill_edges(thread);
  *run = edge;
}

static void keep_clone(gcap_doctor_thread_t* thread, const gcap_doctor_cupti_graph_t* data) {
  struct gcap_doctor_cloned pair;
  if (!node_id(data->original_node, &pair.from) || !node_id(data->node, &pair.to)) return;
  if (!gcap_doctor_grow(&thread->clones, &thread->clone_capacity, thread->num_clones + 1, sizeof(pair))) return;
  thread->clones[thread->num_clones++] = pair;
}

// CUPTI's number of the executable's graph: that of the executable, else that of its nodes, which is in their upper
// half.
static uint32_t cupti_graph_of(const gcap_doctor_thread_t* thread, void* exec) {
  uint32_t id = 0;
  if (cupti->GetGraphExecId != NULL && cupti->GetGraphExecId(exec, &id) == GCAP_DOCTOR_CUPTI_SUCCESS && id != 0)
    return id;
  return thread->num_clones != 0 ? (uint32_t)(thread->clones[0].to >> 32) : 0;
}

static void write_clones(gcap_doctor_thread_t* thread, uint32_t exec) {
  const struct gcap_doctor_cloned* clones = thread->clones;
  for (size_t i = 0, count; i < thread->num_clones; i += count) {
    for (count = 1; i + count < thread->num_clones && count < kMostOfLine; ++count) {
      if (clones[i + count].from != clones[i].from + count || clones[i + count].to != clones[i].to + count) break;
    }
    gcap_doctor_line_begin(&thread->out, "clone");
    gcap_doctor_line_number(&thread->out, "exec", exec);
    gcap_doctor_line_hex(&thread->out, "from", clones[i].from);
    gcap_doctor_line_hex(&thread->out, "to", clones[i].to);
    write_count(&thread->out, (uint32_t)count);
  }
  thread->num_clones = 0;
}

static void write_exec(gcap_doctor_thread_t* thread, void* exec, uint32_t graph) {
  const uint32_t id = gcap_doctor_exec_made(exec, cupti_graph_of(thread, exec), &thread->out);
  const uint64_t call = gcap_doctor_call_number(thread);
  gcap_doctor_line_t* line = &thread->definitions;
  if (id == 0) return;
  gcap_doctor_line_begin(line, "exec");
  gcap_doctor_line_number(line, "id", id);
  gcap_doctor_line_number(line, "graph", graph);
  if (call != 0) gcap_doctor_line_number(line, "call", call);
  gcap_doctor_line_end(line);
  write_clones(thread, id);
}

void gcap_doctor_graphs_exec_made(gcap_doctor_thread_t* thread, const gcap_doctor_open_call_t* call, const void* exec) {
  (void)call;
  if (exec == NULL || gcap_doctor_exec(exec) != 0) return;
  write_exec(thread, (void*)exec, call->graph);
}

static void node_cloned(gcap_doctor_thread_t* thread, const gcap_doctor_cupti_graph_t* data) {
  if (gcap_doctor_call_makes_exec(thread)) {
    keep_clone(thread, data);
  } else {
    add_node(thread, data);  // of a child graph, or of a clone of a graph
  }
}

static void graph_event(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_graph_t* data) {
  const bool makes_exec = gcap_doctor_call_makes_exec(thread);
  switch (callback) {
    case GCAP_DOCTOR_CUPTI_GRAPH_CREATED:
    case GCAP_DOCTOR_CUPTI_GRAPH_DESTROY: gcap_doctor_handle_graph_gone(data->graph); break;
    case GCAP_DOCTOR_CUPTI_NODE_STARTS:
      thread->new_node = data->node;
      thread->new_type = data->node_type;
      break;
    case GCAP_DOCTOR_CUPTI_NODE_CREATED:
      if (!makes_exec) add_node(thread, data);
      break;
    case GCAP_DOCTOR_CUPTI_DEPENDENCY_CREATED:
      if (!makes_exec) add_edge(thread, data);
      break;
    case GCAP_DOCTOR_CUPTI_NODE_CLONED: node_cloned(thread, data); break;
    case GCAP_DOCTOR_CUPTI_EXEC_CREATED: write_exec(thread, data->exec, gcap_doctor_handle_graph(data->graph)); break;
    case GCAP_DOCTOR_CUPTI_EXEC_DESTROY:
      gcap_doctor_audit_exec_gone(data->exec);
      gcap_doctor_exec_gone(data->exec, &thread->out);
      break;
    default: break;
  }
}

void gcap_doctor_graphs_event(gcap_doctor_thread_t* thread, uint32_t callback,
                              const gcap_doctor_cupti_resource_t* data) {
  if (callback == GCAP_DOCTOR_CUPTI_STREAM_CREATED || callback == GCAP_DOCTOR_CUPTI_STREAM_DESTROY) {
    const uint32_t id = gcap_doctor_handle_stream_gone(data->stream);
    if (id != 0) gcap_doctor_switch_ended(id);
  } else if (data->descriptor != NULL) {
    graph_event(thread, callback, data->descriptor);
  }
  // What comes outside of calls has no line of a call to go with.
  if (thread->depth == 0 && thread->out.size > thread->can_wait) gcap_doctor_thread_write(thread);
}
