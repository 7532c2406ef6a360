// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// access.h: accesses and lifetimes, as the parts of the checks hand them to each other.
#ifndef GCAP_SIM_CHECK_ACCESS_H_
#define GCAP_SIM_CHECK_ACCESS_H_

#include "../cudart/core.h"
#include "check.h"
#include "findings.h"

// Who touches memory: a piece of work at its time.
typedef struct gcap_sim_actor {
  gcap_sim_clock_t* clock;
  gcap_sim_site_t* site;
} gcap_sim_actor_t;

// How an access treats bytes that nobody wrote.
typedef enum gcap_sim_use {
  GCAP_SIM_USE_VALUE,  // looks at them: reported
  GCAP_SIM_USE_COPY    // only carries them on
} gcap_sim_use_t;

gcap_sim_epoch_t gcap_sim_actor_now(const gcap_sim_actor_t* actor);
// Whoever acts now: the work under way, or the call under way on the host. Release its site.
gcap_sim_actor_t gcap_sim_actor_current(void);

// Checks and notes an access of the range. False when there is no such memory.
bool gcap_sim_access_range(const gcap_sim_actor_t* actor, uintptr_t address, size_t bytes, bool is_write,
                           gcap_sim_use_t use);
// The same for memory that a node of a graph named when it was made: `named` is what lay there then, or NULL.
bool gcap_sim_access_named(const gcap_sim_actor_t* actor, uintptr_t address, size_t bytes, bool is_write,
                           gcap_sim_use_t use, const gcap_sim_memory_t* named);
// After a copy: the destination is as uninitialised as its source.
void gcap_sim_access_carry(uintptr_t to, uintptr_t from, size_t bytes);

// The work that begins or ends an annotated sub-allocation.
bool gcap_sim_memory_noted(const gcap_sim_actor_t* actor, gcap_sim_memory_t* memory, bool begins);

// The allocation, without the parts that were annotated; NULL when the address is in none.
gcap_sim_memory_t* gcap_sim_memory_at(uintptr_t address);

#endif  // GCAP_SIM_CHECK_ACCESS_H_
