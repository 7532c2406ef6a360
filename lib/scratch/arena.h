// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// arena.h: the arena itself, which its parts share. What the nouns mean stands at the top of scratch.c.
#ifndef GCAP_LIB_SCRATCH_ARENA_H_
#define GCAP_LIB_SCRATCH_ARENA_H_

#include <pthread.h>

#include "lib/internal/cache_line.h"
#include "lib/internal/hash_table.h"
#include "lib/internal/memory_source.h"
#include "lib/internal/stream_watch.h"
#include "lib/scratch/region.h"
#include "lib/scratch/stream_state.h"
#include "lib/scratch/test_hooks.h"

struct gcap_scratch {
  // Read by the fast path, written seldom.
  uint64_t number;                                    // no two arenas of a process have the same
  _Atomic(struct gcap_scratch_directory*) directory;  // streams.h; NULL: no stream yet
  atomic_bool takes_detour;                           // no call takes the fast path: debugging, bypass, or a deficit
  struct gcap_scratch_debug* debug;                   // NULL: no debug option is set
  size_t zone_bytes;                                  // a red zone; 0: there are none
  gcap_allocator_t* upstream;
  int device_id;  // of upstream's memory; below 0: host memory
  gcap_scratch_options_t options;
  bool can_bias;
  char apart[GCAP_CACHE_LINE_BYTES];
  pthread_mutex_t mutex;
  int cancel_state;  // of the thread that locked the arena, as it was before

  gcap_scratch_store_t store;
  // Regions on their way in or out, while the arena is not locked: they keep their place in the store's list and their
  // share of the limit.
  size_t num_regions_in_transit, in_transit_bytes;
  size_t num_waiting_calls;  // calls that unlocked the arena to wait for something else, and will be back (lock.h)
  size_t num_growing_calls;  // calls that wait for upstream to give a region that others may use too
  size_t next_region_bytes;  // the next region has at least so many
  size_t deficit_bytes;      // what captures lacked since the last growth

  // Regions that have come home since the arena was made, or did not come. Written with the arena's mutex held too.
  pthread_mutex_t arrivals_mutex;
  pthread_cond_t arrived;
  uint64_t num_arrivals;

  gcap_scratch_stream_state_t unknown_stream;  // unknown_stream.h
  gcap_allocator_t* view;                      // gcap_scratch_allocator
  gcap_stream_watch_t watch;
  gcap_memory_source_t source;
  gcap_hash_table_t watched;  // of the hand-outs that were watched, by the address of their block: memory_source.c
  uint64_t num_watched;       // ever
  gcap_scratch_stream_state_t* streams;
  size_t num_streams;
  gcap_scratch_stream_state_t* forgotten;  // structs to use again
  gcap_scratch_reservation_t* reservations;
  uint64_t num_reservations_made, num_walks;  // reservation.c
  struct gcap_scratch_node_name* node_names;  // nodes.c
  gcap_scratch_test_hooks_t test_hooks;
  // Of all streams together the counters of the arena itself, and of forgotten streams.
  gcap_allocator_stats_t stats;
};

static inline bool gcap_scratch_takes_detour(const gcap_scratch_t* scratch) {
  return atomic_load_explicit(&scratch->takes_detour, memory_order_relaxed);
}

// Sets what captures lacked. Called with the arena locked.
static inline void gcap_scratch_set_deficit(gcap_scratch_t* scratch, size_t bytes) {
  scratch->deficit_bytes = bytes;
  const bool always = scratch->debug != NULL || scratch->options.bypass;
  atomic_store_explicit(&scratch->takes_detour, always || bytes != 0, memory_order_relaxed);
}

// Bytes held from upstream, with those on their way.
static inline size_t gcap_scratch_held_bytes(const gcap_scratch_t* scratch) {
  return scratch->stats.total_allocated_bytes + scratch->in_transit_bytes;
}

#endif  // GCAP_LIB_SCRATCH_ARENA_H_
