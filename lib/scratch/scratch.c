// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The scratch arena: its life, allocation and free. Memory comes from upstream in regions (upstream.c), which are cut
// into blocks (region.c). A free block lies in one of many pools (pool.c): of the stream that used it last, of a
// reservation, or of those that nobody uses; or just freed in its stream's cache. What a stream gets of its own comes
// from fast_path.c; here is the slow way, where place.c chooses. What other streams have finished their timelines tell,
// not the driver.
//
// Invariants (gcap_scratch_validate checks them all): blocks cover their region without gap or overlap; a free block is
// in exactly the pool that its tag names, or in its stream's cache; free neighbours outside caches carry different
// tags; every counter equals what a walk over the blocks counts.
//
// Locking: see arena.h. Nothing is held across a call of upstream or of a log sink; below the arena's locks only those
// of the stream module are taken.

#include "gcap/scratch.h"

#include <stdlib.h>

#include "gcap/log.h"
#include "lib/internal/capture_check.h"
#include "lib/scratch/arena.h"
#include "lib/scratch/debug.h"
#include "lib/scratch/options.h"

// --- Life -----------------------------------------------------------------------------------------------------------

static bool round_up(size_t bytes, size_t* out_rounded) {
  if (bytes > SIZE_MAX - (GCAP_SCRATCH_GRANULE_BYTES - 1)) return false;
  *out_rounded = (bytes + GCAP_SCRATCH_GRANULE_BYTES - 1) / GCAP_SCRATCH_GRANULE_BYTES * GCAP_SCRATCH_GRANULE_BYTES;
  return true;
}

static gcap_status_t check_upstream(gcap_allocator_t* upstream) {
  if (upstream == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "scratch needs an upstream allocator, not NULL");
  if (gcap_allocator_alignment(upstream) >= GCAP_SCRATCH_GRANULE_BYTES) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "scratch's upstream allocator aligns to %zu bytes, expected %zu or more",
                     gcap_allocator_alignment(upstream), GCAP_SCRATCH_GRANULE_BYTES);
}

static gcap_status_t check_chunk(const char* name, size_t* bytes) {
  if (*bytes != 0 && round_up(*bytes, bytes)) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %zu, expected 1 or more, and no overflow", name, *bytes);
}

static gcap_status_t check_options(gcap_scratch_options_t* options) {
  GCAP_RETURN_IF_ERROR(check_chunk("initial_chunk_bytes", &options->initial_chunk_bytes));
  GCAP_RETURN_IF_ERROR(check_chunk("initial_growth_chunk_bytes", &options->initial_growth_chunk_bytes));
  if (!round_up(options->max_extend_bytes, &options->max_extend_bytes)) {
    options->max_extend_bytes = SIZE_MAX - (GCAP_SCRATCH_GRANULE_BYTES - 1);  // as good as no limit
  }
  if (options->max_extend_bytes != 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "max_extend_bytes is 0, expected 1 or more");
}

gcap_status_t gcap_scratch_create(gcap_allocator_t* upstream, const gcap_scratch_options_t* options,
                                  gcap_scratch_t** out_scratch) {
  *out_scratch = NULL;
  GCAP_RETURN_IF_ERROR(check_upstream(upstream));
  gcap_scratch_options_t checked;
  GCAP_RETURN_IF_ERROR(gcap_scratch_options_read(options, &checked));
  GCAP_RETURN_IF_ERROR(check_options(&checked));
  gcap_scratch_t* scratch = calloc(1, sizeof(*scratch));
  if (scratch == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a scratch arena");
  scratch->upstream = upstream;
  gcap_status_t status = gcap_scratch_view_create(scratch);
  if (status == NULL) status = gcap_scratch_debug_create(&checked, upstream, &scratch->debug);
  if (status != NULL) {
    gcap_allocator_destroy(scratch->view);
    free(scratch);
    return status;
  }
  scratch->options = checked;
  static atomic_uint_fast64_t num_created;
  scratch->number = atomic_fetch_add_explicit(&num_created, 1, memory_order_relaxed) + 1;
  scratch->can_bias = gcap_scratch_can_bias();
  scratch->next_region_bytes = checked.initial_chunk_bytes;
  scratch->stats.limit_bytes = checked.memory_limit_bytes;
  pthread_mutex_init(&scratch->mutex, NULL);
  gcap_scratch_pages_init(&scratch->pages);
  gcap_scratch_unknown_stream_init(scratch);
  scratch->watch.stream_ends = gcap_scratch_stream_ends;
  gcap_stream_watch_add(&scratch->watch);
  *out_scratch = scratch;
  return NULL;
}

void gcap_scratch_set_test_hooks(gcap_scratch_t* scratch, const gcap_scratch_test_hooks_t* hooks) {
  scratch->test_hooks = *hooks;
}

static gcap_status_t check_unused(const gcap_scratch_t* scratch) {
  const size_t num_live = gcap_scratch_num_live_of_all(scratch);
  size_t num_reservations = scratch->unknown_stream.num_reservations;
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    num_reservations += state->num_reservations;
  }
  // Regions are on their way while another thread, or the caller of the callback that we are in, waits for upstream.
  const size_t num_calls = scratch->num_regions_in_transit + scratch->num_waiting_calls;
  if (num_live == 0 && num_reservations == 0 && num_calls == 0) return NULL;
  return GCAP_STATUS(
      GCAP_FAILED_PRECONDITION,
      "scratch cannot end: %zu blocks are handed out, %zu reservations live, %zu calls wait for upstream "
      "or the device",
      num_live, num_reservations, num_calls);
}

gcap_status_t gcap_scratch_destroy(gcap_scratch_t* scratch) {
  if (scratch == NULL) return NULL;
  gcap_scratch_lock_arena(scratch);
  gcap_status_t status = check_unused(scratch);
  if (status == NULL) {
    // The caller has synchronised the streams, so they are not asked.
    for (gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next)
      gcap_scratch_untag(scratch, state);
    gcap_scratch_untag(scratch, &scratch->unknown_stream);
    status = gcap_scratch_give_back_idle(scratch);
  }
  gcap_scratch_unlock_arena(scratch);
  if (status != NULL) return status;
  gcap_stream_watch_remove(&scratch->watch);
  gcap_scratch_free_streams(scratch);
  gcap_scratch_free_blocks(scratch);
  gcap_allocator_destroy(scratch->view);
  gcap_scratch_pages_deinit(&scratch->pages);
  gcap_scratch_debug_destroy(scratch->debug);
  free(scratch->regions);
  pthread_mutex_destroy(&scratch->mutex);
  free(scratch);
  return NULL;
}

// --- Streams --------------------------------------------------------------------------------------------------------

static gcap_status_t check_forgettable(const gcap_scratch_stream_state_t* state) {
  const gcap_stream_t* stream = gcap_scratch_stream_of(state);
  void* handle = (void*)gcap_stream_handle(stream);
  if (gcap_scratch_num_live(state) > 0 || state->num_reservations > 0) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "scratch cannot forget stream %p: it has %zu blocks handed out and %zu reservations", handle,
                       (size_t)gcap_scratch_num_live(state), state->num_reservations);
  }
  if (state->num_calls > 0) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "scratch cannot forget stream %p: memory is being got for it", handle);
  }
  unsigned bin = gcap_scratch_pool_next_bin(&state->pool, 0);
  for (; bin < GCAP_SCRATCH_NUM_BINS; bin = gcap_scratch_pool_next_bin(&state->pool, bin + 1)) {
    for (const gcap_scratch_block_t* block = state->pool.bins[bin]; block != NULL; block = block->next) {
      if (gcap_scratch_is_finished(block)) continue;
      return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                         "scratch cannot forget stream %p: a block of %zu bytes was freed at its sync id %llu and it "
                         "was not synchronised since",
                         handle, block->bytes, (unsigned long long)(block->used_before - 1));
    }
  }
  return NULL;
}

gcap_status_t gcap_scratch_forget_stream(gcap_scratch_t* scratch, gcap_stream_t* stream) {
  gcap_status_t status = NULL;
  gcap_scratch_lock_arena(scratch);
  gcap_scratch_stream_state_t* state = gcap_scratch_find_stream(scratch, stream);
  if (state != NULL) {
    gcap_scratch_flush(scratch, state);
    status = check_forgettable(state);
  }
  if (state != NULL && status == NULL) {
    gcap_scratch_untag(scratch, state);
    gcap_scratch_remove_stream(scratch, state);
  }
  gcap_scratch_unlock_arena(scratch);
  return status;
}

// --- Allocation -----------------------------------------------------------------------------------------------------

void gcap_scratch_make_up_deficit(gcap_scratch_t* scratch) {
  size_t bytes = atomic_load_explicit(&scratch->deficit_bytes, memory_order_relaxed);
  if (bytes == 0) return;
  atomic_store_explicit(&scratch->deficit_bytes, 0, memory_order_relaxed);
  gcap_scratch_block_t* block = NULL;
  gcap_status_t status = gcap_scratch_grow(scratch, bytes, &block);
  if (status == NULL) return;
  gcap_scratch_pause_lock(scratch);
  gcap_log(GCAP_LOG_WARNING, "scratch cannot grow by the %zu bytes that a capture lacked: %s", bytes,
           gcap_status_message(status));
  gcap_status_free(status);
  gcap_scratch_resume_lock(scratch);
}

// Refuses what a capture would bake into a graph that does not own it. Asks the driver only on a thread that captures.
static gcap_status_t check_reserved(const gcap_scratch_stream_state_t* state, const char* operation) {
  if (!gcap_thread_captures() || state->open != NULL || !gcap_stream_can_capture(gcap_scratch_stream_of(state)))
    return NULL;
  cudaStream_t handle = gcap_stream_handle(gcap_scratch_stream_of(state));
  enum cudaStreamCaptureStatus capture_status = cudaStreamCaptureStatusNone;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamIsCapturing(handle, &capture_status)));
  if (capture_status == cudaStreamCaptureStatusNone) return NULL;
  return GCAP_STATUS(
      GCAP_FAILED_PRECONDITION,
      "%s: stream %p is capturing and has no open reservation, so the graph would not own the memory; open "
      "one (gcap_scratch_reservation_open), or use the stream that has one",
      operation, (void*)handle);
}

// Takes back a reserved region's block; when upstream refuses the region, it stays handed out.
static gcap_status_t take_back_reserved(gcap_scratch_t* scratch, gcap_scratch_region_t* region) {
  gcap_scratch_block_t* block = region->first;
  gcap_scratch_unknown_stream_free(scratch, block);
  gcap_status_t status = gcap_scratch_give_back_reserved(scratch, region);
  if (status != NULL) gcap_scratch_unknown_stream_undo_free(scratch, block);
  return status;
}

static void take_back_tagged(gcap_scratch_t* scratch, gcap_scratch_block_t* block) {
  gcap_scratch_stream_state_t* state = gcap_scratch_block_stream_state(block);
  gcap_scratch_make_free(state, block);
  gcap_scratch_reservation_t* reservation = gcap_scratch_block_reservation(block);
  if (reservation != NULL) --reservation->num_live;
  if (state->open != NULL && reservation == NULL) gcap_scratch_reservation_adopt(state->open, block);
  gcap_scratch_put(scratch, block);
}

// Another graph's block that is freed inside a capture may be used by what was captured before.
static gcap_status_t keep_for_open(const gcap_scratch_block_t* block) {
  gcap_scratch_reservation_t* reservation = gcap_scratch_block_reservation(block);
  gcap_scratch_reservation_t* open = gcap_scratch_block_stream_state(block)->open;
  return reservation == NULL || open == NULL ? NULL : gcap_scratch_reservation_keep(open, reservation);
}

static gcap_status_t take_back(gcap_scratch_t* scratch, gcap_scratch_block_t* block) {
  if (!gcap_scratch_is_unknown_stream(scratch, gcap_scratch_block_stream_state(block))) {
    take_back_tagged(scratch, block);
    return NULL;
  }
  gcap_scratch_region_t* region = gcap_scratch_find_region(scratch, gcap_scratch_block_base(block));
  if (region->reserved) return take_back_reserved(scratch, region);
  if (gcap_scratch_block_reservation(block) != NULL) --gcap_scratch_block_reservation(block)->num_live;
  gcap_scratch_unknown_stream_free(scratch, block);
  gcap_scratch_put(scratch, block);
  return NULL;
}

// Obtains a block and makes it live.
static gcap_status_t hand_out(gcap_scratch_t* scratch, gcap_scratch_request_t* request, size_t requested_bytes,
                              gcap_allocator_event_t* out_event, void** out_ptr) {
  gcap_scratch_block_t* block = NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_obtain(scratch, request, &block));
  gcap_scratch_reservation_t* reservation = gcap_scratch_block_reservation(block);
  if (reservation != NULL) {
    ++reservation->num_live;
  } else {
    gcap_scratch_block_set_stream_state(block, request->state);
  }
  gcap_scratch_pages_set(&scratch->pages, gcap_scratch_block_base(block), block);
  gcap_scratch_make_live(request->state, requested_bytes, block);
  char* ptr = gcap_scratch_block_base(block) + gcap_scratch_zone_bytes(scratch);
  gcap_stream_t* stream = gcap_scratch_stream_of(request->state);  // NULL for nobody
  gcap_status_t status = gcap_scratch_debug_note_alloc(scratch, ptr, requested_bytes, stream, out_event);
  if (status != NULL) return gcap_status_join(status, take_back(scratch, block));
  if (request->reserved && out_event->sequence != 0) out_event->kind = GCAP_ALLOCATOR_EVENT_RESERVE;
  *out_ptr = ptr;
  return NULL;
}

// Whole granules, and the red zones.
static gcap_status_t round_request(const gcap_scratch_t* scratch, size_t bytes, size_t* out_rounded) {
  const size_t zones_bytes = 2 * gcap_scratch_zone_bytes(scratch);
  const size_t rounded = gcap_scratch_block_bytes(bytes);
  *out_rounded = rounded + zones_bytes;
  if (rounded != 0 && rounded <= SIZE_MAX - zones_bytes) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "scratch of %zu bytes overflows when rounded up to %zu", bytes,
                     GCAP_SCRATCH_GRANULE_BYTES);
}

gcap_status_t gcap_scratch_alloc_slowly(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream, void** out_ptr) {
  if (stream == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "scratch of %zu bytes needs a stream, not NULL", bytes);
  gcap_scratch_request_t request = {0};
  GCAP_RETURN_IF_ERROR(round_request(scratch, bytes, &request.bytes));
  gcap_scratch_lock_arena(scratch);
  gcap_allocator_event_t event = {0};
  gcap_status_t status = gcap_scratch_get_stream(scratch, stream, &request.state);
  if (status == NULL) {
    status = check_reserved(request.state, "gcap_scratch_alloc");
    if (status != NULL)
      gcap_thread_capture_hooks->fail(status);  // what was to use the memory is missing from the graph
  }
  if (status == NULL) {
    gcap_scratch_note_thread(scratch, request.state, /*intruder=*/false);
    ++request.state->num_calls;
    if (!gcap_thread_captures() && request.state->open == NULL) gcap_scratch_make_up_deficit(scratch);
    status = hand_out(scratch, &request, bytes, &event, out_ptr);
    --request.state->num_calls;
  }
  gcap_scratch_unlock_arena(scratch);
  gcap_scratch_log_trouble(&request);
  gcap_scratch_debug_report(scratch, &event);
  return status;
}

gcap_status_t gcap_scratch_alloc_untagged(gcap_scratch_t* scratch, size_t bytes, bool reserved, void** out_ptr) {
  // A graph would bake in memory that it does not own.
  GCAP_RETURN_IF_ERROR(gcap_refuse_in_capture(reserved ? "a reserve of scratch" : "scratch for no stream"));
  gcap_scratch_request_t request = {.state = &scratch->unknown_stream, .reserved = reserved};
  GCAP_RETURN_IF_ERROR(round_request(scratch, bytes, &request.bytes));
  gcap_scratch_lock_arena(scratch);
  gcap_allocator_event_t event = {0};
  gcap_scratch_make_up_deficit(scratch);
  gcap_status_t status = hand_out(scratch, &request, bytes, &event, out_ptr);
  gcap_scratch_unlock_arena(scratch);
  gcap_scratch_log_trouble(&request);
  gcap_scratch_debug_report(scratch, &event);
  return status;
}

// Whether a capture forbids it.
static gcap_status_t check_free(const gcap_scratch_t* scratch, const gcap_scratch_block_t* block) {
  const gcap_scratch_stream_state_t* state = gcap_scratch_block_stream_state(block);
  if (!gcap_scratch_is_unknown_stream(scratch, state)) return check_reserved(state, "gcap_scratch_free");
  // Work captured before the free may use it, and every replay would.
  return gcap_check_thread_not_capturing("gcap_scratch_free of memory for no stream");
}

static gcap_status_t free_live(gcap_scratch_t* scratch, gcap_scratch_block_t* block, gcap_allocator_event_t* out_event,
                               gcap_status_t* out_damage) {
  GCAP_RETURN_IF_ERROR(check_free(scratch, block));
  GCAP_RETURN_IF_ERROR(keep_for_open(block));
  gcap_scratch_live_t* live = NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_debug_begin_free(scratch, block, &live, out_damage));
  gcap_scratch_stream_state_t* state = gcap_scratch_block_stream_state(block);
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
  gcap_scratch_lock_arena(scratch);
  gcap_scratch_block_t* block = NULL;
  gcap_allocator_event_t event = {0};
  gcap_status_t damage = NULL;
  gcap_status_t status = gcap_scratch_find_live(scratch, ptr, &block);
  status = gcap_scratch_with_history(scratch, ptr, status);
  if (status == NULL) status = free_live(scratch, block, &event, &damage);
  gcap_scratch_unlock_arena(scratch);
  gcap_scratch_debug_report(scratch, &event);
  return gcap_status_join(status, damage);
}

gcap_status_t gcap_scratch_trim(gcap_scratch_t* scratch) {
  gcap_scratch_lock_arena(scratch);
  gcap_status_t status = NULL;
  bool waited;
  if (gcap_scratch_pool_first(&scratch->unknown_stream.pool) != NULL)
    status = gcap_scratch_wait_for_device(scratch, &waited);
  gcap_scratch_settle(scratch, /*all=*/false);
  status = gcap_status_join(status, gcap_scratch_give_back_idle(scratch));
  gcap_allocator_event_t event = {0};
  if (status == NULL) gcap_scratch_debug_note_trim(scratch, &event);
  gcap_scratch_unlock_arena(scratch);
  gcap_scratch_debug_report(scratch, &event);
  return status;
}

static void add_counters(const gcap_scratch_stream_state_t* state, gcap_allocator_stats_t* stats) {
  stats->num_allocs += state->num_allocs;
  stats->in_use_bytes += state->in_use_bytes;
  stats->requested_in_use_bytes += state->requested_in_use_bytes;
  if (stats->max_alloc_bytes < state->max_alloc_bytes) stats->max_alloc_bytes = state->max_alloc_bytes;
}

void gcap_scratch_get_stats(gcap_scratch_t* scratch, gcap_allocator_stats_t* out_stats) {
  gcap_scratch_lock_arena(scratch);
  gcap_scratch_fold_peaks(scratch);
  *out_stats = scratch->stats;
  add_counters(&scratch->unknown_stream, out_stats);
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    add_counters(state, out_stats);
  }
  gcap_scratch_unlock_arena(scratch);
}
