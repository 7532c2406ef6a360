// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stream_state.h: what the arena knows of one stream.
#ifndef GCAP_LIB_SCRATCH_STREAM_STATE_H_
#define GCAP_LIB_SCRATCH_STREAM_STATE_H_

#include "gcap/scratch.h"
#include "lib/internal/cache_line.h"
#include "lib/internal/hash_table.h"
#include "lib/scratch/cache.h"
#include "lib/scratch/owner.h"

// The right of one thread to lock a stream by saying so (lock.h). It is never given to another thread.
typedef struct gcap_scratch_bias {
  const void* thread;   // gcap_scratch_this_thread of it
  atomic_bool entered;  // written by that thread alone
} gcap_scratch_bias_t;

enum { GCAP_SCRATCH_NUM_BIASES = 4 };

// What a stream was promised by gcap_scratch_reservation_prepare: that it alone gets its free memory.
typedef enum gcap_scratch_promise {
  GCAP_SCRATCH_NO_PROMISE = 0,
  GCAP_SCRATCH_PROMISED,   // until the end of the stream's next reservation that it allocates from, or of its run
  GCAP_SCRATCH_REDEEMING,  // that reservation is open
} gcap_scratch_promise_t;

// What a run has at a time at most, and its largest block as requested (need.h).
typedef struct gcap_scratch_need {
  uint64_t bytes, largest_bytes;
} gcap_scratch_need_t;

// Its memory stays one of a stream's state until the arena ends, and may be used for another stream when the stream is
// forgotten. The state of the unknown stream (unknown_stream.h) has no stream either.
typedef struct gcap_scratch_stream_state {
  char apart_below[GCAP_CACHE_LINE_BYTES];
  _Atomic(gcap_scratch_bias_t*) bias;  // NULL: none, or the arena is locked; then `locked` counts
  atomic_bool locked;                  // also while the arena is locked
  _Atomic(gcap_stream_t*) stream;      // NULL: forgotten
  gcap_scratch_reservation_t* open;    // the reservation that its allocations are diverted to
  // Its open run (run.c), or 0, and the node for which it allocates now; and how many of its live blocks are not of the
  // run, which means nothing without one. A run's own blocks are not counted: that costs each allocation less.
  gcap_scratch_use_t use;
  uint64_t num_others;
  // Counters, of its blocks and as in gcap_allocator_stats_t; two more are the owner's. The maxima are those since they
  // last began anew, which a run does with both.
  uint64_t in_use_bytes, requested_in_use_bytes, max_in_use_bytes, max_alloc_bytes;
  gcap_scratch_owner_t owner;  // its pool holds free blocks of the arena that carry the stream's tag
  gcap_scratch_cache_t cache;
  bool cannot_grow;   // its request of now: it captures, or there is no memory
  uint64_t last_run;  // the number of the last run that was begun
  size_t num_reservations;
  size_t num_calls;  // that get memory for it, and may have unlocked the arena
  gcap_scratch_promise_t promise;
  gcap_scratch_bias_t biases[GCAP_SCRATCH_NUM_BIASES];
  gcap_scratch_bias_t* resting_bias;  // `bias` while the arena is locked
  unsigned num_biases;                // ever given
  unsigned num_intrusions;            // by threads without the bias; when there are many, no thread has it any more
  // Of the unknown stream's timeline: waits for the device that were begun, and the last of those that ended well.
  uint64_t begun_point, finished_point;
  uint64_t peak_bytes;        // most ever handed out at a time, as of when max_in_use_bytes last began anew
  uint64_t period_bytes;      // the same since the arena's own peak was last brought up to date
  uint64_t most_alloc_bytes;  // the largest request, as of when max_alloc_bytes last began anew
  // Of the open run: the most handed out at a time, likewise; what was handed out when it began; what it keeps.
  uint64_t run_peak_bytes, in_use_bytes_at_run, kept_bytes;
  bool has_runs;                     // or had
  gcap_scratch_need_t largest_need;  // of any run
  gcap_hash_table_t needs;           // by work: need.c
  // What a rehearsal reserved, for the capture that follows it; NULL: none. No graph has it.
  gcap_scratch_reservation_t* rehearsed;
  struct gcap_scratch_stream_state* next;
  char apart_above[GCAP_CACHE_LINE_BYTES];
} gcap_scratch_stream_state_t;

// NULL for the unknown stream, and for one that was forgotten.
static inline gcap_stream_t* gcap_scratch_stream_of(const gcap_scratch_stream_state_t* state) {
  return atomic_load_explicit(&state->stream, memory_order_relaxed);
}

// The state of an owner that is a stream.
static inline gcap_scratch_stream_state_t* gcap_scratch_state_of(gcap_scratch_owner_t* stream) {
  return (gcap_scratch_stream_state_t*)(void*)((char*)stream - offsetof(gcap_scratch_stream_state_t, owner));
}

// That of the stream of a block's owner; NULL: no stream uses the block any more.
static inline gcap_scratch_stream_state_t* gcap_scratch_block_state(const gcap_scratch_block_t* block) {
  gcap_scratch_owner_t* stream = gcap_scratch_block_stream(block);
  return stream == NULL ? NULL : gcap_scratch_state_of(stream);
}

static inline uint64_t gcap_scratch_num_live(const gcap_scratch_stream_state_t* state) {
  return gcap_scratch_owner_num_live(&state->owner);
}

// The most that the stream ever had handed out at a time.
static inline uint64_t gcap_scratch_peak_bytes(const gcap_scratch_stream_state_t* state) {
  return state->peak_bytes > state->max_in_use_bytes ? state->peak_bytes : state->max_in_use_bytes;
}

// The largest request ever.
static inline uint64_t gcap_scratch_largest_alloc(const gcap_scratch_stream_state_t* state) {
  return state->most_alloc_bytes > state->max_alloc_bytes ? state->most_alloc_bytes : state->max_alloc_bytes;
}

// Lets max_in_use_bytes begin anew.
static inline void gcap_scratch_fold_peak(gcap_scratch_stream_state_t* state) {
  const uint64_t bytes = state->max_in_use_bytes;
  if (state->peak_bytes < bytes) state->peak_bytes = bytes;
  if (state->period_bytes < bytes) state->period_bytes = bytes;
  if (state->run_peak_bytes < bytes) state->run_peak_bytes = bytes;
  state->max_in_use_bytes = state->in_use_bytes;
}

// Live blocks of the open run.
static inline uint64_t gcap_scratch_num_live_of_run(const gcap_scratch_stream_state_t* state) {
  return gcap_scratch_num_live(state) - state->num_others;
}

// Makes a block that is in no pool a live one of the stream. Called with the stream's lock.
static inline void gcap_scratch_make_live(gcap_scratch_stream_state_t* state, size_t requested_bytes,
                                          gcap_scratch_block_t* block) {
  gcap_scratch_block_set_phase(block, GCAP_SCRATCH_LIVE);
  block->requested_bytes = requested_bytes;
  block->use = state->use;
  ++state->owner.num_allocs;
  state->in_use_bytes += block->bytes;
  state->requested_in_use_bytes += requested_bytes;
  if (state->max_in_use_bytes < state->in_use_bytes) state->max_in_use_bytes = state->in_use_bytes;
  if (state->max_alloc_bytes < requested_bytes) state->max_alloc_bytes = requested_bytes;
}

// Makes a live block of the stream a free one, in no pool yet; all that the stream did with it comes before
// `used_before`. Called with the stream's lock.
static inline void gcap_scratch_make_free(gcap_scratch_stream_state_t* state, uint64_t used_before,
                                          gcap_scratch_block_t* block) {
  ++state->owner.num_frees;
  state->in_use_bytes -= block->bytes;
  state->requested_in_use_bytes -= block->requested_bytes;
  gcap_scratch_block_set_phase(block, GCAP_SCRATCH_FREE);
  if (block->use.run != state->use.run) --state->num_others;
  block->used_before = used_before;
}

// Takes that back for the unknown stream, which has no runs: the block stays handed out.
static inline void gcap_scratch_undo_free(gcap_scratch_stream_state_t* state, gcap_scratch_block_t* block) {
  --state->owner.num_frees;
  state->in_use_bytes += block->bytes;
  state->requested_in_use_bytes += block->requested_bytes;
  block->use = state->use;
  gcap_scratch_block_set_phase(block, GCAP_SCRATCH_LIVE);
}

#endif  // GCAP_LIB_SCRATCH_STREAM_STATE_H_
