// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pages.h: from an address to the block that starts there, without a lock.
#ifndef GCAP_LIB_SCRATCH_PAGES_H_
#define GCAP_LIB_SCRATCH_PAGES_H_

#include <pthread.h>

#include "lib/scratch/pool.h"

// 49 bits of address: 12 choose a leaf, 12 a page of 32 MiB in it, the rest a granule in that. Pages are so large
// because their untouched parts cost nothing, and all of 80 GB then is 2,560 of them.
#define SCRATCH_PAGE_BYTES_LOG2 25
#define SCRATCH_LEAF_PAGES_LOG2 12
#define SCRATCH_NUM_LEAVES_LOG2 12

typedef struct scratch_page {
  _Atomic(scratch_block_t*) blocks[(size_t)1 << (SCRATCH_PAGE_BYTES_LOG2 - 8)];  // by granule
  struct scratch_page* next;                                                     // among the spares
} scratch_page_t;

typedef struct scratch_leaf {
  struct {
    _Atomic(scratch_page_t*) page;
    size_t num_regions;  // that have a part in it
  } places[(size_t)1 << SCRATCH_LEAF_PAGES_LOG2];
} scratch_leaf_t;

// A place leads to the block that was last handed out there, whether it still is or not: a struct stays one of a block
// until the arena ends, and says itself what it is. Whoever may change a block sets its place (see arena.h); anybody
// looks.
typedef struct scratch_pages {
  _Atomic(scratch_leaf_t*) leaves[(size_t)1 << SCRATCH_NUM_LEAVES_LOG2];
  pthread_mutex_t mutex;  // over what follows, and over the making and ending of pages
  scratch_page_t* spares;
} scratch_pages_t;

void scratch_pages_init(scratch_pages_t* pages);
void scratch_pages_deinit(scratch_pages_t* pages);

// Makes places for a region.
//   RESOURCE_EXHAUSTED  no host memory
//   LIBRARY_ERROR       no device or host has such addresses
gcap_status_t scratch_pages_add(scratch_pages_t* pages, const char* base, size_t bytes) GCAP_NODISCARD;
// Takes them away.
void scratch_pages_remove(scratch_pages_t* pages, const char* base, size_t bytes);

// The place of the granule of an address; NULL when there is no page. For an address of no region it may become one of
// another.
static inline _Atomic(scratch_block_t*)* scratch_pages_place(scratch_pages_t* pages, const void* ptr) {
  const uintptr_t address = (uintptr_t)ptr;
  const uintptr_t number = address >> SCRATCH_PAGE_BYTES_LOG2;
  if (number >> (SCRATCH_LEAF_PAGES_LOG2 + SCRATCH_NUM_LEAVES_LOG2) != 0) return NULL;
  scratch_leaf_t* leaf = atomic_load_explicit(&pages->leaves[number >> SCRATCH_LEAF_PAGES_LOG2], memory_order_acquire);
  if (leaf == NULL) return NULL;
  const size_t in_leaf = number & (((size_t)1 << SCRATCH_LEAF_PAGES_LOG2) - 1);
  scratch_page_t* page = atomic_load_explicit(&leaf->places[in_leaf].page, memory_order_acquire);
  if (page == NULL) return NULL;
  return &page->blocks[(address & (((uintptr_t)1 << SCRATCH_PAGE_BYTES_LOG2) - 1)) / SCRATCH_GRANULE_BYTES];
}

// Fills the place of an address in a region.
static inline void scratch_pages_set(scratch_pages_t* pages, const char* address, scratch_block_t* block) {
  atomic_store_explicit(scratch_pages_place(pages, address), block, memory_order_release);
}

// If a live block starts at `ptr`, that one; else any block that ever was, or NULL.
static inline scratch_block_t* scratch_pages_find(scratch_pages_t* pages, const void* ptr) {
  _Atomic(scratch_block_t*)* place = scratch_pages_place(pages, ptr);
  return place == NULL ? NULL : atomic_load_explicit(place, memory_order_acquire);
}

#endif  // GCAP_LIB_SCRATCH_PAGES_H_
