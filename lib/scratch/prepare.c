// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Before a capture: its stream comes to own as much free memory as the runs of the capture's work had at a time
// (need.c), so that the capture, which cannot grow the arena, finds what the warm-up had. A capture that follows a
// rehearsal gets what the rehearsal got, and needs no more. What the stream owns carries its tag, and no other stream
// is given it from then on (is_withheld in place.c). What was merely counted, another thread took before the capture
// came to it, or while the arena was unlocked to grow.
//
// A sum of pieces is not enough: a capture places its blocks otherwise than the runs before it, which had caches and
// other streams' leavings, and loses the end of each piece that is too small for its next block. So of each stretch but
// one, a largest block is not counted. What is added is at most the peak.
// Locking: the arena is locked, and unlocked while upstream is asked, or another thread's growth is waited for.

#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/scratch/bypass.h"
#include "lib/scratch/inner.h"
#include "lib/scratch/lock.h"
#include "lib/scratch/need.h"
#include "lib/scratch/out_of_memory.h"
#include "lib/scratch/place.h"
#include "lib/scratch/reservation.h"
#include "lib/scratch/run.h"
#include "lib/scratch/streams.h"
#include "lib/scratch/upstream.h"

typedef struct need {
  size_t bytes;          // of what the stream is to own
  size_t largest_bytes;  // of a block
} need_t;

static need_t need_of(const gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state, uint64_t work) {
  const gcap_scratch_need_t measured = gcap_scratch_need_of(state, work);
  need_t need = {.bytes = measured.bytes};
  need.largest_bytes = gcap_scratch_block_bytes(measured.largest_bytes) + 2 * scratch->zone_bytes;
  if (need.largest_bytes > need.bytes) need.largest_bytes = need.bytes;  // it was handed out, or nothing was
  return need;
}

// How much the stream is to get, in one stretch.
static size_t wanting_bytes(const gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state,
                            const need_t* need) {
  if (need->bytes == 0) return 0;
  const size_t has_bytes = gcap_scratch_count_supply(scratch, state, need->largest_bytes);
  if (has_bytes >= need->bytes) return 0;
  const size_t end_bytes = has_bytes > 0 ? need->largest_bytes - GCAP_SCRATCH_GRANULE_BYTES : 0;
  const size_t bytes = need->bytes - has_bytes + end_bytes;
  return bytes < need->bytes ? bytes : need->bytes;
}

// Looks for it in the arena. What holds all of it may be in part the stream's own. With `bypass` it is not cut from
// what other streams used, which would keep whole regions from going back: only from what is held for captures.
static gcap_status_t find(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, const need_t* need, size_t bytes,
                          bool* out_found) {
  const bool bypass = scratch->options.bypass;
  if (bytes == need->bytes && !bypass) return gcap_scratch_claim_stretch(scratch, state, bytes, out_found);
  gcap_scratch_block_t* block = bypass ? gcap_scratch_pool_find(&scratch->store.untagged, bytes, NULL, NULL)
                                       : gcap_scratch_find_elsewhere(scratch, state, bytes);
  *out_found = block != NULL;
  return block == NULL ? NULL : gcap_scratch_claim(scratch, state, block, bytes);
}

static bool is_rehearsed(const gcap_scratch_stream_state_t* state, uint64_t work) {
  const gcap_scratch_reservation_t* reservation = state->open != NULL ? state->open : state->rehearsed;
  return reservation != NULL && reservation->script.work == work && reservation->script.is_complete;
}

static gcap_status_t provide(gcap_scratch_t* scratch, gcap_scratch_request_t* request, uint64_t work) {
  gcap_scratch_stream_state_t* state = request->state;
  if (is_rehearsed(state, work)) return NULL;
  gcap_scratch_patience_t patience = {0};
  do {
    const need_t need = need_of(scratch, state, work);
    request->bytes = wanting_bytes(scratch, state, &need);
    if (request->bytes == 0) return NULL;
    bool found = false;
    GCAP_RETURN_IF_ERROR(find(scratch, state, &need, request->bytes, &found));
    if (found) return NULL;
  } while (gcap_scratch_wait_for_growth(scratch, &patience));
  gcap_scratch_block_t* block = NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_obtain(scratch, request, &block));
  block = gcap_scratch_put(&scratch->store, block);
  return gcap_scratch_claim(scratch, state, block, request->bytes);
}

gcap_status_t gcap_scratch_reservation_prepare(gcap_scratch_t* scratch, gcap_stream_t* stream) {
  return gcap_scratch_prepare_for(scratch, stream, /*work=*/0);
}

gcap_status_t gcap_scratch_prepare_for(gcap_scratch_t* scratch, gcap_stream_t* stream, uint64_t work) {
  GCAP_RETURN_IF_NULL(scratch);
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked("gcap_scratch_reservation_prepare"));
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_scratch_reservation_prepare"));
  gcap_scratch_lock_arena(scratch);
  gcap_scratch_request_t request = {.anew = true};
  gcap_status_t refusal = NULL;
  gcap_status_t status = gcap_scratch_get_stream(scratch, stream, &request.state);
  if (status == NULL) {
    ++request.state->num_calls;
    gcap_scratch_make_up_deficit(scratch);
    if (scratch->options.bypass) refusal = gcap_scratch_give_back_passed(scratch);
    request.state->promise = GCAP_SCRATCH_PROMISED;  // already while the arena grows, and of what there is if it cannot
    status = provide(scratch, &request, work);
    --request.state->num_calls;
  }
  gcap_scratch_unlock_arena(scratch);
  gcap_scratch_log_trouble(&request);
  gcap_scratch_log_refusal(refusal);
  return gcap_status_annotate(status, gcap_status_code(status),
                              "scratch cannot have ready for a capture on stream %p what its runs used",
                              (void*)gcap_stream_handle(stream));
}
