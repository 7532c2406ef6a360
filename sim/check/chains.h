// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// chains.h: the timelines inside a graph.
#ifndef GCAP_SIM_CHECK_CHAINS_H_
#define GCAP_SIM_CHECK_CHAINS_H_

#include "../cudart/core.h"
#include "clock.h"

typedef struct sim_chains sim_chains_t;

// The launch at the stream's head begins, and all its nodes are done.
void sim_chains_begin(sim_stream_t* stream, sim_launch_t* launch);
void sim_chains_finish(sim_stream_t* stream, sim_launch_t* launch);
// The clock that the node's accesses carry.
sim_clock_t* sim_chains_clock(sim_stream_t* stream, const sim_launch_t* launch, uint32_t node);

#endif  // GCAP_SIM_CHECK_CHAINS_H_
