// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pool.h: blocks of scratch memory, and segregated lists of free ones.
#ifndef GCAP_LIB_SCRATCH_POOL_H_
#define GCAP_LIB_SCRATCH_POOL_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/scratch.h"

// All blocks start at and are multiples of it: the alignment that kernels, cuBLASLt and cuDNN rely on.
#define SCRATCH_GRANULE_BYTES ((size_t)256)

typedef enum scratch_state {
  SCRATCH_FREE = 0,  // in the pool that its mark names, or on its way there
  SCRATCH_CACHED,    // in its user's cache (front.c): free, but not joined with its neighbours
  SCRATCH_LIVE,      // handed out
} scratch_state_t;

// One piece of a region. A region's blocks cover it without a gap. Whoever holds the lock of its user (arena.h) may
// read and change it; what others read without the lock is atomic. Its memory stays one of a block until the arena
// ends, so that a reader who comes too late finds some block.
typedef struct scratch_block {
  // The first cache line: all that the fast path reads.
  _Atomic(char*) base;
  // Live: the stream it was allocated for. Free: the tag, the stream that used it last; NULL: nobody uses it any more.
  _Atomic(struct scratch_stream*) user;
  size_t bytes;
  struct scratch_block *previous, *next;  // in a bin of its pool or cache, while free
  // Neighbours in the region, by address. Whoever owns the lower one sets the upper one's link to it.
  _Atomic(struct scratch_block*) lower;
  struct scratch_block* upper;
  uint8_t state;          // a scratch_state_t
  bool kept;              // has a reservation
  uint16_t bin;           // scratch_pool_bin of its bytes; not while it is on its way to a pool
  uint32_t unused_bytes;  // of a live block: what it has more than was asked for

  uint64_t sync_id;                         // of a tagged block: the user's sync id when it was freed
  gcap_scratch_reservation_t* reservation;  // the graph that keeps it; NULL: the arena
} scratch_block_t;

static inline char* scratch_block_base(const scratch_block_t* block) {
  return atomic_load_explicit(&block->base, memory_order_relaxed);
}
static inline struct scratch_stream* scratch_block_user(const scratch_block_t* block) {
  return atomic_load_explicit(&block->user, memory_order_relaxed);
}
static inline void scratch_block_set_user(scratch_block_t* block, struct scratch_stream* user) {
  atomic_store_explicit(&block->user, user, memory_order_relaxed);
}
static inline size_t scratch_block_requested_bytes(const scratch_block_t* block) {
  return block->bytes - block->unused_bytes;
}
static inline void scratch_block_set_reservation(scratch_block_t* block, gcap_scratch_reservation_t* reservation) {
  block->reservation = reservation;
  block->kept = reservation != NULL;
}
static inline scratch_block_t* scratch_block_lower(const scratch_block_t* block) {
  return atomic_load_explicit(&block->lower, memory_order_relaxed);
}
static inline void scratch_block_set_lower(scratch_block_t* block, scratch_block_t* lower) {
  atomic_store_explicit(&block->lower, lower, memory_order_relaxed);
}

// What a block may have too much and be handed out whole, whatever the options say: unused_bytes holds it.
#define SCRATCH_MAX_DEAD_BYTES ((size_t)1 << 31)

// How much of a free block of `block_bytes` is handed out for a request of `bytes`, both whole granules: all of it when
// the rest is not worth a block of its own, being at most `max_dead_bytes` and less than an eighth of the request.
static inline size_t scratch_handed_bytes(size_t block_bytes, size_t bytes, size_t max_dead_bytes) {
  size_t dead_bytes = block_bytes - bytes;
  return dead_bytes <= max_dead_bytes && dead_bytes < bytes / 8 ? block_bytes : bytes;
}

// A bin holds a range of sizes; a power of two is divided into this many.
#define SCRATCH_BINS_PER_POWER_LOG2 3
// Sizes below 2^64 bytes are fewer than 2^56 granules; the formula below then ends at this.
#define SCRATCH_NUM_BINS 432
#define SCRATCH_NUM_BIN_WORDS ((SCRATCH_NUM_BINS + 63) / 64)

// The bin for blocks of `bytes`, a multiple of the granule. Below 2^(log2 + 1) granules each number has its own.
static inline unsigned scratch_pool_bin(size_t bytes) {
  uint64_t granules = bytes / SCRATCH_GRANULE_BYTES;
  unsigned power = 63u - (unsigned)__builtin_clzll(granules | (1u << SCRATCH_BINS_PER_POWER_LOG2));
  unsigned above = power - SCRATCH_BINS_PER_POWER_LOG2;
  return (above << SCRATCH_BINS_PER_POWER_LOG2) + (unsigned)(granules >> above);
}

// The size of a block for a request; 0 when nothing is asked for, or it overflows.
static inline size_t scratch_block_bytes(size_t requested_bytes) {
  return (requested_bytes + SCRATCH_GRANULE_BYTES - 1) & ~(SCRATCH_GRANULE_BYTES - 1);
}

// Free blocks that have one thing in common: a tag, a reservation, or that nobody uses them.
typedef struct scratch_pool {
  uint64_t filled[SCRATCH_NUM_BIN_WORDS];   // bit i: bin i is not empty
  scratch_block_t* bins[SCRATCH_NUM_BINS];  // most recently freed first
} scratch_pool_t;

// The first filled bin at or above `bin`; SCRATCH_NUM_BINS when there is none.
static inline unsigned scratch_pool_next_bin(const scratch_pool_t* pool, unsigned bin) {
  for (unsigned word = bin / 64; word < SCRATCH_NUM_BIN_WORDS; ++word) {
    uint64_t bits = pool->filled[word];
    if (word == bin / 64) bits &= ~UINT64_C(0) << (bin % 64);
    if (bits != 0) return word * 64 + (unsigned)__builtin_ctzll(bits);
  }
  return SCRATCH_NUM_BINS;
}

// Written without branches: with sizes by lot nobody could foretell them.
static inline void scratch_pool_insert(scratch_pool_t* pool, scratch_block_t* block) {
  unsigned bin = scratch_pool_bin(block->bytes);
  scratch_block_t* next = pool->bins[bin];
  scratch_block_t* nowhere;
  block->bin = (uint16_t)bin;
  block->previous = NULL;
  block->next = next;
  *(next != NULL ? &next->previous : &nowhere) = block;
  pool->bins[bin] = block;
  pool->filled[bin / 64] |= UINT64_C(1) << (bin % 64);
}

static inline void scratch_pool_remove(scratch_pool_t* pool, scratch_block_t* block) {
  unsigned bin = block->bin;
  scratch_block_t* next = block->next;
  scratch_block_t* previous = block->previous;
  scratch_block_t* nowhere;
  *(next != NULL ? &next->previous : &nowhere) = previous;
  *(previous != NULL ? &previous->next : &pool->bins[bin]) = next;
  pool->filled[bin / 64] ^= (uint64_t)(pool->bins[bin] == NULL) << (bin % 64);
}

// A block of at least `bytes`; NULL when there is none. With `consumer`, only one whose tag it has waited for.
scratch_block_t* scratch_pool_find(const scratch_pool_t* pool, size_t bytes, const gcap_stream_t* consumer);
// Some block, the smaller ones first; NULL when the pool is empty.
scratch_block_t* scratch_pool_first(const scratch_pool_t* pool);

#endif  // GCAP_LIB_SCRATCH_POOL_H_
