// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Regions and the cutting and joining of their blocks.
//
// Invariant: two free neighbours never carry the same tag (reservation and tag), since whatever is put into a pool is
// merged first; a cached one is put there later. Blocks with different tags are never merged here: the union would be
// safe only for a stream that waited for both (see place.c, which does it for one that has).
//
// Locking: the arena is held, or the lock of the stream whose block it is. The latter must see of a neighbour no more
// than whose it is, before that is known to be the same stream's: no other thread can make it so, or not so, meanwhile.
// The link from a block of another stream down to ours is ours to set, and its owner follows it no further than to the
// name on our block.

#include <stdlib.h>

#include "lib/scratch/arena.h"
#include "lib/scratch/debug.h"

// --- Block structs --------------------------------------------------------------------------------------------------

// Block structs come in slabs, so that one stream's lie together and share no cache line with another's.
enum {
  kBlocksPerSlab = 62,      // a page of the host's memory, with the header and what alignment may cost
  kStructsPerStream = 124,  // how many are not many; see may_make_slab
  kStructsPerLive = 4       // a live block, free ones beside it, and as many for those that come and go
};

typedef struct gcap_scratch_slab {
  struct gcap_scratch_slab* next;
  void* memory;  // what to free
  char apart[GCAP_SCRATCH_LINE_BYTES - 2 * sizeof(void*)];
  gcap_scratch_block_t blocks[kBlocksPerSlab];
} gcap_scratch_slab_t;

_Static_assert(sizeof(gcap_scratch_block_t) == GCAP_SCRATCH_LINE_BYTES, "a block fills a cache line");

static bool make_slab(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  void* memory = calloc(1, sizeof(gcap_scratch_slab_t) + GCAP_SCRATCH_LINE_BYTES - 1);
  if (memory == NULL) return false;
  uintptr_t start =
      ((uintptr_t)memory + GCAP_SCRATCH_LINE_BYTES - 1) / GCAP_SCRATCH_LINE_BYTES * GCAP_SCRATCH_LINE_BYTES;
  gcap_scratch_slab_t* slab = (gcap_scratch_slab_t*)start;
  slab->memory = memory;
  slab->next = scratch->slabs;
  scratch->slabs = slab;
  ++scratch->num_slabs;
  for (int i = kBlocksPerSlab; i > 0; --i) gcap_scratch_block_recycle(scratch, state, &slab->blocks[i - 1]);
  return true;
}

void gcap_scratch_block_recycle(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state,
                                gcap_scratch_block_t* block) {
  gcap_scratch_block_t** spares = state != NULL ? &state->spares : &scratch->spares;
  gcap_scratch_block_set_tag(block, (uintptr_t)state | GCAP_SCRATCH_FREE);
  block->next = *spares;
  *spares = block;
}

static gcap_scratch_block_t* pop(gcap_scratch_block_t** spares) {
  gcap_scratch_block_t* block = *spares;
  if (block != NULL) *spares = block->next;
  return block;
}

// Structs wander with the blocks, from the streams that cut to those that join. A stream that lacks one gets a slab, so
// that it lacks none for long, but only while there are not many for what is live: else it gets another stream's.
static bool may_make_slab(const gcap_scratch_t* scratch) {
  uint64_t num_wanted = kBlocksPerSlab + kStructsPerLive * gcap_scratch_num_live(&scratch->unknown_stream);
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    num_wanted += kStructsPerStream + kStructsPerLive * gcap_scratch_num_live(state);
  }
  return scratch->num_slabs * kBlocksPerSlab < num_wanted;
}

static gcap_scratch_block_t* steal(gcap_scratch_t* scratch) {
  gcap_scratch_block_t* block = NULL;
  for (gcap_scratch_stream_state_t* other = scratch->streams; block == NULL && other != NULL; other = other->next) {
    block = pop(&other->spares);
  }
  return block;
}

gcap_scratch_block_t* gcap_scratch_block_new(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  gcap_scratch_block_t** own = state != NULL ? &state->spares : &scratch->spares;
  gcap_scratch_block_t* block = pop(own);
  const bool may_make = block == NULL && may_make_slab(scratch);
  if (may_make && make_slab(scratch, state)) block = pop(own);
  if (block == NULL) block = pop(&scratch->spares);
  if (block == NULL) block = steal(scratch);
  if (block == NULL && !may_make && make_slab(scratch, state)) block = pop(own);
  if (block != NULL) gcap_scratch_block_set_stream_state(block, NULL);  // from here on no stream's lock leads to it
  return block;
}

void gcap_scratch_free_blocks(gcap_scratch_t* scratch) {
  while (scratch->slabs != NULL) {
    gcap_scratch_slab_t* slab = scratch->slabs;
    scratch->slabs = slab->next;
    free(slab->memory);
  }
}

// --- Regions --------------------------------------------------------------------------------------------------------

gcap_status_t gcap_scratch_region_create(gcap_scratch_t* scratch, void* base, size_t bytes, gcap_scratch_block_t* block,
                                         gcap_scratch_region_t** out_region) {
  *out_region = NULL;
  gcap_scratch_region_t* region = calloc(1, sizeof(*region));
  if (region == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to describe a scratch region of %zu bytes", bytes);
  }
  gcap_status_t status = gcap_scratch_pages_add(&scratch->pages, base, bytes);
  if (status != NULL) {
    free(region);
    return status;
  }
  *region = (gcap_scratch_region_t){.base = base, .bytes = bytes, .first = block};
  atomic_store_explicit(&block->base, base, memory_order_relaxed);
  gcap_scratch_block_set_tag(block, GCAP_SCRATCH_FREE);
  gcap_scratch_block_set_lower(block, NULL);
  block->upper = NULL;
  block->bytes = bytes;
  block->used_before = 0;
  *out_region = region;
  return NULL;
}

void gcap_scratch_region_destroy(gcap_scratch_t* scratch, gcap_scratch_region_t* region) {
  gcap_scratch_pages_remove(&scratch->pages, region->base, region->bytes);
  gcap_scratch_block_recycle(scratch, NULL, region->first);
  free(region);
}

gcap_scratch_region_t* gcap_scratch_find_region(const gcap_scratch_t* scratch, const void* ptr) {
  size_t low = 0, high = scratch->num_regions;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    gcap_scratch_region_t* region = scratch->regions[middle];
    if ((uintptr_t)ptr < (uintptr_t)region->base) {
      high = middle;
    } else if ((uintptr_t)ptr - (uintptr_t)region->base >= region->bytes) {
      low = middle + 1;
    } else {
      return region;
    }
  }
  return NULL;
}

gcap_status_t gcap_scratch_find_live(gcap_scratch_t* scratch, void* ptr, gcap_scratch_block_t** out_block) {
  *out_block = NULL;
  const gcap_scratch_region_t* region = gcap_scratch_find_region(scratch, ptr);
  if (region == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "address %p was not allocated from this scratch", ptr);
  const uintptr_t base = (uintptr_t)ptr - gcap_scratch_zone_bytes(scratch);
  gcap_scratch_block_t* block = gcap_scratch_pages_find(&scratch->pages, (const void*)base);
  if (block == NULL || (uintptr_t)gcap_scratch_block_base(block) != base) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "address %p is inside a block of this scratch, not its start", ptr);
  }
  if (gcap_scratch_block_phase(block) != GCAP_SCRATCH_LIVE) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "address %p was freed already", ptr);
  }
  *out_block = block;
  return NULL;
}

// --- Joining and cutting --------------------------------------------------------------------------------------------

gcap_scratch_pool_t* gcap_scratch_pool_of(gcap_scratch_t* scratch, const gcap_scratch_block_t* block) {
  if (gcap_scratch_block_reservation(block) != NULL) return &gcap_scratch_block_reservation(block)->pool;
  gcap_scratch_stream_state_t* state = gcap_scratch_block_stream_state(block);
  return state != NULL ? &state->pool : &scratch->untagged;
}

// Joins a block of `state` and its upper neighbour, both in no pool.
static inline void join(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, gcap_scratch_block_t* block) {
  gcap_scratch_block_t* upper = block->upper;
  block->bytes += upper->bytes;
  if (block->used_before < upper->used_before) block->used_before = upper->used_before;
  block->upper = upper->upper;
  if (block->upper != NULL) gcap_scratch_block_set_lower(block->upper, block);
  gcap_scratch_block_recycle(scratch, state, upper);
}

void gcap_scratch_merge_upper(gcap_scratch_t* scratch, gcap_scratch_block_t* block) {
  join(scratch, gcap_scratch_block_stream_state(block), block);
}

// Whether a neighbour may be joined with a block that is free.
static bool same_tag(const gcap_scratch_block_t* block, const gcap_scratch_block_t* neighbour) {
  return neighbour != NULL && gcap_scratch_block_tag(neighbour) == gcap_scratch_block_tag(block);
}

static inline gcap_scratch_block_t* put(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state,
                                        gcap_scratch_pool_t* pool, gcap_scratch_block_t* block) {
  if (same_tag(block, block->upper)) {
    gcap_scratch_pool_remove(pool, block->upper);
    join(scratch, state, block);
  }
  gcap_scratch_block_t* lower = gcap_scratch_block_lower(block);
  if (same_tag(block, lower)) {
    const bool stays = gcap_scratch_pool_bin(lower->bytes + block->bytes) == gcap_scratch_pool_bin(lower->bytes);
    if (!stays) gcap_scratch_pool_remove(pool, lower);
    join(scratch, state, lower);
    block = lower;
    if (stays) return block;
  }
  gcap_scratch_pool_insert(pool, block);
  return block;
}

gcap_scratch_block_t* gcap_scratch_put(gcap_scratch_t* scratch, gcap_scratch_block_t* block) {
  return put(scratch, gcap_scratch_block_stream_state(block), gcap_scratch_pool_of(scratch, block), block);
}

void gcap_scratch_put_own(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, gcap_scratch_block_t* block) {
  (void)put(scratch, state, &state->pool, block);
}

// Cuts a free block down to `bytes`; what was above becomes `rest`, with the same tag.
static void cut(gcap_scratch_block_t* block, size_t bytes, gcap_scratch_block_t* rest) {
  atomic_store_explicit(&rest->base, gcap_scratch_block_base(block) + bytes, memory_order_relaxed);
  gcap_scratch_block_set_tag(rest, gcap_scratch_block_tag(block));
  gcap_scratch_block_set_lower(rest, block);
  rest->bytes = block->bytes - bytes;
  rest->used_before = block->used_before;
  rest->upper = block->upper;
  if (rest->upper != NULL) gcap_scratch_block_set_lower(rest->upper, rest);
  block->upper = rest;
  block->bytes = bytes;
}

enum { kLargeBytes = 4 << 20, kSmallShare = 8 };

// What is small beside a large block comes from its top, what is not from its bottom: else small ones that live on
// would keep the large ones from ever being whole again.
static bool is_from_top(const gcap_scratch_block_t* block, size_t bytes) {
  return block->bytes >= kLargeBytes && bytes <= block->bytes / kSmallShare;
}

// Takes a block out of its pool and cuts it in two; gives the one of `bytes`, the other one goes back.
static gcap_scratch_block_t* split(gcap_scratch_pool_t* pool, gcap_scratch_block_t* block, size_t bytes, bool from_top,
                                   gcap_scratch_block_t* upper) {
  gcap_scratch_pool_remove(pool, block);
  cut(block, from_top ? block->bytes - bytes : bytes, upper);
  gcap_scratch_pool_insert(pool, from_top ? block : upper);
  return from_top ? upper : block;
}

gcap_scratch_block_t* gcap_scratch_detach_own(gcap_scratch_stream_state_t* state, gcap_scratch_block_t* block,
                                              size_t bytes) {
  if (block->bytes != bytes) {
    gcap_scratch_block_t* upper = pop(&state->spares);
    return upper == NULL ? NULL : split(&state->pool, block, bytes, is_from_top(block, bytes), upper);
  }
  gcap_scratch_pool_remove(&state->pool, block);
  return block;
}

static gcap_status_t detach(gcap_scratch_t* scratch, size_t bytes, bool from_top, gcap_scratch_block_t** block) {
  gcap_scratch_pool_t* pool = gcap_scratch_pool_of(scratch, *block);
  if ((*block)->bytes == bytes) {
    gcap_scratch_pool_remove(pool, *block);
    return NULL;
  }
  gcap_scratch_block_t* upper = gcap_scratch_block_new(scratch, gcap_scratch_block_stream_state(*block));
  if (upper == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to describe a scratch block");
  *block = split(pool, *block, bytes, from_top, upper);
  return NULL;
}

gcap_status_t gcap_scratch_detach(gcap_scratch_t* scratch, size_t bytes, gcap_scratch_block_t** block) {
  return detach(scratch, bytes, is_from_top(*block, bytes), block);
}

gcap_status_t gcap_scratch_detach_bottom(gcap_scratch_t* scratch, gcap_scratch_block_t* block, size_t bytes) {
  return detach(scratch, bytes, /*from_top=*/false, &block);
}
