// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Nodes and edges as they are made, and which node of an executable is a copy of which.
//
// These callbacks come within the call that causes them. An instantiation first copies the graph, node by node, and
// then makes the executable of the copy: the pairs of nodes are kept until the executable has its id. A node's
// type is told when the node is about to be made: once it is made, CUPTI 13.0 calls each a kernel (seen on an H200).
// Locking: none.
#include "doctor/record/graphs.h"

#include "doctor/base/grow.h"
#include "doctor/record/audit.h"
#include "doctor/record/calls.h"
#include "doctor/record/handles.h"
#include "doctor/record/switch.h"

static const gcap_doctor_cupti_t* cupti;

void gcap_doctor_graphs_start(const gcap_doctor_cupti_t* functions) { cupti = functions; }

static bool node_id(void* node, uint64_t* out_id) {
  *out_id = 0;
  return node != NULL && cupti->GetGraphNodeId(node, out_id) == GCAP_DOCTOR_CUPTI_SUCCESS;
}

static void write_type(gcap_doctor_line_t* out, int32_t type) {
  // In the order of CUgraphNodeType; the others are written as numbers.
  static const char* const names[] = {"kernel",     "memcpy",       "memset", "host", "child", "empty",
                                      "wait_event", "record_event", NULL,     NULL,   "alloc", "free"};
  if (type >= 0 && type < (int32_t)(sizeof(names) / sizeof(names[0])) && names[type] != NULL) {
    gcap_doctor_line_field(out, "type", names[type]);
  } else {
    gcap_doctor_line_number(out, "type", (uint32_t)type);
  }
}

static void write_call(gcap_doctor_thread_t* thread) {
  const uint64_t number = gcap_doctor_call_number(thread);
  if (number != 0) gcap_doctor_line_number(&thread->out, "call", number);
}

static void write_node(gcap_doctor_thread_t* thread, const gcap_doctor_cupti_graph_t* data) {
  uint64_t id;
  if (!node_id(data->node, &id)) return;
  gcap_doctor_open_call_t* call = gcap_doctor_call_open(thread);
  if (call != NULL) ++call->num_nodes;
  gcap_doctor_line_begin(&thread->out, "node");
  gcap_doctor_line_number(&thread->out, "graph", gcap_doctor_handle_graph(data->graph));
  gcap_doctor_line_hex(&thread->out, "id", id);
  write_type(&thread->out, data->node == thread->new_node ? thread->new_type : data->node_type);
  write_call(thread);
  gcap_doctor_line_end(&thread->out);
}

static void write_edge(gcap_doctor_thread_t* thread, const gcap_doctor_cupti_graph_t* data) {
  uint64_t from, to;
  if (!node_id(data->dependency, &from) || !node_id(data->node, &to)) return;
  gcap_doctor_line_begin(&thread->out, "edge");
  gcap_doctor_line_number(&thread->out, "graph", gcap_doctor_handle_graph(data->graph));
  gcap_doctor_line_hex(&thread->out, "from", from);
  gcap_doctor_line_hex(&thread->out, "to", to);
  gcap_doctor_line_end(&thread->out);
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

static void write_exec(gcap_doctor_thread_t* thread, void* exec, uint32_t graph) {
  const uint32_t id = gcap_doctor_exec_made(exec, cupti_graph_of(thread, exec), &thread->out);
  if (id == 0) return;
  gcap_doctor_line_begin(&thread->out, "exec");
  gcap_doctor_line_number(&thread->out, "id", id);
  gcap_doctor_line_number(&thread->out, "graph", graph);
  write_call(thread);
  gcap_doctor_line_end(&thread->out);
  for (size_t i = 0; i < thread->num_clones; ++i) {
    gcap_doctor_line_begin(&thread->out, "clone");
    gcap_doctor_line_number(&thread->out, "exec", id);
    gcap_doctor_line_hex(&thread->out, "from", thread->clones[i].from);
    gcap_doctor_line_hex(&thread->out, "to", thread->clones[i].to);
    gcap_doctor_line_end(&thread->out);
  }
  thread->num_clones = 0;
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
    write_node(thread, data);  // of a child graph, or of a clone of a graph
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
      if (!makes_exec) write_node(thread, data);
      break;
    case GCAP_DOCTOR_CUPTI_DEPENDENCY_CREATED:
      if (!makes_exec) write_edge(thread, data);
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
  if (thread->depth == 0 && thread->out.size != 0) gcap_doctor_thread_flush(thread);
}

void gcap_doctor_graphs_event_limited(gcap_doctor_thread_t* thread, uint32_t callback,
                                      const gcap_doctor_cupti_resource_t* data) {
  if (callback == GCAP_DOCTOR_CUPTI_STREAM_DESTROY) {
    const uint32_t id = gcap_doctor_handle_stream_gone(data->stream);
    if (id != 0) gcap_doctor_switch_ended(id);
  } else if (callback == GCAP_DOCTOR_CUPTI_EXEC_DESTROY && data->descriptor != NULL) {
    const gcap_doctor_cupti_graph_t* graph = data->descriptor;
    gcap_doctor_audit_exec_gone(graph->exec);
    gcap_doctor_exec_gone(graph->exec, &thread->out);
  }
  if (thread->out.size != 0) gcap_doctor_thread_flush(thread);
}
