// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// turns.h: threads that take turns. Guarded by the global mutex.
#ifndef GCAP_SIM_API_TURNS_H_
#define GCAP_SIM_API_TURNS_H_

#include "sim/base/thread.h"

// Gives the turn away and waits to get it back; nothing for a thread of no group.
void gcap_sim_turns_arrive(gcap_sim_thread_t* thread);
// Lets the others of the group go on while this thread is stuck in a call, and lines up again.
void gcap_sim_turns_step_out(gcap_sim_thread_t* thread);
void gcap_sim_turns_step_in(gcap_sim_thread_t* thread);
void gcap_sim_turns_thread_ends(gcap_sim_thread_t* thread);

#endif  // GCAP_SIM_API_TURNS_H_
