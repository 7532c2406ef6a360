// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What is known of the use of a free block: its tag names the stream that used it last, and `used_before` the point of
// that stream's timeline that came next. The timelines tell what other streams have waited for, and what is finished;
// the driver is never asked. The unknown stream's timeline counts waits for the device (unknown_stream.c).
// Locking: the arena is locked, or the lock of the block's stream.

#include "lib/scratch/timeline.h"
#include "lib/stream/inner.h"

bool gcap_scratch_comes_after(const gcap_scratch_stream_state_t* state, const gcap_scratch_block_t* block) {
  const gcap_scratch_stream_state_t* producer = gcap_scratch_block_state(block);
  if (producer == NULL || block->used_before == 0) return true;
  if (gcap_scratch_stream_of(producer) == NULL) return gcap_scratch_is_finished(block);
  return gcap_stream_has_waited(gcap_scratch_stream_of(state), gcap_scratch_stream_of(producer),
                                block->used_before - 1);
}

bool gcap_scratch_is_finished(const gcap_scratch_block_t* block) {
  if (block->used_before == 0) return true;
  const gcap_scratch_stream_state_t* state = gcap_scratch_block_state(block);
  const gcap_stream_t* stream = gcap_scratch_stream_of(state);
  if (stream == NULL) return block->used_before <= state->finished_point;  // the unknown one
  return gcap_stream_has_finished(stream, block->used_before - 1);
}
