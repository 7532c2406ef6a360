// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// scheduler.h: the queues of streams, and who moves when.
#ifndef GCAP_SIM_STREAM_SCHEDULER_H_
#define GCAP_SIM_STREAM_SCHEDULER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"
#include "sim/api/types.h"
#include "sim/check/clock.h"

// One entry of a stream's queue: a task or the launch of a graph.
struct gcap_sim_op {
  struct gcap_sim_op* next;
  gcap_sim_task_t* task;
  gcap_sim_kernel_launch_t* launch;
  gcap_sim_mark_t* mark;  // reached when the operation is done; NULL while nobody waits
  gcap_sim_mark_t** waits;
  size_t num_waits;
  bool begun;
  gcap_sim_stamp_t submitted;  // what the host had seen by then
};

// Queues an operation behind everything already in the stream, implicit ordering with the legacy stream included. It
// carries a task (reference taken over), or a launch (taken over), or neither, and waits for `wait` unless that is
// NULL.
void gcap_sim_enqueue(gcap_sim_stream_t* stream, gcap_sim_task_t* task, gcap_sim_kernel_launch_t* launch,
                      gcap_sim_mark_t* wait);
// A new reference to the mark of all work submitted so far.
gcap_sim_mark_t* gcap_sim_stream_tail_mark(gcap_sim_stream_t* stream);
// The mark of an event recorded now: work of the stream like other work, so the implicit order holds for it.
gcap_sim_mark_t* gcap_sim_stream_record_mark(gcap_sim_stream_t* stream);
// What the stream is given next comes after the mark.
void gcap_sim_stream_wait_for(gcap_sim_stream_t* stream, gcap_sim_mark_t* mark);
// Runs a task at the call itself, on a stream that is idle.
void gcap_sim_run_at_once(gcap_sim_stream_t* stream, const gcap_sim_task_t* task);
// A new reference to the mark of the operation queued last, which must exist.
gcap_sim_mark_t* gcap_sim_stream_last_mark(gcap_sim_stream_t* stream);

// Runs what the mark needs, and returns when it is reached.
void gcap_sim_run_until(gcap_sim_mark_t* mark);
// The same, and what the host does next comes after the mark. Takes over the reference.
void gcap_sim_wait_for(gcap_sim_mark_t* mark);
// Tells whether the mark is reached, and brings it one step nearer, as the time between two queries would: so a loop of
// queries ends. The step comes before the answer under the eager schedule, after it under the lazy one, and by the seed
// under the random one.
bool gcap_sim_poll(gcap_sim_mark_t* mark);
// The same for all work submitted to the stream so far.
bool gcap_sim_poll_stream(gcap_sim_stream_t* stream);
void gcap_sim_wait_for_device(int device);
// Called at each API call: moves random ready queues on.
void gcap_sim_turn(void);
uint64_t gcap_sim_now(void);

typedef enum gcap_sim_schedule {
  GCAP_SIM_SCHEDULE_RANDOM,
  GCAP_SIM_SCHEDULE_LAZY,
  GCAP_SIM_SCHEDULE_EAGER
} gcap_sim_schedule_t;

// In the child of a fork, where no thread but the caller lives on.
void gcap_sim_scheduler_forked(void);
// Returns the schedule so far.
gcap_sim_schedule_t gcap_sim_set_schedule(gcap_sim_schedule_t schedule);

#endif  // GCAP_SIM_STREAM_SCHEDULER_H_
