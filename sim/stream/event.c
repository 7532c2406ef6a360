// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Events: points in a stream's work that others query, wait for and measure between.
//
// The idea: an eager record takes a snapshot, the mark of all work in the stream so far, and a wait takes a reference
// to that mark; recording the event again changes neither. A record in a capture keeps the nodes it stands for and the
// id of the capture. An external record or wait in a capture becomes a node, which holds the event itself. Invariant:
// at most one of mark and capture_id is set. Locking: the global mutex.
#include "sim/stream/event.h"

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "sim/api/api.h"
#include "sim/api/handle.h"
#include "sim/base/heap.h"
#include "sim/base/thread.h"
#include "sim/graph/edges.h"
#include "sim/memory/pool.h"
#include "sim/stream/capture.h"
#include "sim/stream/mark.h"
#include "sim/stream/past.h"
#include "sim/stream/rules.h"
#include "sim/stream/scheduler.h"
#include "sim/stream/stream.h"
#include "sim/stream/task.h"

#define CREATE_FLAGS (cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess)

static void forget_record(gcap_sim_event_t* event) {
  gcap_sim_mark_release(event->mark);
  event->mark = NULL;
  event->capture_id = 0;
  event->point = (gcap_sim_point_t){0, 0};
  gcap_sim_past_release(event->past);
  event->past = NULL;
  event->nodes.count = 0;
}

void gcap_sim_event_release(gcap_sim_event_t* event) {
  if (--event->refs > 0) return;
  forget_record(event);
  free(event->nodes.items);
  free(event);
}

void gcap_sim_event_set_mark(gcap_sim_event_t* event, gcap_sim_mark_t* mark) {
  forget_record(event);
  event->mark = mark;
  event->when = gcap_sim_now();
  event->recorded = true;
}

static cudaError_t create(cudaEvent_t* out, unsigned int flags) {
  if (out == NULL || (flags & ~(unsigned int)CREATE_FLAGS) != 0) return cudaErrorInvalidValue;
  bool is_timed = (flags & cudaEventDisableTiming) == 0;
  if ((flags & cudaEventInterprocess) != 0 && is_timed) return cudaErrorInvalidValue;
  gcap_sim_event_t* event = gcap_sim_calloc(1, sizeof(*event));
  event->refs = 1;
  event->flags = flags;
  event->device = gcap_sim_thread()->device;
  event->handle = *out = gcap_sim_handle_create(GCAP_SIM_EVENT, event);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaEventCreate);
  if (code == cudaSuccess) code = create(event, cudaEventDefault);
  return gcap_sim_leave(code);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaEventCreateWithFlags);
  if (code == cudaSuccess) code = create(event, flags);
  return gcap_sim_leave(code);
}

void gcap_sim_event_destroy(gcap_sim_event_t* event) {
  gcap_sim_handle_destroy(event->handle);
  event->handle = NULL;
  gcap_sim_event_release(event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaEventDestroy);
  if (code == cudaSuccess) {
    gcap_sim_event_t* e = gcap_sim_handle_get(GCAP_SIM_EVENT, event);
    if (e != NULL) {
      gcap_sim_event_destroy(e);
    } else {
      code = cudaErrorInvalidResourceHandle;
    }
  }
  return gcap_sim_leave(code);
}

gcap_sim_task_t* gcap_sim_event_task(gcap_sim_task_kind_t kind, gcap_sim_event_t* event) {
  gcap_sim_task_t* task =
      gcap_sim_task_create(kind, kind == GCAP_SIM_TASK_EVENT_RECORD ? "event record" : "event wait");
  task->u.event = event;
  ++event->refs;
  return task;
}

static void record_in_capture(gcap_sim_event_t* event, gcap_sim_member_t* member) {
  const gcap_sim_edges_t* deps = gcap_sim_member_deps(member);
  forget_record(event);
  event->recorded = true;
  event->capture_id = member->capture->id;
  gcap_sim_reserve(&event->nodes.items, &event->nodes.capacity, deps->count, sizeof(gcap_sim_edge_t));
  event->nodes.count = deps->count;
  if (deps->count) memcpy(event->nodes.items, deps->items, deps->count * sizeof(gcap_sim_edge_t));
}

static void record_eager(gcap_sim_event_t* event, gcap_sim_stream_t* stream) {
  gcap_sim_event_set_mark(event, gcap_sim_stream_record_mark(stream));
  event->point = (gcap_sim_point_t){.stream = stream->id, .order = stream->frees};
  event->past = gcap_sim_past_retain(stream->past);
}

cudaError_t gcap_sim_event_judge_launch(cudaEvent_t handle, int device) {
  const gcap_sim_event_t* event = gcap_sim_handle_get(GCAP_SIM_EVENT, handle);
  if (event == NULL || event->device != device) return cudaErrorInvalidResourceHandle;
  return event->flags & cudaEventDisableTiming ? cudaSuccess : cudaErrorNotSupported;
}

void gcap_sim_event_record_launch(cudaEvent_t handle, gcap_sim_stream_t* stream, cudaGraphEdgeData data) {
  gcap_sim_event_t* event = gcap_sim_handle_get(GCAP_SIM_EVENT, handle);
  if (stream->member == NULL) {
    record_eager(event, stream);
    return;
  }
  record_in_capture(event, stream->member);
  for (size_t i = 0; i < event->nodes.count; ++i) event->nodes.items[i].data = data;
}

static cudaError_t record(cudaEvent_t handle, cudaStream_t stream_handle, unsigned int flags) {
  if ((flags & ~(unsigned int)cudaEventRecordExternal) != 0) return cudaErrorInvalidValue;
  gcap_sim_event_t* event = gcap_sim_handle_get(GCAP_SIM_EVENT, handle);
  if (event == NULL) return cudaErrorInvalidResourceHandle;
  gcap_sim_stream_t* stream = gcap_sim_stream_get(stream_handle);
  if (stream->device != event->device) return cudaErrorInvalidResourceHandle;
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code != cudaSuccess) return code;
  if (flags & cudaEventRecordExternal) {
    if (stream->member == NULL) return cudaErrorIllegalState;
    return gcap_sim_submit_task(stream, gcap_sim_event_task(GCAP_SIM_TASK_EVENT_RECORD, event));
  }
  if (stream->member != NULL) {
    record_in_capture(event, stream->member);
  } else {
    record_eager(event, stream);
  }
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaEventRecord);
  if (code == cudaSuccess) code = record(event, stream, cudaEventRecordDefault);
  return gcap_sim_leave(code);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaEventRecordWithFlags);
  if (code == cudaSuccess) code = record(event, stream, flags);
  return gcap_sim_leave(code);
}

// A wait on an event that stands for nodes of a capture: the stream joins that capture, or orders itself within it.
static cudaError_t wait_captured(gcap_sim_stream_t* stream, const gcap_sim_event_t* event) {
  gcap_sim_capture_t* capture = gcap_sim_capture_find(event->capture_id);
  gcap_sim_member_t* member = stream->member;
  if (capture == NULL || capture->invalid) {
    return member != NULL ? gcap_sim_capture_invalidate(member->capture, GCAP_SIM_RULE_DEAD_EVENT)
                          : cudaErrorInvalidValue;
  }
  if (stream->legacy) return gcap_sim_capture_invalidate(capture, GCAP_SIM_RULE_IMPLICIT);
  if (member != NULL && member->capture != capture) {
    gcap_sim_capture_invalidate(capture, GCAP_SIM_RULE_MERGE);
    return gcap_sim_capture_invalidate(member->capture, GCAP_SIM_RULE_MERGE);
  }
  if (member == NULL) member = gcap_sim_capture_join(capture, stream);
  gcap_sim_member_depend(member, &event->nodes);
  return cudaSuccess;
}

static cudaError_t wait(cudaStream_t stream_handle, cudaEvent_t handle, unsigned int flags) {
  if ((flags & ~(unsigned int)cudaEventWaitExternal) != 0) return cudaErrorInvalidValue;
  gcap_sim_event_t* event = gcap_sim_handle_get(GCAP_SIM_EVENT, handle);
  gcap_sim_stream_t* stream = gcap_sim_stream_get(stream_handle);
  if (event == NULL) {
    // Measured: no event is one of outside.
    if (stream->member != NULL) gcap_sim_capture_invalidate(stream->member->capture, GCAP_SIM_RULE_ISOLATION);
    return cudaErrorInvalidResourceHandle;
  }
  cudaError_t code = gcap_sim_gate_ordered(stream);
  if (code != cudaSuccess) return code;
  if (flags & cudaEventWaitExternal) {
    if (stream->member == NULL) return cudaErrorIllegalState;
    return gcap_sim_submit_task(stream, gcap_sim_event_task(GCAP_SIM_TASK_EVENT_WAIT, event));
  }
  if (!event->recorded) return cudaSuccess;
  if (event->capture_id) return wait_captured(stream, event);
  if (stream->member != NULL) return gcap_sim_capture_invalidate(stream->member->capture, GCAP_SIM_RULE_ISOLATION);
  if (event->mark != NULL) gcap_sim_stream_wait_for(stream, event->mark);
  gcap_sim_past_learn(stream, event);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaStreamWaitEvent);
  if (code == cudaSuccess) code = wait(stream, event, flags);
  return gcap_sim_leave(code);
}

// What a host-side look at the event earns: an event of an open capture can only break it.
static cudaError_t gate_host_use(const gcap_sim_event_t* event) {
  if (event->capture_id) {
    gcap_sim_capture_t* capture = gcap_sim_capture_find(event->capture_id);
    if (capture == NULL || capture->invalid) return cudaErrorInvalidValue;
    return gcap_sim_capture_invalidate(capture, GCAP_SIM_RULE_CAPTURED_EVENT);
  }
  return gcap_sim_gate_unsafe();
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaEventQuery);
  if (code == cudaSuccess) {
    gcap_sim_event_t* e = gcap_sim_handle_get(GCAP_SIM_EVENT, event);
    code = e != NULL ? gate_host_use(e) : cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess && !gcap_sim_poll(e->mark)) code = cudaErrorNotReady;
  }
  return gcap_sim_leave(code);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaEventSynchronize);
  if (code == cudaSuccess) {
    gcap_sim_event_t* e = gcap_sim_handle_get(GCAP_SIM_EVENT, event);
    code = e != NULL ? gate_host_use(e) : cudaErrorInvalidResourceHandle;
    if (code == cudaSuccess) {
      unsigned long long stream = e->point.stream;  // another thread may destroy the event meanwhile
      gcap_sim_wait_for(gcap_sim_mark_retain(e->mark));
      if (stream) gcap_sim_pools_synchronised(stream);
    }
  }
  return gcap_sim_leave(code);
}

// The simulator has no timing model: a unit of its time is one operation done, reported as a microsecond.
#define MS_PER_TICK 0.001f

static uint64_t reached_at(const gcap_sim_event_t* event) {
  return event->mark != NULL ? event->mark->when : event->when;
}

static cudaError_t can_measure(const gcap_sim_event_t* event) {
  if (event == NULL || !event->recorded || (event->flags & cudaEventDisableTiming)) {
    return cudaErrorInvalidResourceHandle;
  }
  if (event->capture_id) {
    return gcap_sim_capture_find(event->capture_id) != NULL ? cudaErrorCapturedEvent : cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

static bool is_reached(const gcap_sim_event_t* event) { return event->mark == NULL || event->mark->done; }

// Measured: both events are looked at before either is asked whether it was reached.
static cudaError_t measure(float* ms, const gcap_sim_event_t* first, const gcap_sim_event_t* last) {
  cudaError_t code = ms != NULL ? can_measure(first) : cudaErrorInvalidValue;
  if (code == cudaSuccess) code = can_measure(last);
  if (code != cudaSuccess) return code;
  if (first->device != last->device) return cudaErrorInvalidResourceHandle;
  if (!is_reached(first) || !is_reached(last)) return cudaErrorNotReady;
  *ms = (float)(int64_t)(reached_at(last) - reached_at(first)) * MS_PER_TICK;
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  cudaError_t code = gcap_sim_enter(GCAP_SIM_API_cudaEventElapsedTime);
  if (code == cudaSuccess) {
    code = measure(ms, gcap_sim_handle_get(GCAP_SIM_EVENT, start), gcap_sim_handle_get(GCAP_SIM_EVENT, end));
  }
  return gcap_sim_leave(code);
}
