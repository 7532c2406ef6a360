// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// event.h: events.
#ifndef GCAP_SIM_STREAM_EVENT_H_
#define GCAP_SIM_STREAM_EVENT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"
#include "sim/graph/edges.h"
#include "sim/stream/past.h"
#include "sim/stream/task.h"

struct gcap_sim_event {
  cudaEvent_t handle;  // NULL once destroyed
  size_t refs;         // the handle, and the graph nodes that name it
  int device;
  unsigned int flags;
  bool recorded;
  gcap_sim_mark_t* mark;   // of the last eager record; NULL when the stream was idle then
  uint64_t when;           // time of a record that found its stream idle
  gcap_sim_point_t point;  // the last free of its stream before the record
  gcap_sim_past_t* past;   // what the stream came after then
  // A record inside a capture: its id and the nodes that the stream's next node would have depended on.
  unsigned long long capture_id;
  gcap_sim_edges_t nodes;
};

gcap_sim_task_t* gcap_sim_event_task(gcap_sim_task_kind_t kind, gcap_sim_event_t* event);
void gcap_sim_event_release(gcap_sim_event_t* event);
// Ends an event that has a handle.
void gcap_sim_event_destroy(gcap_sim_event_t* event);
// May a kernel's launch on the device record the event?
cudaError_t gcap_sim_event_judge_launch(cudaEvent_t handle, int device);
// Records it as part of the launch that the stream was given last. In a capture, what waits for the event comes after
// the kernel by an edge with this data. Otherwise the event is reached when the kernel has ended, which is one of the
// moments allowed.
void gcap_sim_event_record_launch(cudaEvent_t handle, gcap_sim_stream_t* stream, cudaGraphEdgeData data);
void gcap_sim_event_set_mark(gcap_sim_event_t* event, gcap_sim_mark_t* mark);

#endif  // GCAP_SIM_STREAM_EVENT_H_
