// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Regions and the cutting and joining of their blocks. Device memory holds no headers, so each region has a table by
// granule: an address finds its region by bisection and its block by one look into the table.
//
// Invariant: two free neighbours never carry the same mark (reservation and tag), since whatever is put into a pool is
// merged first. Blocks with different tags are never merged here: the union would be safe only for a stream that waited
// for both (see place.c, which does it for one that has). Locking: the arena's mutex.

#include <stdlib.h>

#include "lib/scratch/arena.h"

gcap_status_t scratch_region_create(void* base, size_t bytes, scratch_region_t** out_region) {
  *out_region = NULL;
  scratch_region_t* region = calloc(1, sizeof(*region));
  scratch_block_t* block = calloc(1, sizeof(*block));
  // Untouched pages of the table cost nothing: a large region used as few blocks stays cheap.
  scratch_block_t** starts = calloc(bytes / SCRATCH_GRANULE_BYTES, sizeof(scratch_block_t*));
  if (region == NULL || block == NULL || starts == NULL) {
    free(region);
    free(block);
    free(starts);
    return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to describe a scratch region of %zu bytes", bytes);
  }
  *block = (scratch_block_t){.base = base, .bytes = bytes, .region = region};
  starts[0] = block;
  *region = (scratch_region_t){.base = base, .bytes = bytes, .first = block, .starts = starts};
  *out_region = region;
  return NULL;
}

void scratch_region_destroy(scratch_region_t* region) {
  free(region->first);
  free(region->starts);
  free(region);
}

static size_t granule_of(const scratch_region_t* region, const void* ptr) {
  return ((uintptr_t)ptr - (uintptr_t)region->base) / SCRATCH_GRANULE_BYTES;
}

static scratch_region_t* find_region(const gcap_scratch_t* scratch, const void* ptr) {
  size_t low = 0, high = scratch->num_regions;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    scratch_region_t* region = scratch->regions[middle];
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

gcap_status_t scratch_find_live(gcap_scratch_t* scratch, void* ptr, scratch_block_t** out_block) {
  *out_block = NULL;
  scratch_region_t* region = find_region(scratch, ptr);
  if (region == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "address %p was not allocated from this scratch", ptr);
  scratch_block_t* block = region->starts[granule_of(region, ptr)];
  if (block == NULL || block->base != (char*)ptr) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "address %p is inside a block of this scratch, not its start", ptr);
  }
  if (!block->live) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "address %p was freed already", ptr);
  *out_block = block;
  return NULL;
}

scratch_pool_t* scratch_pool_of(gcap_scratch_t* scratch, const scratch_block_t* block) {
  if (block->reservation != NULL) return &block->reservation->pool;
  return block->user != NULL ? &block->user->pool : &scratch->untagged;
}

void scratch_merge_upper(gcap_scratch_t* scratch, scratch_block_t* block) {
  scratch_block_t* upper = block->upper;
  block->bytes += upper->bytes;
  if (block->sync_id < upper->sync_id) block->sync_id = upper->sync_id;
  block->upper = upper->upper;
  if (block->upper != NULL) block->upper->lower = block;
  block->region->starts[granule_of(block->region, upper->base)] = NULL;
  upper->next = scratch->spares;
  scratch->spares = upper;
}

static bool same_mark(const scratch_block_t* a, const scratch_block_t* b) {
  return !a->live && !b->live && a->reservation == b->reservation && a->user == b->user;
}

scratch_block_t* scratch_put(gcap_scratch_t* scratch, scratch_block_t* block) {
  scratch_pool_t* pool = scratch_pool_of(scratch, block);
  if (block->upper != NULL && same_mark(block, block->upper)) {
    scratch_pool_remove(pool, block->upper);
    scratch_merge_upper(scratch, block);
  }
  if (block->lower != NULL && same_mark(block, block->lower)) {
    block = block->lower;
    scratch_pool_remove(pool, block);
    scratch_merge_upper(scratch, block);
  }
  scratch_pool_insert(pool, block);
  return block;
}

static scratch_block_t* new_block(gcap_scratch_t* scratch) {
  scratch_block_t* block = scratch->spares;
  if (block == NULL) return malloc(sizeof(*block));
  scratch->spares = block->next;
  return block;
}

// Cuts a block down to `bytes`; what was above becomes a block with the same mark.
static gcap_status_t split(gcap_scratch_t* scratch, scratch_block_t* block, size_t bytes, scratch_block_t** out_rest) {
  scratch_block_t* rest = new_block(scratch);
  *out_rest = rest;
  if (rest == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to describe a scratch block");
  *rest = *block;
  rest->base += bytes;
  rest->bytes -= bytes;
  rest->lower = block;
  if (rest->upper != NULL) rest->upper->lower = rest;
  block->upper = rest;
  block->bytes = bytes;
  block->region->starts[granule_of(block->region, rest->base)] = rest;
  return NULL;
}

gcap_status_t scratch_detach(gcap_scratch_t* scratch, scratch_block_t* block, size_t bytes) {
  scratch_pool_t* pool = scratch_pool_of(scratch, block);
  scratch_pool_remove(pool, block);
  if (block->bytes == bytes) return NULL;
  scratch_block_t* rest = NULL;
  gcap_status_t status = split(scratch, block, bytes, &rest);
  scratch_pool_insert(pool, status == NULL ? rest : block);
  return status;
}
