// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// place.h: which free block a stream gets, and which blocks lose their tag.
#ifndef GCAP_LIB_SCRATCH_PLACE_H_
#define GCAP_LIB_SCRATCH_PLACE_H_

#include "lib/scratch/arena.h"

// Detaches a block of `bytes` that the stream may have now, and gives it to the open reservation if there is one. NULL
// when there is no such block.
gcap_status_t gcap_scratch_place(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes,
                                 gcap_scratch_block_t** out_block) GCAP_NODISCARD;
// Detaches the `bytes` that the stream asked for, or all where that is not much more, from a free block of at least so
// many.
gcap_status_t gcap_scratch_take(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes,
                                gcap_scratch_block_t** block) GCAP_NODISCARD;

// How much may surely be live at a time, in blocks of up to `largest_bytes` (not 0), of the free memory that carries
// the stream's tag or is in its open reservation: blocks that are placed one after the other leave less than one of the
// largest at the end of each stretch but the last one.
size_t gcap_scratch_count_supply(const gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state,
                                 size_t largest_bytes);
// Whether the stream may have a free block now, in the arena or its open reservation.
bool gcap_scratch_may_have(const gcap_scratch_stream_state_t* state, const gcap_scratch_block_t* block);
// A free block of at least `bytes` that the stream may have and that is not its own; NULL when there is none.
gcap_scratch_block_t* gcap_scratch_find_elsewhere(gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state,
                                                  size_t bytes);
// Makes `bytes` of a free block that the stream may have its own.
gcap_status_t gcap_scratch_claim(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state,
                                 gcap_scratch_block_t* block, size_t bytes) GCAP_NODISCARD;
// Makes the stream own a stretch of free memory of `bytes`, where there is one that it may have. Of several, the one of
// which it owns most; what its open reservation keeps counts as its own.
//   RESOURCE_EXHAUSTED  no host memory
gcap_status_t gcap_scratch_claim_stretch(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes,
                                         bool* out_found) GCAP_NODISCARD;

// Takes the tag of a stream off all its blocks.
void gcap_scratch_untag(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state);
// Takes the tag off every block whose stream is known to have finished with it, so that its region may be idle; without
// `all` not of streams whose capture counts on what they have.
void gcap_scratch_settle(gcap_scratch_t* scratch, bool all);

#endif  // GCAP_LIB_SCRATCH_PLACE_H_
