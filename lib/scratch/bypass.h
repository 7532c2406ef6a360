// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// bypass.h: an arena that does not cache (gcap_scratch_options_t.bypass). Called only with that option.
#ifndef GCAP_LIB_SCRATCH_BYPASS_H_
#define GCAP_LIB_SCRATCH_BYPASS_H_

#include "lib/scratch/arena.h"

// Detaches a block of just `bytes` that is a whole region, and that the stream, which has no open reservation, may have
// now; NULL when there is none.
gcap_status_t gcap_scratch_place_whole(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes,
                                       gcap_scratch_block_t** out_block) GCAP_NODISCARD;

// Gives regions back upstream that all streams have passed, but for what captures count on. Does nothing on a thread
// that captures. Unlocks the arena. Its failure is for gcap_scratch_log_refusal.
gcap_status_t gcap_scratch_give_back_passed(gcap_scratch_t* scratch) GCAP_NODISCARD;
// Logs and frees what that failed with. Called when the arena was unlocked.
void gcap_scratch_log_refusal(gcap_status_t status);

#endif  // GCAP_LIB_SCRATCH_BYPASS_H_
