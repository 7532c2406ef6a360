// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// slabs.h: where block structs come from.
#ifndef GCAP_LIB_SCRATCH_SLABS_H_
#define GCAP_LIB_SCRATCH_SLABS_H_

#include "lib/scratch/owner.h"

#ifdef __cplusplus
extern "C" {
#endif

// Zeros are one without slabs.
typedef struct gcap_scratch_slabs {
  gcap_scratch_owner_t* streams;    // that it serves, linked by `next`
  gcap_scratch_block_t* spares;     // block structs of no stream, linked by `next`
  struct gcap_scratch_slab* slabs;  // where the block structs lie
  size_t num_slabs;
} gcap_scratch_slabs_t;

// A block struct, for a stream or, with NULL, for none; NULL when there is no memory.
gcap_scratch_block_t* gcap_scratch_block_new(gcap_scratch_slabs_t* slabs, gcap_scratch_owner_t* stream);
// Ends all block structs.
void gcap_scratch_slabs_deinit(gcap_scratch_slabs_t* slabs);

// A stream takes part from now on, which is not a reservation; and no more, when its spares are for all.
void gcap_scratch_slabs_add_stream(gcap_scratch_slabs_t* slabs, gcap_scratch_owner_t* stream);
void gcap_scratch_slabs_remove_stream(gcap_scratch_slabs_t* slabs, gcap_scratch_owner_t* stream);

static inline gcap_scratch_block_t* gcap_scratch_spares_pop(gcap_scratch_block_t** spares) {
  gcap_scratch_block_t* block = *spares;
  if (block != NULL) *spares = block->next;
  return block;
}

// Gives a block struct back. With a stream the stream's lock is enough, and `slabs` may be NULL.
static inline void gcap_scratch_block_recycle(gcap_scratch_slabs_t* slabs, gcap_scratch_owner_t* stream,
                                              gcap_scratch_block_t* block) {
  gcap_scratch_block_t** spares = stream != NULL ? &stream->spares : &slabs->spares;
  gcap_scratch_block_set_tag(block, (uintptr_t)stream | GCAP_SCRATCH_FREE);
  block->next = *spares;
  *spares = block;
}

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_SCRATCH_SLABS_H_
