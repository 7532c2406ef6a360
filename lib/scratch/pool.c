// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Segregated free lists: bins by size, eight to a power of two, and a bit for each filled one. A request looks through
// its own bin, where a block may be a little too small, and then takes the head of the next filled bin, where none is.
// The blocks most recently freed come first: in the steady state the head of the own bin fits exactly.
// Locking: the lock of the stream whose pool it is; of the other pools, the arena's (see arena.h).

#include "lib/scratch/pool.h"

#include "lib/scratch/arena.h"

// Blocks of the own bin that a quick search looks at. More would find more exact fits, each at the price of a cache
// miss; a bigger block is cut instead.
enum { kQuickLooks = 4 };

unsigned scratch_pool_next_bin(const scratch_pool_t* pool, unsigned bin) {
  for (unsigned word = bin / 64; word < SCRATCH_NUM_BIN_WORDS; ++word) {
    uint64_t bits = pool->filled[word];
    if (word == bin / 64) bits &= ~UINT64_C(0) << (bin % 64);
    if (bits != 0) return word * 64 + (unsigned)__builtin_ctzll(bits);
  }
  return SCRATCH_NUM_BINS;
}

void scratch_pool_insert(scratch_pool_t* pool, scratch_block_t* block) {
  unsigned bin = scratch_pool_bin(block->bytes);
  block->previous = NULL;
  block->next = pool->bins[bin];
  if (block->next != NULL) block->next->previous = block;
  pool->bins[bin] = block;
  pool->filled[bin / 64] |= UINT64_C(1) << (bin % 64);
}

void scratch_pool_remove(scratch_pool_t* pool, scratch_block_t* block) {
  unsigned bin = scratch_pool_bin(block->bytes);
  if (block->next != NULL) block->next->previous = block->previous;
  if (block->previous != NULL) {
    block->previous->next = block->next;
  } else {
    pool->bins[bin] = block->next;
    if (block->next == NULL) pool->filled[bin / 64] &= ~(UINT64_C(1) << (bin % 64));
  }
}

scratch_block_t* scratch_pool_find_quickly(const scratch_pool_t* pool, size_t bytes) {
  unsigned bin = scratch_pool_bin(bytes);
  scratch_block_t* block = pool->bins[bin];
  for (int looks = 0; block != NULL && looks < kQuickLooks; block = block->next, ++looks) {
    if (block->bytes >= bytes) return block;
  }
  bin = scratch_pool_next_bin(pool, bin + 1);
  return bin < SCRATCH_NUM_BINS ? pool->bins[bin] : NULL;
}

scratch_block_t* scratch_pool_find(const scratch_pool_t* pool, size_t bytes, const gcap_stream_t* consumer) {
  unsigned bin = scratch_pool_next_bin(pool, scratch_pool_bin(bytes));
  for (; bin < SCRATCH_NUM_BINS; bin = scratch_pool_next_bin(pool, bin + 1)) {
    for (scratch_block_t* block = pool->bins[bin]; block != NULL; block = block->next) {
      if (block->bytes < bytes) continue;
      if (consumer == NULL) return block;
      const gcap_stream_t* producer = scratch_user_stream(scratch_block_user(block));
      if (gcap_stream_has_waited(consumer, producer, block->sync_id)) return block;
    }
  }
  return NULL;
}

scratch_block_t* scratch_pool_first(const scratch_pool_t* pool) {
  unsigned bin = scratch_pool_next_bin(pool, 0);
  return bin == SCRATCH_NUM_BINS ? NULL : pool->bins[bin];
}
