// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// access.h: who touches memory, and what each range that work touches is checked against. Guarded by the global mutex.
#ifndef GCAP_SIM_BRIDGE_ACCESS_H_
#define GCAP_SIM_BRIDGE_ACCESS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/check/clock.h"
#include "sim/check/shadow.h"

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
// Checks and notes an access of the range; `is_write` is that of a gcap_sim_access_t. False when there is no such
// memory.
bool gcap_sim_access_range(const gcap_sim_actor_t* actor, uintptr_t address, size_t bytes, int is_write,
                           gcap_sim_use_t use);
// The same for memory that a node of a graph named when it was made: `named` is what lay there then, or NULL.
bool gcap_sim_access_named(const gcap_sim_actor_t* actor, uintptr_t address, size_t bytes, int is_write,
                           gcap_sim_use_t use, const gcap_sim_memory_t* named);
// Work that nobody ran may have written any byte from the address to the end of its memory.
void gcap_sim_access_may_write(const gcap_sim_actor_t* actor, uintptr_t address);
// Is there a byte in the range that somebody may have written?
bool gcap_sim_access_is_written(uintptr_t address, size_t bytes);
// After a copy: the destination is as uninitialised as its source.
void gcap_sim_access_carry(uintptr_t to, uintptr_t from, size_t bytes);

// The allocation, without the parts that were annotated; NULL when the address is in none.
gcap_sim_memory_t* gcap_sim_memory_at(uintptr_t address);

#endif  // GCAP_SIM_BRIDGE_ACCESS_H_
