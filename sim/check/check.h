// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// check.h: where the runtime tells the checks what happens. All under the global mutex.
#ifndef GCAP_SIM_CHECK_CHECK_H_
#define GCAP_SIM_CHECK_CHECK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "origin.h"
#include "shadow.h"

struct sim_allocation;
struct sim_chains;
struct sim_copy;
struct sim_launch;
struct sim_mark;
struct sim_op;
struct sim_program;
struct sim_stream;
struct sim_task;

// --- Order (order.c): what comes before what -------------------------------------------------------------------------

void sim_order_stream_created(struct sim_stream* stream);
// The stream is idle and goes away.
void sim_order_stream_gone(struct sim_stream* stream);
// The host queues the operation.
void sim_order_submit(struct sim_op* op);
// The stream comes after what the legacy stream, or for that one all blocking streams, have done.
void sim_order_implicitly(struct sim_stream* stream);
// The stream comes after the mark, which is reached.
void sim_order_wait(struct sim_stream* stream, struct sim_mark* mark);
// Would waiting for the mark order nothing new?
bool sim_order_knows(const struct sim_stream* stream, const struct sim_mark* mark);
// The first step of the operation at the stream's head.
void sim_order_begin(struct sim_stream* stream, struct sim_op* op);
// All of the operation is done. Others learn of it through its mark.
void sim_order_finish(struct sim_stream* stream, struct sim_op* op);
// The mark stands for all that the idle stream has done.
void sim_order_mark_idle(struct sim_stream* stream, struct sim_mark* mark);

// A node of the launch at the stream's head begins, and is done.
void sim_order_begin_node(struct sim_stream* stream, struct sim_launch* launch, uint32_t node);
void sim_order_mark_node(struct sim_stream* stream, struct sim_launch* launch, uint32_t node);
void sim_order_finish_node(struct sim_stream* stream, struct sim_launch* launch, uint32_t node);
void sim_order_launch_destroyed(struct sim_launch* launch);
void sim_order_program_destroyed(struct sim_program* program);

// The host has seen that the mark is reached, that the stream is idle, or that all of a device's streams are.
void sim_order_host_saw(struct sim_mark* mark);
void sim_order_host_saw_stream(struct sim_stream* stream);
void sim_order_host_saw_device(int device);

// --- Accesses (access.c, task_access.c): what work touches -----------------------------------------------------------

// The task at the stream's head (`node` of its launch, if that is one) is about to run: checks and notes what it
// touches. False when it must not really run, because it would touch what is not there. sim_access_end follows.
bool sim_access_begin(struct sim_stream* stream, const struct sim_task* task, uint32_t node);
// The same for a task that runs at the call itself, on an idle stream.
bool sim_access_begin_at_once(struct sim_stream* stream, const struct sim_task* task);
// The same for a host function, which touches what it tells by gcap_sim_host_access, on the thread that calls this.
void sim_access_begin_host_function(struct sim_stream* stream, const struct sim_task* task, uint32_t node);
void sim_access_end(void);
// The host itself reads or writes, at the call under way, memory that work of the device may touch.
void sim_access_by_host(const void* address, size_t bytes, bool is_write);
// The host takes the source of an eager copy from pageable memory. Only graphs can be writing there meanwhile.
void sim_access_stage(const struct sim_copy* copy);
// The task becomes one of a graph: keeps what the addresses that it names belong to.
void sim_access_bind(struct sim_task* task);
void sim_access_unbind(struct sim_task* task);

// --- Lifetimes (lifetime.c) ------------------------------------------------------------------------------------------

// What is known of an allocation: made and dropped with it.
sim_memory_t* sim_memory_create(const struct sim_allocation* allocation);
// The allocation's contents begin, and end: by the work under way, or else by the call.
void sim_memory_begins(struct sim_allocation* allocation);
void sim_memory_ends(struct sim_allocation* allocation);

#endif  // GCAP_SIM_CHECK_CHECK_H_
