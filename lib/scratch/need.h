// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// need.h: how much of a stream's memory a run has at a time, by the work that the run did.
#ifndef GCAP_LIB_SCRATCH_NEED_H_
#define GCAP_LIB_SCRATCH_NEED_H_

#include "lib/scratch/stream_state.h"

// A capture gets the need of its work; without `work`, or of a work without runs, that of the stream's largest run. A
// stream that never had a run needs what it had at most at a time.
gcap_scratch_need_t gcap_scratch_need_of(const gcap_scratch_stream_state_t* state, uint64_t work);

// Begins to measure the run that is opened now. Called with the stream's lock, as the next one.
void gcap_scratch_need_begin(gcap_scratch_stream_state_t* state);
// Ends that. The run's need is that of `work` from now on; 0: of no work.
void gcap_scratch_need_end(gcap_scratch_stream_state_t* state, uint64_t work);
// What outlives the open run is no scratch of it. The arena is locked.
void gcap_scratch_need_keep(gcap_scratch_stream_state_t* state, const gcap_scratch_block_t* block);

// Forgets all works.
void gcap_scratch_need_deinit(gcap_scratch_stream_state_t* state);

#endif  // GCAP_LIB_SCRATCH_NEED_H_
