// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// order.h: what comes before what, as the runtime tells the checks. Guarded by the global mutex.
#ifndef GCAP_SIM_BRIDGE_ORDER_H_
#define GCAP_SIM_BRIDGE_ORDER_H_

#include <stdbool.h>

#include "sim/api/types.h"
#include "sim/check/clock.h"

void gcap_sim_order_stream_created(gcap_sim_stream_t* stream);
// The stream is idle and goes away.
void gcap_sim_order_stream_gone(gcap_sim_stream_t* stream);
// The host queues the operation.
void gcap_sim_order_submit(gcap_sim_op_t* op);
// The stream comes after what the legacy stream, or for that one all blocking streams, have done.
void gcap_sim_order_implicitly(gcap_sim_stream_t* stream);
// The stream comes after the mark, which is reached.
void gcap_sim_order_wait(gcap_sim_stream_t* stream, gcap_sim_mark_t* mark);
// Would waiting for the mark order nothing new?
bool gcap_sim_order_knows(const gcap_sim_stream_t* stream, const gcap_sim_mark_t* mark);
// The first step of the operation at the stream's head.
void gcap_sim_order_begin(gcap_sim_stream_t* stream, gcap_sim_op_t* op);
// All of the operation is done. Others learn of it through its mark.
void gcap_sim_order_finish(gcap_sim_stream_t* stream, gcap_sim_op_t* op);
// The mark stands for all that the idle stream has done.
void gcap_sim_order_mark_idle(gcap_sim_stream_t* stream, gcap_sim_mark_t* mark);

// The host has seen that the mark is reached, that the stream is idle, or that all of a device's streams are.
void gcap_sim_order_host_saw(gcap_sim_mark_t* mark);
void gcap_sim_order_host_saw_stream(gcap_sim_stream_t* stream);
void gcap_sim_order_host_saw_device(int device);

// A host function that acted at this clock is done. It may have told the host, by a flag or a lock that nobody sees, so
// the host's next call comes after it.
void gcap_sim_order_host_function_done(const gcap_sim_clock_t* clock);
// The host, which is no host function, begins a call.
void gcap_sim_order_call_begins(void);

// The host's own clock.
gcap_sim_clock_t* gcap_sim_order_host(void);
// The stream, which is idle, does something at the call itself.
void gcap_sim_order_at_once(gcap_sim_stream_t* stream);

#endif  // GCAP_SIM_BRIDGE_ORDER_H_
