// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// chains.h: the timelines inside a graph. Guarded by the global mutex.
#ifndef GCAP_SIM_BRIDGE_CHAINS_H_
#define GCAP_SIM_BRIDGE_CHAINS_H_

#include <stdint.h>

#include "sim/api/types.h"
#include "sim/check/clock.h"

typedef struct gcap_sim_chains gcap_sim_chains_t;

// The launch at the stream's head begins, and all its nodes are done.
void gcap_sim_chains_begin(gcap_sim_stream_t* stream, gcap_sim_kernel_launch_t* launch);
void gcap_sim_chains_finish(gcap_sim_stream_t* stream, gcap_sim_kernel_launch_t* launch);
// The clock that the node's accesses carry.
gcap_sim_clock_t* gcap_sim_chains_clock(gcap_sim_stream_t* stream, const gcap_sim_kernel_launch_t* launch,
                                        uint32_t node);

// A node of the launch at the stream's head begins, and is done.
void gcap_sim_order_begin_node(gcap_sim_stream_t* stream, gcap_sim_kernel_launch_t* launch, uint32_t node);
void gcap_sim_order_mark_node(gcap_sim_stream_t* stream, gcap_sim_kernel_launch_t* launch, uint32_t node);
void gcap_sim_order_finish_node(gcap_sim_stream_t* stream, gcap_sim_kernel_launch_t* launch, uint32_t node);
void gcap_sim_order_launch_destroyed(gcap_sim_kernel_launch_t* launch);
void gcap_sim_order_program_destroyed(gcap_sim_program_t* program);

#endif  // GCAP_SIM_BRIDGE_CHAINS_H_
