// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Stream capture: what captures, who may disturb it, and how it ends.
//
// The idea: a capture is one object with its mode, its thread, its graph and its member streams; the members know what
// their next node depends on, so a fork is a wait that joins, and a join is a wait that adds dependencies. The gates
// here are the whole of the legality rules: each takes a situation, invalidates what it breaks, and returns the code.
// Invariants: a stream has a member exactly while its capture is open; a member of a destroyed stream stays, since its
// work must still be joined. Locking: the global mutex.
#include "sim/stream/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "rules/rule_words.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/api/log.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/check/origin.h"
#include "sim/check/report.h"
#include "sim/graph/edges.h"
#include "sim/graph/graph.h"
#include "sim/graph/graph_attribute.h"
#include "sim/stream/rules.h"
#include "sim/stream/scheduler.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

static gcap_sim_capture_t* captures;  // the open ones, invalid ones included
static unsigned long long last_id;

// --- Gates ----------------------------------------------------------------------------------------------------------

static void report_fork(const gcap_sim_member_t* fork) {
  char name[GCAP_SIM_STREAM_NAME_BYTES];
  char role[GCAP_SIM_STREAM_NAME_BYTES + 32];
  gcap_sim_stream_name_text(name, &fork->name);
  snprintf(role, sizeof(role), "fork to %s by ", name);
  gcap_sim_report_origin(role, fork->joined);
  snprintf(role, sizeof(role), "last work of %s by ", name);
  gcap_sim_report_origin(role, fork->deps.items[fork->deps.count - 1].node->task->origin);
}

static void report_broken(const gcap_sim_capture_t* capture, gcap_sim_rule_t rule) {
  const gcap_sim_origin_t* breaker = gcap_sim_origin_current();
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_CAPTURE, capture->begun, breaker)) return;
  gcap_sim_report_print("gcap sim: broken capture: %s (%s)\n", gcap_sim_rule_situation(rule), gcap_sim_rule_id(rule));
  gcap_sim_report_origin("broken by ", breaker);
  gcap_sim_report_origin("begun by ", capture->begun);
  for (size_t i = 0; i < capture->num_members; ++i) {
    if (capture->members[i]->unjoined) report_fork(capture->members[i]);
  }
  char remedy[256];
  snprintf(remedy, sizeof(remedy), "Remedy: %s.", gcap_sim_rule_remedy(rule));
  gcap_sim_report_end(remedy);
}

// What the driver's log says of a call that the capture refuses, as an H200 was seen to; NULL: nothing is known.
static const char* logged_reason(const gcap_sim_capture_t* capture, gcap_sim_rule_t rule) {
  switch (rule) {
    case GCAP_SIM_RULE_UNSAFE_CALL:
      if (capture->thread != gcap_sim_thread()->id) return NULL;
      return "API call conflicts with a stream capture sequence initiated from the calling thread";
    case GCAP_SIM_RULE_CAPTURED_EVENT: return "Recorded event not allowed on stream";
    case GCAP_SIM_RULE_UNJOINED: return "Capture sequence contains a fork that was not joined to the primary stream";
    case GCAP_SIM_RULE_INVALIDATED: return "Capture was invalidated by a prior API call";
    default: return NULL;
  }
}

static cudaError_t refuse(const gcap_sim_capture_t* capture, gcap_sim_rule_t rule) {
  gcap_sim_thread_t* thread = gcap_sim_thread();
  thread->refused = gcap_sim_rule_code(rule);
  thread->refused_why = logged_reason(capture, rule);
  return thread->refused;
}

cudaError_t gcap_sim_capture_invalidate(gcap_sim_capture_t* capture, gcap_sim_rule_t rule) {
  if (!capture->invalid) {
    capture->invalid = true;
    const char* id = gcap_sim_rule_id(rule);
    gcap_sim_note_capture("invalidates capture %llu: " GCAP_RULE_WORDS, capture->id, id, gcap_sim_rule_situation(rule),
                          gcap_sim_rule_remedy(rule), id + 1);
    report_broken(capture, rule);
  }
  return refuse(capture, rule);
}

// Does an unsafe call of this thread disturb the capture?
static bool disturbs(const gcap_sim_thread_t* thread, const gcap_sim_capture_t* capture) {
  if (capture->thread == thread->id) {
    return capture->mode != cudaStreamCaptureModeRelaxed && thread->capture_mode != cudaStreamCaptureModeRelaxed;
  }
  return capture->mode == cudaStreamCaptureModeGlobal && thread->capture_mode == cudaStreamCaptureModeGlobal;
}

cudaError_t gcap_sim_gate_unsafe(void) {
  cudaError_t code = cudaSuccess;
  for (gcap_sim_capture_t* capture = captures; capture != NULL; capture = capture->next) {
    if (disturbs(gcap_sim_thread(), capture)) code = gcap_sim_capture_invalidate(capture, GCAP_SIM_RULE_UNSAFE_CALL);
  }
  return code;
}

cudaError_t gcap_sim_gate_unsafe_beside_others(void) {
  const gcap_sim_thread_t* thread = gcap_sim_thread();
  cudaError_t code = cudaSuccess;
  for (gcap_sim_capture_t* capture = captures; capture != NULL; capture = capture->next) {
    if (capture->invalid || capture->thread == thread->id || !disturbs(thread, capture)) continue;
    code = gcap_sim_capture_invalidate(capture, GCAP_SIM_RULE_UNSAFE_CALL);
  }
  return code;
}

static bool is_on_device(const gcap_sim_capture_t* capture, int device) {
  for (size_t i = 0; i < capture->num_members; ++i) {
    const gcap_sim_stream_t* stream = capture->members[i]->stream;
    if (stream != NULL && stream->device == device) return true;
  }
  return false;
}

cudaError_t gcap_sim_gate_forbidden(int device) {
  cudaError_t code = cudaSuccess;
  for (gcap_sim_capture_t* capture = captures; capture != NULL; capture = capture->next) {
    if (device >= 0 && !is_on_device(capture, device)) continue;
    code = gcap_sim_capture_invalidate(capture, GCAP_SIM_RULE_FORBIDDEN_CALL);
  }
  return code;
}

static bool has_blocking_member(const gcap_sim_capture_t* capture, int device) {
  for (size_t i = 0; i < capture->num_members; ++i) {
    const gcap_sim_stream_t* stream = capture->members[i]->stream;
    if (stream != NULL && stream->device == device && (stream->flags & cudaStreamNonBlocking) == 0) return true;
  }
  return false;
}

// Is a blocking stream of this device capturing?
static bool blocking_capture(int device) {
  for (const gcap_sim_capture_t* capture = captures; capture != NULL; capture = capture->next) {
    if (has_blocking_member(capture, device)) return true;
  }
  return false;
}

cudaError_t gcap_sim_gate_legacy(gcap_sim_stream_t* stream) {
  cudaError_t code = cudaSuccess;
  if (!stream->legacy) return code;
  for (gcap_sim_capture_t* capture = captures; capture != NULL; capture = capture->next) {
    if (has_blocking_member(capture, stream->device)) {
      code = gcap_sim_capture_invalidate(capture, GCAP_SIM_RULE_IMPLICIT);
    }
  }
  return code;
}

cudaError_t gcap_sim_gate_not_capturing(gcap_sim_stream_t* stream) {
  return stream->member != NULL ? gcap_sim_capture_invalidate(stream->member->capture, GCAP_SIM_RULE_CAPTURING_STREAM)
                                : cudaSuccess;
}

cudaError_t gcap_sim_gate_ordered(gcap_sim_stream_t* stream) {
  if (stream->member != NULL && stream->member->capture->invalid) return gcap_sim_rule_code(GCAP_SIM_RULE_INVALIDATED);
  return gcap_sim_gate_legacy(stream);
}

// --- Members --------------------------------------------------------------------------------------------------------

gcap_sim_capture_t* gcap_sim_capture_find(unsigned long long id) {
  gcap_sim_capture_t* capture = captures;
  while (capture != NULL && capture->id != id) capture = capture->next;
  return capture;
}

gcap_sim_member_t* gcap_sim_capture_join(gcap_sim_capture_t* capture, gcap_sim_stream_t* stream) {
  gcap_sim_member_t* member = gcap_sim_calloc(1, sizeof(*member));
  member->capture = capture;
  member->stream = stream;
  member->name = stream->name;
  member->joined = gcap_sim_origin_retain(gcap_sim_origin_current());
  stream->member = member;
  gcap_sim_reserve(&capture->members, &capture->member_capacity, capture->num_members + 1, sizeof(gcap_sim_member_t*));
  capture->members[capture->num_members++] = member;
  gcap_sim_note_capture("%s capture %llu", capture->origin == stream ? "begins" : "joins", capture->id);
  return member;
}

const gcap_sim_edges_t* gcap_sim_member_deps(gcap_sim_member_t* member) {
  uint64_t visit = gcap_sim_graph_new_visit();
  size_t kept = 0;
  for (size_t i = 0; i < member->deps.count; ++i) {
    gcap_sim_edge_t edge = member->deps.items[i];
    if (edge.node->visit == visit) continue;
    edge.node->visit = visit;
    member->deps.items[kept++] = edge;
  }
  member->deps.count = kept;
  return &member->deps;
}

static void depend_on(gcap_sim_member_t* member, const gcap_sim_edge_t* edge) {
  // A stream may wait for the same event forever, so the list only grows for what is left without repetitions.
  if (member->deps.count == member->deps.capacity && gcap_sim_member_deps(member)->count > member->deps.capacity / 2) {
    gcap_sim_reserve(&member->deps.items, &member->deps.capacity, member->deps.capacity + 1, sizeof(gcap_sim_edge_t));
  }
  gcap_sim_edges_push(&member->deps, edge->node, edge->data);
}

void gcap_sim_member_depend(gcap_sim_member_t* member, const gcap_sim_edges_t* nodes) {
  for (size_t i = 0; i < nodes->count; ++i) depend_on(member, &nodes->items[i]);
}

// Kernels take the stream's priority with them.
static void add_node(gcap_sim_member_t* member, gcap_sim_task_t* task) {
  const gcap_sim_edges_t* deps = gcap_sim_member_deps(member);
  gcap_sim_node_t* node = gcap_sim_graph_add(member->capture->graph, task, deps->items, deps->count);
  node->device = member->stream->device;
  if (member->stream->priority != 0 && gcap_sim_node_type(node) == cudaGraphNodeTypeKernel) {
    cudaLaunchAttributeValue value = {.priority = member->stream->priority};
    gcap_sim_node_set_attribute(node, cudaLaunchAttributePriority, &value);
  }
  member->deps.count = 0;
  depend_on(member, &(gcap_sim_edge_t){.node = node});
}

// Whose graph the calling thread may mean. A thread that has exchanged itself to relaxed mode says that what it does
// now is not for a graph.
static const gcap_sim_capture_t* capture_of_thread(const gcap_sim_thread_t* thread) {
  if (thread->capture_mode == cudaStreamCaptureModeRelaxed) return NULL;
  const gcap_sim_capture_t* capture = captures;
  while (capture != NULL && (capture->invalid || capture->thread != thread->id)) capture = capture->next;
  return capture;
}

void gcap_sim_capture_escaped(const gcap_sim_stream_t* stream, const char* what) {
  const gcap_sim_capture_t* capture = capture_of_thread(gcap_sim_thread());
  if (capture == NULL) return;
  const gcap_sim_origin_t* call = gcap_sim_origin_current();
  if (!gcap_sim_report_begin(GCAP_SIM_CHECK_ESCAPED_WORK, capture->begun, call)) return;
  char names[2][GCAP_SIM_STREAM_NAME_BYTES];
  gcap_sim_report_print("gcap sim: escaped work: %s on %s, outside of the capture of %s, whose graph lacks it\n", what,
                        gcap_sim_stream_name_text(names[0], &stream->name),
                        gcap_sim_stream_name_text(names[1], &capture->origin->name));
  gcap_sim_report_origin("issued by ", call);
  gcap_sim_report_origin("begun by ", capture->begun);
  gcap_sim_report_end(
      "Remedy: issue it to the capturing stream, or to one that has joined the capture. Work that is not for the "
      "graph: "
      "issue it before or after the capture, or with the thread exchanged to relaxed mode.");
}

// Sub-allocations are told to the checks alone.
static bool can_escape(const gcap_sim_task_t* task) { return task->kind != GCAP_SIM_TASK_NOTE; }

cudaError_t gcap_sim_submit_task(gcap_sim_stream_t* stream, gcap_sim_task_t* task) {
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code != cudaSuccess) {
    gcap_sim_task_release(task);
  } else if (stream->member != NULL) {
    add_node(stream->member, task);
  } else {
    if (captures != NULL && can_escape(task)) gcap_sim_capture_escaped(stream, task->name);
    gcap_sim_enqueue(stream, task, NULL, NULL);
  }
  return code;
}

static void member_free(gcap_sim_member_t* member) {
  gcap_sim_stream_t* stream = member->stream;
  if (stream != NULL) {
    stream->member = NULL;
    if (stream->destroyed) gcap_sim_stream_retire(stream);  // a per-thread stream whose thread is gone
  }
  gcap_sim_origin_release(member->joined);
  free(member->deps.items);
  free(member->handles);
  free(member->edge_data);
  free(member);
}

// Takes the streams out of the capture and forgets it. Its graph goes to the caller.
static gcap_sim_graph_t* close_capture(gcap_sim_capture_t* capture) {
  gcap_sim_graph_t* graph = capture->graph;
  gcap_sim_note_capture("ends capture %llu", capture->id);
  gcap_sim_capture_t** link = &captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  for (size_t i = 0; i < capture->num_members; ++i) member_free(capture->members[i]);
  gcap_sim_origin_release(capture->begun);
  free(capture->members);
  free(capture);
  graph->capturing = false;
  return graph;
}

// Ends a capture that came to nothing. Measured: its graph is gone, also one that was the caller's own before.
static void drop_capture(gcap_sim_capture_t* capture) { gcap_sim_graph_destroy(close_capture(capture)); }

void gcap_sim_capture_stream_destroyed(gcap_sim_stream_t* stream) {
  gcap_sim_member_t* member = stream->member;
  if (member->capture->origin == stream) {
    drop_capture(member->capture);
    return;
  }
  member->stream = NULL;
  stream->member = NULL;
}

// --- Begin and end --------------------------------------------------------------------------------------------------

// Starts a capture into the graph, or into one of its own when that is NULL.
static void open_capture(gcap_sim_stream_t* stream, enum cudaStreamCaptureMode mode, gcap_sim_graph_t* graph) {
  gcap_sim_capture_t* capture = gcap_sim_calloc(1, sizeof(*capture));
  capture->id = ++last_id;
  capture->mode = mode;
  capture->thread = gcap_sim_thread()->id;
  capture->origin = stream;
  capture->begun = gcap_sim_origin_retain(gcap_sim_origin_current());
  capture->into_graph = graph != NULL;
  capture->graph = graph != NULL ? graph : gcap_sim_graph_create();
  capture->graph->capturing = true;
  capture->next = captures;
  captures = capture;
  gcap_sim_capture_join(capture, stream);
}

static void note_mode(enum cudaStreamCaptureMode mode) {
  static const char* const names[] = {"global", "thread-local", "relaxed"};
  if ((unsigned int)mode <= cudaStreamCaptureModeRelaxed) gcap_sim_note_argument("mode %s", names[mode]);
}

static cudaError_t judge_begin(const gcap_sim_stream_t* stream, enum cudaStreamCaptureMode mode) {
  note_mode(mode);
  if ((unsigned int)mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
  if (stream->legacy) return cudaErrorStreamCaptureUnsupported;
  return stream->member != NULL ? cudaErrorIllegalState : cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamBeginCapture);
  if (code == cudaSuccess) {
    gcap_sim_stream_t* s = gcap_sim_stream_get(stream);
    code = judge_begin(s, mode);
    if (code == cudaSuccess) open_capture(s, mode, NULL);
  }
  return gcap_sim_leave(code);
}

// Is every edge one that the first node of the capture could have, were it a kernel?
static bool edges_can_leave(const gcap_sim_edge_t* edges, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!gcap_sim_edge_is_valid(&edges[i].data, gcap_sim_node_type(edges[i].node), cudaGraphNodeTypeKernel)) {
      return false;
    }
  }
  return true;
}

static cudaError_t begin_into(gcap_sim_stream_t* stream, gcap_sim_graph_t* graph, const cudaGraphNode_t* nodes,
                              const cudaGraphEdgeData* data, size_t count, enum cudaStreamCaptureMode mode) {
  if (graph == NULL) return cudaErrorInvalidValue;
  cudaError_t code = judge_begin(stream, mode);
  if (code == cudaSuccess && graph->capturing) code = cudaErrorIllegalState;
  gcap_sim_edge_t* edges = NULL;
  if (code == cudaSuccess) code = gcap_sim_resolve_edges(graph, nodes, data, count, true, &edges);
  if (code == cudaSuccess && !edges_can_leave(edges, count)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) {
    open_capture(stream, mode, graph);
    for (size_t i = 0; i < count; ++i) depend_on(stream->member, &edges[i]);
  }
  free(edges);
  return code;
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                                          enum cudaStreamCaptureMode mode) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamBeginCaptureToGraph);
  if (code == cudaSuccess) {
    code = begin_into(gcap_sim_stream_get(stream), gcap_sim_handle_get(GCAP_SIM_GRAPH, graph), dependencies,
                      dependencyData, numDependencies, mode);
  }
  return gcap_sim_leave(code);
}

typedef struct walk {
  uint64_t visit;
  gcap_sim_node_t** stack;
  size_t depth;
} walk_t;

static void walk_from(walk_t* walk, gcap_sim_node_t* node) {
  if (node->visit == walk->visit) return;
  node->visit = walk->visit;
  walk->stack[walk->depth++] = node;
}

// Marks everything that the origin stream has reached, and what was detached, with all that comes before either.
static uint64_t visit_joined(const gcap_sim_capture_t* capture) {
  const gcap_sim_graph_t* graph = capture->graph;
  const gcap_sim_edges_t* deps = &capture->origin->member->deps;
  walk_t walk = {.visit = gcap_sim_graph_new_visit(),
                 .stack = gcap_sim_calloc(graph->num_nodes, sizeof(gcap_sim_node_t*))};
  for (size_t i = 0; i < deps->count; ++i) walk_from(&walk, deps->items[i].node);
  for (size_t i = 0; i < graph->num_nodes; ++i) {
    if (graph->nodes[i]->detached) walk_from(&walk, graph->nodes[i]);
    graph->nodes[i]->detached = false;
  }
  while (walk.depth > 0) {
    const gcap_sim_edges_t* in = &walk.stack[--walk.depth]->in;
    for (size_t i = 0; i < in->count; ++i) walk_from(&walk, in->items[i].node);
  }
  free(walk.stack);
  return walk.visit;
}

// Is there a fork whose last work does not come before what the origin stream has reached? Marks those that have such.
static bool has_unjoined_work(const gcap_sim_capture_t* capture) {
  uint64_t visit = visit_joined(capture);
  bool found = false;
  for (size_t i = 0; i < capture->num_members; ++i) {
    gcap_sim_member_t* member = capture->members[i];
    for (size_t k = 0; k < member->deps.count; ++k) {
      member->unjoined = member->unjoined || member->deps.items[k].node->visit != visit;
    }
    found = found || member->unjoined;
  }
  return found;
}

static cudaError_t end(cudaStream_t handle, cudaGraph_t* out) {
  if (out != NULL) *out = NULL;
  gcap_sim_stream_t* stream = gcap_sim_stream_get(handle);
  if (stream->member == NULL) return cudaErrorIllegalState;
  gcap_sim_capture_t* capture = stream->member->capture;
  if (capture->origin != stream) return gcap_sim_capture_invalidate(capture, GCAP_SIM_RULE_UNMATCHED);
  cudaError_t code = cudaSuccess;
  if (capture->invalid) {
    code = refuse(capture, GCAP_SIM_RULE_INVALIDATED);
  } else if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != gcap_sim_thread()->id) {
    code = gcap_sim_capture_invalidate(capture, GCAP_SIM_RULE_WRONG_THREAD);
  } else if (has_unjoined_work(capture)) {
    code = gcap_sim_capture_invalidate(capture, GCAP_SIM_RULE_UNJOINED);
  }
  // Without a place to put it, the graph is lost, unless it was the caller's own before.
  bool kept = code == cudaSuccess && (out != NULL || capture->into_graph);
  if (!kept) {
    drop_capture(capture);
  } else {
    const gcap_sim_graph_t* graph = close_capture(capture);
    if (out != NULL) *out = graph->handle;
  }
  return code;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamEndCapture);
  if (code == cudaSuccess) code = end(stream, pGraph);
  return gcap_sim_leave(code);
}

// --- Questions and adjustments --------------------------------------------------------------------------------------

static enum cudaStreamCaptureStatus status_of(const gcap_sim_stream_t* stream) {
  if (stream->member == NULL) return cudaStreamCaptureStatusNone;
  return stream->member->capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

// The legacy stream can give no answer while a blocking stream captures; asking breaks nothing.
static cudaError_t get_status(cudaStream_t handle, gcap_sim_stream_t** stream, enum cudaStreamCaptureStatus* status) {
  if (status == NULL) return cudaErrorInvalidValue;
  *stream = gcap_sim_stream_get(handle);
  if ((*stream)->legacy && blocking_capture((*stream)->device)) return cudaErrorStreamCaptureImplicit;
  *status = status_of(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* pCaptureStatus) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamIsCapturing);
  gcap_sim_stream_t* s;
  if (code == cudaSuccess) code = get_status(stream, &s, pCaptureStatus);
  return gcap_sim_leave(code);
}

// The arrays that cudaStreamGetCaptureInfo hands out; they last until the stream's next call.
static void refresh_handles(gcap_sim_member_t* member) {
  const gcap_sim_edges_t* deps = gcap_sim_member_deps(member);
  gcap_sim_reserve(&member->handles, &member->handle_capacity, deps->count, sizeof(cudaGraphNode_t));
  gcap_sim_reserve(&member->edge_data, &member->edge_capacity, deps->count, sizeof(cudaGraphEdgeData));
  for (size_t i = 0; i < deps->count; ++i) {
    member->handles[i] = deps->items[i].node->handle;
    member->edge_data[i] = deps->items[i].data;
  }
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* captureStatus_out,
                                     unsigned long long* id_out, cudaGraph_t* graph_out,
                                     const cudaGraphNode_t** dependencies_out, const cudaGraphEdgeData** edgeData_out,
                                     size_t* numDependencies_out) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamGetCaptureInfo);
  gcap_sim_stream_t* s;
  if (code == cudaSuccess && edgeData_out != NULL && dependencies_out == NULL) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) code = get_status(stream, &s, captureStatus_out);
  if (code == cudaSuccess && *captureStatus_out == cudaStreamCaptureStatusActive) {
    refresh_handles(s->member);
    if (dependencies_out != NULL && edgeData_out == NULL && gcap_sim_edges_have_data(&s->member->deps)) {
      return gcap_sim_leave(cudaErrorLossyQuery);
    }
    if (id_out != NULL) *id_out = s->member->capture->id;
    if (graph_out != NULL) *graph_out = s->member->capture->graph->handle;
    if (dependencies_out != NULL) *dependencies_out = s->member->handles;
    if (edgeData_out != NULL) *edgeData_out = s->member->edge_data;
    if (numDependencies_out != NULL) *numDependencies_out = s->member->deps.count;
  }
  return gcap_sim_leave(code);
}

static void set_dependencies(gcap_sim_member_t* member, const gcap_sim_edge_t* edges, size_t count,
                             unsigned int flags) {
  if (flags == cudaStreamSetCaptureDependencies) {
    for (size_t i = 0; i < member->deps.count; ++i) member->deps.items[i].node->detached = true;
    member->deps.count = 0;
  }
  for (size_t i = 0; i < count; ++i) depend_on(member, &edges[i]);
}

static cudaError_t update_dependencies(gcap_sim_stream_t* stream, const cudaGraphNode_t* nodes,
                                       const cudaGraphEdgeData* data, size_t count, unsigned int flags) {
  if (flags > cudaStreamSetCaptureDependencies) return cudaErrorInvalidValue;
  if (stream->member == NULL) return cudaErrorIllegalState;
  cudaError_t code = gcap_sim_gate_ordered(stream);
  gcap_sim_edge_t* edges = NULL;
  if (code == cudaSuccess) {
    code = gcap_sim_resolve_edges(stream->member->capture->graph, nodes, data, count, true, &edges);
  }
  if (code == cudaSuccess && !edges_can_leave(edges, count)) code = cudaErrorInvalidValue;
  if (code == cudaSuccess) set_dependencies(stream->member, edges, count, flags);
  free(edges);
  return code;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                                                unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamUpdateCaptureDependencies);
  if (code == cudaSuccess) {
    code = update_dependencies(gcap_sim_stream_get(stream), dependencies, dependencyData, numDependencies, flags);
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaThreadExchangeStreamCaptureMode);
  if (code == cudaSuccess) {
    if (mode == NULL) gcap_sim_die("cudaThreadExchangeStreamCaptureMode: mode is NULL, which crashes the real runtime");
    note_mode(*mode);
    int before = gcap_sim_thread()->capture_mode;
    gcap_sim_thread()->capture_mode = (int)*mode;
    *mode = (enum cudaStreamCaptureMode)before;
  }
  return gcap_sim_leave(code);
}
