// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// timeline.h: points of a stream's timeline, by which free blocks are judged.
#ifndef GCAP_LIB_SCRATCH_TIMELINE_H_
#define GCAP_LIB_SCRATCH_TIMELINE_H_

#include "lib/scratch/stream_state.h"
#include "lib/stream/inner.h"

// The point of a stream's timeline that comes next: all that was done until now comes before it.
static inline uint64_t gcap_scratch_next_point(const gcap_scratch_stream_state_t* state) {
  const gcap_stream_t* stream = gcap_scratch_stream_of(state);
  return (stream == NULL ? state->begun_point : gcap_stream_sync_id(stream)) + 1;
}
// Whether what `state`'s stream is given next comes after all that was done with a free block of the arena.
bool gcap_scratch_comes_after(const gcap_scratch_stream_state_t* state, const gcap_scratch_block_t* block);
// Whether all that was done with a free block that has an owner is known to be finished.
bool gcap_scratch_is_finished(const gcap_scratch_block_t* block);

#endif  // GCAP_LIB_SCRATCH_TIMELINE_H_
