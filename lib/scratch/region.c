// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Regions and the cutting and joining of their blocks.
//
// Invariant: two free neighbours never carry the same tag, since whatever is put into a pool is joined with its
// neighbours first; a cached one is put there later. Blocks with different tags are never joined here: the union would
// be safe only for a stream that waited for both (see place.c, which does it for one that has).
//
// Locking: the arena is locked, or the lock of the stream whose block it is. The latter must see of a neighbour no more
// than whose it is, before that is known to be the same stream's: no other thread can make it so, or not so, meanwhile.
// The link from a block of another stream down to ours is ours to set, and its owner follows it no further than to the
// tag of our block.

#include "lib/scratch/region.h"

#include <stdlib.h>
#include <string.h>

#include "lib/internal/grow.h"

void gcap_scratch_store_init(gcap_scratch_store_t* store) { gcap_scratch_pages_init(&store->pages); }

void gcap_scratch_store_deinit(gcap_scratch_store_t* store) {
  gcap_scratch_slabs_deinit(&store->slabs);
  gcap_scratch_pages_deinit(&store->pages);
  free(store->regions);
}

// --- Regions --------------------------------------------------------------------------------------------------------

gcap_status_t gcap_scratch_region_create(gcap_scratch_store_t* store, void* base, size_t bytes,
                                         gcap_scratch_block_t* block, gcap_scratch_region_t** out_region) {
  *out_region = NULL;
  gcap_scratch_region_t* region = calloc(1, sizeof(*region));
  if (region == NULL) {
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to describe a scratch region of %zu bytes", bytes);
  }
  gcap_status_t status = gcap_scratch_pages_add(&store->pages, base, bytes);
  if (status != NULL) {
    free(region);
    return status;
  }
  *region = (gcap_scratch_region_t){.base = base, .bytes = bytes, .first = block};
  gcap_scratch_block_set_base(block, base);
  gcap_scratch_block_set_tag(block, GCAP_SCRATCH_FREE);
  gcap_scratch_block_set_lower(block, NULL);
  block->upper = NULL;
  block->bytes = bytes;
  block->used_before = 0;
  *out_region = region;
  return NULL;
}

void gcap_scratch_region_destroy(gcap_scratch_store_t* store, gcap_scratch_region_t* region) {
  gcap_scratch_pages_remove(&store->pages, region->base, region->bytes);
  gcap_scratch_block_recycle(&store->slabs, NULL, region->first);
  free(region);
}

gcap_status_t gcap_scratch_make_region_places(gcap_scratch_store_t* store, size_t num_regions) {
  if (gcap_grow(&store->regions, &store->region_capacity, num_regions, sizeof(gcap_scratch_region_t*))) return NULL;
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for the table of scratch regions");
}

void gcap_scratch_list_region(gcap_scratch_store_t* store, gcap_scratch_region_t* region) {
  size_t at = store->num_regions;
  while (at > 0 && (uintptr_t)store->regions[at - 1]->base > (uintptr_t)region->base) --at;
  memmove(&store->regions[at + 1], &store->regions[at], (store->num_regions - at) * sizeof(gcap_scratch_region_t*));
  store->regions[at] = region;
  ++store->num_regions;
}

void gcap_scratch_unlist_region(gcap_scratch_store_t* store, const gcap_scratch_region_t* region) {
  size_t at = 0;
  while (store->regions[at] != region) ++at;
  --store->num_regions;
  memmove(&store->regions[at], &store->regions[at + 1], (store->num_regions - at) * sizeof(gcap_scratch_region_t*));
}

gcap_scratch_region_t* gcap_scratch_find_region(const gcap_scratch_store_t* store, const void* ptr) {
  size_t low = 0, high = store->num_regions;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    gcap_scratch_region_t* region = store->regions[middle];
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

gcap_status_t gcap_scratch_find_live(gcap_scratch_store_t* store, void* ptr, size_t zone_bytes,
                                     gcap_scratch_block_t** out_block) {
  *out_block = NULL;
  const gcap_scratch_region_t* region = gcap_scratch_find_region(store, ptr);
  if (region == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "address %p was not allocated from this scratch", ptr);
  const uintptr_t base = (uintptr_t)ptr - zone_bytes;
  gcap_scratch_block_t* block = gcap_scratch_pages_find(&store->pages, (const void*)base);
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

gcap_scratch_pool_t* gcap_scratch_pool_of(gcap_scratch_store_t* store, const gcap_scratch_block_t* block) {
  gcap_scratch_owner_t* owner = gcap_scratch_block_owner(block);
  return owner != NULL ? &owner->pool : &store->untagged;
}

// Joins a block of `stream` and its upper neighbour, both in no pool.
static inline void join(gcap_scratch_slabs_t* slabs, gcap_scratch_owner_t* stream, gcap_scratch_block_t* block) {
  gcap_scratch_block_t* upper = block->upper;
  block->bytes += upper->bytes;
  if (block->used_before < upper->used_before) block->used_before = upper->used_before;
  block->upper = upper->upper;
  if (block->upper != NULL) gcap_scratch_block_set_lower(block->upper, block);
  gcap_scratch_block_recycle(slabs, stream, upper);
}

void gcap_scratch_join_upper(gcap_scratch_store_t* store, gcap_scratch_block_t* block) {
  join(&store->slabs, gcap_scratch_block_stream(block), block);
}

// Whether a neighbour may be joined with a block that is free.
static bool same_tag(const gcap_scratch_block_t* block, const gcap_scratch_block_t* neighbour) {
  return neighbour != NULL && gcap_scratch_block_tag(neighbour) == gcap_scratch_block_tag(block);
}

static inline gcap_scratch_block_t* put(gcap_scratch_slabs_t* slabs, gcap_scratch_owner_t* stream,
                                        gcap_scratch_pool_t* pool, gcap_scratch_block_t* block) {
  if (same_tag(block, block->upper)) {
    gcap_scratch_pool_remove(pool, block->upper);
    join(slabs, stream, block);
  }
  gcap_scratch_block_t* lower = gcap_scratch_block_lower(block);
  if (same_tag(block, lower)) {
    const bool stays = gcap_scratch_pool_bin(lower->bytes + block->bytes) == gcap_scratch_pool_bin(lower->bytes);
    if (!stays) gcap_scratch_pool_remove(pool, lower);
    join(slabs, stream, lower);
    block = lower;
    if (stays) return block;
  }
  gcap_scratch_pool_insert(pool, block);
  return block;
}

gcap_scratch_block_t* gcap_scratch_put(gcap_scratch_store_t* store, gcap_scratch_block_t* block) {
  return put(&store->slabs, gcap_scratch_block_stream(block), gcap_scratch_pool_of(store, block), block);
}

void gcap_scratch_put_own(gcap_scratch_owner_t* stream, gcap_scratch_block_t* block) {
  (void)put(NULL, stream, &stream->pool, block);
}

// Cuts a free block down to `bytes`; what was above becomes `rest`, with the same tag.
static void cut(gcap_scratch_block_t* block, size_t bytes, gcap_scratch_block_t* rest) {
  gcap_scratch_block_set_base(rest, gcap_scratch_block_base(block) + bytes);
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

gcap_scratch_block_t* gcap_scratch_detach_own(gcap_scratch_owner_t* stream, gcap_scratch_block_t* block, size_t bytes) {
  if (block->bytes != bytes) {
    gcap_scratch_block_t* upper = gcap_scratch_spares_pop(&stream->spares);
    return upper == NULL ? NULL : split(&stream->pool, block, bytes, is_from_top(block, bytes), upper);
  }
  gcap_scratch_pool_remove(&stream->pool, block);
  return block;
}

static gcap_status_t detach(gcap_scratch_store_t* store, size_t bytes, bool from_top, gcap_scratch_block_t** block) {
  gcap_scratch_pool_t* pool = gcap_scratch_pool_of(store, *block);
  if ((*block)->bytes == bytes) {
    gcap_scratch_pool_remove(pool, *block);
    return NULL;
  }
  gcap_scratch_block_t* upper = gcap_scratch_block_new(&store->slabs, gcap_scratch_block_stream(*block));
  if (upper == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to describe a scratch block");
  *block = split(pool, *block, bytes, from_top, upper);
  return NULL;
}

gcap_status_t gcap_scratch_detach(gcap_scratch_store_t* store, size_t bytes, gcap_scratch_block_t** block) {
  return detach(store, bytes, is_from_top(*block, bytes), block);
}

gcap_status_t gcap_scratch_detach_top(gcap_scratch_store_t* store, size_t bytes, gcap_scratch_block_t** block) {
  return detach(store, bytes, /*from_top=*/true, block);
}

gcap_status_t gcap_scratch_detach_bottom(gcap_scratch_store_t* store, gcap_scratch_block_t* block, size_t bytes) {
  return detach(store, bytes, /*from_top=*/false, &block);
}

gcap_status_t gcap_scratch_detach_at(gcap_scratch_store_t* store, char* base, size_t bytes,
                                     gcap_scratch_block_t** block) {
  const size_t below_bytes = (size_t)(base - gcap_scratch_block_base(*block));
  GCAP_RETURN_IF_ERROR(detach(store, (*block)->bytes - below_bytes, /*from_top=*/true, block));
  if ((*block)->bytes == bytes) return NULL;
  gcap_scratch_pool_insert(gcap_scratch_pool_of(store, *block), *block);
  gcap_status_t status = detach(store, bytes, /*from_top=*/false, block);
  if (status == NULL) return NULL;
  gcap_scratch_pool_remove(gcap_scratch_pool_of(store, *block), *block);
  *block = gcap_scratch_put(store, *block);  // joined again with what lies below
  return status;
}
