// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pool.h: blocks of scratch memory, and segregated lists of free ones.
#ifndef GCAP_LIB_SCRATCH_POOL_H_
#define GCAP_LIB_SCRATCH_POOL_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gcap/scratch.h"

// All blocks start at and are multiples of it: the alignment that kernels, cuBLASLt and cuDNN rely on.
#define SCRATCH_GRANULE_BYTES ((size_t)256)

// One piece of a region. A region's blocks cover it without a gap.
typedef struct scratch_block {
  char* base;
  size_t bytes;
  size_t requested_bytes;  // of a live block
  bool live;               // handed out
  // Live: the stream it was allocated for. Free: the tag, the stream that used it last; NULL: nobody uses it any more.
  struct scratch_stream* user;
  uint64_t sync_id;                         // of a tagged block: the user's sync id when it was freed
  gcap_scratch_reservation_t* reservation;  // the graph that keeps it; NULL: the arena
  struct scratch_region* region;
  struct scratch_block *lower, *upper;    // neighbours in the region, by address
  struct scratch_block *previous, *next;  // in a bin of its pool, while free
} scratch_block_t;

// A bin holds a range of sizes; a power of two is divided into this many.
#define SCRATCH_BINS_PER_POWER_LOG2 3
// Sizes below 2^64 bytes are fewer than 2^56 granules; the formula in pool.c then ends at this.
#define SCRATCH_NUM_BINS 432
#define SCRATCH_NUM_BIN_WORDS ((SCRATCH_NUM_BINS + 63) / 64)

// Free blocks that have one thing in common: a tag, a reservation, or that nobody uses them.
typedef struct scratch_pool {
  scratch_block_t* bins[SCRATCH_NUM_BINS];  // most recently freed first
  uint64_t filled[SCRATCH_NUM_BIN_WORDS];   // bit i: bin i is not empty
} scratch_pool_t;

// The bin for blocks of `bytes`, a multiple of the granule.
unsigned scratch_pool_bin(size_t bytes);
// The first filled bin at or above `bin`; SCRATCH_NUM_BINS when there is none.
unsigned scratch_pool_next_bin(const scratch_pool_t* pool, unsigned bin);

void scratch_pool_insert(scratch_pool_t* pool, scratch_block_t* block);
void scratch_pool_remove(scratch_pool_t* pool, scratch_block_t* block);

// A block of at least `bytes`; NULL when there is none. With `consumer`, only one whose tag it has waited for.
scratch_block_t* scratch_pool_find(const scratch_pool_t* pool, size_t bytes, const gcap_stream_t* consumer);
// Some block, the smaller ones first; NULL when the pool is empty.
scratch_block_t* scratch_pool_first(const scratch_pool_t* pool);

#endif  // GCAP_LIB_SCRATCH_POOL_H_
