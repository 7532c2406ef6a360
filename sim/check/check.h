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

struct gcap_sim_allocation;
struct gcap_sim_chains;
struct gcap_sim_copy;
struct gcap_sim_kernel_launch;
struct gcap_sim_mark;
struct gcap_sim_op;
struct gcap_sim_program;
struct gcap_sim_stream;
struct gcap_sim_task;

// --- Order (order.c): what comes before what ------------------------------------------------------------------------

void gcap_sim_order_stream_created(struct gcap_sim_stream* stream);
// The stream is idle and goes away.
void gcap_sim_order_stream_gone(struct gcap_sim_stream* stream);
// The host queues the operation.
void gcap_sim_order_submit(struct gcap_sim_op* op);
// The stream comes after what the legacy stream, or for that one all blocking streams, have done.
void gcap_sim_order_implicitly(struct gcap_sim_stream* stream);
// The stream comes after the mark, which is reached.
void gcap_sim_order_wait(struct gcap_sim_stream* stream, struct gcap_sim_mark* mark);
// Would waiting for the mark order nothing new?
bool gcap_sim_order_knows(const struct gcap_sim_stream* stream, const struct gcap_sim_mark* mark);
// The first step of the operation at the stream's head.
void gcap_sim_order_begin(struct gcap_sim_stream* stream, struct gcap_sim_op* op);
// All of the operation is done. Others learn of it through its mark.
void gcap_sim_order_finish(struct gcap_sim_stream* stream, struct gcap_sim_op* op);
// The mark stands for all that the idle stream has done.
void gcap_sim_order_mark_idle(struct gcap_sim_stream* stream, struct gcap_sim_mark* mark);

// A node of the launch at the stream's head begins, and is done.
void gcap_sim_order_begin_node(struct gcap_sim_stream* stream, struct gcap_sim_kernel_launch* launch, uint32_t node);
void gcap_sim_order_mark_node(struct gcap_sim_stream* stream, struct gcap_sim_kernel_launch* launch, uint32_t node);
void gcap_sim_order_finish_node(struct gcap_sim_stream* stream, struct gcap_sim_kernel_launch* launch, uint32_t node);
void gcap_sim_order_launch_destroyed(struct gcap_sim_kernel_launch* launch);
void gcap_sim_order_program_destroyed(struct gcap_sim_program* program);

// The host has seen that the mark is reached, that the stream is idle, or that all of a device's streams are.
void gcap_sim_order_host_saw(struct gcap_sim_mark* mark);
void gcap_sim_order_host_saw_stream(struct gcap_sim_stream* stream);
void gcap_sim_order_host_saw_device(int device);

// --- Accesses (access.c, task_access.c): what work touches ----------------------------------------------------------

// The task at the stream's head (`node` of its launch, if that is one) is about to run: checks and notes what it
// touches. False when it must not really run, because it would touch what is not there. gcap_sim_access_end follows.
bool gcap_sim_access_begin(struct gcap_sim_stream* stream, const struct gcap_sim_task* task, uint32_t node);
// The same for a task that runs at the call itself, on an idle stream.
bool gcap_sim_access_begin_at_once(struct gcap_sim_stream* stream, const struct gcap_sim_task* task);
// The same for a host function, which touches what it tells by gcap_sim_host_access, on the thread that calls this.
void gcap_sim_access_begin_host_function(struct gcap_sim_stream* stream, const struct gcap_sim_task* task,
                                         uint32_t node);
void gcap_sim_access_end(void);
// The host itself reads or writes, at the call under way, memory that work of the device may touch.
void gcap_sim_access_by_host(const void* address, size_t bytes, bool is_write);
// The host takes the source of an eager copy from pageable memory. Only graphs can be writing there meanwhile.
void gcap_sim_access_stage(const struct gcap_sim_copy* copy);
// The task becomes one of a graph: keeps what the addresses that it names belong to.
void gcap_sim_access_bind(struct gcap_sim_task* task);
void gcap_sim_access_unbind(struct gcap_sim_task* task);

// --- Lifetimes (lifetime.c) -----------------------------------------------------------------------------------------

// What is known of an allocation: made and dropped with it.
gcap_sim_memory_t* gcap_sim_memory_create(const struct gcap_sim_allocation* allocation);
// The allocation's contents begin, and end: by the work under way, or else by the call.
void gcap_sim_memory_begins(struct gcap_sim_allocation* allocation);
void gcap_sim_memory_ends(struct gcap_sim_allocation* allocation);

#endif  // GCAP_SIM_CHECK_CHECK_H_
