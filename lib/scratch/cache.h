// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cache.h: a stream's blocks that were just freed, kept as they are for requests of the same size.
#ifndef GCAP_LIB_SCRATCH_CACHE_H_
#define GCAP_LIB_SCRATCH_CACHE_H_

#include "lib/scratch/owner.h"

#ifdef __cplusplus
extern "C" {
#endif

// Larger blocks go straight to the pool, where they are joined at once: for them cutting and joining costs nothing
// beside the work that they are for, and keeping them whole costs memory.
#define GCAP_SCRATCH_MAX_CACHED_BYTES ((size_t)1 << 20)
#define GCAP_SCRATCH_NUM_CACHE_BINS 81  // gcap_scratch_pool_bin of that, and one

// Blocks of a cache bin that are looked at for the size: in the steady state it is among the last freed.
#define GCAP_SCRATCH_CACHE_LOOKS 2

// Sizes that come again make the cache worth while; sizes that are all different only go through it. Each bin has a
// credit, which a block that is taken raises and one that leaves otherwise lowers. Without credit a freed block goes
// straight to the pool, but for one in so many, by which the bin may earn credit again.
enum {
  GCAP_SCRATCH_CACHE_FIRST_CREDIT = 8,
  GCAP_SCRATCH_CACHE_MAX_CREDIT = 64,
  GCAP_SCRATCH_CACHE_CREDIT_OF_HIT = 2,
  GCAP_SCRATCH_CACHE_TRY_ONE_IN = 16
};

typedef struct gcap_scratch_cache {
  size_t num_blocks;
  uint8_t credit[GCAP_SCRATCH_NUM_CACHE_BINS];
  // By gcap_scratch_pool_bin, most recently freed first, linked by `next`.
  gcap_scratch_block_t* bins[GCAP_SCRATCH_NUM_CACHE_BINS];
} gcap_scratch_cache_t;

// `cache` is empty.
void gcap_scratch_cache_init(gcap_scratch_cache_t* cache);

// A block that fits a request whole (see gcap_scratch_fits_whole); NULL when none was found.
static inline gcap_scratch_block_t* gcap_scratch_cache_take(gcap_scratch_cache_t* cache, size_t bytes,
                                                            size_t max_dead_bytes) {
  if (bytes > GCAP_SCRATCH_MAX_CACHED_BYTES) return NULL;
  unsigned bin = gcap_scratch_pool_bin(bytes);
  gcap_scratch_block_t** link = &cache->bins[bin];
  for (int looks = 0; *link != NULL && looks < GCAP_SCRATCH_CACHE_LOOKS; link = &(*link)->next, ++looks) {
    gcap_scratch_block_t* block = *link;
    if (!gcap_scratch_fits_whole(block, bytes, max_dead_bytes)) continue;
    *link = block->next;
    --cache->num_blocks;
    if (cache->credit[bin] < GCAP_SCRATCH_CACHE_MAX_CREDIT) cache->credit[bin] += GCAP_SCRATCH_CACHE_CREDIT_OF_HIT;
    return block;
  }
  return NULL;
}

// Keeps a block that `stream` just freed, whose frees are counted; false when the block goes to the pool instead.
static inline bool gcap_scratch_cache_put(gcap_scratch_cache_t* cache, const gcap_scratch_owner_t* stream,
                                          gcap_scratch_block_t* block) {
  unsigned bin = gcap_scratch_pool_bin(block->bytes);
  if (bin >= GCAP_SCRATCH_NUM_CACHE_BINS) return false;
  if (cache->credit[bin] == 0 && stream->num_frees % GCAP_SCRATCH_CACHE_TRY_ONE_IN != 0) return false;
  gcap_scratch_block_set_tag(block, (uintptr_t)stream | GCAP_SCRATCH_CACHED);
  block->next = cache->bins[bin];
  cache->bins[bin] = block;
  ++cache->num_blocks;
  return true;
}

// Moves all blocks to the pool of `stream`, joined with their neighbours.
void gcap_scratch_cache_flush(gcap_scratch_cache_t* cache, gcap_scratch_owner_t* stream);
// Of all its blocks.
size_t gcap_scratch_cache_bytes(const gcap_scratch_cache_t* cache);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_SCRATCH_CACHE_H_
