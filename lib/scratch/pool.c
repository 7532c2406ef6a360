// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Segregated free lists: bins by size, eight to a power of two, and a bit for each filled one. A request looks through
// its own bin, where a block may be a little too small, and then takes the head of the next filled bin, where none is.
// The blocks most recently freed come first: in the steady state the head of the own bin fits exactly.
// Locking: the lock of the stream whose pool it is; of the other pools, the arena's (see arena.h).

#include "lib/scratch/pool.h"

#include "lib/scratch/arena.h"

bool gcap_scratch_comes_after(const gcap_scratch_stream_state_t* state, const gcap_scratch_block_t* block) {
  const gcap_scratch_stream_state_t* producer = gcap_scratch_block_stream_state(block);
  if (producer == NULL || block->used_before == 0) return true;
  if (gcap_scratch_stream_of(producer) == NULL) return gcap_scratch_is_finished(block);
  return gcap_stream_has_waited(gcap_scratch_stream_of(state), gcap_scratch_stream_of(producer),
                                block->used_before - 1);
}

bool gcap_scratch_is_finished(const gcap_scratch_block_t* block) {
  if (block->used_before == 0) return true;
  const gcap_scratch_stream_state_t* state = gcap_scratch_block_stream_state(block);
  const gcap_stream_t* stream = gcap_scratch_stream_of(state);
  if (stream == NULL) return block->used_before <= state->finished_point;  // nobody
  return gcap_stream_has_finished(stream, block->used_before - 1);
}

gcap_scratch_block_t* gcap_scratch_pool_find(const gcap_scratch_pool_t* pool, size_t bytes,
                                             const gcap_scratch_stream_state_t* consumer) {
  unsigned bin = gcap_scratch_pool_next_bin(pool, gcap_scratch_pool_bin(bytes));
  for (; bin < GCAP_SCRATCH_NUM_BINS; bin = gcap_scratch_pool_next_bin(pool, bin + 1)) {
    for (gcap_scratch_block_t* block = pool->bins[bin]; block != NULL; block = block->next) {
      if (block->bytes < bytes) continue;
      if (consumer == NULL || gcap_scratch_comes_after(consumer, block)) return block;
    }
  }
  return NULL;
}

gcap_scratch_block_t* gcap_scratch_pool_first(const gcap_scratch_pool_t* pool) {
  unsigned bin = gcap_scratch_pool_next_bin(pool, 0);
  return bin == GCAP_SCRATCH_NUM_BINS ? NULL : pool->bins[bin];
}
