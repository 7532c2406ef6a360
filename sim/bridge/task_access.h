// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// task_access.h: what a task touches, as the runtime tells the checks. Guarded by the global mutex.
#ifndef GCAP_SIM_BRIDGE_TASK_ACCESS_H_
#define GCAP_SIM_BRIDGE_TASK_ACCESS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/api/types.h"
#include "sim/bridge/access.h"
#include "sim/memory/copy.h"

// The task at the stream's head (`node` of its launch, if that is one) is about to run: checks and notes what it
// touches. False when it must not really run, because it would touch what is not there. gcap_sim_access_end follows.
bool gcap_sim_access_begin(gcap_sim_stream_t* stream, const gcap_sim_task_t* task, uint32_t node);
// The same for a task that runs at the call itself, on an idle stream.
bool gcap_sim_access_begin_at_once(gcap_sim_stream_t* stream, const gcap_sim_task_t* task);
// The same for a host function, which touches what it tells by gcap_sim_host_access, on the thread that calls this.
void gcap_sim_access_begin_host_function(gcap_sim_stream_t* stream, const gcap_sim_task_t* task, uint32_t node);
void gcap_sim_access_end(void);
// The host itself reads or writes, at the call under way, memory that work of the device may touch.
void gcap_sim_access_by_host(const void* address, size_t bytes, bool is_write);
// The host takes the source of an eager copy from pageable memory. Only graphs can be writing there meanwhile.
void gcap_sim_access_stage(const gcap_sim_copy_t* copy);
// The task becomes one of a graph: keeps what the addresses that it names belong to.
void gcap_sim_access_bind(gcap_sim_task_t* task);
void gcap_sim_access_unbind(gcap_sim_task_t* task);

// Whoever acts now: the work under way, or the call under way on the host. Release its site.
gcap_sim_actor_t gcap_sim_actor_current(void);

#endif  // GCAP_SIM_BRIDGE_TASK_ACCESS_H_
