// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pages.h: from an address to the block that starts there, without a lock.
#ifndef GCAP_LIB_SCRATCH_PAGES_H_
#define GCAP_LIB_SCRATCH_PAGES_H_

#include <pthread.h>

#include "gcap/status.h"
#include "lib/scratch/block.h"

#ifdef __cplusplus
extern "C" {
#endif

// 49 bits of address: 12 choose a leaf, 12 a page of 32 MiB in it, the rest a granule in that. Pages are so large
// because their untouched parts cost nothing, and all of 80 GB then is 2,560 of them.
#define GCAP_SCRATCH_PAGE_BYTES_LOG2 25
#define GCAP_SCRATCH_LEAF_PAGES_LOG2 12
#define GCAP_SCRATCH_NUM_LEAVES_LOG2 12

typedef struct gcap_scratch_page {
  _Atomic(gcap_scratch_block_t*) blocks[(size_t)1 << (GCAP_SCRATCH_PAGE_BYTES_LOG2 - 8)];  // by granule
  struct gcap_scratch_page* next;                                                          // among the spares
} gcap_scratch_page_t;

typedef struct gcap_scratch_leaf {
  struct {
    _Atomic(gcap_scratch_page_t*) page;
    size_t num_regions;  // that have a part in it
  } places[(size_t)1 << GCAP_SCRATCH_LEAF_PAGES_LOG2];
} gcap_scratch_leaf_t;

// A place leads to the block that was last handed out there, whether it still is or not: a struct stays one of a block
// until the arena ends, and says itself what it is. Whoever may change a block (see block.h) sets its place; anybody
// looks.
typedef struct gcap_scratch_pages {
  _Atomic(gcap_scratch_leaf_t*) leaves[(size_t)1 << GCAP_SCRATCH_NUM_LEAVES_LOG2];
  pthread_mutex_t mutex;  // over what follows, and over the making and ending of pages
  gcap_scratch_page_t* spares;
} gcap_scratch_pages_t;

void gcap_scratch_pages_init(gcap_scratch_pages_t* pages);
void gcap_scratch_pages_deinit(gcap_scratch_pages_t* pages);

// Makes places for a region.
//   RESOURCE_EXHAUSTED  no host memory
//   LIBRARY_ERROR       no device or host has such addresses
gcap_status_t gcap_scratch_pages_add(gcap_scratch_pages_t* pages, const char* base, size_t bytes) GCAP_NODISCARD;
// Takes them away.
void gcap_scratch_pages_remove(gcap_scratch_pages_t* pages, const char* base, size_t bytes);

// The place of the granule of an address; NULL when there is no page. For an address of no region it may become one of
// another.
static inline _Atomic(gcap_scratch_block_t*)* gcap_scratch_pages_place(gcap_scratch_pages_t* pages, const void* ptr) {
  const uintptr_t address = (uintptr_t)ptr;
  const uintptr_t number = address >> GCAP_SCRATCH_PAGE_BYTES_LOG2;
  if (number >> (GCAP_SCRATCH_LEAF_PAGES_LOG2 + GCAP_SCRATCH_NUM_LEAVES_LOG2) != 0) return NULL;
  gcap_scratch_leaf_t* leaf =
      atomic_load_explicit(&pages->leaves[number >> GCAP_SCRATCH_LEAF_PAGES_LOG2], memory_order_acquire);
  if (leaf == NULL) return NULL;
  const size_t in_leaf = number & (((size_t)1 << GCAP_SCRATCH_LEAF_PAGES_LOG2) - 1);
  gcap_scratch_page_t* page = atomic_load_explicit(&leaf->places[in_leaf].page, memory_order_acquire);
  if (page == NULL) return NULL;
  return &page->blocks[(address & (((uintptr_t)1 << GCAP_SCRATCH_PAGE_BYTES_LOG2) - 1)) / GCAP_SCRATCH_GRANULE_BYTES];
}

// Fills the place of an address in a region.
static inline void gcap_scratch_pages_set(gcap_scratch_pages_t* pages, const char* address,
                                          gcap_scratch_block_t* block) {
  atomic_store_explicit(gcap_scratch_pages_place(pages, address), block, memory_order_release);
}

// If a live block starts at `ptr`, that one; else any block that ever was, or NULL.
static inline gcap_scratch_block_t* gcap_scratch_pages_find(gcap_scratch_pages_t* pages, const void* ptr) {
  _Atomic(gcap_scratch_block_t*)* place = gcap_scratch_pages_place(pages, ptr);
  return place == NULL ? NULL : atomic_load_explicit(place, memory_order_acquire);
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_SCRATCH_PAGES_H_
