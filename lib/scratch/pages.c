// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The map from addresses to blocks: device memory holds no headers, so each granule has a place in a tree of fixed
// depth. A page is used again when its regions are gone, and its memory stays a page until the arena ends: whoever
// looks up a wrong address at that moment finds nothing, or a block that does not start there.
// Locking: the own mutex for making and ending, none for looking.

#include "lib/scratch/pages.h"

#include <stdlib.h>

void gcap_scratch_pages_init(gcap_scratch_pages_t* pages) { pthread_mutex_init(&pages->mutex, NULL); }

void gcap_scratch_pages_deinit(gcap_scratch_pages_t* pages) {
  for (size_t i = 0; i < (size_t)1 << GCAP_SCRATCH_NUM_LEAVES_LOG2; ++i) free(atomic_load(&pages->leaves[i]));
  while (pages->spares != NULL) {
    gcap_scratch_page_t* page = pages->spares;
    pages->spares = page->next;
    free(page);
  }
  pthread_mutex_destroy(&pages->mutex);
}

static gcap_scratch_leaf_t* leaf_of(gcap_scratch_pages_t* pages, uintptr_t number) {
  return atomic_load_explicit(&pages->leaves[number >> GCAP_SCRATCH_LEAF_PAGES_LOG2], memory_order_acquire);
}

static size_t place_of(uintptr_t number) { return number & (((size_t)1 << GCAP_SCRATCH_LEAF_PAGES_LOG2) - 1); }

// Called with the mutex held.
static bool add_to_page(gcap_scratch_pages_t* pages, uintptr_t number) {
  gcap_scratch_leaf_t* leaf = leaf_of(pages, number);
  if (leaf == NULL) {
    leaf = calloc(1, sizeof(*leaf));
    if (leaf == NULL) return false;
    atomic_store_explicit(&pages->leaves[number >> GCAP_SCRATCH_LEAF_PAGES_LOG2], leaf, memory_order_release);
  }
  size_t place = place_of(number);
  if (leaf->places[place].num_regions == 0) {
    gcap_scratch_page_t* page = pages->spares;
    if (page != NULL) {
      pages->spares = page->next;
      page->next = NULL;
    } else {
      page = calloc(1, sizeof(*page));
      if (page == NULL) return false;
    }
    atomic_store_explicit(&leaf->places[place].page, page, memory_order_release);
  }
  ++leaf->places[place].num_regions;
  return true;
}

static void remove_from_page(gcap_scratch_pages_t* pages, uintptr_t number) {
  gcap_scratch_leaf_t* leaf = leaf_of(pages, number);
  size_t place = place_of(number);
  if (--leaf->places[place].num_regions > 0) return;
  gcap_scratch_page_t* page = atomic_load_explicit(&leaf->places[place].page, memory_order_relaxed);
  atomic_store_explicit(&leaf->places[place].page, NULL, memory_order_release);
  page->next = pages->spares;
  pages->spares = page;
}

gcap_status_t gcap_scratch_pages_add(gcap_scratch_pages_t* pages, const char* base, size_t bytes) {
  uintptr_t first = (uintptr_t)base >> GCAP_SCRATCH_PAGE_BYTES_LOG2;
  uintptr_t last = ((uintptr_t)base + (bytes - 1)) >> GCAP_SCRATCH_PAGE_BYTES_LOG2;
  if (last < first || last >> (GCAP_SCRATCH_LEAF_PAGES_LOG2 + GCAP_SCRATCH_NUM_LEAVES_LOG2) != 0) {
    return GCAP_STATUS(GCAP_LIBRARY_ERROR,
                       "scratch's upstream allocator gave %p for %zu bytes, expected addresses below 2^49",
                       (const void*)base, bytes);
  }
  pthread_mutex_lock(&pages->mutex);
  uintptr_t number = first;
  while (number <= last && add_to_page(pages, number)) ++number;
  bool complete = number > last;
  while (!complete && number > first) remove_from_page(pages, --number);
  pthread_mutex_unlock(&pages->mutex);
  if (complete) return NULL;
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to describe a scratch region of %zu bytes", bytes);
}

void gcap_scratch_pages_remove(gcap_scratch_pages_t* pages, const char* base, size_t bytes) {
  uintptr_t first = (uintptr_t)base >> GCAP_SCRATCH_PAGE_BYTES_LOG2;
  uintptr_t last = ((uintptr_t)base + (bytes - 1)) >> GCAP_SCRATCH_PAGE_BYTES_LOG2;
  pthread_mutex_lock(&pages->mutex);
  for (uintptr_t number = first; number <= last; ++number) remove_from_page(pages, number);
  pthread_mutex_unlock(&pages->mutex);
}
