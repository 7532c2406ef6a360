// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run.h: what becomes of a stream's open run when the stream ends, and of what the end of a run could not free.
#ifndef GCAP_LIB_SCRATCH_RUN_H_
#define GCAP_LIB_SCRATCH_RUN_H_

#include "lib/scratch/arena.h"

// Ends a run and frees nothing: its blocks stay live. The arena is locked.
void gcap_scratch_drop_run(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state);

// Tries again to free the blocks that the end of their run could not free, unless the thread captures: what fails would
// break the capture, and what is freed would be its graph's. The arena is not locked. A failure is logged, and leaves
// the rest live.
void gcap_scratch_free_orphans(gcap_scratch_t* scratch);

#endif  // GCAP_LIB_SCRATCH_RUN_H_
