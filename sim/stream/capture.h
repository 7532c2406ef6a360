// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// capture.h: captures, and the gates that calls pass while there are any.
#ifndef GCAP_SIM_STREAM_CAPTURE_H_
#define GCAP_SIM_STREAM_CAPTURE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"
#include "sim/check/origin.h"
#include "sim/check/shadow.h"
#include "sim/graph/edges.h"
#include "sim/stream/rules.h"

// A stream's part in a capture. It outlives the stream, because work of a destroyed stream must still be joined.
struct gcap_sim_member {
  gcap_sim_capture_t* capture;
  gcap_sim_stream_t* stream;  // NULL once destroyed
  gcap_sim_stream_name_t name;
  gcap_sim_origin_t* joined;  // the call that made it a part
  bool unjoined;              // at the end of the capture: it has work that never came back to the origin stream
  // What its next node will depend on. Waits append and may do so twice: gcap_sim_member_deps leaves each node once.
  gcap_sim_edges_t deps;
  cudaGraphNode_t* handles;  // deps as cudaStreamGetCaptureInfo gives them out
  cudaGraphEdgeData* edge_data;
  size_t handle_capacity;
  size_t edge_capacity;
};

struct gcap_sim_capture {
  unsigned long long id;
  enum cudaStreamCaptureMode mode;
  uint64_t thread;
  gcap_sim_stream_t* origin;
  gcap_sim_origin_t* begun;  // the call that began it
  gcap_sim_graph_t* graph;
  bool into_graph;  // the graph was the caller's before
  bool invalid;
  gcap_sim_member_t** members;
  size_t num_members;
  size_t member_capacity;
  gcap_sim_capture_t* next;
};

// Queues the task, or captures it; the capture rules for stream-ordered work hold. Takes over the reference.
cudaError_t gcap_sim_submit_task(gcap_sim_stream_t* stream, gcap_sim_task_t* task);
// The call under way gave eager work, called `what`, to the stream: reports that a capture of this thread lacks it.
void gcap_sim_capture_escaped(const gcap_sim_stream_t* stream, const char* what);
// The rules alone, for callers that must know first: 901, 906, or success.
cudaError_t gcap_sim_gate_ordered(gcap_sim_stream_t* stream);

// Breaks the rule: invalidates the capture, keeps the reason, and returns the rule's code.
cudaError_t gcap_sim_capture_invalidate(gcap_sim_capture_t* capture, gcap_sim_rule_t rule);
// An unsafe call of this thread: 900, with every capture that it disturbs invalidated, or success.
cudaError_t gcap_sim_gate_unsafe(void);
// The same for the captures of other threads alone, as far as they are valid.
cudaError_t gcap_sim_gate_unsafe_beside_others(void);
// A call that no capture on the device survives, of whatever thread; on any device, if -1.
cudaError_t gcap_sim_gate_forbidden(int device);
// A use of the legacy stream: 906 while a blocking stream captures.
cudaError_t gcap_sim_gate_legacy(gcap_sim_stream_t* stream);
// A call that no stream may be given while it captures (synchronise, query, launch): 900.
cudaError_t gcap_sim_gate_not_capturing(gcap_sim_stream_t* stream);

gcap_sim_capture_t* gcap_sim_capture_find(unsigned long long id);
gcap_sim_member_t* gcap_sim_capture_join(gcap_sim_capture_t* capture, gcap_sim_stream_t* stream);
void gcap_sim_member_depend(gcap_sim_member_t* member, const gcap_sim_edges_t* nodes);
const gcap_sim_edges_t* gcap_sim_member_deps(gcap_sim_member_t* member);
void gcap_sim_capture_stream_destroyed(gcap_sim_stream_t* stream);

#endif  // GCAP_SIM_STREAM_CAPTURE_H_
