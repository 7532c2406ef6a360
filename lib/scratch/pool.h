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
#define GCAP_SCRATCH_GRANULE_BYTES ((size_t)256)

typedef enum gcap_scratch_phase {
  GCAP_SCRATCH_FREE = 0,  // in the pool that its tag names, or on its way there
  GCAP_SCRATCH_CACHED,    // in its state's cache (fast_path.c): free, but not joined with its neighbours
  GCAP_SCRATCH_LIVE,      // handed out
} gcap_scratch_phase_t;

// A tag tells whose a block is, and its state: a gcap_scratch_phase_t, and the address of the stream or, with
// GCAP_SCRATCH_TAG_KEPT, of the reservation. Two free neighbours may become one just when their tags are the same.
#define GCAP_SCRATCH_TAG_PHASE ((uintptr_t)3)
#define GCAP_SCRATCH_TAG_KEPT ((uintptr_t)4)
#define GCAP_SCRATCH_TAG_BITS (GCAP_SCRATCH_TAG_PHASE | GCAP_SCRATCH_TAG_KEPT)

// One piece of a region. A region's blocks cover it without a gap. Whoever holds the lock of its state (arena.h) may
// read and change it; what others read without the lock is atomic. Its memory stays one of a block until the arena
// ends, so that a reader who comes too late finds some block. It fills a cache line.
typedef struct gcap_scratch_block {
  _Atomic(char*) base;
  // Live: the stream it was allocated for. Free: the tag, the stream that used it last; NULL: nobody uses it any more.
  _Atomic(uintptr_t) tag;
  size_t bytes;
  struct gcap_scratch_block* next;  // in a bin of its pool or cache, or among the spares
  union {
    struct gcap_scratch_block* previous;  // in a bin of its pool
    size_t requested_bytes;               // live: what was asked for
  };
  // Neighbours in the region, by address. Whoever owns the lower one sets the upper one's link to it.
  _Atomic(struct gcap_scratch_block*) lower;
  struct gcap_scratch_block* upper;
  // Of a tagged block: what the state did with it comes before this point of the state's timeline; 0: nothing.
  uint64_t used_before;
} gcap_scratch_block_t;

static inline char* gcap_scratch_block_base(const gcap_scratch_block_t* block) {
  return atomic_load_explicit(&block->base, memory_order_relaxed);
}
static inline uintptr_t gcap_scratch_block_tag(const gcap_scratch_block_t* block) {
  return atomic_load_explicit(&block->tag, memory_order_relaxed);
}
static inline void gcap_scratch_block_set_tag(gcap_scratch_block_t* block, uintptr_t tag) {
  atomic_store_explicit(&block->tag, tag, memory_order_relaxed);
}
static inline gcap_scratch_phase_t gcap_scratch_block_phase(const gcap_scratch_block_t* block) {
  return (gcap_scratch_phase_t)(gcap_scratch_block_tag(block) & GCAP_SCRATCH_TAG_PHASE);
}
static inline void gcap_scratch_block_set_phase(gcap_scratch_block_t* block, gcap_scratch_phase_t phase) {
  gcap_scratch_block_set_tag(block, (gcap_scratch_block_tag(block) & ~GCAP_SCRATCH_TAG_PHASE) | (uintptr_t)phase);
}
// The graph that keeps it; NULL: the arena.
static inline gcap_scratch_reservation_t* gcap_scratch_block_reservation(const gcap_scratch_block_t* block) {
  const uintptr_t tag = gcap_scratch_block_tag(block);
  return (tag & GCAP_SCRATCH_TAG_KEPT) != 0 ? (gcap_scratch_reservation_t*)(tag & ~GCAP_SCRATCH_TAG_BITS) : NULL;
}
struct gcap_scratch_stream_state* gcap_scratch_reservation_state(const gcap_scratch_reservation_t* reservation);
static inline struct gcap_scratch_stream_state* gcap_scratch_block_stream_state(const gcap_scratch_block_t* block) {
  const uintptr_t tag = gcap_scratch_block_tag(block);
  if ((tag & GCAP_SCRATCH_TAG_KEPT) != 0) return gcap_scratch_reservation_state(gcap_scratch_block_reservation(block));
  return (struct gcap_scratch_stream_state*)(tag & ~GCAP_SCRATCH_TAG_BITS);
}
// These leave the state as it is.
static inline void gcap_scratch_block_set_stream_state(gcap_scratch_block_t* block,
                                                       struct gcap_scratch_stream_state* state) {
  gcap_scratch_block_set_tag(block, (uintptr_t)state | (uintptr_t)gcap_scratch_block_phase(block));
}
static inline void gcap_scratch_block_set_reservation(gcap_scratch_block_t* block,
                                                      gcap_scratch_reservation_t* reservation) {
  gcap_scratch_block_set_tag(
      block, (uintptr_t)reservation | GCAP_SCRATCH_TAG_KEPT | (uintptr_t)gcap_scratch_block_phase(block));
}
static inline gcap_scratch_block_t* gcap_scratch_block_lower(const gcap_scratch_block_t* block) {
  return atomic_load_explicit(&block->lower, memory_order_relaxed);
}
static inline void gcap_scratch_block_set_lower(gcap_scratch_block_t* block, gcap_scratch_block_t* lower) {
  atomic_store_explicit(&block->lower, lower, memory_order_relaxed);
}

// A bin holds a range of sizes; a power of two is divided into this many.
#define GCAP_SCRATCH_BINS_PER_POWER_LOG2 3
// Sizes below 2^64 bytes are fewer than 2^56 granules; the formula below then ends at this.
#define GCAP_SCRATCH_NUM_BINS 432
#define GCAP_SCRATCH_NUM_BIN_WORDS ((GCAP_SCRATCH_NUM_BINS + 63) / 64)

// The bin for blocks of `bytes`, a multiple of the granule. Below 2^(log2 + 1) granules each number has its own.
static inline unsigned gcap_scratch_pool_bin(size_t bytes) {
  uint64_t granules = bytes / GCAP_SCRATCH_GRANULE_BYTES;
  unsigned power = 63u - (unsigned)__builtin_clzll(granules | (1u << GCAP_SCRATCH_BINS_PER_POWER_LOG2));
  unsigned above = power - GCAP_SCRATCH_BINS_PER_POWER_LOG2;
  return (above << GCAP_SCRATCH_BINS_PER_POWER_LOG2) + (unsigned)(granules >> above);
}

// The size of a block for a request; 0 when nothing is asked for, or it overflows.
static inline size_t gcap_scratch_block_bytes(size_t requested_bytes) {
  return (requested_bytes + GCAP_SCRATCH_GRANULE_BYTES - 1) & ~(GCAP_SCRATCH_GRANULE_BYTES - 1);
}

// Free blocks that have one thing in common: a tag, a reservation, or that nobody uses them.
typedef struct gcap_scratch_pool {
  uint64_t filled[GCAP_SCRATCH_NUM_BIN_WORDS];        // bit i: bin i is not empty
  gcap_scratch_block_t* bins[GCAP_SCRATCH_NUM_BINS];  // most recently freed first
} gcap_scratch_pool_t;

// The first filled bin at or above `bin`; GCAP_SCRATCH_NUM_BINS when there is none.
static inline unsigned gcap_scratch_pool_next_bin(const gcap_scratch_pool_t* pool, unsigned bin) {
  for (unsigned word = bin / 64; word < GCAP_SCRATCH_NUM_BIN_WORDS; ++word) {
    uint64_t bits = pool->filled[word];
    if (word == bin / 64) bits &= ~UINT64_C(0) << (bin % 64);
    if (bits != 0) return word * 64 + (unsigned)__builtin_ctzll(bits);
  }
  return GCAP_SCRATCH_NUM_BINS;
}

// Written without branches: with sizes by lot nobody could foretell them.
static inline void gcap_scratch_pool_insert(gcap_scratch_pool_t* pool, gcap_scratch_block_t* block) {
  unsigned bin = gcap_scratch_pool_bin(block->bytes);
  gcap_scratch_block_t* next = pool->bins[bin];
  gcap_scratch_block_t* nowhere;
  block->previous = NULL;
  block->next = next;
  *(next != NULL ? &next->previous : &nowhere) = block;
  pool->bins[bin] = block;
  pool->filled[bin / 64] |= UINT64_C(1) << (bin % 64);
}

static inline void gcap_scratch_pool_remove(gcap_scratch_pool_t* pool, gcap_scratch_block_t* block) {
  unsigned bin = gcap_scratch_pool_bin(block->bytes);
  gcap_scratch_block_t* next = block->next;
  gcap_scratch_block_t* previous = block->previous;
  gcap_scratch_block_t* nowhere;
  *(next != NULL ? &next->previous : &nowhere) = previous;
  *(previous != NULL ? &previous->next : &pool->bins[bin]) = next;
  pool->filled[bin / 64] ^= (uint64_t)(pool->bins[bin] == NULL) << (bin % 64);
}

// Whether what `state` is given next comes after all that was done with a free block of the arena.
bool gcap_scratch_comes_after(const struct gcap_scratch_stream_state* state, const gcap_scratch_block_t* block);
// Whether that is known to be finished, for a tagged block.
bool gcap_scratch_is_finished(const gcap_scratch_block_t* block);

// A block of at least `bytes`; NULL when there is none. With `consumer`, only one that it comes after.
gcap_scratch_block_t* gcap_scratch_pool_find(const gcap_scratch_pool_t* pool, size_t bytes,
                                             const struct gcap_scratch_stream_state* consumer);
// Some block, the smaller ones first; NULL when the pool is empty.
gcap_scratch_block_t* gcap_scratch_pool_first(const gcap_scratch_pool_t* pool);

#endif  // GCAP_LIB_SCRATCH_POOL_H_
