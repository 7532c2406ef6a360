// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// region.h: the store of blocks: regions of memory, cut into blocks and joined again, and found by address. It never
// asks a stream, a driver or the upstream allocator anything.
#ifndef GCAP_LIB_SCRATCH_REGION_H_
#define GCAP_LIB_SCRATCH_REGION_H_

#include "lib/scratch/owner.h"
#include "lib/scratch/pages.h"
#include "lib/scratch/slabs.h"

#ifdef __cplusplus
extern "C" {
#endif

// One piece of memory from upstream.
typedef struct gcap_scratch_region {
  char* base;
  size_t bytes;
  gcap_scratch_block_t* first;       // lowest
  struct gcap_scratch_region* next;  // on a list of regions that are being given back
  bool reserved;                     // one block for gcap_allocator_reserve, given back when that is freed
  bool held;                         // for the next capture that lacks memory: see bypass.c
} gcap_scratch_region_t;

typedef struct gcap_scratch_store {
  gcap_scratch_pages_t pages;
  gcap_scratch_slabs_t slabs;
  gcap_scratch_region_t** regions;  // by address
  size_t num_regions, region_capacity;
  gcap_scratch_pool_t untagged;  // free blocks without an owner: no stream uses them any more
} gcap_scratch_store_t;

// `store` is all zeros.
void gcap_scratch_store_init(gcap_scratch_store_t* store);
// Its regions were given back, or their memory is left to its fate.
void gcap_scratch_store_deinit(gcap_scratch_store_t* store);

// --- Regions --------------------------------------------------------------------------------------------------------

// A region of one untagged block, which is in no pool yet, not listed. Needs no lock.
//   RESOURCE_EXHAUSTED  no host memory
//   LIBRARY_ERROR       no device or host has such addresses
gcap_status_t gcap_scratch_region_create(gcap_scratch_store_t* store, void* base, size_t bytes,
                                         gcap_scratch_block_t* block,
                                         gcap_scratch_region_t** out_region) GCAP_NODISCARD;
// Ends the region's description, which is not listed. It consists of one block, which is in no pool.
void gcap_scratch_region_destroy(gcap_scratch_store_t* store, gcap_scratch_region_t* region);

// Makes sure that so many regions can be listed.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_scratch_make_region_places(gcap_scratch_store_t* store, size_t num_regions) GCAP_NODISCARD;
// Lists a region, for which there is a place; and takes it off the list.
void gcap_scratch_list_region(gcap_scratch_store_t* store, gcap_scratch_region_t* region);
void gcap_scratch_unlist_region(gcap_scratch_store_t* store, const gcap_scratch_region_t* region);

// The region of an address; NULL when there is none.
gcap_scratch_region_t* gcap_scratch_find_region(const gcap_scratch_store_t* store, const void* ptr);
// The live block that was handed out as `ptr`, which lies `zone_bytes` above its start.
//   INVALID_ARGUMENT  there is none, and why
gcap_status_t gcap_scratch_find_live(gcap_scratch_store_t* store, void* ptr, size_t zone_bytes,
                                     gcap_scratch_block_t** out_block) GCAP_NODISCARD;

// --- Joining and cutting --------------------------------------------------------------------------------------------

// The pool that a free block belongs to.
gcap_scratch_pool_t* gcap_scratch_pool_of(gcap_scratch_store_t* store, const gcap_scratch_block_t* block);
// Takes `bytes` of a free block out of its pool; what it has too much stays there as another block.
//   RESOURCE_EXHAUSTED  no host memory; the block is still in its pool
gcap_status_t gcap_scratch_detach(gcap_scratch_store_t* store, size_t bytes,
                                  gcap_scratch_block_t** block) GCAP_NODISCARD;
// The same; they are the uppermost of the block.
gcap_status_t gcap_scratch_detach_top(gcap_scratch_store_t* store, size_t bytes,
                                      gcap_scratch_block_t** block) GCAP_NODISCARD;
// The same; they are the lowest of the block.
gcap_status_t gcap_scratch_detach_bottom(gcap_scratch_store_t* store, gcap_scratch_block_t* block,
                                         size_t bytes) GCAP_NODISCARD;
// The same; they begin at `base`, inside the block.
gcap_status_t gcap_scratch_detach_at(gcap_scratch_store_t* store, char* base, size_t bytes,
                                     gcap_scratch_block_t** block) GCAP_NODISCARD;
// The same as gcap_scratch_detach for a block of `stream`, whose lock is enough. NULL when that would need host memory.
gcap_scratch_block_t* gcap_scratch_detach_own(gcap_scratch_owner_t* stream, gcap_scratch_block_t* block, size_t bytes);
// Puts a free block into its pool, joined with the neighbours that carry the same tag; gives the block it became.
gcap_scratch_block_t* gcap_scratch_put(gcap_scratch_store_t* store, gcap_scratch_block_t* block);
// The same for a block of `stream`, whose lock is enough.
void gcap_scratch_put_own(gcap_scratch_owner_t* stream, gcap_scratch_block_t* block);
// Joins a block and its upper neighbour, both in no pool. The tag of the lower one stays, with the later use.
void gcap_scratch_join_upper(gcap_scratch_store_t* store, gcap_scratch_block_t* block);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_SCRATCH_REGION_H_
