// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// owner.h: what the store knows of those to whom blocks belong: the streams, and the reservations of graphs.
#ifndef GCAP_LIB_SCRATCH_OWNER_H_
#define GCAP_LIB_SCRATCH_OWNER_H_

#include "lib/scratch/pool.h"

#ifdef __cplusplus
extern "C" {
#endif

// The low bits of its address are those of a tag.
typedef struct gcap_scratch_owner {
  // The stream whose lock covers the owner's blocks: the owner itself, or of a reservation its stream.
  struct gcap_scratch_owner* stream;
  // Of a stream alone: the next one that the store knows, the blocks ever handed out for it and freed, and block
  // structs to use again, linked by `next`.
  struct gcap_scratch_owner* next;
  uint64_t num_allocs, num_frees;
  gcap_scratch_block_t* spares;
  gcap_scratch_pool_t pool;  // its free blocks
} __attribute__((aligned(16))) gcap_scratch_owner_t;

// Blocks handed out for a stream.
static inline uint64_t gcap_scratch_owner_num_live(const gcap_scratch_owner_t* owner) {
  return owner->num_allocs - owner->num_frees;
}

// Sets whose a block is, or with NULL nobody's; the phase stays, and who watches it.
static inline void gcap_scratch_block_set_owner(gcap_scratch_block_t* block, const gcap_scratch_owner_t* owner) {
  const uintptr_t kept = owner != NULL && owner->stream != owner ? GCAP_SCRATCH_TAG_KEPT : 0;
  const uintptr_t stays = gcap_scratch_block_tag(block) & (GCAP_SCRATCH_TAG_PHASE | GCAP_SCRATCH_TAG_WATCHED);
  gcap_scratch_block_set_tag(block, (uintptr_t)owner | kept | stays);
}

// The stream of a block's owner; NULL: no stream uses the block any more.
static inline gcap_scratch_owner_t* gcap_scratch_block_stream(const gcap_scratch_block_t* block) {
  gcap_scratch_owner_t* owner = gcap_scratch_block_owner(block);
  return owner == NULL ? NULL : owner->stream;
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_SCRATCH_OWNER_H_
