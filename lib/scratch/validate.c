// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Validation: walks over regions, blocks and pools and compares them with one another and with the counters. It trusts
// no counter and shares no arithmetic with the code that keeps them, but for the bin formula. The cost is blocks times
// streams: a tool for tests and for whoever suspects a stray write. Locking: the arena is locked for the whole walk.

#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/scratch/debug.h"
#include "lib/scratch/lock.h"
#include "lib/scratch/reservation.h"
#include "lib/scratch/streams.h"
#include "lib/scratch/unknown_stream.h"

#define REQUIRE(condition, ...)                                                   \
  do {                                                                            \
    if (!(condition)) return GCAP_STATUS(GCAP_INTERNAL, "scratch: " __VA_ARGS__); \
  } while (0)

// What a walk over all blocks finds.
typedef struct census {
  size_t region_bytes, live_bytes, requested_bytes, num_free, num_cached;
} census_t;

static gcap_status_t check_block(const gcap_scratch_block_t* block, const char* expected) {
  const gcap_scratch_stream_state_t* state = gcap_scratch_block_state(block);
  const gcap_scratch_reservation_t* reservation = gcap_scratch_block_reservation(block);
  const gcap_scratch_phase_t phase = gcap_scratch_block_phase(block);
  REQUIRE(gcap_scratch_block_base(block) == expected, "block %p should start at %p",
          (void*)gcap_scratch_block_base(block), (const void*)expected);
  REQUIRE(block->bytes > 0 && block->bytes % GCAP_SCRATCH_GRANULE_BYTES == 0, "block %p has %zu bytes",
          (void*)gcap_scratch_block_base(block), block->bytes);
  REQUIRE(block->upper == NULL || gcap_scratch_block_lower(block->upper) == block,
          "block %p and its upper neighbour disagree", (void*)gcap_scratch_block_base(block));
  REQUIRE(phase != GCAP_SCRATCH_LIVE ||
              (state != NULL && block->requested_bytes > 0 && block->requested_bytes <= block->bytes),
          "live block %p of %zu bytes has %zu requested bytes, or no stream", (void*)gcap_scratch_block_base(block),
          block->bytes, block->requested_bytes);
  REQUIRE(phase != GCAP_SCRATCH_CACHED || (state != NULL && reservation == NULL),
          "cached block %p is of no stream, or of a graph", (void*)gcap_scratch_block_base(block));
  const gcap_scratch_block_t* upper = block->upper;
  REQUIRE(upper == NULL || phase != GCAP_SCRATCH_FREE || gcap_scratch_block_tag(upper) != gcap_scratch_block_tag(block),
          "free blocks %p and %p carry the same tag and are not merged", (void*)gcap_scratch_block_base(block),
          (void*)gcap_scratch_block_base(upper));
  return NULL;
}

static gcap_status_t check_region(gcap_scratch_pages_t* pages, const gcap_scratch_region_t* region, census_t* census) {
  REQUIRE(region->first != NULL && gcap_scratch_block_lower(region->first) == NULL, "region %p has no lowest block",
          (void*)region->base);
  const char* expected = region->base;
  for (const gcap_scratch_block_t* block = region->first; block != NULL; block = block->upper) {
    GCAP_RETURN_IF_ERROR(check_block(block, expected));
    expected += block->bytes;
    const bool live = gcap_scratch_block_phase(block) == GCAP_SCRATCH_LIVE;
    REQUIRE(!live || gcap_scratch_pages_find(pages, gcap_scratch_block_base(block)) == block,
            "live block %p is not found", (void*)gcap_scratch_block_base(block));
    census->live_bytes += live ? block->bytes : 0;
    census->requested_bytes += live ? block->requested_bytes : 0;
    census->num_free += gcap_scratch_block_phase(block) == GCAP_SCRATCH_FREE;
    census->num_cached += gcap_scratch_block_phase(block) == GCAP_SCRATCH_CACHED;
  }
  REQUIRE(expected == region->base + region->bytes, "the blocks of region %p end at %p", (void*)region->base,
          (const void*)expected);
  census->region_bytes += region->bytes;
  return NULL;
}

static gcap_status_t check_regions(gcap_scratch_t* scratch, census_t* census) {
  for (size_t i = 0; i < scratch->store.num_regions; ++i) {
    const gcap_scratch_region_t* region = scratch->store.regions[i];
    REQUIRE(i == 0 || (uintptr_t)scratch->store.regions[i - 1]->base + scratch->store.regions[i - 1]->bytes <=
                          (uintptr_t)region->base,
            "region %p overlaps the one below, or is out of order", (void*)region->base);
    GCAP_RETURN_IF_ERROR(check_region(&scratch->store.pages, region, census));
  }
  return NULL;
}

// Checks that a pool holds nothing but its own blocks, each in its bin, and counts them.
static gcap_status_t check_pool(gcap_scratch_t* scratch, const gcap_scratch_pool_t* pool, size_t* num_free) {
  for (unsigned bin = 0; bin < GCAP_SCRATCH_NUM_BINS; ++bin) {
    bool filled = (pool->filled[bin / 64] >> (bin % 64)) & 1;
    REQUIRE(filled == (pool->bins[bin] != NULL), "the bit of bin %u is wrong", bin);
    const gcap_scratch_block_t* previous = NULL;
    for (const gcap_scratch_block_t* block = pool->bins[bin]; block != NULL; previous = block, block = block->next) {
      REQUIRE(gcap_scratch_block_phase(block) == GCAP_SCRATCH_FREE, "block %p is in a pool, but not free",
              (void*)gcap_scratch_block_base(block));
      REQUIRE(gcap_scratch_pool_of(&scratch->store, block) == pool, "block %p is in another pool than its own",
              (void*)gcap_scratch_block_base(block));
      REQUIRE(gcap_scratch_pool_bin(block->bytes) == bin, "block %p of %zu bytes is in bin %u",
              (void*)gcap_scratch_block_base(block), block->bytes, bin);
      REQUIRE(block->previous == previous, "bin %u is linked wrongly at block %p", bin,
              (void*)gcap_scratch_block_base(block));
      ++*num_free;
    }
  }
  return NULL;
}

static gcap_status_t check_pools(gcap_scratch_t* scratch, size_t expected_num_free) {
  size_t num_free = 0;
  GCAP_RETURN_IF_ERROR(check_pool(scratch, &scratch->store.untagged, &num_free));
  GCAP_RETURN_IF_ERROR(check_pool(scratch, &scratch->unknown_stream.owner.pool, &num_free));
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    GCAP_RETURN_IF_ERROR(check_pool(scratch, &state->owner.pool, &num_free));
  }
  for (const gcap_scratch_reservation_t* r = scratch->reservations; r != NULL; r = r->next) {
    GCAP_RETURN_IF_ERROR(check_pool(scratch, &r->owner.pool, &num_free));
  }
  // Every block in a pool is free and in its own, so equal numbers mean that every free block is in exactly one.
  REQUIRE(num_free == expected_num_free, "%zu blocks are free, %zu are in pools", expected_num_free, num_free);
  return NULL;
}

// The same for the caches.
static gcap_status_t check_caches(const gcap_scratch_t* scratch, size_t expected_num_cached) {
  size_t num_cached = 0;
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    const size_t num_before = num_cached;
    for (unsigned bin = 0; bin < GCAP_SCRATCH_NUM_CACHE_BINS; ++bin) {
      for (const gcap_scratch_block_t* block = state->cache.bins[bin]; block != NULL; block = block->next) {
        REQUIRE(gcap_scratch_block_phase(block) == GCAP_SCRATCH_CACHED && gcap_scratch_block_state(block) == state,
                "block %p is in a cache that is not its own", (void*)gcap_scratch_block_base(block));
        REQUIRE(gcap_scratch_pool_bin(block->bytes) == bin, "cached block %p of %zu bytes is in bin %u",
                (void*)gcap_scratch_block_base(block), block->bytes, bin);
        ++num_cached;
      }
    }
    REQUIRE(state->cache.num_blocks == num_cached - num_before, "a stream has %zu cached blocks, its counter says %zu",
            num_cached - num_before, state->cache.num_blocks);
  }
  REQUIRE(num_cached == expected_num_cached, "%zu blocks are marked as cached, %zu are in caches", expected_num_cached,
          num_cached);
  return NULL;
}

// Live blocks of a stream, and how many of them are of its open run.
static size_t count_live(const gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state,
                         size_t* out_num_of_run) {
  size_t num_live = 0;
  *out_num_of_run = 0;
  for (size_t i = 0; i < scratch->store.num_regions; ++i) {
    for (const gcap_scratch_block_t* block = scratch->store.regions[i]->first; block != NULL; block = block->upper) {
      if (gcap_scratch_block_phase(block) != GCAP_SCRATCH_LIVE || gcap_scratch_block_state(block) != state) continue;
      ++num_live;
      *out_num_of_run += block->use.run == state->use.run;
    }
  }
  return num_live;
}

static gcap_status_t check_stream(gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state) {
  REQUIRE(gcap_scratch_find_stream(scratch, gcap_scratch_stream_of(state)) == state, "a stream is not found");
  size_t num_of_run = 0, num_reservations = 0;
  const size_t num_live = count_live(scratch, state, &num_of_run);
  REQUIRE(num_live == gcap_scratch_num_live(state), "a stream has %zu live blocks, its counters say %zu", num_live,
          (size_t)gcap_scratch_num_live(state));
  REQUIRE(state->use.run == 0 || num_of_run == gcap_scratch_num_live_of_run(state),
          "a run has %zu live blocks, its counter says %zu", num_of_run, (size_t)gcap_scratch_num_live_of_run(state));
  bool open_is_known = state->open == NULL;
  for (const gcap_scratch_reservation_t* r = scratch->reservations; r != NULL; r = r->next) {
    num_reservations += gcap_scratch_reservation_state(r) == state;
    open_is_known = open_is_known || (r == state->open && gcap_scratch_reservation_state(r) == state);
  }
  REQUIRE(num_reservations == state->num_reservations, "a stream has %zu reservations, its counter says %zu",
          num_reservations, state->num_reservations);
  REQUIRE(open_is_known, "a stream's open reservation is not on the list");
  return NULL;
}

static gcap_status_t check_unknown_stream(const gcap_scratch_t* scratch) {
  size_t num_reserved = 0, num_reservations = 0, num_of_run = 0;  // the unknown stream has no runs
  const size_t num_live = count_live(scratch, &scratch->unknown_stream, &num_of_run);
  REQUIRE(num_live == gcap_scratch_num_live(&scratch->unknown_stream),
          "%zu live blocks are of no stream, the counters say %zu", num_live,
          (size_t)gcap_scratch_num_live(&scratch->unknown_stream));
  for (size_t i = 0; i < scratch->store.num_regions; ++i) {
    const gcap_scratch_region_t* region = scratch->store.regions[i];
    if (!region->reserved) continue;
    ++num_reserved;
    REQUIRE(region->first->upper == NULL && gcap_scratch_block_phase(region->first) == GCAP_SCRATCH_LIVE &&
                gcap_scratch_is_unknown_stream(scratch, gcap_scratch_block_state(region->first)),
            "reserved region %p is not one live block of no stream", (void*)region->base);
  }
  for (const gcap_scratch_reservation_t* r = scratch->reservations; r != NULL; r = r->next) {
    num_reservations += gcap_scratch_is_unknown_stream(scratch, gcap_scratch_reservation_state(r));
  }
  REQUIRE(num_reservations == scratch->unknown_stream.num_reservations,
          "%zu reservations are of streams that are gone, the counter says %zu", num_reservations,
          scratch->unknown_stream.num_reservations);
  REQUIRE(num_reserved <= scratch->stats.num_reserves, "%zu regions are reserved, and %zu ever were", num_reserved,
          (size_t)scratch->stats.num_reserves);
  return NULL;
}

static gcap_status_t check_reservation(const gcap_scratch_t* scratch, const gcap_scratch_reservation_t* reservation) {
  size_t bytes = 0, num_live = 0;
  for (size_t i = 0; i < scratch->store.num_regions; ++i) {
    for (const gcap_scratch_block_t* block = scratch->store.regions[i]->first; block != NULL; block = block->upper) {
      if (gcap_scratch_block_reservation(block) != reservation) continue;
      bytes += block->bytes;
      num_live += gcap_scratch_block_phase(block) == GCAP_SCRATCH_LIVE;
    }
  }
  REQUIRE(bytes == reservation->bytes && num_live == reservation->num_live,
          "a reservation holds %zu bytes and %zu live blocks, its counters say %zu and %zu", bytes, num_live,
          reservation->bytes, reservation->num_live);
  const bool is_rehearsed = gcap_scratch_reservation_state(reservation)->rehearsed == reservation;
  REQUIRE(is_rehearsed || reservation->num_graphs + reservation->num_keepers > 0,
          "a reservation of %zu bytes is no graph's", reservation->bytes);
  return NULL;
}

static gcap_status_t check_all(gcap_scratch_t* scratch) {
  census_t census = {0};
  GCAP_RETURN_IF_ERROR(check_regions(scratch, &census));
  GCAP_RETURN_IF_ERROR(check_pools(scratch, census.num_free));
  GCAP_RETURN_IF_ERROR(check_caches(scratch, census.num_cached));
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    GCAP_RETURN_IF_ERROR(check_stream(scratch, state));
  }
  for (const gcap_scratch_reservation_t* r = scratch->reservations; r != NULL; r = r->next) {
    GCAP_RETURN_IF_ERROR(check_reservation(scratch, r));
  }
  GCAP_RETURN_IF_ERROR(check_unknown_stream(scratch));
  const gcap_allocator_stats_t* stats = &scratch->stats;
  REQUIRE(stats->total_allocated_bytes == census.region_bytes, "the regions have %zu bytes, the counter says %zu",
          census.region_bytes, (size_t)stats->total_allocated_bytes);
  size_t in_use_bytes = scratch->unknown_stream.in_use_bytes,
         requested_bytes = scratch->unknown_stream.requested_in_use_bytes;
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    in_use_bytes += state->in_use_bytes;
    requested_bytes += state->requested_in_use_bytes;
  }
  REQUIRE(in_use_bytes == census.live_bytes && requested_bytes == census.requested_bytes,
          "%zu bytes are live (%zu requested), the counters say %zu (%zu)", census.live_bytes, census.requested_bytes,
          in_use_bytes, requested_bytes);
  size_t limit = scratch->options.memory_limit_bytes;
  REQUIRE(limit == 0 || gcap_scratch_held_bytes(scratch) <= limit, "%zu bytes are held, the limit is %zu",
          gcap_scratch_held_bytes(scratch), limit);
  return NULL;
}

gcap_status_t gcap_scratch_validate(gcap_scratch_t* scratch) {
  GCAP_RETURN_IF_NULL(scratch);
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_scratch_lock_arena(scratch);
  gcap_status_t status = check_all(scratch);
  if (status == NULL) status = gcap_scratch_debug_validate(scratch, gcap_scratch_num_live_of_all(scratch));
  gcap_scratch_unlock_arena(scratch);
  return status;
}
