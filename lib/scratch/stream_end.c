// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What becomes of a stream's memory when the stream is destroyed under the scratch, which no caller should do; or
// forgotten, as the caller should. A destroyed stream was drained, so no stream uses its free blocks. What is still
// handed out, and what its graphs keep, may be used by any other stream from now on: it becomes the unknown stream's
// (unknown_stream.c), and is given again only after a wait for the device. So no address of a stream that is gone is
// left, to be taken for that of a new one.
// Locking: the arena is locked.

#include "lib/scratch/stream_end.h"

#include <stddef.h>

#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/scratch/debug.h"
#include "lib/scratch/inner.h"
#include "lib/scratch/lock.h"
#include "lib/scratch/nodes.h"
#include "lib/scratch/place.h"
#include "lib/scratch/reservation.h"
#include "lib/scratch/run.h"
#include "lib/scratch/streams.h"
#include "lib/scratch/timeline.h"

// --- Destroyed ------------------------------------------------------------------------------------------------------

static void give_blocks_to_unknown_stream(gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state) {
  const gcap_scratch_owner_t* unknown = &scratch->unknown_stream.owner;
  for (size_t i = 0; i < scratch->store.num_regions; ++i) {
    for (gcap_scratch_block_t* block = scratch->store.regions[i]->first; block != NULL; block = block->upper) {
      if (gcap_scratch_block_owner(block) == &state->owner) gcap_scratch_block_set_owner(block, unknown);
    }
  }
}

static void give_reservations_to_unknown_stream(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  state->open = NULL;
  scratch->unknown_stream.num_reservations += state->num_reservations;
  state->num_reservations = 0;
  for (gcap_scratch_reservation_t* r = scratch->reservations; r != NULL; r = r->next) {
    if (gcap_scratch_reservation_state(r) == state) r->owner.stream = &scratch->unknown_stream.owner;
  }
}

static void give_counters_to_unknown_stream(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  gcap_scratch_fold_peaks(scratch);
  gcap_scratch_stream_state_t* unknown = &scratch->unknown_stream;
  unknown->owner.num_allocs += state->owner.num_allocs;
  unknown->owner.num_frees += state->owner.num_frees;
  unknown->in_use_bytes += state->in_use_bytes;
  unknown->requested_in_use_bytes += state->requested_in_use_bytes;
  unknown->max_in_use_bytes = unknown->in_use_bytes;
  state->owner.num_allocs = state->owner.num_frees = state->in_use_bytes = state->requested_in_use_bytes =
      state->max_in_use_bytes = state->period_bytes = 0;
}

void gcap_scratch_stream_ends(gcap_stream_watch_t* watch, gcap_stream_t* stream) {
  gcap_scratch_t* scratch = (gcap_scratch_t*)(void*)((char*)watch - offsetof(gcap_scratch_t, watch));
  gcap_scratch_lock_arena(scratch);
  gcap_scratch_stream_state_t* state = gcap_scratch_find_stream(scratch, stream);
  if (state != NULL) {
    gcap_scratch_drop_run(scratch, state);
    gcap_scratch_drop_rehearsed(state);
    gcap_scratch_untag(scratch, state);
    give_blocks_to_unknown_stream(scratch, state);
    give_reservations_to_unknown_stream(scratch, state);
    give_counters_to_unknown_stream(scratch, state);
    gcap_scratch_debug_forget_stream(scratch, stream);
    gcap_scratch_remove_stream(scratch, state);
  }
  gcap_scratch_unlock_arena(scratch);
}

// --- Forgotten -------------------------------------------------------------------------------------------------------

// What holds the stream; `*out_block`: the one that was not waited for, if that is why.
static gcap_scratch_hold_t find_hold(const gcap_scratch_stream_state_t* state, const gcap_scratch_block_t** out_block) {
  *out_block = NULL;
  if (state->num_calls > 0) return GCAP_SCRATCH_HOLD_CALL;
  if (state->num_reservations > 0) return GCAP_SCRATCH_HOLD_RESERVATION;
  if (gcap_scratch_num_live(state) > 0) return GCAP_SCRATCH_HOLD_BLOCK;
  unsigned bin = gcap_scratch_pool_next_bin(&state->owner.pool, 0);
  for (; bin < GCAP_SCRATCH_NUM_BINS; bin = gcap_scratch_pool_next_bin(&state->owner.pool, bin + 1)) {
    for (const gcap_scratch_block_t* block = state->owner.pool.bins[bin]; block != NULL; block = block->next) {
      if (gcap_scratch_is_finished(block)) continue;
      *out_block = block;
      return GCAP_SCRATCH_HOLD_BLOCK;
    }
  }
  return GCAP_SCRATCH_HOLD_NONE;
}

static gcap_status_t check_forgettable(const gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state,
                                       gcap_scratch_hold_t* out_hold) {
  void* handle = (void*)gcap_stream_handle(gcap_scratch_stream_of(state));
  const gcap_scratch_block_t* block = NULL;
  *out_hold = find_hold(state, &block);
  if (*out_hold == GCAP_SCRATCH_HOLD_NONE) return NULL;
  if (*out_hold == GCAP_SCRATCH_HOLD_CALL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "scratch cannot forget stream %p: memory is being got for it", handle);
  }
  if (block != NULL) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "scratch cannot forget stream %p: a block of %zu bytes was freed at its sync id %llu and it "
                       "was not synchronised since",
                       handle, block->bytes, (unsigned long long)(block->used_before - 1));
  }
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "scratch cannot forget stream %p: it has %zu blocks handed out and %zu reservations%s", handle,
                     (size_t)gcap_scratch_num_live(state), state->num_reservations,
                     gcap_scratch_describe_leaks(scratch, state).text);
}

gcap_status_t gcap_scratch_forget_unless_held(gcap_scratch_t* scratch, gcap_stream_t* stream,
                                              gcap_scratch_hold_t* out_hold) {
  gcap_status_t status = NULL;
  *out_hold = GCAP_SCRATCH_HOLD_NONE;
  gcap_scratch_lock_arena(scratch);
  gcap_scratch_stream_state_t* state = gcap_scratch_find_stream(scratch, stream);
  if (state != NULL) {
    gcap_scratch_drop_rehearsed(state);
    gcap_scratch_cache_flush(&state->cache, &state->owner);
    status = check_forgettable(scratch, state, out_hold);
  }
  if (state != NULL && status == NULL) {
    gcap_scratch_untag(scratch, state);
    gcap_scratch_remove_stream(scratch, state);
  }
  gcap_scratch_unlock_arena(scratch);
  return status;
}

gcap_status_t gcap_scratch_forget_stream(gcap_scratch_t* scratch, gcap_stream_t* stream) {
  GCAP_RETURN_IF_NULL(scratch);
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_scratch_hold_t hold;
  return gcap_scratch_forget_unless_held(scratch, stream, &hold);
}
