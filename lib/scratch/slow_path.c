// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The slow path: allocation and free where the fast path has nothing, or must not be taken: other streams' memory,
// captures, reservations, growth, requests without a stream, debug options, and every error; and the trim.
//
// Locking: the arena is locked. Nothing is held across a call of upstream, of a log sink or of the callback for events.
// An event is reported before anything is logged: what reports events in their order (lib/allocator/trace_file.c) waits
// for the earlier ones, so a sink that allocates would wait for its own caller. After the report, or the log, the arena
// is not touched any more.

#include "lib/scratch/slow_path.h"

#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/scratch/bypass.h"
#include "lib/scratch/debug.h"
#include "lib/scratch/lock.h"
#include "lib/scratch/out_of_memory.h"
#include "lib/scratch/place.h"
#include "lib/scratch/reservation.h"
#include "lib/scratch/streams.h"
#include "lib/scratch/timeline.h"
#include "lib/scratch/unknown_stream.h"
#include "lib/scratch/upstream.h"
#include "lib/stream/inner.h"

// --- Allocation -----------------------------------------------------------------------------------------------------

// Ensures that what a capture bakes into its graph is the graph's: opens a reservation if the calling thread's scope
// captures the stream, and refuses any other capture. Asks the driver only on a thread that captures.
static gcap_status_t ensure_reserved(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state,
                                     const char* operation) {
  if (!gcap_thread_captures() || state->open != NULL || !gcap_stream_can_capture(gcap_scratch_stream_of(state)))
    return NULL;
  cudaStream_t handle = gcap_stream_handle(gcap_scratch_stream_of(state));
  bool capturing = false;
  GCAP_RETURN_IF_ERROR(gcap_is_stream_capturing(handle, &capturing));
  if (!capturing) return NULL;
  bool in_scope = false;
  GCAP_RETURN_IF_ERROR(gcap_thread_capture_hooks->captures(handle, &in_scope));
  if (in_scope) return gcap_scratch_reservation_open_for_scope(scratch, state);
  return GCAP_STATUS(
      GCAP_FAILED_PRECONDITION,
      "%s: stream %p is in a capture that is not this thread's scope, or was broken, and has no open reservation, so "
      "the graph would not own the memory; open one (gcap_scratch_reservation_open), or capture in the scope",
      operation, (void*)handle);
}

// Takes back a reserved region's block; when upstream refuses the region, it stays handed out.
static gcap_status_t take_back_reserved(gcap_scratch_t* scratch, gcap_scratch_region_t* region) {
  gcap_scratch_block_t* block = region->first;
  gcap_scratch_make_free(&scratch->unknown_stream, gcap_scratch_next_point(&scratch->unknown_stream), block);
  gcap_status_t status = gcap_scratch_give_back_reserved(scratch, region);
  if (status != NULL) gcap_scratch_undo_free(&scratch->unknown_stream, block);
  return status;
}

// Takes back any other block, into its owner's pool.
static void take_back_into_pool(gcap_scratch_t* scratch, gcap_scratch_block_t* block) {
  gcap_scratch_stream_state_t* state = gcap_scratch_block_state(block);
  gcap_scratch_make_free(state, gcap_scratch_next_point(state), block);
  gcap_scratch_reservation_t* reservation = gcap_scratch_block_reservation(block);
  if (reservation != NULL) --reservation->num_live;
  if (state->open != NULL && reservation == NULL) gcap_scratch_reservation_adopt(state->open, block);
  gcap_scratch_put(&scratch->store, block);
}

// Another graph's block that is freed inside a capture may be used by what was captured before.
static gcap_status_t keep_for_open(const gcap_scratch_block_t* block) {
  gcap_scratch_reservation_t* reservation = gcap_scratch_block_reservation(block);
  gcap_scratch_reservation_t* open = gcap_scratch_block_state(block)->open;
  return reservation == NULL || open == NULL ? NULL : gcap_scratch_reservation_keep(open, reservation);
}

static gcap_status_t take_back(gcap_scratch_t* scratch, gcap_scratch_block_t* block) {
  if (gcap_scratch_is_unknown_stream(scratch, gcap_scratch_block_state(block))) {
    gcap_scratch_region_t* region = gcap_scratch_find_region(&scratch->store, gcap_scratch_block_base(block));
    if (region->reserved) return take_back_reserved(scratch, region);
  }
  take_back_into_pool(scratch, block);
  return NULL;
}

// Obtains a block and makes it live.
static gcap_status_t hand_out(gcap_scratch_t* scratch, gcap_scratch_request_t* request, size_t requested_bytes,
                              gcap_allocator_event_t* out_event, void** out_ptr) {
  gcap_scratch_stream_state_t* state = request->state;
  if (state->open != NULL && state->promise == GCAP_SCRATCH_PROMISED) state->promise = GCAP_SCRATCH_REDEEMING;
  gcap_scratch_block_t* block = NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_obtain(scratch, request, &block));
  gcap_scratch_reservation_t* reservation = gcap_scratch_block_reservation(block);
  if (reservation != NULL) {
    ++reservation->num_live;
  } else {
    gcap_scratch_block_set_owner(block, &request->state->owner);
  }
  gcap_scratch_pages_set(&scratch->store.pages, gcap_scratch_block_base(block), block);
  gcap_scratch_make_live(request->state, requested_bytes, block);
  char* ptr = gcap_scratch_block_base(block) + scratch->zone_bytes;
  gcap_stream_t* stream = gcap_scratch_stream_of(request->state);  // NULL for the unknown one
  gcap_status_t status = gcap_scratch_debug_note_alloc(scratch, ptr, requested_bytes, stream, out_event);
  if (status != NULL) return gcap_status_join(status, take_back(scratch, block));
  if (request->reserved && out_event->sequence != 0) out_event->kind = GCAP_ALLOCATOR_EVENT_RESERVE;
  *out_ptr = ptr;
  return NULL;
}

// Whole granules, and the red zones.
static gcap_status_t round_request(const gcap_scratch_t* scratch, size_t bytes, size_t* out_rounded) {
  const size_t zones_bytes = 2 * scratch->zone_bytes;
  const size_t rounded = gcap_scratch_block_bytes(bytes);
  *out_rounded = rounded + zones_bytes;
  if (rounded != 0 && rounded <= SIZE_MAX - zones_bytes) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "scratch of %zu bytes overflows when rounded up to %zu", bytes,
                     GCAP_SCRATCH_GRANULE_BYTES);
}

gcap_status_t gcap_scratch_alloc_slowly(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream, void** out_ptr) {
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked("gcap_scratch_alloc"));
  gcap_scratch_request_t request = {0};
  GCAP_RETURN_IF_ERROR(round_request(scratch, bytes, &request.bytes));
  gcap_scratch_lock_arena(scratch);
  gcap_allocator_event_t event = {0};
  gcap_status_t refusal = NULL;
  gcap_status_t status = gcap_scratch_get_stream(scratch, stream, &request.state);
  if (status == NULL) {
    status = ensure_reserved(scratch, request.state, "gcap_scratch_alloc");
    if (status != NULL)
      gcap_thread_capture_hooks->fail(status);  // what was to use the memory is missing from the graph
  }
  if (status == NULL) {
    gcap_scratch_note_thread(scratch, request.state, /*intruder=*/false);
    ++request.state->num_calls;
    if (!gcap_thread_captures() && request.state->open == NULL) gcap_scratch_make_up_deficit(scratch);
    if (scratch->options.bypass) refusal = gcap_scratch_give_back_passed(scratch);
    status = hand_out(scratch, &request, bytes, &event, out_ptr);
    --request.state->num_calls;
  }
  gcap_scratch_unlock_arena(scratch);
  gcap_scratch_debug_report(scratch, &event);
  gcap_scratch_log_trouble(&request);
  gcap_scratch_log_refusal(refusal);
  return status;
}

gcap_status_t gcap_scratch_alloc_untagged(gcap_scratch_t* scratch, size_t bytes, bool reserved, void** out_ptr) {
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked("gcap_scratch_alloc"));
  // A graph would bake in memory that it does not own.
  GCAP_RETURN_IF_ERROR(gcap_refuse_in_capture(reserved ? "a reserve of scratch" : "scratch for no stream"));
  gcap_scratch_request_t request = {.state = &scratch->unknown_stream, .reserved = reserved};
  GCAP_RETURN_IF_ERROR(round_request(scratch, bytes, &request.bytes));
  gcap_scratch_lock_arena(scratch);
  gcap_allocator_event_t event = {0};
  gcap_scratch_make_up_deficit(scratch);
  gcap_status_t refusal = scratch->options.bypass ? gcap_scratch_give_back_passed(scratch) : NULL;
  gcap_status_t status = hand_out(scratch, &request, bytes, &event, out_ptr);
  gcap_scratch_unlock_arena(scratch);
  gcap_scratch_debug_report(scratch, &event);
  gcap_scratch_log_trouble(&request);
  gcap_scratch_log_refusal(refusal);
  return status;
}

// Whether a capture forbids it.
static gcap_status_t check_free(gcap_scratch_t* scratch, const gcap_scratch_block_t* block) {
  gcap_scratch_stream_state_t* state = gcap_scratch_block_state(block);
  if (!gcap_scratch_is_unknown_stream(scratch, state)) return ensure_reserved(scratch, state, "gcap_scratch_free");
  // Work captured before the free may use it, and every replay would.
  return gcap_check_thread_not_capturing("gcap_scratch_free of memory for no stream");
}

gcap_status_t gcap_scratch_free_live(gcap_scratch_t* scratch, gcap_scratch_block_t* block, bool forced,
                                     gcap_allocator_event_t* out_event, gcap_status_t* out_damage) {
  *out_event = (gcap_allocator_event_t){0};
  *out_damage = NULL;
  GCAP_RETURN_IF_ERROR(check_free(scratch, block));
  GCAP_RETURN_IF_ERROR(keep_for_open(block));
  gcap_scratch_live_t* live = NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_debug_begin_free(scratch, block, forced, &live, out_damage));
  gcap_scratch_stream_state_t* state = gcap_scratch_block_state(block);
  if (!gcap_scratch_is_unknown_stream(scratch, state)) gcap_scratch_note_thread(scratch, state, /*intruder=*/true);
  gcap_status_t status = take_back(scratch, block);
  if (status == NULL) {
    gcap_scratch_debug_end_free(scratch, live, out_event);
  } else {
    gcap_scratch_debug_undo_free(scratch, live);
  }
  return status;
}

gcap_status_t gcap_scratch_free_slowly(gcap_scratch_t* scratch, void* ptr) {
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked("gcap_scratch_free"));
  gcap_scratch_lock_arena(scratch);
  // First, since it unlocks the arena. The block itself cannot have been passed.
  gcap_status_t refusal = scratch->options.bypass ? gcap_scratch_give_back_passed(scratch) : NULL;
  gcap_scratch_block_t* block = NULL;
  gcap_allocator_event_t event = {0};
  gcap_status_t damage = NULL;
  gcap_status_t status = gcap_scratch_find_live(&scratch->store, ptr, scratch->zone_bytes, &block);
  status = gcap_scratch_debug_explain(scratch, ptr, status);
  if (status == NULL) status = gcap_scratch_free_live(scratch, block, /*forced=*/false, &event, &damage);
  gcap_scratch_unlock_arena(scratch);
  gcap_scratch_debug_report(scratch, &event);
  gcap_scratch_log_refusal(refusal);
  return gcap_status_join(status, damage);
}

gcap_status_t gcap_scratch_trim(gcap_scratch_t* scratch) {
  GCAP_RETURN_IF_NULL(scratch);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_scratch_lock_arena(scratch);
  gcap_status_t status = NULL;
  bool waited;
  if (gcap_scratch_pool_first(&scratch->unknown_stream.owner.pool) != NULL)
    status = gcap_scratch_wait_for_device(scratch, &waited);
  gcap_scratch_settle(scratch, /*all=*/false);
  status = gcap_status_join(status, gcap_scratch_give_back_idle(scratch, /*all=*/true));
  gcap_allocator_event_t event = {0};
  if (status == NULL) gcap_scratch_debug_note_trim(scratch, &event);
  gcap_scratch_unlock_arena(scratch);
  gcap_scratch_debug_report(scratch, &event);
  return status;
}
