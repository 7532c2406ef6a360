// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The scratch arena: its life, and what its parts are about.
//
// Region       a piece of memory from the upstream allocator.
// Block        a piece of a region, live (handed out), free, or cached. Blocks cover their region without a gap.
// Tag          what a block carries: its phase, and its owner. The owner of a free block is the stream that used the
//              block last; without an owner it is untagged: no stream uses it any more.
// Pool         free blocks with one tag, in bins by size. A block that is put into a pool is joined with neighbours
// that
//              carry the same tag.
// Cache        a stream's blocks that were just freed, as they are, for requests of the same size.
// Stream state what the arena knows of one stream: lock, pool, cache, counters, open reservation.
// Unknown      the state for requests that name no stream: any stream may use what it owns, until the device was
// stream       waited for.
// Reservation  the blocks that a captured graph keeps: an owner with a pool of its own. While it is open its stream's
//              allocations are diverted to it.
// Run          what a stream allocates between its begin and its end, to be freed by then; a node is who allocates it.
// Timeline     a stream's count of what it was given; it tells what another stream has waited for, and what is
//              finished, without the driver.
//
// The rooms, each built on those above it:
//   store        pages.c, pool.c, slabs.c, region.c, cache.c: memory cut into blocks; knows no stream and no device
//   ownership    lock.c, streams.c, timeline.c, unknown_stream.c, reservation.c: whose a block is, and since when
//   diagnostics  record.c, red_zones.c, debug.c, nodes.c, report.c, validate.c: what went wrong, and what is held
//   policy       upstream.c, place.c, bypass.c, out_of_memory.c: which block, and what is tried before it fails
//   and the calls themselves: fast_path.c, slow_path.c, run.c, prepare.c, stream_end.c, allocator_view.c,
//   memory_source.c, and here.
//
// Invariants (gcap_scratch_validate checks them all): blocks cover their region without gap or overlap; a free block is
// in exactly the pool of its owner, or in its stream's cache; free neighbours outside caches carry different tags;
// every counter equals what a walk over the blocks counts.
//
// Locking: see lock.h. Nothing is held across a call of upstream or of a log sink; below the arena's locks only those
// of the stream module are taken.

#include "gcap/scratch.h"

#include <stdlib.h>

#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/internal/sized.h"
#include "lib/scratch/allocator_view.h"
#include "lib/scratch/debug.h"
#include "lib/scratch/inner.h"
#include "lib/scratch/lock.h"
#include "lib/scratch/memory_source.h"
#include "lib/scratch/nodes.h"
#include "lib/scratch/place.h"
#include "lib/scratch/reservation.h"
#include "lib/scratch/run.h"
#include "lib/scratch/stream_end.h"
#include "lib/scratch/streams.h"
#include "lib/scratch/unknown_stream.h"
#include "lib/scratch/upstream.h"

// --- Life -----------------------------------------------------------------------------------------------------------

GCAP_SIZED_OPTIONS(static, gcap_scratch_options);

static gcap_status_t check_upstream(gcap_allocator_t* upstream, int* out_device_id) {
  gcap_allocator_stats_t stats;
  gcap_allocator_get_stats(upstream, &stats);
  *out_device_id = stats.device_id;
  if (stats.alignment >= GCAP_SCRATCH_GRANULE_BYTES) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "scratch's upstream allocator aligns to %zu bytes, expected %zu or more",
                     stats.alignment, GCAP_SCRATCH_GRANULE_BYTES);
}

static gcap_status_t check_chunk(const char* name, size_t* bytes) {
  const size_t rounded = gcap_scratch_block_bytes(*bytes);
  if (rounded == 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %zu, expected 1 or more, and no overflow", name, *bytes);
  }
  *bytes = rounded;
  return NULL;
}

static gcap_status_t check_options(gcap_scratch_options_t* options) {
  GCAP_RETURN_IF_ERROR(check_chunk("initial_chunk_bytes", &options->initial_chunk_bytes));
  GCAP_RETURN_IF_ERROR(check_chunk("initial_growth_chunk_bytes", &options->initial_growth_chunk_bytes));
  if (options->max_extend_bytes == 0) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "max_extend_bytes is 0, expected 1 or more");
  }
  const size_t rounded = gcap_scratch_block_bytes(options->max_extend_bytes);
  const size_t largest = SIZE_MAX - (GCAP_SCRATCH_GRANULE_BYTES - 1);  // as good as no limit
  options->max_extend_bytes = rounded != 0 ? rounded : largest;
  return NULL;
}

gcap_status_t gcap_scratch_create(gcap_allocator_t* upstream, const gcap_scratch_options_t* options,
                                  gcap_scratch_t** out_scratch) {
  GCAP_RETURN_IF_NULL(out_scratch);
  *out_scratch = NULL;
  GCAP_RETURN_IF_NULL(upstream);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  int device_id = -1;
  GCAP_RETURN_IF_ERROR(check_upstream(upstream, &device_id));
  gcap_scratch_options_t checked;
  GCAP_RETURN_IF_ERROR(gcap_scratch_options_read(options, &checked));
  GCAP_RETURN_IF_ERROR(check_options(&checked));
  gcap_scratch_t* scratch = calloc(1, sizeof(*scratch));
  if (scratch == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a scratch arena");
  scratch->upstream = upstream;
  scratch->device_id = device_id;
  scratch->options = checked;
  gcap_status_t status = gcap_scratch_view_create(scratch);
  if (status == NULL) status = gcap_scratch_debug_create(scratch);
  if (status != NULL) {
    gcap_allocator_destroy(scratch->view);
    free(scratch);
    return status;
  }
  gcap_scratch_set_deficit(scratch, 0);
  static atomic_uint_fast64_t num_created;
  scratch->number = atomic_fetch_add_explicit(&num_created, 1, memory_order_relaxed) + 1;
  scratch->can_bias = gcap_scratch_can_bias();
  scratch->next_region_bytes = checked.initial_chunk_bytes;
  scratch->stats.limit_bytes = checked.memory_limit_bytes;
  pthread_mutex_init(&scratch->mutex, NULL);
  gcap_scratch_arrivals_init(scratch);
  gcap_scratch_store_init(&scratch->store);
  gcap_scratch_unknown_stream_init(scratch);
  scratch->watch.stream_ends = gcap_scratch_stream_ends;
  gcap_stream_watch_add(&scratch->watch);
  gcap_scratch_source_add(scratch);
  *out_scratch = scratch;
  return NULL;
}

void gcap_scratch_set_test_hooks(gcap_scratch_t* scratch, const gcap_scratch_test_hooks_t* hooks) {
  scratch->test_hooks = *hooks;
}

// Refuses while something of the arena is in use. `apart_from_graphs`: what graphs keep counts only while a reservation
// is open, since the graphs end first.
static gcap_status_t check_unused(const gcap_scratch_t* scratch, bool apart_from_graphs) {
  size_t num_live = gcap_scratch_num_live_of_all(scratch);
  size_t num_reservations = apart_from_graphs ? 0 : scratch->unknown_stream.num_reservations;
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    num_reservations += apart_from_graphs ? state->open != NULL : state->num_reservations;
  }
  const gcap_scratch_reservation_t* r = apart_from_graphs ? scratch->reservations : NULL;
  for (; r != NULL; r = r->next) num_live -= r->num_live;
  // Calls of other threads, or of the caller of the callback that we are in.
  const size_t num_calls = scratch->num_waiting_calls;
  if (num_live == 0 && num_reservations == 0 && num_calls == 0) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "scratch cannot end: %zu blocks are handed out, %zu reservations %s, %zu calls wait for "
                     "upstream, the device or a callback%s",
                     num_live, num_reservations, apart_from_graphs ? "are open" : "live", num_calls,
                     gcap_scratch_describe_leaks(scratch, /*state=*/NULL).text);
}

// Empties an arena that nobody uses. Upstream's free may use it again, so that is looked at once more.
static gcap_status_t give_all_back(gcap_scratch_t* scratch) {
  for (gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next)
    gcap_scratch_drop_rehearsed(state);
  GCAP_RETURN_IF_ERROR(check_unused(scratch, /*apart_from_graphs=*/false));
  // The caller has synchronised the streams, so they are not asked.
  for (gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next)
    gcap_scratch_untag(scratch, state);
  gcap_scratch_untag(scratch, &scratch->unknown_stream);
  GCAP_RETURN_IF_ERROR(gcap_scratch_give_back_idle(scratch, /*all=*/true));
  GCAP_RETURN_IF_ERROR(check_unused(scratch, /*apart_from_graphs=*/false));
  if (scratch->store.num_regions == 0) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION,
                     "scratch cannot end: it was used while upstream took its memory back, and holds %zu regions again",
                     scratch->store.num_regions);
}

gcap_status_t gcap_scratch_check_end(gcap_scratch_t* scratch) {
  gcap_scratch_free_orphans(scratch);
  gcap_scratch_lock_arena(scratch);
  gcap_status_t status = check_unused(scratch, /*apart_from_graphs=*/true);
  gcap_scratch_unlock_arena(scratch);
  return status;
}

gcap_status_t gcap_scratch_destroy(gcap_scratch_t* scratch) {
  if (scratch == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_scratch_free_orphans(scratch);
  gcap_scratch_lock_arena(scratch);
  gcap_status_t status = give_all_back(scratch);
  gcap_scratch_unlock_arena(scratch);
  if (status != NULL) return status;
  gcap_stream_watch_remove(&scratch->watch);
  gcap_scratch_source_remove(scratch);
  gcap_scratch_free_streams(scratch);
  gcap_scratch_free_node_names(scratch);
  gcap_scratch_store_deinit(&scratch->store);
  gcap_allocator_destroy(scratch->view);
  gcap_scratch_debug_destroy(scratch);
  gcap_scratch_arrivals_deinit(scratch);
  pthread_mutex_destroy(&scratch->mutex);
  free(scratch);
  return NULL;
}
