// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cache.h: the pool of pages that hold the keys and values of one thread's sequences.
#ifndef GCAP_EXAMPLES_DECODER_CACHE_H_
#define GCAP_EXAMPLES_DECODER_CACHE_H_

#include <stddef.h>

#include "examples/decoder/batch.h"
#include "gcap/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CACHE_MIN_PAGES = 8, CACHE_MAX_PAGES = 32 };  // the pool has 8, 16 or 32

// What the pool went through.
typedef struct cache_counts {
  int growths;
  int pool_moves;
  int page_moves;
} cache_counts_t;

typedef struct cache {
  gcap_scratch_t* scratch;
  gcap_stream_t* stream;
  decoder_page_t* pages;  // [num_pages], in device memory
  int num_pages;
  int num_used;  // the first ones of the pool
  sequence_t* owners[CACHE_MAX_PAGES];
  cache_counts_t counts;
} cache_t;

// Makes a pool of CACHE_MIN_PAGES pages for the stream of `resources`. To be destroyed also after a failure.
gcap_status_t cache_create(const gcap_run_resources_t* resources, cache_t* out_cache);
gcap_status_t cache_destroy(cache_t* cache);

// Gives the sequence a page for its position, if it has none. The pool may grow, and then has another address.
gcap_status_t cache_cover(cache_t* cache, sequence_t* sequence);
// Takes the pages of the sequence back. The pool's last pages move into the gaps.
gcap_status_t cache_uncover(cache_t* cache, sequence_t* sequence);
// Moves the pool elsewhere, as an engine does that gives regions back to the driver. Where there is no memory for two
// pools, the pool stays.
gcap_status_t cache_move(cache_t* cache);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_EXAMPLES_DECODER_CACHE_H_
