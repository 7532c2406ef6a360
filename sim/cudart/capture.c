// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Stream capture: what captures, who may disturb it, and how it ends.
//
// The idea: a capture is one object with its mode, its thread, its graph and its member streams; the members know what
// their next node depends on, so a fork is a wait that joins, and a join is a wait that adds dependencies. The gates
// here are the whole of the legality rules: each takes a situation, invalidates what it breaks, and returns the code.
// Invariants: a stream has a member exactly while its capture is open; a member of a destroyed stream stays, since its
// work must still be joined. Locking: the global mutex.
#include <stdlib.h>
#include <string.h>

#include "core.h"

static sim_capture_t* captures;  // the open ones, invalid ones included
static unsigned long long last_id;
static unsigned long long last_visit;

// --- Gates ----------------------------------------------------------------------------------------------------------

cudaError_t sim_capture_invalidate(sim_capture_t* capture, sim_rule_t rule) {
  if (!capture->invalid) {
    capture->invalid = true;
    sim_note_capture("invalidates capture %llu: %s. Remedy: %s", capture->id, sim_rule_situation(rule),
                     sim_rule_remedy(rule));
  }
  return sim_rule_code(rule);
}

// Does an unsafe call of this thread disturb the capture?
static bool disturbs(const sim_thread_t* thread, const sim_capture_t* capture) {
  if (capture->thread == thread->id) {
    return capture->mode != cudaStreamCaptureModeRelaxed && thread->capture_mode != cudaStreamCaptureModeRelaxed;
  }
  return capture->mode == cudaStreamCaptureModeGlobal && thread->capture_mode == cudaStreamCaptureModeGlobal;
}

cudaError_t sim_gate_unsafe(void) {
  cudaError_t code = cudaSuccess;
  for (sim_capture_t* capture = captures; capture; capture = capture->next) {
    if (disturbs(sim_thread(), capture)) code = sim_capture_invalidate(capture, SIM_RULE_UNSAFE_CALL);
  }
  return code;
}

cudaError_t sim_gate_unsafe_beside_others(void) {
  const sim_thread_t* thread = sim_thread();
  cudaError_t code = cudaSuccess;
  for (sim_capture_t* capture = captures; capture; capture = capture->next) {
    if (capture->thread == thread->id || !disturbs(thread, capture)) continue;
    code = sim_capture_invalidate(capture, SIM_RULE_UNSAFE_CALL);
  }
  return code;
}

cudaError_t sim_gate_forbidden(void) {
  cudaError_t code = cudaSuccess;
  for (sim_capture_t* capture = captures; capture; capture = capture->next) {
    code = sim_capture_invalidate(capture, SIM_RULE_FORBIDDEN_CALL);
  }
  return code;
}

static bool has_blocking_member(const sim_capture_t* capture, int device) {
  for (size_t i = 0; i < capture->num_members; ++i) {
    const sim_stream_t* stream = capture->members[i]->stream;
    if (stream && stream->device == device && (stream->flags & cudaStreamNonBlocking) == 0) return true;
  }
  return false;
}

// Is a blocking stream of this device capturing?
static bool blocking_capture(int device) {
  for (const sim_capture_t* capture = captures; capture; capture = capture->next) {
    if (has_blocking_member(capture, device)) return true;
  }
  return false;
}

cudaError_t sim_gate_legacy(sim_stream_t* stream) {
  cudaError_t code = cudaSuccess;
  if (!stream->legacy) return code;
  for (sim_capture_t* capture = captures; capture; capture = capture->next) {
    if (has_blocking_member(capture, stream->device)) code = sim_capture_invalidate(capture, SIM_RULE_IMPLICIT);
  }
  return code;
}

cudaError_t sim_gate_not_capturing(sim_stream_t* stream) {
  return stream->member ? sim_capture_invalidate(stream->member->capture, SIM_RULE_CAPTURING_STREAM) : cudaSuccess;
}

cudaError_t sim_gate_ordered(sim_stream_t* stream) {
  if (stream->member && stream->member->capture->invalid) return sim_rule_code(SIM_RULE_INVALIDATED);
  return sim_gate_legacy(stream);
}

// --- Members --------------------------------------------------------------------------------------------------------

sim_capture_t* sim_capture_find(unsigned long long id) {
  sim_capture_t* capture = captures;
  while (capture && capture->id != id) capture = capture->next;
  return capture;
}

sim_member_t* sim_capture_join(sim_capture_t* capture, sim_stream_t* stream) {
  sim_member_t* member = sim_calloc(1, sizeof(*member));
  member->capture = capture;
  member->stream = stream;
  stream->member = member;
  sim_reserve(&capture->members, &capture->member_capacity, capture->num_members + 1, sizeof(sim_member_t*));
  capture->members[capture->num_members++] = member;
  sim_note_capture("%s capture %llu", capture->origin == stream ? "begins" : "joins", capture->id);
  return member;
}

static void depend_on(sim_member_t* member, sim_node_t* node) {
  for (size_t i = 0; i < member->num_deps; ++i) {
    if (member->deps[i] == node) return;
  }
  sim_reserve(&member->deps, &member->dep_capacity, member->num_deps + 1, sizeof(sim_node_t*));
  member->deps[member->num_deps++] = node;
}

void sim_member_depend(sim_member_t* member, sim_node_t* const* nodes, size_t count) {
  for (size_t i = 0; i < count; ++i) depend_on(member, nodes[i]);
}

static void add_node(sim_member_t* member, sim_task_t* task) {
  sim_node_t* node = sim_graph_add(member->capture->graph, task, member->deps, member->num_deps);
  member->num_deps = 0;
  depend_on(member, node);
}

cudaError_t sim_submit_task(sim_stream_t* stream, sim_task_t* task) {
  cudaError_t code = sim_gate_ordered(stream);
  if (code != cudaSuccess) {
    sim_task_release(task);
  } else if (stream->member) {
    add_node(stream->member, task);
  } else {
    sim_enqueue(stream, task, NULL, NULL);
  }
  return code;
}

static void member_free(sim_member_t* member) {
  sim_stream_t* stream = member->stream;
  if (stream) {
    stream->member = NULL;
    if (stream->destroyed) sim_stream_retire(stream);  // a per-thread stream whose thread is gone
  }
  free(member->deps);
  free(member->handles);
  free(member->edge_data);
  free(member);
}

// Takes the streams out of the capture and forgets it. Its graph goes to the caller.
static sim_graph_t* close_capture(sim_capture_t* capture) {
  sim_graph_t* graph = capture->graph;
  sim_note_capture("ends capture %llu", capture->id);
  sim_capture_t** link = &captures;
  while (*link != capture) link = &(*link)->next;
  *link = capture->next;
  for (size_t i = 0; i < capture->num_members; ++i) member_free(capture->members[i]);
  free(capture->members);
  free(capture);
  graph->capturing = false;
  return graph;
}

void sim_capture_stream_destroyed(sim_stream_t* stream) {
  sim_member_t* member = stream->member;
  if (member->capture->origin == stream) {
    sim_graph_destroy(close_capture(member->capture));
    return;
  }
  member->stream = NULL;
  stream->member = NULL;
}

// --- Begin and end --------------------------------------------------------------------------------------------------

static cudaError_t begin(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
  if ((unsigned int)mode > cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;
  sim_stream_t* stream = sim_stream_get(handle);
  if (stream->legacy) return cudaErrorStreamCaptureUnsupported;
  if (stream->member) return cudaErrorIllegalState;
  sim_capture_t* capture = sim_calloc(1, sizeof(*capture));
  capture->id = ++last_id;
  capture->mode = mode;
  capture->thread = sim_thread()->id;
  capture->origin = stream;
  capture->graph = sim_graph_create();
  capture->graph->capturing = true;
  capture->next = captures;
  captures = capture;
  sim_capture_join(capture, stream);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
  cudaError_t code = sim_enter(SIM_API_cudaStreamBeginCapture);
  if (code == cudaSuccess) code = begin(stream, mode);
  return sim_leave(code);
}

// Marks the nodes and everything before them with a fresh number.
static unsigned long long visit_ancestors(const sim_member_t* member, size_t num_nodes) {
  unsigned long long visit = ++last_visit;
  sim_node_t** stack = sim_calloc(num_nodes, sizeof(sim_node_t*));
  size_t depth = 0;
  for (size_t i = 0; i < member->num_deps; ++i) {
    member->deps[i]->visit = visit;
    stack[depth++] = member->deps[i];
  }
  while (depth > 0) {
    const sim_node_t* node = stack[--depth];
    for (size_t i = 0; i < node->num_deps; ++i) {
      if (node->deps[i]->visit == visit) continue;
      node->deps[i]->visit = visit;
      stack[depth++] = node->deps[i];
    }
  }
  free(stack);
  return visit;
}

// Is there a fork whose last work does not come before what the origin stream has reached?
static bool has_unjoined_work(const sim_capture_t* capture) {
  unsigned long long visit = visit_ancestors(capture->origin->member, capture->graph->num_nodes);
  for (size_t i = 0; i < capture->num_members; ++i) {
    const sim_member_t* member = capture->members[i];
    for (size_t k = 0; k < member->num_deps; ++k) {
      if (member->deps[k]->visit != visit) return true;
    }
  }
  return false;
}

static cudaError_t end(cudaStream_t handle, cudaGraph_t* out) {
  if (out) *out = NULL;
  sim_stream_t* stream = sim_stream_get(handle);
  if (!stream->member) return cudaErrorIllegalState;
  sim_capture_t* capture = stream->member->capture;
  if (capture->origin != stream) return sim_capture_invalidate(capture, SIM_RULE_UNMATCHED);
  cudaError_t code = cudaSuccess;
  if (capture->invalid) {
    code = cudaErrorStreamCaptureInvalidated;
  } else if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != sim_thread()->id) {
    code = sim_capture_invalidate(capture, SIM_RULE_WRONG_THREAD);
  } else if (has_unjoined_work(capture)) {
    code = sim_capture_invalidate(capture, SIM_RULE_UNJOINED);
  }
  sim_graph_t* graph = close_capture(capture);
  if (code == cudaSuccess && out) {
    *out = graph->handle;
  } else {
    sim_graph_destroy(graph);
  }
  return code;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* pGraph) {
  cudaError_t code = sim_enter(SIM_API_cudaStreamEndCapture);
  if (code == cudaSuccess) code = end(stream, pGraph);
  return sim_leave(code);
}

// --- Questions and adjustments --------------------------------------------------------------------------------------

static enum cudaStreamCaptureStatus status_of(const sim_stream_t* stream) {
  if (!stream->member) return cudaStreamCaptureStatusNone;
  return stream->member->capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

// The legacy stream can give no answer while a blocking stream captures; asking breaks nothing.
static cudaError_t get_status(cudaStream_t handle, sim_stream_t** stream, enum cudaStreamCaptureStatus* status) {
  if (!status) return cudaErrorInvalidValue;
  *stream = sim_stream_get(handle);
  if ((*stream)->legacy && blocking_capture((*stream)->device)) return cudaErrorStreamCaptureImplicit;
  *status = status_of(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* pCaptureStatus) {
  cudaError_t code = sim_enter(SIM_API_cudaStreamIsCapturing);
  sim_stream_t* s;
  if (code == cudaSuccess) code = get_status(stream, &s, pCaptureStatus);
  return sim_leave(code);
}

// The arrays that cudaStreamGetCaptureInfo hands out; they last until the stream's next call.
static void refresh_handles(sim_member_t* member) {
  sim_reserve(&member->handles, &member->handle_capacity, member->num_deps, sizeof(cudaGraphNode_t));
  sim_reserve(&member->edge_data, &member->edge_capacity, member->num_deps, sizeof(cudaGraphEdgeData));
  for (size_t i = 0; i < member->num_deps; ++i) {
    member->handles[i] = member->deps[i]->handle;
    memset(&member->edge_data[i], 0, sizeof(cudaGraphEdgeData));
  }
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* captureStatus_out,
                                     unsigned long long* id_out, cudaGraph_t* graph_out,
                                     const cudaGraphNode_t** dependencies_out, const cudaGraphEdgeData** edgeData_out,
                                     size_t* numDependencies_out) {
  cudaError_t code = sim_enter(SIM_API_cudaStreamGetCaptureInfo);
  sim_stream_t* s;
  if (code == cudaSuccess) code = get_status(stream, &s, captureStatus_out);
  if (code == cudaSuccess && *captureStatus_out == cudaStreamCaptureStatusActive) {
    refresh_handles(s->member);
    if (id_out) *id_out = s->member->capture->id;
    if (graph_out) *graph_out = s->member->capture->graph->handle;
    if (dependencies_out) *dependencies_out = s->member->handles;
    if (edgeData_out) *edgeData_out = s->member->edge_data;
    if (numDependencies_out) *numDependencies_out = s->member->num_deps;
  }
  return sim_leave(code);
}

static cudaError_t update_dependencies(cudaStream_t handle, const cudaGraphNode_t* nodes, size_t count,
                                       unsigned int flags) {
  if (flags > cudaStreamSetCaptureDependencies || (count > 0 && !nodes)) return cudaErrorInvalidValue;
  sim_stream_t* stream = sim_stream_get(handle);
  if (!stream->member) return cudaErrorIllegalState;
  cudaError_t code = sim_gate_ordered(stream);
  if (code != cudaSuccess) return code;
  for (size_t i = 0; i < count; ++i) {
    const sim_node_t* node = sim_handle_get(SIM_NODE, nodes[i]);
    if (!node || node->graph != stream->member->capture->graph) return cudaErrorInvalidValue;
  }
  if (flags == cudaStreamSetCaptureDependencies) stream->member->num_deps = 0;
  for (size_t i = 0; i < count; ++i) depend_on(stream->member, sim_handle_get(SIM_NODE, nodes[i]));
  return cudaSuccess;
}

static bool has_edge_data(const cudaGraphEdgeData* data, size_t count) {
  static const cudaGraphEdgeData none;
  for (size_t i = 0; data && i < count; ++i) {
    if (memcmp(&data[i], &none, sizeof(none)) != 0) return true;
  }
  return false;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* dependencyData, size_t numDependencies,
                                                unsigned int flags) {
  cudaError_t code = sim_enter(SIM_API_cudaStreamUpdateCaptureDependencies);
  if (code == cudaSuccess) {
    if (has_edge_data(dependencyData, numDependencies)) {
      sim_die("cudaStreamUpdateCaptureDependencies: edges that carry data are not modelled");
    }
    code = update_dependencies(stream, dependencies, numDependencies, flags);
  }
  return sim_leave(code);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  cudaError_t code = sim_enter(SIM_API_cudaThreadExchangeStreamCaptureMode);
  if (code == cudaSuccess) {
    if (!mode) sim_die("cudaThreadExchangeStreamCaptureMode: mode is NULL, which crashes the real runtime");
    int before = sim_thread()->capture_mode;
    sim_thread()->capture_mode = (int)*mode;
    *mode = (enum cudaStreamCaptureMode)before;
  }
  return sim_leave(code);
}
