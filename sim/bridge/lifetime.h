// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// lifetime.h: memory that begins and ends. Guarded by the global mutex.
#ifndef GCAP_SIM_BRIDGE_LIFETIME_H_
#define GCAP_SIM_BRIDGE_LIFETIME_H_

#include <stdbool.h>

#include "sim/api/types.h"
#include "sim/bridge/access.h"
#include "sim/check/shadow.h"

// What is known of an allocation: made and dropped with it.
gcap_sim_memory_t* gcap_sim_memory_create(const gcap_sim_allocation_t* allocation);
// The allocation's contents begin, and end: by the work under way, or else by the call.
void gcap_sim_memory_begins(gcap_sim_allocation_t* allocation);
// The allocation was there before any work; are its contents known?
void gcap_sim_memory_is_there(gcap_sim_allocation_t* allocation, bool initialized);
void gcap_sim_memory_ends(gcap_sim_allocation_t* allocation);

// The call under way frees the memory, by work that has yet to run.
void gcap_sim_memory_free_queued(gcap_sim_memory_t* memory);
// The call under way frees the address, and is refused: was there memory that was freed before?
void gcap_sim_memory_free_refused(const void* address);

// The work that begins or ends an annotated sub-allocation.
bool gcap_sim_memory_noted(const gcap_sim_actor_t* actor, gcap_sim_memory_t* memory, bool begins);

#endif  // GCAP_SIM_BRIDGE_LIFETIME_H_
