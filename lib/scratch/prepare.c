// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Before a capture: its stream gets as much free memory as it ever had handed out at a time, so that the capture, which
// cannot grow the arena, finds what the warm-up had. What is found or got carries the stream's tag from then on.
// Locking: the arena is locked, and unlocked while upstream is asked.

#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/scratch/lock.h"
#include "lib/scratch/out_of_memory.h"
#include "lib/scratch/place.h"
#include "lib/scratch/streams.h"

// What is wanting of `needed_bytes`; enough for one block of `largest_bytes` if anything is.
static size_t lacking_bytes(gcap_scratch_supply_t supply, size_t needed_bytes, size_t largest_bytes) {
  if (supply.bytes >= needed_bytes && supply.longest_bytes >= largest_bytes) return 0;
  size_t bytes = supply.bytes < needed_bytes ? needed_bytes - supply.bytes : 0;
  return bytes > largest_bytes ? bytes : largest_bytes;
}

// What is found or got is made the stream's own, so that no other stream takes it before the capture does.
static gcap_status_t provide(gcap_scratch_t* scratch, gcap_scratch_request_t* request) {
  gcap_scratch_stream_state_t* state = request->state;
  size_t needed = gcap_scratch_peak_bytes(state);
  size_t largest = gcap_scratch_block_bytes(state->max_alloc_bytes) + 2 * scratch->zone_bytes;
  if (largest > needed) largest = needed;  // it was handed out, or nothing was
  size_t bytes = lacking_bytes(gcap_scratch_count_supply(scratch, state, /*own=*/true), needed, largest);
  if (bytes == 0) return NULL;
  gcap_scratch_block_t* block = gcap_scratch_find_elsewhere(scratch, state, bytes);
  if (block == NULL) {
    bytes = lacking_bytes(gcap_scratch_count_supply(scratch, state, /*own=*/false), needed, largest);
    if (bytes == 0) return NULL;
    request->bytes = bytes;
    GCAP_RETURN_IF_ERROR(gcap_scratch_obtain(scratch, request, &block));
    block = gcap_scratch_put(&scratch->store, block);
  }
  return gcap_scratch_claim(scratch, state, block, bytes);
}

gcap_status_t gcap_scratch_reservation_prepare(gcap_scratch_t* scratch, gcap_stream_t* stream) {
  GCAP_RETURN_IF_NULL(scratch);
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_ERROR(gcap_check_thread_not_capturing("gcap_scratch_reservation_prepare"));
  gcap_scratch_lock_arena(scratch);
  gcap_scratch_request_t request = {.anew = true};
  gcap_status_t status = gcap_scratch_get_stream(scratch, stream, &request.state);
  if (status == NULL) {
    ++request.state->num_calls;
    gcap_scratch_make_up_deficit(scratch);
    status = provide(scratch, &request);
    request.state->prepared = status == NULL;
    --request.state->num_calls;
  }
  gcap_scratch_unlock_arena(scratch);
  gcap_scratch_log_trouble(&request);
  return gcap_status_annotate(status, gcap_status_code(status),
                              "scratch cannot have ready for a capture on stream %p what its runs used",
                              (void*)gcap_stream_handle(stream));
}
