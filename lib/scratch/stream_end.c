// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What becomes of a stream's memory when the stream is destroyed under the scratch, which nobody should do. The stream
// was drained, so its free blocks are in use by nobody. What is still handed out, and what its graphs keep, may be used
// by any other stream from now on: it becomes nobody's (unknown_stream.c), and is given again only after a wait for the
// device. So no address of a stream that is gone is left, to be taken for that of a new one.
// Locking: the arena is held.

#include <stddef.h>

#include "lib/scratch/arena.h"
#include "lib/scratch/debug.h"

static void give_blocks_to_unknown_stream(gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state) {
  for (size_t i = 0; i < scratch->num_regions; ++i) {
    for (gcap_scratch_block_t* block = scratch->regions[i]->first; block != NULL; block = block->upper) {
      const bool kept = gcap_scratch_block_reservation(block) != NULL;
      if (!kept && gcap_scratch_block_stream_state(block) == state)
        gcap_scratch_block_set_stream_state(block, &scratch->unknown_stream);
    }
  }
}

static void give_reservations_to_unknown_stream(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  state->open = NULL;
  scratch->unknown_stream.num_reservations += state->num_reservations;
  state->num_reservations = 0;
  for (gcap_scratch_reservation_t* r = scratch->reservations; r != NULL; r = r->next) {
    if (r->state == state) r->state = &scratch->unknown_stream;
  }
}

static void give_counters_to_unknown_stream(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  gcap_scratch_fold_peaks(scratch);
  gcap_scratch_stream_state_t* unknown = &scratch->unknown_stream;
  unknown->num_allocs += state->num_allocs;
  unknown->num_frees += state->num_frees;
  unknown->in_use_bytes += state->in_use_bytes;
  unknown->requested_in_use_bytes += state->requested_in_use_bytes;
  unknown->max_in_use_bytes = unknown->in_use_bytes;
  state->num_allocs = state->num_frees = state->in_use_bytes = state->requested_in_use_bytes = state->max_in_use_bytes =
      0;
}

void gcap_scratch_stream_ends(gcap_stream_watch_t* watch, gcap_stream_t* stream) {
  gcap_scratch_t* scratch = (gcap_scratch_t*)(void*)((char*)watch - offsetof(gcap_scratch_t, watch));
  gcap_scratch_lock_arena(scratch);
  gcap_scratch_stream_state_t* state = gcap_scratch_find_stream(scratch, stream);
  if (state != NULL) {
    gcap_scratch_untag(scratch, state);
    give_blocks_to_unknown_stream(scratch, state);
    give_reservations_to_unknown_stream(scratch, state);
    give_counters_to_unknown_stream(scratch, state);
    gcap_scratch_debug_forget_stream(scratch, stream);
    gcap_scratch_remove_stream(scratch, state);
  }
  gcap_scratch_unlock_arena(scratch);
}
