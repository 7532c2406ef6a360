// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The shadow of memory.
//
// The idea: one tree over all addresses, of segments that each stand for bytes with one history. An access cuts the
// segments at its ends and changes those between; equal neighbours are joined again. Reads and atomic updates since the
// last write are a set that holds at most one of each a timeline, the latest; one is kept in place, more in a hash
// table, so that a buffer that ten thousand streams read costs each of them the same. Invariants: segments do not
// overlap; reads of a segment are newer than its write. Locking: the global mutex.
#include "sim/check/shadow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/heap.h"
#include "sim/base/span.h"
#include "sim/check/clock.h"
#include "sim/check/origin.h"

static gcap_sim_span_t* root;
static size_t num_segments;

// Segments at which the next tidying is worth it. It doubles what is left, so its cost is spread over as many accesses.
#define MIN_TIDY ((size_t)1 << 15)
static size_t tidy_at = MIN_TIDY;

static uint64_t num_begun;  // memory whose contents began, so far
static uint64_t unknown;    // the contents of the first so many may have been written by anybody

struct gcap_sim_readers {
  uint32_t refs;  // segments cut from one another share it until one of them changes
  size_t count;
  size_t num_atomic;         // atomic updates among them
  size_t capacity;           // a power of two
  gcap_sim_epoch_t items[];  // by hash of the timeline; empty ones have no site
};

const char* gcap_sim_stream_name_text(char text[GCAP_SIM_STREAM_NAME_BYTES], const gcap_sim_stream_name_t* name) {
  if (name->number != 0) {
    snprintf(text, GCAP_SIM_STREAM_NAME_BYTES, "stream %llu", (unsigned long long)name->number);
  } else if (name->thread != 0) {
    snprintf(text, GCAP_SIM_STREAM_NAME_BYTES, "the per-thread stream of thread %llu",
             (unsigned long long)name->thread);
  } else if (name->device != 0) {
    snprintf(text, GCAP_SIM_STREAM_NAME_BYTES, "stream 0 (legacy stream of device %d)", name->device);
  } else {
    snprintf(text, GCAP_SIM_STREAM_NAME_BYTES, "stream 0 (legacy stream)");
  }
  return text;
}

// --- Counted things -------------------------------------------------------------------------------------------------

gcap_sim_site_t* gcap_sim_site_retain(gcap_sim_site_t* site) {
  if (site != NULL) ++site->refs;
  return site;
}

void gcap_sim_site_release(gcap_sim_site_t* site) {
  if (site == NULL || --site->refs > 0) return;
  gcap_sim_origin_release(site->origin);
  gcap_sim_origin_release(site->launch);
  free(site);
}

gcap_sim_memory_t* gcap_sim_memory_retain(gcap_sim_memory_t* memory) {
  if (memory != NULL) ++memory->refs;
  return memory;
}

void gcap_sim_memory_release(gcap_sim_memory_t* memory) {
  if (memory == NULL || --memory->refs > 0) return;
  gcap_sim_origin_release(memory->allocated);
  gcap_sim_origin_release(memory->released);
  gcap_sim_memory_release(memory->parent);
  free(memory);
}

void gcap_sim_memory_begun(gcap_sim_memory_t* memory) { memory->begun = ++num_begun; }

void gcap_sim_shadow_all_may_be_written(void) { unknown = num_begun; }

bool gcap_sim_segment_is_unwritten(const gcap_sim_segment_t* segment) {
  return !segment->initialized && (segment->memory == NULL || segment->memory->begun > unknown);
}

static void set_epoch(gcap_sim_epoch_t* to, gcap_sim_epoch_t from) {
  gcap_sim_site_retain(from.site);
  gcap_sim_site_release(to->site);
  *to = from;
}

// --- Readers --------------------------------------------------------------------------------------------------------

static void readers_release(gcap_sim_readers_t* readers) {
  if (readers == NULL || --readers->refs > 0) return;
  for (size_t i = 0; i < readers->capacity; ++i) gcap_sim_site_release(readers->items[i].site);
  free(readers);
}

static bool same_reader(const gcap_sim_epoch_t* a, const gcap_sim_epoch_t* b) {
  return a->timeline == b->timeline && a->is_atomic == b->is_atomic;
}

// There is room for one more.
static void readers_set(gcap_sim_readers_t* readers, gcap_sim_epoch_t read) {
  size_t at = read.timeline * UINT32_C(0x9E3779B1) & (readers->capacity - 1);
  while (readers->items[at].site != NULL && !same_reader(&readers->items[at], &read)) {
    at = (at + 1) & (readers->capacity - 1);
  }
  if (readers->items[at].site == NULL) {
    ++readers->count;
    readers->num_atomic += read.is_atomic;
  }
  set_epoch(&readers->items[at], read);
}

// Does the new read stand for the old one too?
static bool stands_for(const gcap_sim_epoch_t* read, const gcap_sim_epoch_t* old, const gcap_sim_clock_t* clock) {
  return read->is_atomic == old->is_atomic && gcap_sim_clock_knows(clock, old->timeline, old->time);
}

// A set of its own with room for one more, holding those of `old` that the read, at its clock, does not stand for.
static gcap_sim_readers_t* readers_copy(const gcap_sim_readers_t* old, const gcap_sim_epoch_t* read,
                                        const gcap_sim_clock_t* clock) {
  size_t count = 0;
  for (size_t i = 0; i < old->capacity; ++i) {
    count += old->items[i].site != NULL && !stands_for(read, &old->items[i], clock);
  }
  size_t capacity = 8;
  while (capacity < 4 * (count + 1)) capacity *= 2;
  gcap_sim_readers_t* readers = gcap_sim_calloc(1, sizeof(*readers) + capacity * sizeof(gcap_sim_epoch_t));
  readers->refs = 1;
  readers->capacity = capacity;
  for (size_t i = 0; i < old->capacity; ++i) {
    if (old->items[i].site != NULL && !stands_for(read, &old->items[i], clock)) readers_set(readers, old->items[i]);
  }
  return readers;
}

static gcap_sim_readers_t* readers_of_two(gcap_sim_epoch_t first, gcap_sim_epoch_t second) {
  gcap_sim_readers_t* readers = gcap_sim_calloc(1, sizeof(*readers) + 8 * sizeof(gcap_sim_epoch_t));
  readers->refs = 1;
  readers->capacity = 8;
  readers_set(readers, first);
  readers_set(readers, second);
  return readers;
}

const char* gcap_sim_segment_verb(const gcap_sim_segment_t* segment, const gcap_sim_epoch_t* earlier) {
  if (earlier != &segment->write) return earlier->is_atomic ? "atomic update" : "read";
  if (segment->memory != NULL && segment->memory->freed) return "free";
  return segment->allocation ? "allocation" : "write";
}

void gcap_sim_segment_add_read(gcap_sim_segment_t* segment, gcap_sim_epoch_t read, const gcap_sim_clock_t* clock) {
  gcap_sim_readers_t* readers = segment->readers;
  if (readers == NULL) {
    const gcap_sim_epoch_t* before = &segment->read;
    if (before->site != NULL && !stands_for(&read, before, clock)) {
      segment->readers = readers_of_two(*before, read);
      set_epoch(&segment->read, (gcap_sim_epoch_t){0});
    } else {
      set_epoch(&segment->read, read);
    }
    return;
  }
  // Half full, or shared: time to copy, and to drop what has become old.
  if (readers->refs > 1 || 2 * (readers->count + 1) > readers->capacity) {
    segment->readers = readers_copy(readers, &read, clock);
    readers_release(readers);
    readers = segment->readers;
  }
  readers_set(readers, read);
}

static void forget_reads(gcap_sim_segment_t* segment) {
  set_epoch(&segment->read, (gcap_sim_epoch_t){0});
  readers_release(segment->readers);
  segment->readers = NULL;
}

void gcap_sim_segment_set_write(gcap_sim_segment_t* segment, gcap_sim_epoch_t write) {
  set_epoch(&segment->write, write);
  forget_reads(segment);
}

static bool is_unordered(const gcap_sim_epoch_t* read, const gcap_sim_clock_t* clock, bool is_atomic) {
  return read->site != NULL && read->is_atomic == is_atomic && !gcap_sim_clock_knows(clock, read->timeline, read->time);
}

const gcap_sim_epoch_t* gcap_sim_segment_unordered(const gcap_sim_segment_t* segment, const gcap_sim_clock_t* clock,
                                                   bool is_atomic) {
  const gcap_sim_readers_t* readers = segment->readers;
  if (is_unordered(&segment->read, clock, is_atomic)) return &segment->read;
  if (readers == NULL || (is_atomic && readers->num_atomic == 0)) return NULL;
  for (size_t i = 0; i < readers->capacity; ++i) {
    if (is_unordered(&readers->items[i], clock, is_atomic)) return &readers->items[i];
  }
  return NULL;
}

// --- Segments -------------------------------------------------------------------------------------------------------

static uintptr_t end_of(const gcap_sim_segment_t* segment) { return segment->span.begin + segment->span.bytes; }

gcap_sim_segment_t* gcap_sim_shadow_first(uintptr_t address) {
  gcap_sim_segment_t* best = NULL;
  for (const gcap_sim_span_t* span = root; span != NULL;) {
    if (span->begin + span->bytes > address) {
      best = span->owner;
      span = span->left;
    } else {
      span = span->right;
    }
  }
  return best;
}

static gcap_sim_segment_t* add(uintptr_t begin, uintptr_t end) {
  gcap_sim_segment_t* segment = gcap_sim_calloc(1, sizeof(*segment));
  segment->span = (gcap_sim_span_t){.begin = begin, .bytes = end - begin, .owner = segment};
  gcap_sim_span_insert(&root, &segment->span);
  ++num_segments;
  return segment;
}

static void drop(gcap_sim_segment_t* segment) {
  gcap_sim_span_remove(&root, &segment->span);
  --num_segments;
  forget_reads(segment);
  gcap_sim_site_release(segment->write.site);
  gcap_sim_memory_release(segment->memory);
  free(segment);
}

gcap_sim_segment_t* gcap_sim_shadow_insert(uintptr_t begin, uintptr_t end, gcap_sim_memory_t* memory) {
  gcap_sim_segment_t* segment = add(begin, end);
  segment->memory = gcap_sim_memory_retain(memory);
  return segment;
}

static void cut_at(uintptr_t address) {
  gcap_sim_segment_t* segment = gcap_sim_shadow_first(address);
  if (segment == NULL || segment->span.begin >= address) return;
  gcap_sim_segment_t* rest = add(address, end_of(segment));
  segment->span.bytes = address - segment->span.begin;
  rest->memory = gcap_sim_memory_retain(segment->memory);
  rest->initialized = segment->initialized;
  rest->allocation = segment->allocation;
  set_epoch(&rest->write, segment->write);
  set_epoch(&rest->read, segment->read);
  rest->readers = segment->readers;
  if (rest->readers != NULL) ++rest->readers->refs;
}

void gcap_sim_shadow_cut(uintptr_t begin, uintptr_t end) {
  cut_at(begin);
  cut_at(end);
}

void gcap_sim_shadow_clear(uintptr_t begin, uintptr_t end) {
  gcap_sim_shadow_cut(begin, end);
  for (;;) {
    gcap_sim_segment_t* segment = gcap_sim_shadow_first(begin);
    if (segment == NULL || segment->span.begin >= end) return;
    drop(segment);
  }
}

static bool same_epoch(const gcap_sim_epoch_t* a, const gcap_sim_epoch_t* b) {
  return a->site == b->site && a->timeline == b->timeline && a->time == b->time && a->is_atomic == b->is_atomic;
}

static bool same_history(const gcap_sim_segment_t* a, const gcap_sim_segment_t* b) {
  return a->memory == b->memory && a->initialized == b->initialized && a->allocation == b->allocation &&
         a->readers == b->readers && same_epoch(&a->write, &b->write) && same_epoch(&a->read, &b->read);
}

void gcap_sim_shadow_join(uintptr_t begin, uintptr_t end) {
  gcap_sim_segment_t* segment = gcap_sim_shadow_first(begin ? begin - 1 : 0);
  while (segment != NULL && end_of(segment) <= end) {
    gcap_sim_segment_t* next = gcap_sim_shadow_first(end_of(segment));
    if (next == NULL) return;
    if (next->span.begin != end_of(segment) || !same_history(segment, next)) {
      segment = next;
      continue;
    }
    size_t bytes = next->span.bytes;
    drop(next);
    segment->span.bytes += bytes;
  }
}

// --- Forgetting -----------------------------------------------------------------------------------------------------

void gcap_sim_shadow_forget_accesses(void) {
  for (gcap_sim_segment_t* segment = gcap_sim_shadow_first(0); segment != NULL;
       segment = gcap_sim_shadow_first(end_of(segment))) {
    gcap_sim_segment_set_write(segment, (gcap_sim_epoch_t){0});
    segment->initialized = true;
    segment->allocation = false;
  }
  gcap_sim_shadow_join(0, UINTPTR_MAX);
}

static void forget_known(gcap_sim_segment_t* segment, const gcap_sim_clock_t* host) {
  for (int is_atomic = 0; is_atomic < 2; ++is_atomic) {
    if (gcap_sim_segment_unordered(segment, host, is_atomic) != NULL) return;
  }
  forget_reads(segment);
  const gcap_sim_epoch_t* write = &segment->write;
  if (write->site != NULL && gcap_sim_clock_knows(host, write->timeline, write->time)) {
    set_epoch(&segment->write, (gcap_sim_epoch_t){0});
  }
}

void gcap_sim_shadow_tidy(const gcap_sim_clock_t* host) {
  if (num_segments < tidy_at) return;
  gcap_sim_segment_t* segment = gcap_sim_shadow_first(0);
  while (segment != NULL) {
    uintptr_t end = end_of(segment);
    forget_known(segment, host);
    if (segment->memory == NULL && segment->write.site == NULL && segment->read.site == NULL &&
        segment->readers == NULL) {
      drop(segment);
    }
    segment = gcap_sim_shadow_first(end);
  }
  gcap_sim_shadow_join(0, UINTPTR_MAX);
  tidy_at = 2 * num_segments > MIN_TIDY ? 2 * num_segments : MIN_TIDY;
}
