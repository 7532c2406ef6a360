// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Segregated free lists: bins by size, eight to a power of two, and a bit for each filled one. A request looks through
// its own bin, where a block may be a little too small, and then takes the head of the next filled bin, where none is.
// The blocks most recently freed come first: in the steady state the head of the own bin fits exactly.
//
// Invariants: a block is in the bin of its size; a bin's bit is set just when the bin is not empty. A pool knows
// nothing of regions, owners or tags. Locking: the caller's.

#include "lib/scratch/pool.h"

gcap_scratch_block_t* gcap_scratch_pool_find(const gcap_scratch_pool_t* pool, size_t bytes,
                                             gcap_scratch_accepts_t accepts, const void* context) {
  unsigned bin = gcap_scratch_pool_next_bin(pool, gcap_scratch_pool_bin(bytes));
  for (; bin < GCAP_SCRATCH_NUM_BINS; bin = gcap_scratch_pool_next_bin(pool, bin + 1)) {
    for (gcap_scratch_block_t* block = pool->bins[bin]; block != NULL; block = block->next) {
      if (block->bytes < bytes) continue;
      if (accepts == NULL || accepts(context, block)) return block;
    }
  }
  return NULL;
}

gcap_scratch_block_t* gcap_scratch_pool_first(const gcap_scratch_pool_t* pool) {
  unsigned bin = gcap_scratch_pool_next_bin(pool, 0);
  return bin == GCAP_SCRATCH_NUM_BINS ? NULL : pool->bins[bin];
}

size_t gcap_scratch_pool_bytes(const gcap_scratch_pool_t* pool) {
  size_t bytes = 0;
  unsigned bin = gcap_scratch_pool_next_bin(pool, 0);
  for (; bin < GCAP_SCRATCH_NUM_BINS; bin = gcap_scratch_pool_next_bin(pool, bin + 1)) {
    for (const gcap_scratch_block_t* block = pool->bins[bin]; block != NULL; block = block->next) bytes += block->bytes;
  }
  return bytes;
}
