// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Accesses: what each range that work touches is checked against, and what it leaves behind.
//
// The idea: an access races with an earlier one when one of them writes and its clock does not know the other's time.
// First comes whether the bytes are there at all, then the order, then whether anybody wrote them, which is told last
// (suspect.c); what has been checked is noted whether or not it was right, so that one mistake is told once. Locking:
// the global mutex.
#include "sim/bridge/access.h"

#include "sim/bridge/order.h"
#include "sim/check/clock.h"
#include "sim/check/findings.h"
#include "sim/check/origin.h"
#include "sim/check/policy.h"
#include "sim/check/shadow.h"
#include "sim/check/suspect.h"
#include "sim/check/watch.h"
#include "sim/memory/allocation.h"

gcap_sim_epoch_t gcap_sim_actor_now(const gcap_sim_actor_t* actor) {
  return (gcap_sim_epoch_t){.site = actor->site, .time = actor->clock->time, .timeline = actor->clock->timeline};
}

static bool ordered(const gcap_sim_actor_t* actor, const gcap_sim_epoch_t* earlier) {
  return earlier->site == NULL || gcap_sim_clock_knows(actor->clock, earlier->timeline, earlier->time);
}

static const gcap_sim_segment_t* segment_at(uintptr_t address) {
  const gcap_sim_segment_t* segment = gcap_sim_shadow_first(address);
  return segment != NULL && segment->span.begin <= address ? segment : NULL;
}

static bool contains(const gcap_sim_memory_t* memory, uintptr_t begin, uintptr_t end) {
  return begin >= memory->begin && end <= memory->begin + memory->bytes;
}

gcap_sim_memory_t* gcap_sim_memory_at(uintptr_t address) {
  const gcap_sim_segment_t* segment = segment_at(address);
  gcap_sim_memory_t* memory = segment != NULL ? segment->memory : NULL;
  while (memory != NULL && memory->parent != NULL) memory = memory->parent;
  return memory;
}

// --- Is there such memory? ------------------------------------------------------------------------------------------

// What the access is an access to. A part of an arena that was given back is the arena's again for one that goes
// beyond.
static const gcap_sim_memory_t* meant(const gcap_sim_memory_t* memory, uintptr_t begin, uintptr_t end) {
  while (memory->parent != NULL && memory->freed && !contains(memory, begin, end)) memory = memory->parent;
  return memory;
}

// An allocation that the program has, and whose work has not run.
static const gcap_sim_memory_t* memory_to_come(uintptr_t address) {
  const gcap_sim_allocation_t* allocation = gcap_sim_allocation_find((const void*)address);
  return allocation != NULL && !allocation->live ? allocation->memory : NULL;
}

static bool is_there(const gcap_sim_touch_t* touch, const gcap_sim_segment_t* segment) {
  if (segment == NULL || segment->memory == NULL || segment->memory->freed) {
    const gcap_sim_memory_t* memory = memory_to_come(touch->address);
    if (memory != NULL && !memory->freed) {
      gcap_sim_found_early_use(touch, memory);
      return false;
    }
  }
  if (segment == NULL || segment->memory == NULL) return true;  // host memory that is the program's own
  const gcap_sim_memory_t* memory = meant(segment->memory, touch->address, touch->address + touch->bytes);
  if (memory->freed) {
    gcap_sim_found_use_after_free(touch, memory);
    return false;
  }
  if (memory->watch != NULL && gcap_sim_watch_freed(memory->watch)) {
    gcap_sim_found_freed_host_memory(touch, true, gcap_sim_stack_of(memory->watch->frames, memory->watch->num_frames));
    return false;
  }
  if (contains(memory, touch->address, touch->address + touch->bytes)) return true;
  gcap_sim_found_out_of_bounds(touch, memory);
  return false;
}

// --- One segment ----------------------------------------------------------------------------------------------------

// What the access is not ordered with; NULL when all is well.
static const gcap_sim_epoch_t* conflict(const gcap_sim_actor_t* actor, const gcap_sim_segment_t* segment, bool is_write,
                                        bool is_atomic) {
  if (!ordered(actor, &segment->write)) return &segment->write;
  const gcap_sim_epoch_t* found = NULL;
  if (is_write) found = gcap_sim_segment_unordered(segment, actor->clock, false);
  if (found == NULL && !is_atomic) found = gcap_sim_segment_unordered(segment, actor->clock, true);
  return found;
}

// Is there a race that is reported, so that what follows from it need not be?
static bool explains(const gcap_sim_epoch_t* race) {
  return race != NULL && gcap_sim_check_action(GCAP_SIM_CHECK_RACE) != GCAP_SIM_ACTION_OFF;
}

static void check_segment(const gcap_sim_actor_t* actor, const gcap_sim_touch_t* touch,
                          const gcap_sim_segment_t* segment, gcap_sim_use_t use, bool is_atomic) {
  const gcap_sim_epoch_t* earlier = conflict(actor, segment, touch->is_write, is_atomic);
  if (earlier != NULL) gcap_sim_found_race(touch, segment, earlier, gcap_sim_segment_verb(segment, earlier));
  uintptr_t begin = segment->span.begin;
  uintptr_t end = begin + segment->span.bytes;
  if (touch->is_write) gcap_sim_suspect_written(actor->clock, begin, end);
  if ((!touch->is_write || is_atomic) && use == GCAP_SIM_USE_VALUE && gcap_sim_segment_is_unwritten(segment) &&
      !explains(earlier)) {
    gcap_sim_suspect_add(gcap_sim_actor_now(actor), segment->memory, begin, end);
  }
}

static void note_segment(const gcap_sim_actor_t* actor, gcap_sim_segment_t* segment, bool is_write, bool is_atomic) {
  if (!is_write || is_atomic) {
    gcap_sim_epoch_t access = gcap_sim_actor_now(actor);
    access.is_atomic = is_atomic;
    gcap_sim_segment_add_read(segment, access, actor->clock);
    segment->initialized |= is_atomic;
    return;
  }
  gcap_sim_segment_set_write(segment, gcap_sim_actor_now(actor));
  segment->initialized = true;
  segment->allocation = false;
}

// --- A range --------------------------------------------------------------------------------------------------------

bool gcap_sim_access_range(const gcap_sim_actor_t* actor, uintptr_t address, size_t bytes, int is_write,
                           gcap_sim_use_t use) {
  gcap_sim_touch_t touch = {.site = actor->site, .address = address, .bytes = bytes, .is_write = is_write != 0};
  const bool is_atomic = is_write == GCAP_SIM_ATOMIC;
  uintptr_t end = address + bytes;
  if (bytes == 0) return true;
  if (!is_there(&touch, segment_at(address))) return false;
  gcap_sim_shadow_tidy(gcap_sim_order_host());
  gcap_sim_shadow_cut(address, end);
  bool several = false;
  for (uintptr_t at = address; at < end;) {
    gcap_sim_segment_t* segment = gcap_sim_shadow_first(at);
    if (segment == NULL || segment->span.begin > at) {  // pageable memory is met here for the first time
      uintptr_t next = segment != NULL && segment->span.begin < end ? segment->span.begin : end;
      segment = gcap_sim_shadow_insert(at, next, NULL);
      segment->initialized = true;
    }
    check_segment(actor, &touch, segment, use, is_atomic);
    note_segment(actor, segment, touch.is_write, is_atomic);
    at = segment->span.begin + segment->span.bytes;
    several |= at < end;
  }
  if (several) gcap_sim_shadow_join(address, end);
  return true;
}

bool gcap_sim_access_named(const gcap_sim_actor_t* actor, uintptr_t address, size_t bytes, int is_write,
                           gcap_sim_use_t use, const gcap_sim_memory_t* named) {
  // A graph's own memory comes and goes with its launches.
  if (named != NULL && !named->of_graph && (named->freed || gcap_sim_memory_at(address) != named)) {
    gcap_sim_touch_t touch = {.site = actor->site, .address = address, .bytes = bytes, .is_write = is_write != 0};
    gcap_sim_found_baked_pointer(&touch, named);
    return false;
  }
  return gcap_sim_access_range(actor, address, bytes, is_write, use);
}

void gcap_sim_access_may_write(const gcap_sim_actor_t* actor, uintptr_t address) {
  const gcap_sim_segment_t* first = segment_at(address);
  if (first == NULL || first->memory == NULL || first->memory->freed) return;
  const uintptr_t end = first->memory->begin + first->memory->bytes;
  gcap_sim_suspect_written(actor->clock, address, end);
  gcap_sim_shadow_cut(address, end);
  for (uintptr_t at = address; at < end;) {
    gcap_sim_segment_t* segment = gcap_sim_shadow_first(at);
    if (segment == NULL) break;
    segment->initialized = true;
    at = segment->span.begin + segment->span.bytes;
  }
  gcap_sim_shadow_join(address, end);
}

bool gcap_sim_access_is_written(uintptr_t address, size_t bytes) {
  for (uintptr_t at = address; at < address + bytes;) {
    const gcap_sim_segment_t* segment = gcap_sim_shadow_first(at);
    if (segment == NULL || segment->span.begin > at || !gcap_sim_segment_is_unwritten(segment)) return true;
    at = segment->span.begin + segment->span.bytes;
  }
  return false;
}

void gcap_sim_access_carry(uintptr_t to, uintptr_t from, size_t bytes) {
  for (uintptr_t at = from; at < from + bytes;) {
    const gcap_sim_segment_t* segment = gcap_sim_shadow_first(at);
    if (segment == NULL) return;
    uintptr_t begin = segment->span.begin > at ? segment->span.begin : at;
    uintptr_t end = segment->span.begin + segment->span.bytes;
    if (end > from + bytes) end = from + bytes;
    at = segment->span.begin + segment->span.bytes;
    if (!gcap_sim_segment_is_unwritten(segment) || begin >= end) continue;
    uintptr_t target = to + (begin - from);
    gcap_sim_shadow_cut(target, target + (end - begin));
    for (uintptr_t k = target; k < target + (end - begin);) {
      gcap_sim_segment_t* copy = gcap_sim_shadow_first(k);
      copy->initialized = false;
      k = copy->span.begin + copy->span.bytes;
    }
  }
}
