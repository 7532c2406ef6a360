// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reads of bytes that nobody had written.
//
// The idea: whether a read that nothing orders with its writer runs before the writer or after it, is up to the
// schedule, and the cause is the same: the race. So such a read is not reported at once. It is kept until work writes
// the bytes that does not come after the read, and then forgotten, or until no such work can come any more. Invariant:
// one entry for each place of the program that reads, and each memory. Locking: the global mutex.
#include "sim/check/suspect.h"

#include <stddef.h>

#include "gcap_sim.h"
#include "sim/base/heap.h"
#include "sim/check/findings.h"
#include "sim/check/origin.h"
#include "sim/check/policy.h"

typedef struct suspect {
  gcap_sim_epoch_t read;
  gcap_sim_memory_t* memory;
  uintptr_t begin;
  uintptr_t end;
} suspect_t;

static struct {
  suspect_t* items;
  size_t count;
  size_t capacity;
} suspects;

static bool same_place(const gcap_sim_origin_t* a, const gcap_sim_origin_t* b) {
  return a->call == b->call && a->stack == b->stack;
}

static bool is_kept(const gcap_sim_site_t* reader, const gcap_sim_memory_t* memory) {
  for (size_t i = 0; i < suspects.count; ++i) {
    const suspect_t* suspect = &suspects.items[i];
    if (suspect->memory == memory && same_place(suspect->read.site->origin, reader->origin)) return true;
  }
  return false;
}

void gcap_sim_suspect_add(gcap_sim_epoch_t read, gcap_sim_memory_t* memory, uintptr_t begin, uintptr_t end) {
  if (gcap_sim_check_action(GCAP_SIM_CHECK_UNINITIALIZED) == GCAP_SIM_ACTION_OFF) return;
  if (is_kept(read.site, memory)) return;
  gcap_sim_reserve(&suspects.items, &suspects.capacity, suspects.count + 1, sizeof(suspect_t));
  gcap_sim_site_retain(read.site);
  gcap_sim_memory_retain(memory);
  suspects.items[suspects.count++] = (suspect_t){.read = read, .memory = memory, .begin = begin, .end = end};
}

static suspect_t take(size_t index) {
  suspect_t suspect = suspects.items[index];
  --suspects.count;
  for (size_t i = index; i < suspects.count; ++i) suspects.items[i] = suspects.items[i + 1];
  return suspect;
}

static void release(suspect_t* suspect) {
  gcap_sim_site_release(suspect->read.site);
  gcap_sim_memory_release(suspect->memory);
}

static bool is_known(const suspect_t* suspect, const gcap_sim_clock_t* clock) {
  return gcap_sim_clock_knows(clock, suspect->read.timeline, suspect->read.time);
}

void gcap_sim_suspect_written(const gcap_sim_clock_t* writer, uintptr_t begin, uintptr_t end) {
  // Races that are not reported explain nothing to anybody.
  if (suspects.count == 0 || gcap_sim_check_action(GCAP_SIM_CHECK_RACE) == GCAP_SIM_ACTION_OFF) return;
  for (size_t i = 0; i < suspects.count;) {
    const suspect_t* suspect = &suspects.items[i];
    if (suspect->begin >= end || suspect->end <= begin || is_known(suspect, writer)) {
      ++i;
    } else {
      suspect_t explained = take(i);
      release(&explained);
    }
  }
}

bool gcap_sim_suspect_known(const gcap_sim_clock_t* clock) {
  for (size_t i = 0; i < suspects.count; ++i) {
    if (is_known(&suspects.items[i], clock)) return true;
  }
  return false;
}

void gcap_sim_suspect_tell(const gcap_sim_clock_t* clock) {
  for (size_t i = 0; i < suspects.count;) {
    if (clock != NULL && !is_known(&suspects.items[i], clock)) {
      ++i;
      continue;
    }
    suspect_t suspect = take(i);
    gcap_sim_found_uninitialized(suspect.read.site, suspect.memory, suspect.begin, suspect.end);
    release(&suspect);
  }
}

void gcap_sim_suspect_forget(void) {
  while (suspects.count > 0) {
    suspect_t forgotten = take(suspects.count - 1);
    release(&forgotten);
  }
}
