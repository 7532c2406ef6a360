// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Placement: which free block a stream gets. First what its open reservation keeps, by itself or together with the free
// memory above it; one that graphs share begins where there is room to grow. So they need little more than the largest
// of them. Then the pools: what carries the stream's own tag, what is untagged, and last what other streams used and it
// has waited for. Only when these have nothing follows what takes longer and must come before any growth: neighbours
// that this very stream may all have are gathered into one block, whatever their tags.
//
// Why gathering is sound: the stream has waited for every use of the parts, so whoever waits for the stream later than
// now comes after all of them; its own tag covers them. Likewise when a block passes from one stream to another.
//
// A capture that follows a rehearsal gets each block where the rehearsal had it (script.c), before any of that.
//
// What a stream used whose reservation is open goes to those alone who cannot grow: its capture counts on it. If the
// stream was promised it (prepare.c), it goes to none but who would fail otherwise, and not to another capture.
//
// A request that names no stream gets untagged blocks and nothing else (unknown_stream.c).
//
// Cached blocks are moved to the pools before these are looked into: the own ones first, the others' only when nothing
// else is left. Locking: the arena is locked.

#include "lib/scratch/place.h"

#include "lib/base/capture_hooks.h"
#include "lib/scratch/reservation.h"
#include "lib/scratch/timeline.h"
#include "lib/scratch/unknown_stream.h"

enum { kPieceShare = 8, kPieceUnit = 64 << 10, kMinPieceBytes = 2 << 20, kMaxPieceBytes = 32 << 20 };

static bool fits_whole(const gcap_scratch_t* scratch, const gcap_scratch_block_t* block, size_t bytes) {
  return gcap_scratch_fits_whole(block, bytes, scratch->options.max_dead_bytes_per_chunk);
}

static bool comes_after(const void* state, const gcap_scratch_block_t* block) {
  return gcap_scratch_comes_after(state, block);
}

static void flush_all(gcap_scratch_t* scratch) {
  for (gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    gcap_scratch_cache_flush(&state->cache, &state->owner);
  }
}

// --- Tags -----------------------------------------------------------------------------------------------------------

// Takes the owner off a free block's tag.
static gcap_scratch_block_t* untag_block(gcap_scratch_t* scratch, gcap_scratch_block_t* block) {
  gcap_scratch_pool_remove(&gcap_scratch_block_owner(block)->pool, block);
  gcap_scratch_block_set_owner(block, NULL);
  block->used_before = 0;
  return gcap_scratch_put(&scratch->store, block);
}

void gcap_scratch_untag(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  gcap_scratch_cache_flush(&state->cache, &state->owner);
  gcap_scratch_block_t* block;
  while ((block = gcap_scratch_pool_first(&state->owner.pool)) != NULL) untag_block(scratch, block);
}

static void settle_state(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  gcap_scratch_cache_flush(&state->cache, &state->owner);
  unsigned bin = gcap_scratch_pool_next_bin(&state->owner.pool, 0);
  for (; bin < GCAP_SCRATCH_NUM_BINS; bin = gcap_scratch_pool_next_bin(&state->owner.pool, bin + 1)) {
    gcap_scratch_block_t* next = NULL;
    for (gcap_scratch_block_t* block = state->owner.pool.bins[bin]; block != NULL; block = next) {
      next = block->next;  // stays in this pool: an untagged block merges with untagged ones only
      if (gcap_scratch_is_finished(block)) untag_block(scratch, block);
    }
  }
}

void gcap_scratch_settle(gcap_scratch_t* scratch, bool all) {
  settle_state(scratch, &scratch->unknown_stream);
  for (gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    if (all || (state->open == NULL && state->promise == GCAP_SCRATCH_NO_PROMISE)) settle_state(scratch, state);
  }
}

// For the unknown stream: untagged blocks alone, since what the known streams have waited for says nothing about it.
static gcap_scratch_block_t* find_for_unknown_stream(gcap_scratch_t* scratch, size_t bytes) {
  gcap_scratch_block_t* block = gcap_scratch_pool_find(&scratch->store.untagged, bytes, NULL, NULL);
  if (block != NULL) return block;
  gcap_scratch_settle(scratch, /*all=*/false);
  return gcap_scratch_pool_find(&scratch->store.untagged, bytes, NULL, NULL);
}

// Whether a capture counts on what `producer` used, so that `state` had better grow.
static bool is_withheld(const gcap_scratch_stream_state_t* state, const gcap_scratch_stream_state_t* producer) {
  if (producer == state) return false;
  if (producer->promise != GCAP_SCRATCH_NO_PROMISE) return !state->cannot_grow || gcap_thread_captures();
  return producer->open != NULL && !state->cannot_grow;
}

gcap_scratch_block_t* gcap_scratch_find_elsewhere(gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state,
                                                  size_t bytes) {
  gcap_scratch_block_t* block = gcap_scratch_pool_find(&scratch->store.untagged, bytes, NULL, NULL);
  if (block == NULL) flush_all(scratch);
  for (gcap_scratch_stream_state_t* other = scratch->streams; block == NULL && other != NULL; other = other->next) {
    if (other == state || is_withheld(state, other)) continue;
    block =
        gcap_scratch_pool_find(&other->owner.pool, bytes, scratch->test_hooks.ignore_tags ? NULL : comes_after, state);
  }
  return block;
}

// Of the blocks in the bin of `block`, the smallest that holds `bytes`. For a graph, which keeps what it gets: it
// begins with what earlier graphs have left, and cuts no stretch that the next run of another id needs whole.
static gcap_scratch_block_t* smallest_of_bin(const gcap_scratch_pool_t* pool, gcap_scratch_block_t* block,
                                             size_t bytes) {
  gcap_scratch_block_t* other = pool->bins[gcap_scratch_pool_bin(block->bytes)];
  for (; other != NULL; other = other->next) {
    if (other->bytes >= bytes && other->bytes < block->bytes) block = other;
  }
  return block;
}

static gcap_scratch_block_t* find_in_lists(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes) {
  gcap_scratch_cache_flush(&state->cache, &state->owner);
  gcap_scratch_block_t* block = gcap_scratch_pool_find(&state->owner.pool, bytes, NULL, NULL);
  if (block == NULL) return gcap_scratch_find_elsewhere(scratch, state, bytes);
  return state->open != NULL ? smallest_of_bin(&state->owner.pool, block, bytes) : block;
}

bool gcap_scratch_may_have(const gcap_scratch_stream_state_t* state, const gcap_scratch_block_t* block) {
  if (gcap_scratch_block_phase(block) == GCAP_SCRATCH_LIVE) return false;
  const gcap_scratch_reservation_t* reservation = gcap_scratch_block_reservation(block);
  if (reservation != NULL) return reservation == state->open;
  const gcap_scratch_stream_state_t* producer = gcap_scratch_block_state(block);
  if (producer != NULL && is_withheld(state, producer)) return false;
  return gcap_scratch_comes_after(state, block);
}

// --- Runs of neighbours ---------------------------------------------------------------------------------------------

typedef struct run {
  gcap_scratch_block_t *first, *last;
  size_t bytes;
} run_t;

// The first run of neighbours in a region that `state` may have and that together hold `bytes`.
static bool find_run(const gcap_scratch_region_t* region, const gcap_scratch_stream_state_t* state, size_t bytes,
                     run_t* out_run) {
  *out_run = (run_t){0};
  for (gcap_scratch_block_t* block = region->first; block != NULL; block = block->upper) {
    if (!gcap_scratch_may_have(state, block)) {
      *out_run = (run_t){0};
      continue;
    }
    if (out_run->first == NULL) out_run->first = block;
    out_run->last = block;
    out_run->bytes += block->bytes;
    if (out_run->bytes >= bytes) return true;
  }
  return false;
}

// Makes one detached block of `bytes` of a run. What the last part has too much keeps its own tag.
static gcap_status_t join_run(gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state, const run_t* run,
                              size_t bytes) {
  size_t surplus_bytes = run->bytes - bytes;
  GCAP_RETURN_IF_ERROR(gcap_scratch_detach_bottom(&scratch->store, run->last, run->last->bytes - surplus_bytes));
  if (state->open != NULL) gcap_scratch_reservation_adopt(state->open, run->last);
  for (gcap_scratch_block_t* block = run->last; block != run->first;) {
    block = gcap_scratch_block_lower(block);
    gcap_scratch_pool_remove(gcap_scratch_pool_of(&scratch->store, block), block);
    if (state->open != NULL) gcap_scratch_reservation_adopt(state->open, block);
    gcap_scratch_join_upper(&scratch->store, block);
  }
  return NULL;
}

static gcap_status_t gather(gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state, size_t bytes,
                            gcap_scratch_block_t** out_block) {
  for (size_t i = 0; i < scratch->store.num_regions; ++i) {
    run_t run;
    if (!find_run(scratch->store.regions[i], state, bytes, &run)) continue;
    GCAP_RETURN_IF_ERROR(join_run(scratch, state, &run, bytes));
    *out_block = run.first;
    return NULL;
  }
  return NULL;
}

// --- Claims ---------------------------------------------------------------------------------------------------------

static bool is_own(const gcap_scratch_stream_state_t* state, const gcap_scratch_block_t* block) {
  return gcap_scratch_block_state(block) == state;  // in its pool, or kept by its open reservation
}

// Whether it is free for the capture that follows the stream's rehearsal. A capture of another work gets it too.
static bool is_rehearsed(const gcap_scratch_stream_state_t* state, const gcap_scratch_block_t* block) {
  return state->rehearsed != NULL && gcap_scratch_block_reservation(block) == state->rehearsed &&
         gcap_scratch_block_phase(block) == GCAP_SCRATCH_FREE;
}

size_t gcap_scratch_count_supply(const gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state,
                                 size_t largest_bytes) {
  const size_t end_bytes = largest_bytes - GCAP_SCRATCH_GRANULE_BYTES;
  size_t bytes = 0;
  for (size_t i = 0; i < scratch->store.num_regions; ++i) {
    size_t in_a_row = 0;
    for (const gcap_scratch_block_t* block = scratch->store.regions[i]->first; block != NULL; block = block->upper) {
      const bool counts = is_own(state, block) && (gcap_scratch_may_have(state, block) || is_rehearsed(state, block));
      if (counts) in_a_row += block->bytes;
      if (counts && block->upper != NULL) continue;
      if (in_a_row >= largest_bytes) bytes += in_a_row - (bytes > 0 ? end_bytes : 0);
      in_a_row = 0;
    }
  }
  return bytes;
}

// Of the shortest runs in a region that hold `bytes`, and than which none is better so far, the one of which most is
// the stream's own.
static void find_best_run(const gcap_scratch_region_t* region, const gcap_scratch_stream_state_t* state, size_t bytes,
                          run_t* best, size_t* best_own_bytes) {
  run_t run = {0};
  size_t own_bytes = 0;
  for (gcap_scratch_block_t* block = region->first; block != NULL; block = block->upper) {
    if (!gcap_scratch_may_have(state, block)) {
      run = (run_t){0};
      own_bytes = 0;
      continue;
    }
    if (run.first == NULL) run.first = block;
    run.last = block;
    run.bytes += block->bytes;
    if (is_own(state, block)) own_bytes += block->bytes;
    for (; run.bytes - run.first->bytes >= bytes; run.first = run.first->upper) {
      run.bytes -= run.first->bytes;
      if (is_own(state, run.first)) own_bytes -= run.first->bytes;
    }
    if (run.bytes < bytes || (best->first != NULL && own_bytes <= *best_own_bytes)) continue;
    *best = run;
    *best_own_bytes = own_bytes;
  }
}

// Makes `bytes` of a free block the stream's own: the uppermost, the lowest, or any.
typedef enum claim_end { CLAIM_TOP, CLAIM_BOTTOM, CLAIM_ANY } claim_end_t;

static gcap_status_t claim(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, gcap_scratch_block_t* block,
                           size_t bytes, claim_end_t end) {
  if (end == CLAIM_TOP) {
    GCAP_RETURN_IF_ERROR(gcap_scratch_detach_top(&scratch->store, bytes, &block));
  } else if (end == CLAIM_BOTTOM) {
    GCAP_RETURN_IF_ERROR(gcap_scratch_detach_bottom(&scratch->store, block, bytes));
  } else {
    GCAP_RETURN_IF_ERROR(gcap_scratch_detach(&scratch->store, bytes, &block));
  }
  gcap_scratch_block_set_owner(block, &state->owner);
  block->used_before = gcap_scratch_next_point(state);  // not used, but no other stream's either
  gcap_scratch_put(&scratch->store, block);
  return NULL;
}

gcap_status_t gcap_scratch_claim(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state,
                                 gcap_scratch_block_t* block, size_t bytes) {
  return claim(scratch, state, block, bytes, CLAIM_ANY);
}

// What the run has too much stays whose it is: it is cut off the first block or, if that is the stream's own, the last
// one, and is less than either, since the run would be shorter else. From above, since a claimed block joins the own
// one below it.
static gcap_status_t claim_run(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, const run_t* run,
                               size_t bytes) {
  const gcap_scratch_block_t* const cut = is_own(state, run->first) ? run->last : run->first;
  const size_t surplus_bytes = run->bytes - bytes;
  gcap_scratch_block_t* block = run->last;
  for (bool is_first = false; !is_first;) {
    is_first = block == run->first;
    gcap_scratch_block_t* lower = gcap_scratch_block_lower(block);
    if (!is_own(state, block)) {
      const claim_end_t end = run->first == run->last ? CLAIM_ANY : is_first ? CLAIM_TOP : CLAIM_BOTTOM;
      const size_t claimed_bytes = block->bytes - (block == cut ? surplus_bytes : 0);
      GCAP_RETURN_IF_ERROR(claim(scratch, state, block, claimed_bytes, end));
    }
    block = lower;
  }
  return NULL;
}

gcap_status_t gcap_scratch_claim_stretch(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes,
                                         bool* out_found) {
  flush_all(scratch);  // a run has no cached blocks
  run_t best = {0};
  size_t own_bytes = 0;
  for (size_t i = 0; i < scratch->store.num_regions; ++i) {
    find_best_run(scratch->store.regions[i], state, bytes, &best, &own_bytes);
  }
  *out_found = best.first != NULL;
  return best.first == NULL ? NULL : claim_run(scratch, state, &best, bytes);
}

// --- Blocks ---------------------------------------------------------------------------------------------------------

// How much a stream takes of untagged memory, so that its blocks lie together: streams whose blocks alternate
// could not join them, and their threads would wait for one another's cache lines. It grows with what the stream has,
// and is nothing more than was asked for where there is not plenty.
static size_t piece_bytes(const gcap_scratch_stream_state_t* state, size_t bytes, size_t available_bytes) {
  size_t piece = state->in_use_bytes / kPieceShare;
  if (piece < kMinPieceBytes) piece = kMinPieceBytes;
  if (piece > kMaxPieceBytes) piece = kMaxPieceBytes;
  if (piece > available_bytes / kPieceShare) piece = available_bytes / kPieceShare;
  piece -= piece % kPieceUnit;
  return bytes < piece ? piece : bytes;
}

gcap_status_t gcap_scratch_take(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes,
                                gcap_scratch_block_t** block) {
  if (fits_whole(scratch, *block, bytes)) return gcap_scratch_detach(&scratch->store, (*block)->bytes, block);
  if (gcap_scratch_block_state(*block) == NULL && state->open == NULL &&
      !gcap_scratch_is_unknown_stream(scratch, state)) {
    const size_t piece = piece_bytes(state, bytes, (*block)->bytes);
    if (piece != bytes) {
      GCAP_RETURN_IF_ERROR(gcap_scratch_detach(&scratch->store, piece, block));
      gcap_scratch_block_set_owner(*block, &state->owner);
      (*block)->used_before = 0;
      *block = gcap_scratch_put(&scratch->store, *block);
    }
  }
  return gcap_scratch_detach(&scratch->store, bytes, block);
}

// The run that begins with a block that the stream may have, as far as `bytes` need it.
static bool run_from(const gcap_scratch_stream_state_t* state, gcap_scratch_block_t* first, size_t bytes,
                     run_t* out_run) {
  *out_run = (run_t){.first = first, .last = first, .bytes = first->bytes};
  for (gcap_scratch_block_t* block = first->upper; out_run->bytes < bytes; block = block->upper) {
    if (block == NULL || !gcap_scratch_may_have(state, block)) return false;
    out_run->last = block;
    out_run->bytes += block->bytes;
  }
  return true;
}

static size_t kept_bytes(const run_t* run) {
  size_t bytes = 0;
  for (const gcap_scratch_block_t* block = run->first; block != run->last->upper; block = block->upper) {
    if (gcap_scratch_block_is_kept(block)) bytes += block->bytes;
  }
  return bytes;
}

// The run by which the open reservation grows least.
static bool find_extension(const gcap_scratch_stream_state_t* state, size_t bytes, run_t* out_run) {
  const gcap_scratch_pool_t* pool = &state->open->owner.pool;
  size_t most_kept_bytes = 0;
  unsigned bin = gcap_scratch_pool_next_bin(pool, 0);
  for (; bin < GCAP_SCRATCH_NUM_BINS; bin = gcap_scratch_pool_next_bin(pool, bin + 1)) {
    for (gcap_scratch_block_t* block = pool->bins[bin]; block != NULL; block = block->next) {
      run_t run;
      if (!run_from(state, block, bytes, &run) || kept_bytes(&run) <= most_kept_bytes) continue;
      most_kept_bytes = kept_bytes(&run);
      *out_run = run;
    }
  }
  return most_kept_bytes > 0;
}

// All that the stream may have in a row, at or above a block. False when there is nothing.
static bool next_stretch(const gcap_scratch_stream_state_t* state, gcap_scratch_block_t* block, run_t* out_run) {
  while (block != NULL && !gcap_scratch_may_have(state, block)) block = block->upper;
  *out_run = (run_t){.first = block};
  for (; block != NULL && gcap_scratch_may_have(state, block); block = block->upper) {
    out_run->last = block;
    out_run->bytes += block->bytes;
  }
  return out_run->first != NULL;
}

// For a reservation that graphs share, which is to grow where it lies: from the smallest stretch that holds all that
// the stream ever had at a time, or from the longest one where none does.
static bool find_seat(const gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state, size_t bytes,
                      run_t* out_run) {
  const size_t wanted_bytes = gcap_scratch_peak_bytes(state) > bytes ? gcap_scratch_peak_bytes(state) : bytes;
  run_t best = {0};
  for (size_t i = 0; i < scratch->store.num_regions; ++i) {
    gcap_scratch_block_t* from = scratch->store.regions[i]->first;
    for (run_t stretch; next_stretch(state, from, &stretch); from = stretch.last->upper) {
      const bool both_do = stretch.bytes >= wanted_bytes && best.bytes >= wanted_bytes;
      if (both_do ? stretch.bytes < best.bytes : stretch.bytes > best.bytes) best = stretch;
    }
  }
  return best.bytes >= bytes && run_from(state, best.first, bytes, out_run);
}

// The reservation's free block that a place lies in; NULL: it is not free.
static gcap_scratch_block_t* find_around(const gcap_scratch_pool_t* pool, const gcap_scratch_place_t* at) {
  unsigned bin = gcap_scratch_pool_next_bin(pool, gcap_scratch_pool_bin(at->bytes));
  for (; bin < GCAP_SCRATCH_NUM_BINS; bin = gcap_scratch_pool_next_bin(pool, bin + 1)) {
    for (gcap_scratch_block_t* block = pool->bins[bin]; block != NULL; block = block->next) {
      const size_t above_base = (size_t)((uintptr_t)at->base - (uintptr_t)gcap_scratch_block_base(block));
      if (above_base < block->bytes && block->bytes - above_base >= at->bytes) return block;
    }
  }
  return NULL;
}

// Where the rehearsal had it, if that is free.
static gcap_status_t place_as_rehearsed(gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state, size_t bytes,
                                        gcap_scratch_block_t** out_block) {
  const gcap_scratch_place_t* at = gcap_scratch_script_find(&state->open->script, bytes);
  gcap_scratch_block_t* block = at != NULL ? find_around(&state->open->owner.pool, at) : NULL;
  if (block == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_scratch_detach_at(&scratch->store, at->base, at->bytes, &block));
  *out_block = block;
  return NULL;
}

// From the open reservation, which may grow upwards for it.
static gcap_status_t place_inside(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes,
                                  gcap_scratch_block_t** out_block) {
  gcap_scratch_block_t* block = gcap_scratch_pool_find(&state->open->owner.pool, bytes, NULL, NULL);
  if (block != NULL) {
    GCAP_RETURN_IF_ERROR(gcap_scratch_take(scratch, state, bytes, &block));
    *out_block = block;
    return NULL;
  }
  flush_all(scratch);  // a run has no cached blocks
  run_t run;
  bool is_shared = state->open->num_graphs > 1;
  if (!find_extension(state, bytes, &run) && !(is_shared && find_seat(scratch, state, bytes, &run))) return NULL;
  GCAP_RETURN_IF_ERROR(join_run(scratch, state, &run, bytes));
  *out_block = run.first;
  return NULL;
}

static gcap_status_t place(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes,
                           gcap_scratch_block_t** out_block) {
  if (state->open != NULL) GCAP_RETURN_IF_ERROR(place_inside(scratch, state, bytes, out_block));
  if (*out_block != NULL) return NULL;
  const bool is_unknown = gcap_scratch_is_unknown_stream(scratch, state);
  gcap_scratch_block_t* block =
      is_unknown ? find_for_unknown_stream(scratch, bytes) : find_in_lists(scratch, state, bytes);
  if (block == NULL && is_unknown) return NULL;  // untagged neighbours are joined already
  if (block == NULL) return gather(scratch, state, bytes, out_block);
  GCAP_RETURN_IF_ERROR(gcap_scratch_take(scratch, state, bytes, &block));
  if (state->open != NULL) gcap_scratch_reservation_adopt(state->open, block);
  *out_block = block;
  return NULL;
}

gcap_status_t gcap_scratch_place(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes,
                                 gcap_scratch_block_t** out_block) {
  *out_block = NULL;
  if (state->open != NULL) GCAP_RETURN_IF_ERROR(place_as_rehearsed(scratch, state, bytes, out_block));
  if (*out_block == NULL) GCAP_RETURN_IF_ERROR(place(scratch, state, bytes, out_block));
  if (state->open == NULL || *out_block == NULL) return NULL;
  const gcap_scratch_place_t at = {
      .base = gcap_scratch_block_base(*out_block), .asked_bytes = bytes, .bytes = (*out_block)->bytes};
  gcap_scratch_script_note(&state->open->script, &at);
  return NULL;
}
