// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// upstream.h: regions got from the upstream allocator, and given back, and the wait for those that other threads get or
// give back. All of it unlocks the arena meanwhile.
#ifndef GCAP_LIB_SCRATCH_UPSTREAM_H_
#define GCAP_LIB_SCRATCH_UPSTREAM_H_

#include "lib/scratch/arena.h"

// Gets a region of at least `bytes`; gives its one block, which is in its pool.
gcap_status_t gcap_scratch_grow(gcap_scratch_t* scratch, size_t bytes, gcap_scratch_block_t** out_block) GCAP_NODISCARD;
// The same; with `reserved`, a region of just that size for gcap_allocator_reserve. *out_is_short tells whether it was
// the limit, or upstream's lack of memory, that failed it: then it helps to give something back.
gcap_status_t gcap_scratch_get_region(gcap_scratch_t* scratch, size_t bytes, bool reserved,
                                      gcap_scratch_block_t** out_block, bool* out_is_short) GCAP_NODISCARD;
// Lets upstream give back what it caches itself.
gcap_status_t gcap_scratch_trim_upstream(gcap_scratch_t* scratch) GCAP_NODISCARD;

// Gives every region that is one untagged block back upstream, without `all` not those that are held for captures;
// those that upstream refuses stay.
gcap_status_t gcap_scratch_give_back_idle(gcap_scratch_t* scratch, bool all) GCAP_NODISCARD;
// Gives a reserved region back upstream, whose block is in no pool. When upstream refuses, it stays as it was.
gcap_status_t gcap_scratch_give_back_reserved(gcap_scratch_t* scratch, gcap_scratch_region_t* region) GCAP_NODISCARD;

// --- Regions of other threads ---------------------------------------------------------------------------------------

void gcap_scratch_arrivals_init(gcap_scratch_t* scratch);
void gcap_scratch_arrivals_deinit(gcap_scratch_t* scratch);

// How long a request waits for other threads in all. Begins as zeros.
typedef struct gcap_scratch_patience {
  uint64_t until_ns;  // 0: it has not waited yet
} gcap_scratch_patience_t;

// Waits while another thread gets a region that this request may use as well. True: there may be memory now, so look
// for it, and ask again. False: nobody gets any, the patience is over, or the thread must not wait.
bool gcap_scratch_wait_for_growth(gcap_scratch_t* scratch, gcap_scratch_patience_t* patience);
// The same for any region on its way, also one that is being given back and counts for the limit meanwhile.
bool gcap_scratch_wait_for_transit(gcap_scratch_t* scratch, gcap_scratch_patience_t* patience);

#endif  // GCAP_LIB_SCRATCH_UPSTREAM_H_
