// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// block.h: blocks of scratch memory, and the tags that tell whose they are.
#ifndef GCAP_LIB_SCRATCH_BLOCK_H_
#define GCAP_LIB_SCRATCH_BLOCK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/scratch/atomics.h"

#ifdef __cplusplus
extern "C" {
#endif

// All blocks start at and are multiples of it: the alignment that kernels, cuBLASLt and cuDNN rely on.
#define GCAP_SCRATCH_GRANULE_BYTES ((size_t)256)
// Less than one byte in so many of what is asked for is wasted by handing out a block whole.
#define GCAP_SCRATCH_MAX_DEAD_SHARE 8

typedef enum gcap_scratch_phase {
  GCAP_SCRATCH_FREE = 0,  // in the pool of its owner, or on its way there
  GCAP_SCRATCH_CACHED,    // in its stream's cache: free, but not joined with its neighbours
  GCAP_SCRATCH_LIVE,      // handed out
} gcap_scratch_phase_t;

// A tag tells whose a block is, and its phase: a gcap_scratch_phase_t, and the address of the owner, with
// GCAP_SCRATCH_TAG_KEPT where that is a reservation. Two free neighbours may become one just when their tags are equal.
#define GCAP_SCRATCH_TAG_PHASE ((uintptr_t)3)
#define GCAP_SCRATCH_TAG_KEPT ((uintptr_t)4)
// Set while somebody relies on a live block: whoever hands the block out again does not set it. See memory_source.c.
#define GCAP_SCRATCH_TAG_WATCHED ((uintptr_t)8)
#define GCAP_SCRATCH_TAG_BITS (GCAP_SCRATCH_TAG_PHASE | GCAP_SCRATCH_TAG_KEPT | GCAP_SCRATCH_TAG_WATCHED)

struct gcap_scratch_owner;  // owner.h

// For what a live block was allocated. The two lie together so that they are copied at once.
typedef struct gcap_scratch_use {
  uint64_t run;      // of the block's stream; 0: for none
  const char* node;  // its name; NULL: no node
} gcap_scratch_use_t;

// One piece of a region. A region's blocks cover it without a gap. Whoever holds the lock of the block's stream
// (lock.h) may read and change the block; what others read without the lock is atomic. Its struct stays one of a block
// until the arena ends, so that a reader who comes too late finds some block. It fills a cache line.
typedef struct gcap_scratch_block {
  _Atomic(char*) base;
  // The owner of a live block is the stream that it was allocated for; of a free one, the stream that used it last;
  // none: no stream uses the block any more.
  _Atomic(uintptr_t) tag;
  size_t bytes;
  // Neighbours in the region, by address. Whoever owns the lower one sets the upper one's link to it.
  _Atomic(struct gcap_scratch_block*) lower;
  union {
    struct gcap_scratch_block* previous;  // in a bin of its pool
    size_t requested_bytes;               // live: what was asked for
  };
  struct gcap_scratch_block* upper;
  union {
    struct {
      struct gcap_scratch_block* next;  // in a bin of its pool or cache, or among the spares
      // Of a free block with an owner: what the stream did with it comes before this point of its timeline; 0: nothing.
      uint64_t used_before;
    };
    gcap_scratch_use_t use;  // live
  };
} gcap_scratch_block_t;

static inline char* gcap_scratch_block_base(const gcap_scratch_block_t* block) {
  return atomic_load_explicit(&block->base, memory_order_relaxed);
}
static inline void gcap_scratch_block_set_base(gcap_scratch_block_t* block, char* base) {
  atomic_store_explicit(&block->base, base, memory_order_relaxed);
}
static inline uintptr_t gcap_scratch_block_tag(const gcap_scratch_block_t* block) {
  return atomic_load_explicit(&block->tag, memory_order_relaxed);
}
static inline void gcap_scratch_block_set_tag(gcap_scratch_block_t* block, uintptr_t tag) {
  atomic_store_explicit(&block->tag, tag, memory_order_relaxed);
}
static inline gcap_scratch_phase_t gcap_scratch_block_phase(const gcap_scratch_block_t* block) {
  return (gcap_scratch_phase_t)(gcap_scratch_block_tag(block) & GCAP_SCRATCH_TAG_PHASE);
}
// Nobody watches it any more.
static inline void gcap_scratch_block_set_phase(gcap_scratch_block_t* block, gcap_scratch_phase_t phase) {
  const uintptr_t cleared = GCAP_SCRATCH_TAG_PHASE | GCAP_SCRATCH_TAG_WATCHED;
  gcap_scratch_block_set_tag(block, (gcap_scratch_block_tag(block) & ~cleared) | (uintptr_t)phase);
}
static inline bool gcap_scratch_block_is_watched(const gcap_scratch_block_t* block) {
  return (gcap_scratch_block_tag(block) & GCAP_SCRATCH_TAG_WATCHED) != 0;
}
// Whether a graph keeps it.
static inline bool gcap_scratch_block_is_kept(const gcap_scratch_block_t* block) {
  return (gcap_scratch_block_tag(block) & GCAP_SCRATCH_TAG_KEPT) != 0;
}
static inline struct gcap_scratch_owner* gcap_scratch_block_owner(const gcap_scratch_block_t* block) {
  return (struct gcap_scratch_owner*)(gcap_scratch_block_tag(block) & ~GCAP_SCRATCH_TAG_BITS);
}
static inline gcap_scratch_block_t* gcap_scratch_block_lower(const gcap_scratch_block_t* block) {
  return atomic_load_explicit(&block->lower, memory_order_relaxed);
}
static inline void gcap_scratch_block_set_lower(gcap_scratch_block_t* block, gcap_scratch_block_t* lower) {
  atomic_store_explicit(&block->lower, lower, memory_order_relaxed);
}

// The size of a block for a request; 0 when nothing is asked for, or it overflows.
static inline size_t gcap_scratch_block_bytes(size_t requested_bytes) {
  return (requested_bytes + GCAP_SCRATCH_GRANULE_BYTES - 1) & ~(GCAP_SCRATCH_GRANULE_BYTES - 1);
}

// Whether a free block is given for a request without being cut: what it has too much stays with it, unused. The rule
// is ONNX Runtime's max_dead_bytes_per_chunk, but for the share of the request, which keeps waste in proportion.
static inline bool gcap_scratch_fits_whole(const gcap_scratch_block_t* block, size_t bytes, size_t max_dead_bytes) {
  const size_t dead_bytes = block->bytes - bytes;  // huge when the block is too small
  return dead_bytes <= max_dead_bytes && dead_bytes < bytes / GCAP_SCRATCH_MAX_DEAD_SHARE;
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_SCRATCH_BLOCK_H_
