// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// upstream.h: regions got from the upstream allocator, and given back. All of it unlocks the arena meanwhile.
#ifndef GCAP_LIB_SCRATCH_UPSTREAM_H_
#define GCAP_LIB_SCRATCH_UPSTREAM_H_

#include "lib/scratch/arena.h"

// Gets a region of at least `bytes`; gives its one block, which is in its pool.
gcap_status_t gcap_scratch_grow(gcap_scratch_t* scratch, size_t bytes, gcap_scratch_block_t** out_block) GCAP_NODISCARD;
// The same; with `reserved`, a region of just that size for gcap_allocator_reserve. *out_is_short tells whether it was
// the limit, or upstream's lack of memory, that failed it: then it helps to give something back.
gcap_status_t gcap_scratch_get_region(gcap_scratch_t* scratch, size_t bytes, bool reserved,
                                      gcap_scratch_block_t** out_block, bool* out_is_short) GCAP_NODISCARD;
// Gives every region that is one untagged block back upstream; those that upstream refuses stay.
gcap_status_t gcap_scratch_give_back_idle(gcap_scratch_t* scratch) GCAP_NODISCARD;
// Gives a reserved region back upstream, whose block is in no pool. When upstream refuses, it stays as it was.
gcap_status_t gcap_scratch_give_back_reserved(gcap_scratch_t* scratch, gcap_scratch_region_t* region) GCAP_NODISCARD;

#endif  // GCAP_LIB_SCRATCH_UPSTREAM_H_
