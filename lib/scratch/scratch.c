// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The scratch arena: its life, allocation and free. Memory comes from upstream in regions (upstream.c), which are cut
// into blocks (region.c). A free block lies in one of many pools (pool.c): of the stream that used it last, of a
// reservation, or of those that nobody uses; or just freed in its stream's cache. What a stream gets of its own comes
// from front.c; here is the slow way, where place.c chooses. No driver is asked about streams, their timelines know.
//
// Invariants (gcap_scratch_validate checks them all): blocks cover their region without gap or overlap; a free block is
// in exactly the pool that its mark names, or in its stream's cache; free neighbours outside caches carry different
// marks; every counter equals what a walk over the blocks counts.
//
// Locking: see arena.h. Nothing is held across a call of upstream or of a log sink; below the arena's locks only those
// of the stream module are taken.

#include "gcap/scratch.h"

#include <stdlib.h>

#include "gcap/log.h"
#include "lib/base/thread_state.h"
#include "lib/scratch/arena.h"
#include "lib/scratch/debug.h"

void gcap_scratch_options_init(gcap_scratch_options_t* options) {
  *options = (gcap_scratch_options_t){
      .initial_chunk_bytes = (size_t)1 << 20,
      .initial_growth_chunk_bytes = (size_t)2 << 20,
      .max_extend_bytes = (size_t)1 << 30,
      .max_dead_bytes_per_chunk = (size_t)128 << 20,
  };
}

// --- Life -----------------------------------------------------------------------------------------------------------

static bool round_up(size_t bytes, size_t* out_rounded) {
  if (bytes > SIZE_MAX - (SCRATCH_GRANULE_BYTES - 1)) return false;
  *out_rounded = (bytes + SCRATCH_GRANULE_BYTES - 1) / SCRATCH_GRANULE_BYTES * SCRATCH_GRANULE_BYTES;
  return true;
}

static gcap_status_t check_upstream(gcap_allocator_t* upstream) {
  if (upstream == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "scratch needs an upstream allocator, not NULL");
  if (gcap_allocator_alignment(upstream) >= SCRATCH_GRANULE_BYTES) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "scratch's upstream allocator aligns to %zu bytes, expected %zu or more",
                     gcap_allocator_alignment(upstream), SCRATCH_GRANULE_BYTES);
}

static gcap_status_t check_chunk(const char* name, size_t* bytes) {
  if (*bytes != 0 && round_up(*bytes, bytes)) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %zu, expected 1 or more, and no overflow", name, *bytes);
}

static gcap_status_t check_options(gcap_scratch_options_t* options) {
  GCAP_RETURN_IF_ERROR(check_chunk("initial_chunk_bytes", &options->initial_chunk_bytes));
  GCAP_RETURN_IF_ERROR(check_chunk("initial_growth_chunk_bytes", &options->initial_growth_chunk_bytes));
  if (options->max_extend_bytes != 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "max_extend_bytes is 0, expected 1 or more");
}

gcap_status_t gcap_scratch_create(gcap_allocator_t* upstream, const gcap_scratch_options_t* options,
                                  gcap_scratch_t** out_scratch) {
  *out_scratch = NULL;
  GCAP_RETURN_IF_ERROR(check_upstream(upstream));
  gcap_scratch_options_t checked;
  gcap_scratch_options_init(&checked);
  if (options != NULL) checked = *options;
  GCAP_RETURN_IF_ERROR(check_options(&checked));
  gcap_scratch_t* scratch = calloc(1, sizeof(*scratch));
  if (scratch == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a scratch arena");
  gcap_status_t status = scratch_debug_create(&checked, &scratch->debug);
  if (status != NULL) {
    free(scratch);
    return status;
  }
  scratch->upstream = upstream;
  scratch->options = checked;
  static atomic_uint_fast64_t num_created;
  scratch->number = atomic_fetch_add_explicit(&num_created, 1, memory_order_relaxed) + 1;
  scratch->can_bias = scratch_can_bias();
  scratch->next_region_bytes = checked.initial_chunk_bytes;
  scratch->stats.limit_bytes = checked.memory_limit_bytes;
  pthread_mutex_init(&scratch->mutex, NULL);
  scratch_pages_init(&scratch->pages);
  *out_scratch = scratch;
  return NULL;
}

void scratch_set_test_hooks(gcap_scratch_t* scratch, const scratch_test_hooks_t* hooks) {
  scratch->test_hooks = *hooks;
}

static gcap_status_t check_unused(const gcap_scratch_t* scratch) {
  size_t num_live = 0, num_reservations = 0;
  for (const scratch_stream_t* user = scratch->streams; user != NULL; user = user->next) {
    num_live += scratch_num_live(user);
    num_reservations += user->num_reservations;
  }
  if (num_live == 0 && num_reservations == 0 && scratch->num_absent == 0) return NULL;
  // Regions are on their way while another thread, or the caller of the callback that we are in, waits for upstream.
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "scratch cannot end: %zu blocks are handed out, %zu reservations live, %zu regions are on their "
                     "way from or to upstream",
                     num_live, num_reservations, scratch->num_absent);
}

gcap_status_t gcap_scratch_destroy(gcap_scratch_t* scratch) {
  if (scratch == NULL) return NULL;
  scratch_hold(scratch);
  gcap_status_t status = check_unused(scratch);
  if (status == NULL) {
    // The caller has synchronised the streams; some may be gone, so they are not asked.
    for (scratch_stream_t* user = scratch->streams; user != NULL; user = user->next) scratch_untag(scratch, user);
    status = scratch_give_back_idle(scratch);
  }
  scratch_let_go(scratch);
  if (status != NULL) return status;
  scratch_free_streams(scratch);
  scratch_free_blocks(scratch);
  scratch_pages_deinit(&scratch->pages);
  scratch_debug_destroy(scratch->debug);
  free(scratch->regions);
  pthread_mutex_destroy(&scratch->mutex);
  free(scratch);
  return NULL;
}

// --- Streams --------------------------------------------------------------------------------------------------------

static gcap_status_t check_forgettable(const scratch_stream_t* user) {
  const gcap_stream_t* stream = scratch_user_stream(user);
  void* handle = (void*)gcap_stream_handle(stream);
  if (scratch_num_live(user) > 0 || user->num_reservations > 0) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                       "scratch cannot forget stream %p: it has %zu blocks handed out and %zu reservations", handle,
                       (size_t)scratch_num_live(user), user->num_reservations);
  }
  unsigned bin = scratch_pool_next_bin(&user->pool, 0);
  for (; bin < SCRATCH_NUM_BINS; bin = scratch_pool_next_bin(&user->pool, bin + 1)) {
    for (const scratch_block_t* block = user->pool.bins[bin]; block != NULL; block = block->next) {
      if (scratch_is_finished(block)) continue;
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
  scratch_hold(scratch);
  scratch_stream_t* user = scratch->streams;
  while (user != NULL && scratch_user_stream(user) != stream) user = user->next;
  if (user != NULL) {
    scratch_flush(scratch, user);
    status = check_forgettable(user);
  }
  if (user != NULL && status == NULL) {
    scratch_untag(scratch, user);
    scratch_remove_stream(scratch, user);
  }
  scratch_let_go(scratch);
  return status;
}

// --- Allocation -----------------------------------------------------------------------------------------------------

void scratch_make_up_deficit(gcap_scratch_t* scratch) {
  size_t bytes = atomic_load_explicit(&scratch->deficit_bytes, memory_order_relaxed);
  if (bytes == 0) return;
  atomic_store_explicit(&scratch->deficit_bytes, 0, memory_order_relaxed);
  scratch_block_t* block = NULL;
  gcap_status_t status = scratch_grow(scratch, bytes, &block);
  if (status == NULL) return;
  scratch_let_go(scratch);
  gcap_log(GCAP_LOG_WARNING, "scratch cannot grow by the %zu bytes that a capture lacked: %s", bytes,
           gcap_status_message(status));
  gcap_status_free(status);
  scratch_hold(scratch);
}

static gcap_status_t reservation_lacks(gcap_scratch_t* scratch, const scratch_stream_t* user, size_t bytes) {
  const char* label = user->open->label;
  atomic_fetch_add_explicit(&scratch->deficit_bytes, bytes, memory_order_relaxed);
  return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED,
                     "the scratch reservation of %s%sstream %p holds %zu bytes and lacks %zu more; scratch grows by "
                     "these at the next allocation outside a capture",
                     label, label[0] != '\0' ? " on " : "", (void*)gcap_stream_handle(scratch_user_stream(user)),
                     user->open->bytes, bytes);
}

// Refuses what a capture would bake into a graph that does not own it. Asks the driver only on a thread that captures.
static gcap_status_t check_reserved(const scratch_stream_t* user, const char* operation) {
  if (!gcap_thread_captures() || user->open != NULL || !gcap_stream_can_capture(scratch_user_stream(user))) return NULL;
  cudaStream_t handle = gcap_stream_handle(scratch_user_stream(user));
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamIsCapturing(handle, &state)));
  if (state == cudaStreamCaptureStatusNone) return NULL;
  return GCAP_STATUS(
      GCAP_FAILED_PRECONDITION,
      "%s: stream %p is capturing and has no open reservation, so the graph would not own the memory; open "
      "one (gcap_scratch_reservation_open), or use the stream that has one",
      operation, (void*)handle);
}

// Gets a detached block, by growing if need be.
static gcap_status_t obtain_block(gcap_scratch_t* scratch, scratch_stream_t* user, size_t bytes,
                                  scratch_block_t** out_block) {
  GCAP_RETURN_IF_ERROR(scratch_place(scratch, user, bytes, out_block));
  if (*out_block != NULL) return NULL;
  if (user->open != NULL) return reservation_lacks(scratch, user, bytes);
  gcap_status_t status = scratch_grow(scratch, bytes, out_block);
  if (status == NULL) return scratch_take(scratch, user, bytes, out_block);
  return gcap_status_annotate(status, gcap_status_code(status),
                              "scratch has no %zu bytes free for stream %p, which has no open reservation, and cannot "
                              "grow",
                              bytes, (void*)gcap_stream_handle(scratch_user_stream(user)));
}

static void take_back(gcap_scratch_t* scratch, scratch_block_t* block) {
  scratch_stream_t* user = scratch_block_user(block);
  scratch_mark_free(user, block);
  gcap_scratch_reservation_t* reservation = scratch_block_reservation(block);
  if (reservation != NULL) --reservation->num_live;
  if (user->open != NULL && reservation == NULL) scratch_reservation_adopt(user->open, block);
  scratch_put(scratch, block);
}

gcap_status_t scratch_alloc_slowly(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream, void** out_ptr) {
  if (stream == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "scratch of %zu bytes needs a stream, not NULL", bytes);
  const size_t zone_bytes = scratch_zone_bytes(scratch);
  size_t rounded = scratch_block_bytes(bytes);
  if (rounded == 0 || rounded > SIZE_MAX - 2 * zone_bytes) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "scratch of %zu bytes overflows when rounded up to %zu", bytes,
                       SCRATCH_GRANULE_BYTES);
  }
  scratch_hold(scratch);
  scratch_stream_t* user = NULL;
  scratch_block_t* block = NULL;
  gcap_allocator_event_t event = {0};
  gcap_status_t status = scratch_get_stream(scratch, stream, &user);
  if (status == NULL) {
    status = check_reserved(user, "gcap_scratch_alloc");
    if (status != NULL)
      gcap_thread_capture_hooks->fail(status);  // what was to use the memory is missing from the graph
  }
  if (status == NULL) {
    scratch_note_thread(scratch, user, /*intruder=*/false);
    if (!gcap_thread_captures() && user->open == NULL) scratch_make_up_deficit(scratch);
    status = obtain_block(scratch, user, rounded + 2 * zone_bytes, &block);
  }
  if (status == NULL) {
    gcap_scratch_reservation_t* reservation = scratch_block_reservation(block);
    if (reservation != NULL) {
      ++reservation->num_live;
    } else {
      scratch_block_set_user(block, user);
    }
    scratch_pages_set(&scratch->pages, scratch_block_base(block), block);
    scratch_mark_live(user, bytes, block);
    status = scratch_debug_note_alloc(scratch, scratch_block_base(block) + zone_bytes, bytes, stream, &event);
    if (status != NULL) take_back(scratch, block);
  }
  if (status == NULL) *out_ptr = scratch_block_base(block) + zone_bytes;
  scratch_let_go(scratch);
  scratch_debug_report(scratch, &event);
  return status;
}

gcap_status_t scratch_free_slowly(gcap_scratch_t* scratch, void* ptr) {
  scratch_hold(scratch);
  scratch_block_t* block = NULL;
  gcap_allocator_event_t event = {0};
  gcap_status_t damage = NULL;
  gcap_status_t status = scratch_find_live(scratch, ptr, &block);
  status = scratch_with_history(scratch, ptr, status);
  if (status == NULL) status = check_reserved(scratch_block_user(block), "gcap_scratch_free");
  if (status == NULL) status = scratch_debug_note_free(scratch, block, &event, &damage);
  if (status == NULL) {
    scratch_note_thread(scratch, scratch_block_user(block), /*intruder=*/true);
    take_back(scratch, block);
  }
  scratch_let_go(scratch);
  scratch_debug_report(scratch, &event);
  return status != NULL ? status : damage;
}

gcap_status_t gcap_scratch_trim(gcap_scratch_t* scratch) {
  scratch_hold(scratch);
  scratch_settle(scratch);
  gcap_status_t status = scratch_give_back_idle(scratch);
  gcap_allocator_event_t event = {0};
  if (status == NULL) scratch_debug_note_trim(scratch, &event);
  scratch_let_go(scratch);
  scratch_debug_report(scratch, &event);
  return status;
}

void gcap_scratch_get_stats(gcap_scratch_t* scratch, gcap_allocator_stats_t* out_stats) {
  scratch_hold(scratch);
  scratch_fold_peaks(scratch);
  *out_stats = scratch->stats;
  for (const scratch_stream_t* user = scratch->streams; user != NULL; user = user->next) {
    out_stats->num_allocs += user->num_allocs;
    out_stats->in_use_bytes += user->in_use_bytes;
    out_stats->requested_in_use_bytes += user->requested_in_use_bytes;
    if (out_stats->max_alloc_bytes < user->max_alloc_bytes) out_stats->max_alloc_bytes = user->max_alloc_bytes;
  }
  scratch_let_go(scratch);
}
