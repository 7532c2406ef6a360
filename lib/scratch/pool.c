// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Segregated free lists: bins by size, eight to a power of two, and a bit for each filled one. A request looks through
// its own bin, where a block may be a little too small, and then takes the head of the next filled bin, where none is.
// The blocks most recently freed come first: in the steady state the head of the own bin fits exactly.
// Locking: the lock of the stream whose pool it is; of the other pools, the arena's (see arena.h).

#include "lib/scratch/pool.h"

#include "lib/scratch/arena.h"

bool scratch_comes_after(const scratch_stream_t* user, const scratch_block_t* block) {
  const scratch_stream_t* producer = scratch_block_user(block);
  if (producer == NULL || block->used_before == 0) return true;
  if (scratch_user_stream(producer) == NULL) return scratch_is_finished(block);
  return gcap_stream_has_waited(scratch_user_stream(user), scratch_user_stream(producer), block->used_before - 1);
}

bool scratch_is_finished(const scratch_block_t* block) {
  if (block->used_before == 0) return true;
  const scratch_stream_t* user = scratch_block_user(block);
  const gcap_stream_t* stream = scratch_user_stream(user);
  if (stream == NULL) return block->used_before <= user->finished_point;  // nobody
  return gcap_stream_has_finished(stream, block->used_before - 1);
}

scratch_block_t* scratch_pool_find(const scratch_pool_t* pool, size_t bytes, const scratch_stream_t* consumer) {
  unsigned bin = scratch_pool_next_bin(pool, scratch_pool_bin(bytes));
  for (; bin < SCRATCH_NUM_BINS; bin = scratch_pool_next_bin(pool, bin + 1)) {
    for (scratch_block_t* block = pool->bins[bin]; block != NULL; block = block->next) {
      if (block->bytes < bytes) continue;
      if (consumer == NULL || scratch_comes_after(consumer, block)) return block;
    }
  }
  return NULL;
}

scratch_block_t* scratch_pool_first(const scratch_pool_t* pool) {
  unsigned bin = scratch_pool_next_bin(pool, 0);
  return bin == SCRATCH_NUM_BINS ? NULL : pool->bins[bin];
}
