// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pool.h: segregated lists of free blocks.
#ifndef GCAP_LIB_SCRATCH_POOL_H_
#define GCAP_LIB_SCRATCH_POOL_H_

#include "lib/scratch/block.h"

#ifdef __cplusplus
extern "C" {
#endif

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

// Free blocks that have one thing in common: their tag.
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

// Insertion and removal have no branches: with random sizes the processor could not predict them.
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

// A block of at least `bytes`, in a bounded number of steps where there is one: the last freed of its own bin, or one
// of a higher bin, where all are large enough. Only when there is none is the rest of the own bin worth its cache
// misses.
static inline gcap_scratch_block_t* gcap_scratch_pool_find_quickly(const gcap_scratch_pool_t* pool, size_t bytes) {
  const unsigned bin = gcap_scratch_pool_bin(bytes);
  gcap_scratch_block_t* block = pool->bins[bin];
  if (block != NULL && block->bytes >= bytes) return block;
  const unsigned higher = gcap_scratch_pool_next_bin(pool, bin + 1);
  if (higher < GCAP_SCRATCH_NUM_BINS) return pool->bins[higher];
  while (block != NULL && block->bytes < bytes) block = block->next;
  return block;
}

// A block of at least `bytes` from the lowest bin that has one; NULL when there is none. With `accepts`, only one for
// which that answers true.
typedef bool (*gcap_scratch_accepts_t)(const void* context, const gcap_scratch_block_t* block);
gcap_scratch_block_t* gcap_scratch_pool_find(const gcap_scratch_pool_t* pool, size_t bytes,
                                             gcap_scratch_accepts_t accepts, const void* context);
// Some block, the smaller ones first; NULL when the pool is empty.
gcap_scratch_block_t* gcap_scratch_pool_first(const gcap_scratch_pool_t* pool);
// Of all its blocks.
size_t gcap_scratch_pool_bytes(const gcap_scratch_pool_t* pool);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_SCRATCH_POOL_H_
