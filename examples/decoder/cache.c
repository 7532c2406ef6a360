// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The pool is a block of scratch that is allocated outside of runs, so no capture prepares for it. A sequence has its
// pages by number. The pages in use are the first ones of the pool, at all times: when a sequence leaves, the last
// pages move into its places, and their sequences get the new numbers, which their next step reads. So a pool that
// grows or moves copies one range. All copies are in the order of the thread's stream, after the steps that read the
// old place. A cache belongs to one thread.
#include "examples/decoder/cache.h"

#include <string.h>

#define APART 1  // a byte more, so that no other memory begins where the pool ends: a graph could not tell them apart

// Gives the pool another block of `num_pages` pages.
static gcap_status_t resize(cache_t* cache, int num_pages) {
  const size_t bytes = (size_t)num_pages * sizeof(*cache->pages) + APART;
  const size_t used_bytes = (size_t)cache->num_used * sizeof(*cache->pages);
  cudaStream_t stream = gcap_stream_handle(cache->stream);
  decoder_page_t* pages = NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(cache->scratch, bytes, cache->stream, (void**)&pages));
  gcap_status_t status = NULL;
  if (used_bytes > 0) {
    status = GCAP_CUDA(cudaMemcpyAsync(pages, cache->pages, used_bytes, cudaMemcpyDeviceToDevice, stream));
  }
  if (status != NULL) return gcap_status_join(status, gcap_scratch_free(cache->scratch, pages));
  decoder_page_t* before = cache->pages;
  cache->pages = pages;
  cache->num_pages = num_pages;
  return gcap_scratch_free(cache->scratch, before);
}

gcap_status_t cache_create(const gcap_run_resources_t* resources, cache_t* out_cache) {
  memset(out_cache, 0, sizeof(*out_cache));
  out_cache->scratch = resources->scratch;
  out_cache->stream = resources->stream;
  return resize(out_cache, CACHE_MIN_PAGES);
}

gcap_status_t cache_destroy(cache_t* cache) {
  decoder_page_t* pages = cache->pages;
  cache->pages = NULL;
  return gcap_scratch_free(cache->scratch, pages);
}

gcap_status_t cache_cover(cache_t* cache, sequence_t* sequence) {
  if (sequence->position / DECODER_PAGE_TOKENS < sequence->num_pages) return NULL;
  if (cache->num_used == CACHE_MAX_PAGES) return GCAP_STATUS(GCAP_INTERNAL, "all pages are in use");
  if (cache->num_used == cache->num_pages) {
    GCAP_RETURN_IF_ERROR(resize(cache, 2 * cache->num_pages));
    ++cache->counts.growths;
  }
  const int32_t page = cache->num_used++;
  cache->owners[page] = sequence;
  sequence->pages[sequence->num_pages++] = page;
  return NULL;
}

// Moves the pool's last page to `gap`.
static gcap_status_t fill_gap(cache_t* cache, int32_t gap) {
  const int32_t last = cache->num_used - 1;
  if (gap == last) return NULL;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(&cache->pages[gap], &cache->pages[last], sizeof(*cache->pages),
                                                 cudaMemcpyDeviceToDevice, gcap_stream_handle(cache->stream))));
  sequence_t* owner = cache->owners[last];
  cache->owners[gap] = owner;
  for (int i = 0; i < owner->num_pages; ++i) {
    if (owner->pages[i] == last) owner->pages[i] = gap;
  }
  ++cache->counts.page_moves;
  return NULL;
}

gcap_status_t cache_uncover(cache_t* cache, sequence_t* sequence) {
  while (sequence->num_pages > 0) {
    GCAP_RETURN_IF_ERROR(fill_gap(cache, sequence->pages[sequence->num_pages - 1]));
    --sequence->num_pages;
    --cache->num_used;
  }
  return NULL;
}

gcap_status_t cache_move(cache_t* cache) {
  gcap_status_t status = resize(cache, cache->num_pages);
  if (status == NULL) {
    ++cache->counts.pool_moves;
  } else if (gcap_status_code(status) == GCAP_RESOURCE_EXHAUSTED) {
    gcap_status_ignore(status);  // nothing needs the move
    status = NULL;
  }
  return status;
}
