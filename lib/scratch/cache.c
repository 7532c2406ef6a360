// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The cache: a freed block stays as it is, and the next request of just that size takes it, so that a size that comes
// again and again is neither cut nor joined. What is cached and not asked for goes to the pool when the stream's pool
// has nothing for a request.
//
// Invariant: a cached block carries its stream's tag with the phase GCAP_SCRATCH_CACHED, so no neighbour is joined with
// it. Cost: a flush takes a few steps a block, each of which was put there by one free. Locking: the stream's lock.

#include "lib/scratch/cache.h"

#include <string.h>

#include "lib/scratch/region.h"

void gcap_scratch_cache_init(gcap_scratch_cache_t* cache) {
  memset(cache->credit, GCAP_SCRATCH_CACHE_FIRST_CREDIT, sizeof(cache->credit));
}

void gcap_scratch_cache_flush(gcap_scratch_cache_t* cache, gcap_scratch_owner_t* stream) {
  for (unsigned bin = 0; cache->num_blocks > 0; ++bin) {
    while (cache->bins[bin] != NULL) {
      gcap_scratch_block_t* block = cache->bins[bin];
      cache->bins[bin] = block->next;
      --cache->num_blocks;
      cache->credit[bin] -= cache->credit[bin] > 1 ? 2 : cache->credit[bin];
      gcap_scratch_block_set_tag(block, (uintptr_t)stream | GCAP_SCRATCH_FREE);
      gcap_scratch_put_own(stream, block);
    }
  }
}

size_t gcap_scratch_cache_bytes(const gcap_scratch_cache_t* cache) {
  size_t bytes = 0;
  for (unsigned bin = 0; bin < GCAP_SCRATCH_NUM_CACHE_BINS; ++bin) {
    for (const gcap_scratch_block_t* block = cache->bins[bin]; block != NULL; block = block->next)
      bytes += block->bytes;
  }
  return bytes;
}
