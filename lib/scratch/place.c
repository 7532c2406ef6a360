// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Placement: which free block a stream gets. First the lists: what its open reservation keeps, what carries its own
// tag, what nobody uses, and last what other streams used and it has waited for. Only when the lists have nothing
// follows the slow way that must come before any growth: neighbours that this very stream may all have are gathered
// into one block, whatever their tags.
//
// Why gathering is sound: the stream has waited for every use of the parts, so whoever waits for the stream later than
// now comes after all of them; its own tag covers them. Likewise when a block passes from one stream to another.
//
// Cached blocks are moved to the pools before these are looked into: the own ones first, the others' only when nothing
// else is left. Locking: the arena is held.

#include "lib/scratch/arena.h"

enum { kPieceShare = 8, kMinPieceBytes = 64 << 10, kMaxPieceBytes = 32 << 20 };

// Changes a free block's tag to none.
static scratch_block_t* untag_block(gcap_scratch_t* scratch, scratch_block_t* block) {
  scratch_pool_remove(&scratch_block_user(block)->pool, block);
  scratch_block_set_user(block, NULL);
  block->used_before = 0;
  return scratch_put(scratch, block);
}

void scratch_untag(gcap_scratch_t* scratch, scratch_stream_t* user) {
  scratch_flush(scratch, user);
  scratch_block_t* block;
  while ((block = scratch_pool_first(&user->pool)) != NULL) untag_block(scratch, block);
}

static void settle_user(gcap_scratch_t* scratch, scratch_stream_t* user) {
  scratch_flush(scratch, user);
  unsigned bin = scratch_pool_next_bin(&user->pool, 0);
  for (; bin < SCRATCH_NUM_BINS; bin = scratch_pool_next_bin(&user->pool, bin + 1)) {
    scratch_block_t* next = NULL;
    for (scratch_block_t* block = user->pool.bins[bin]; block != NULL; block = next) {
      next = block->next;  // stays in this pool: an untagged block merges with untagged ones only
      if (scratch_is_finished(block)) untag_block(scratch, block);
    }
  }
}

void scratch_settle(gcap_scratch_t* scratch) {
  for (scratch_stream_t* user = scratch->streams; user != NULL; user = user->next) settle_user(scratch, user);
}

static scratch_block_t* find_in_lists(gcap_scratch_t* scratch, scratch_stream_t* user, size_t bytes) {
  scratch_flush(scratch, user);
  scratch_block_t* block = user->open == NULL ? NULL : scratch_pool_find(&user->open->pool, bytes, NULL);
  if (block == NULL) block = scratch_pool_find(&user->pool, bytes, NULL);
  if (block == NULL) block = scratch_pool_find(&scratch->untagged, bytes, NULL);
  if (block == NULL) scratch_flush_all(scratch);
  for (scratch_stream_t* other = scratch->streams; block == NULL && other != NULL; other = other->next) {
    if (other == user) continue;
    block = scratch_pool_find(&other->pool, bytes, scratch->test_hooks.ignore_tags ? NULL : user);
  }
  return block;
}

static bool may_have(const scratch_stream_t* user, const scratch_block_t* block) {
  if (scratch_block_state(block) == SCRATCH_LIVE) return false;
  const gcap_scratch_reservation_t* reservation = scratch_block_reservation(block);
  return reservation != NULL ? reservation == user->open : scratch_comes_after(user, block);
}

typedef struct run {
  scratch_block_t *first, *last;
  size_t bytes;
} run_t;

// The first run of neighbours in a region that `user` may have and that together hold `bytes`.
static bool find_run(const scratch_region_t* region, const scratch_stream_t* user, size_t bytes, run_t* out_run) {
  *out_run = (run_t){0};
  for (scratch_block_t* block = region->first; block != NULL; block = block->upper) {
    if (!may_have(user, block)) {
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

// Makes one detached block of `bytes` of a run. What the last part has too much keeps its own mark.
static gcap_status_t join_run(gcap_scratch_t* scratch, const scratch_stream_t* user, const run_t* run, size_t bytes) {
  size_t surplus_bytes = run->bytes - bytes;
  GCAP_RETURN_IF_ERROR(scratch_detach(scratch, run->last, run->last->bytes - surplus_bytes));
  if (user->open != NULL) scratch_reservation_adopt(user->open, run->last);
  for (scratch_block_t* block = run->last; block != run->first;) {
    block = scratch_block_lower(block);
    scratch_pool_remove(scratch_pool_of(scratch, block), block);
    if (user->open != NULL) scratch_reservation_adopt(user->open, block);
    scratch_merge_upper(scratch, block);
  }
  return NULL;
}

static gcap_status_t gather(gcap_scratch_t* scratch, const scratch_stream_t* user, size_t bytes,
                            scratch_block_t** out_block) {
  for (size_t i = 0; i < scratch->num_regions; ++i) {
    run_t run;
    if (!find_run(scratch->regions[i], user, bytes, &run)) continue;
    GCAP_RETURN_IF_ERROR(join_run(scratch, user, &run, bytes));
    *out_block = run.first;
    return NULL;
  }
  return NULL;
}

// How much a stream takes of memory that nobody uses, so that its blocks lie together: streams whose blocks alternate
// could not join them, and their threads would share cache lines. It grows with what the stream has, and is nothing
// more than was asked for where there is not plenty.
static size_t piece_bytes(const scratch_stream_t* user, size_t bytes, size_t available_bytes) {
  size_t piece = user->in_use_bytes / kPieceShare;
  if (piece < kMinPieceBytes) piece = kMinPieceBytes;
  if (piece > kMaxPieceBytes) piece = kMaxPieceBytes;
  piece -= piece % kMinPieceBytes;
  return bytes < piece && piece <= available_bytes / kPieceShare ? piece : bytes;
}

gcap_status_t scratch_take(gcap_scratch_t* scratch, scratch_stream_t* user, size_t bytes, scratch_block_t** block) {
  if (scratch_fits_whole(scratch, *block, bytes)) return scratch_detach(scratch, *block, (*block)->bytes);
  if (scratch_block_user(*block) == NULL && user->open == NULL) {
    const size_t piece = piece_bytes(user, bytes, (*block)->bytes);
    if (piece != bytes) {
      GCAP_RETURN_IF_ERROR(scratch_detach(scratch, *block, piece));
      scratch_block_set_user(*block, user);
      (*block)->used_before = 0;
      *block = scratch_put(scratch, *block);
    }
  }
  return scratch_detach(scratch, *block, bytes);
}

gcap_status_t scratch_place(gcap_scratch_t* scratch, scratch_stream_t* user, size_t bytes,
                            scratch_block_t** out_block) {
  *out_block = NULL;
  scratch_block_t* block = find_in_lists(scratch, user, bytes);
  if (block == NULL) return gather(scratch, user, bytes, out_block);
  GCAP_RETURN_IF_ERROR(scratch_take(scratch, user, bytes, &block));
  if (user->open != NULL) scratch_reservation_adopt(user->open, block);
  *out_block = block;
  return NULL;
}
