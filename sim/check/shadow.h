// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// shadow.h: what is known of each byte of memory: to what it belongs, who wrote it last, who has read it since.
#ifndef GCAP_SIM_CHECK_SHADOW_H_
#define GCAP_SIM_CHECK_SHADOW_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/base/span.h"
#include "sim/check/clock.h"
#include "sim/check/origin.h"

// A stream as reports call it.
typedef struct gcap_sim_stream_name {
  bool is_stream;   // false: the host itself
  uint64_t number;  // in the order of creation, from 1; 0 for a default stream
  uint64_t thread;  // whose per-thread stream it is; 0 for the others
  int device;
} gcap_sim_stream_name_t;

#define GCAP_SIM_STREAM_NAME_BYTES 64
// "stream 3", "stream 0 (legacy stream)", "the per-thread stream of thread 2"; returns `text`.
const char* gcap_sim_stream_name_text(char text[GCAP_SIM_STREAM_NAME_BYTES], const gcap_sim_stream_name_t* name);

// A piece of work that touches memory. Counted: the shadows of all that it touched share it.
typedef struct gcap_sim_site {
  uint32_t refs;
  const char* what;  // "kernel", "memcpy", …
  const char* name;  // of the kernel or library function; NULL when `what` says it all
  gcap_sim_stream_name_t stream;
  gcap_sim_origin_t* origin;  // the call that made the work
  gcap_sim_origin_t* launch;  // the launch of the graph that it is part of; NULL for eager work
} gcap_sim_site_t;

gcap_sim_site_t* gcap_sim_site_retain(gcap_sim_site_t* site);
void gcap_sim_site_release(gcap_sim_site_t* site);

// When a piece of work touched something.
typedef struct gcap_sim_epoch {
  gcap_sim_site_t* site;  // NULL: never
  uint64_t time;
  uint32_t timeline;
  bool is_atomic;  // among the reads: by atomic operations
} gcap_sim_epoch_t;

// A live or freed piece of memory. Counted: segments, the allocation, nodes that name it.
typedef struct gcap_sim_memory {
  uint32_t refs;
  bool freed;
  bool of_graph;
  bool of_device;  // else the host writes it, unseen
  uint64_t begun;  // counts the memories whose contents began, up to this one
  uintptr_t begin;
  size_t bytes;
  const char* kind;                // "device memory", …
  const char* name;                // of an annotated one
  struct gcap_sim_memory* parent;  // what an annotated one is part of; NULL for others
  struct gcap_sim_watch* watch;    // of memory that the program registered
  gcap_sim_origin_t* allocated;
  gcap_sim_origin_t* released;   // the call that freed it
  struct gcap_sim_memory* next;  // in the queue of freed ones
  gcap_sim_span_t span;          // of an annotated one, among those that are live
} gcap_sim_memory_t;

gcap_sim_memory_t* gcap_sim_memory_retain(gcap_sim_memory_t* memory);
void gcap_sim_memory_release(gcap_sim_memory_t* memory);

typedef struct gcap_sim_readers gcap_sim_readers_t;

// Neighbouring bytes that share one history.
typedef struct gcap_sim_segment {
  gcap_sim_span_t span;
  gcap_sim_memory_t* memory;  // NULL: host memory that the simulator did not give out
  bool initialized;
  bool allocation;              // the last write is that of the work that allocated it
  gcap_sim_epoch_t write;       // the last write, allocation or free
  gcap_sim_epoch_t read;        // the only read or atomic update since, when `readers` is NULL
  gcap_sim_readers_t* readers;  // those since, when there are more
} gcap_sim_segment_t;

// The first segment that ends after the address; NULL when there is none.
gcap_sim_segment_t* gcap_sim_shadow_first(uintptr_t address);
// Makes the segments that cover the range begin and end with it.
void gcap_sim_shadow_cut(uintptr_t begin, uintptr_t end);
// A new segment without history where there is none. Retains `memory`.
gcap_sim_segment_t* gcap_sim_shadow_insert(uintptr_t begin, uintptr_t end, gcap_sim_memory_t* memory);
// Forgets the range.
void gcap_sim_shadow_clear(uintptr_t begin, uintptr_t end);
// Joins neighbours in and around the range that have the same history.
void gcap_sim_shadow_join(uintptr_t begin, uintptr_t end);
// Forgets all accesses, as if every byte had been written before anything began.
void gcap_sim_shadow_forget_accesses(void);
// Once in a while, forgets accesses that come before all that the host may yet submit.
void gcap_sim_shadow_tidy(const gcap_sim_clock_t* host);

// The contents of the memory begin.
void gcap_sim_memory_begun(gcap_sim_memory_t* memory);
// Work ran of which nobody knows what it touched: it may have written any byte of the memory that there is.
void gcap_sim_shadow_all_may_be_written(void);
// Is it certain that nobody wrote these bytes?
bool gcap_sim_segment_is_unwritten(const gcap_sim_segment_t* segment);

// What the earlier access was: "read", "atomic update", "write", "allocation" or "free".
const char* gcap_sim_segment_verb(const gcap_sim_segment_t* segment, const gcap_sim_epoch_t* earlier);
// Adds a read, or an atomic update; those of its kind that come before it are dropped, since who comes after it comes
// after them.
void gcap_sim_segment_add_read(gcap_sim_segment_t* segment, gcap_sim_epoch_t read, const gcap_sim_clock_t* clock);
// Sets the last write, and forgets the reads.
void gcap_sim_segment_set_write(gcap_sim_segment_t* segment, gcap_sim_epoch_t write);
// A read, or an atomic update, that the clock does not come after; NULL when there is none.
const gcap_sim_epoch_t* gcap_sim_segment_unordered(const gcap_sim_segment_t* segment, const gcap_sim_clock_t* clock,
                                                   bool is_atomic);

#endif  // GCAP_SIM_CHECK_SHADOW_H_
