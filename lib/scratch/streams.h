// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// streams.h: the streams that the arena knows.
#ifndef GCAP_LIB_SCRATCH_STREAMS_H_
#define GCAP_LIB_SCRATCH_STREAMS_H_

#include "lib/scratch/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

// From a stream to what the arena knows of it: a table that is looked into without a lock. It is filled anew while the
// arena is locked; who looks meanwhile may find nothing and takes the slow path.
typedef struct gcap_scratch_directory {
  struct gcap_scratch_directory* outgrown;  // a reader may still be in it, so it goes with the arena
  unsigned shift;                           // of a hash, so that it becomes a place
  size_t mask;                              // the number of places, a power of two, less one; half of them are free
  _Atomic(gcap_scratch_stream_state_t*) places[];
} gcap_scratch_directory_t;

// What the arena knows of `stream`, made if there is nothing.
//   INVALID_ARGUMENT    the stream is one of another device than the arena's memory
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_scratch_get_stream(gcap_scratch_t* scratch, gcap_stream_t* stream,
                                      gcap_scratch_stream_state_t** out_state) GCAP_NODISCARD;

static inline size_t gcap_scratch_first_place(const gcap_scratch_directory_t* directory, const gcap_stream_t* stream) {
  return (size_t)((uint64_t)(uintptr_t)stream * UINT64_C(0x9E3779B97F4A7C15) >> directory->shift);
}
// The same if there is something, else NULL. While the arena is not locked the state may be overlooked.
static inline gcap_scratch_stream_state_t* gcap_scratch_find_stream(gcap_scratch_t* scratch,
                                                                    const gcap_stream_t* stream) {
  const gcap_scratch_directory_t* directory = atomic_load_explicit(&scratch->directory, memory_order_acquire);
  gcap_scratch_stream_state_t* state = NULL;
  size_t place = directory == NULL ? 0 : gcap_scratch_first_place(directory, stream);
  if (directory == NULL) return NULL;
  do {
    state = atomic_load_explicit(&directory->places[place++ & directory->mask], memory_order_acquire);
  } while (state != NULL && gcap_scratch_stream_of(state) != stream);
  return state;
}

// Takes a stream with nothing to its name off the list; its state waits for another stream.
void gcap_scratch_remove_stream(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state);
// Frees what is known of the streams; the arena ends.
void gcap_scratch_free_streams(gcap_scratch_t* scratch);

// Blocks handed out, and their bytes.
uint64_t gcap_scratch_num_live_of_all(const gcap_scratch_t* scratch);
uint64_t gcap_scratch_in_use_bytes(const gcap_scratch_t* scratch);
// Brings the arena's own peak up to date with those of the streams, which start anew.
void gcap_scratch_fold_peaks(gcap_scratch_t* scratch);

// The arena's counters, the streams' included. Locks the arena.
void gcap_scratch_sum_stats(gcap_scratch_t* scratch, gcap_allocator_stats_t* out_stats);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_SCRATCH_STREAMS_H_
