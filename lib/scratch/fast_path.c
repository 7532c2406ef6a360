// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The fast path: a stream's allocations out of memory that it used last itself, which needs no question about streams,
// no lock but its own, no driver and no host memory. A freed block goes to the stream's cache as it is, and the next
// request of just that size takes it from there. Otherwise a block of the stream's pool is cut. When neither has one
// the cached blocks are joined with their neighbours and moved to the pool, and it is tried once more. All that is left
// over goes the slow way (scratch.c): other streams' memory, captures, reservations, growth, and every error.
//
// Cost: cutting and joining touch a bounded number of blocks; finding one does too, but where all of a bin are smaller
// than the request, and no bin above has one. Moving the cache takes a few steps a block, each of which was put there
// by one free.
// Locking: the stream's lock. A free finds the lock by the block, and looks again under it.

#include <string.h>

#include "lib/base/capture_hooks.h"
#include "lib/internal/run_trace.h"
#include "lib/scratch/arena.h"

// Blocks of a cache bin that are looked at for the size: in the steady state it is among the last freed.
enum { kCacheLooks = 2 };

// Sizes that come again make the cache worth while; sizes that are all different only go through it. Each bin has a
// credit, which a block that is taken raises and one that leaves otherwise lowers. Without credit a freed block goes
// straight to the pool, but for one in so many, by which the bin may earn credit again.
enum { kFirstCredit = 8, kMaxCredit = 64, kCreditOfHit = 2, kTryOneIn = 16 };

// --- The cache ------------------------------------------------------------------------------------------------------

static gcap_scratch_block_t* take_cached(const gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state,
                                         size_t bytes) {
  unsigned bin = gcap_scratch_pool_bin(bytes);
  gcap_scratch_block_t** link = &state->cache[bin];
  for (int looks = 0; *link != NULL && looks < kCacheLooks; link = &(*link)->next, ++looks) {
    gcap_scratch_block_t* block = *link;
    if (!gcap_scratch_fits_whole(scratch, block, bytes)) continue;
    *link = block->next;
    --state->num_cached;
    if (state->cache_credit[bin] < kMaxCredit) state->cache_credit[bin] += kCreditOfHit;
    return block;
  }
  return NULL;
}

static bool put_cached(gcap_scratch_stream_state_t* state, gcap_scratch_block_t* block) {
  unsigned bin = gcap_scratch_pool_bin(block->bytes);
  if (bin >= GCAP_SCRATCH_NUM_CACHE_BINS) return false;
  if (state->cache_credit[bin] == 0 && state->num_frees % kTryOneIn != 0) return false;
  gcap_scratch_block_set_tag(block, (uintptr_t)state | GCAP_SCRATCH_CACHED);
  block->next = state->cache[bin];
  state->cache[bin] = block;
  ++state->num_cached;
  return true;
}

void gcap_scratch_cache_init(gcap_scratch_stream_state_t* state) {
  memset(state->cache_credit, kFirstCredit, sizeof(state->cache_credit));
}

void gcap_scratch_flush(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  for (unsigned bin = 0; state->num_cached > 0; ++bin) {
    while (state->cache[bin] != NULL) {
      gcap_scratch_block_t* block = state->cache[bin];
      state->cache[bin] = block->next;
      --state->num_cached;
      state->cache_credit[bin] -= state->cache_credit[bin] > 1 ? 2 : state->cache_credit[bin];
      gcap_scratch_block_set_tag(block, (uintptr_t)state | GCAP_SCRATCH_FREE);
      gcap_scratch_put_own(scratch, state, block);
    }
  }
}

void gcap_scratch_flush_all(gcap_scratch_t* scratch) {
  for (gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next)
    gcap_scratch_flush(scratch, state);
}

// --- The pool -------------------------------------------------------------------------------------------------------

// A block of the pool of at least `bytes`: the last freed of its own bin, or one of a higher bin, where all are large
// enough. Only when there is none is the rest of the own bin worth its cache misses.
static gcap_scratch_block_t* find_own(const gcap_scratch_pool_t* pool, size_t bytes) {
  const unsigned bin = gcap_scratch_pool_bin(bytes);
  gcap_scratch_block_t* block = pool->bins[bin];
  if (block != NULL && block->bytes >= bytes) return block;
  const unsigned higher = gcap_scratch_pool_next_bin(pool, bin + 1);
  if (higher < GCAP_SCRATCH_NUM_BINS) return pool->bins[higher];
  while (block != NULL && block->bytes < bytes) block = block->next;
  return block;
}

// --- Allocation and free --------------------------------------------------------------------------------------------

void gcap_scratch_make_live(gcap_scratch_stream_state_t* state, size_t requested_bytes, gcap_scratch_block_t* block) {
  gcap_scratch_block_set_phase(block, GCAP_SCRATCH_LIVE);
  block->requested_bytes = requested_bytes;
  ++state->num_allocs;
  state->in_use_bytes += block->bytes;
  state->requested_in_use_bytes += requested_bytes;
  if (state->max_in_use_bytes < state->in_use_bytes) state->max_in_use_bytes = state->in_use_bytes;
  if (state->max_alloc_bytes < requested_bytes) state->max_alloc_bytes = requested_bytes;
}

void gcap_scratch_make_free(gcap_scratch_stream_state_t* state, gcap_scratch_block_t* block) {
  ++state->num_frees;
  state->in_use_bytes -= block->bytes;
  state->requested_in_use_bytes -= block->requested_bytes;
  gcap_scratch_block_set_phase(block, GCAP_SCRATCH_FREE);
  block->used_before = gcap_stream_sync_id(gcap_scratch_stream_of(state)) + 1;
}

static gcap_scratch_block_t* take_from_pool(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes) {
  gcap_scratch_block_t* block = find_own(&state->pool, bytes);
  if (block == NULL) return NULL;
  block = gcap_scratch_detach_own(state, block, gcap_scratch_fits_whole(scratch, block, bytes) ? block->bytes : bytes);
  if (block == NULL) return NULL;
  gcap_scratch_pages_set(&scratch->pages, gcap_scratch_block_base(block), block);
  return block;
}

static gcap_scratch_block_t* take(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes) {
  gcap_scratch_block_t* block = NULL;
  if (bytes <= GCAP_SCRATCH_MAX_CACHED_BYTES) block = take_cached(scratch, state, bytes);
  if (block == NULL) block = take_from_pool(scratch, state, bytes);
  if (block != NULL || state->num_cached == 0) return block;
  gcap_scratch_flush(scratch, state);  // joining also frees the block struct that cutting may have lacked
  return take_from_pool(scratch, state, bytes);
}

// What the thread's last allocation found: the same stream of the same arena comes again. The number tells an arena
// from one that had its address before.
static _Thread_local struct {
  uint64_t number;  // 0: nothing
  gcap_scratch_stream_state_t* state;
} last_found;

static gcap_scratch_stream_state_t* find_stream(gcap_scratch_t* scratch, const gcap_stream_t* stream) {
  if (last_found.number == scratch->number && gcap_scratch_stream_of(last_found.state) == stream)
    return last_found.state;
  gcap_scratch_stream_state_t* state = gcap_scratch_find_stream(scratch, stream);
  last_found.number = state == NULL ? 0 : scratch->number;
  last_found.state = state;
  return state;
}

static void* alloc_own(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream) {
  size_t rounded = gcap_scratch_block_bytes(bytes);
  if (rounded == 0 || stream == NULL) return NULL;  // nothing was asked for, or it overflows, or an error
  if (gcap_thread_captures() || scratch->debug != NULL) return NULL;
  if (atomic_load_explicit(&scratch->deficit_bytes, memory_order_relaxed) != 0) return NULL;
  gcap_scratch_stream_state_t* state = find_stream(scratch, stream);
  atomic_bool* entered = state == NULL ? NULL : gcap_scratch_lock_stream(scratch, state);
  if (entered == NULL) return NULL;
  void* ptr = NULL;
  if (state->open == NULL && gcap_scratch_stream_of(state) == stream) {
    gcap_scratch_block_t* block = take(scratch, state, rounded);
    if (block != NULL) {
      gcap_scratch_make_live(state, bytes, block);
      ptr = gcap_scratch_block_base(block);
    }
  }
  gcap_scratch_unlock_stream(entered);
  return ptr;
}

static bool free_own(gcap_scratch_t* scratch, void* ptr) {
  if (gcap_thread_captures() || scratch->debug != NULL) return false;
  gcap_scratch_block_t* block = gcap_scratch_pages_find(&scratch->pages, ptr);
  const uintptr_t tag = block == NULL ? 0 : gcap_scratch_block_tag(block);
  if ((tag & GCAP_SCRATCH_TAG_BITS) != GCAP_SCRATCH_LIVE) return false;
  gcap_scratch_stream_state_t* state = (gcap_scratch_stream_state_t*)(tag & ~GCAP_SCRATCH_TAG_BITS);
  if (gcap_scratch_is_unknown_stream(scratch, state)) return false;
  atomic_bool* entered = gcap_scratch_lock_stream(scratch, state);
  if (entered == NULL) return false;
  // Looked at again under the lock: a live block of the state, in no graph, that starts at the address.
  bool plain = gcap_scratch_block_tag(block) == tag && gcap_scratch_block_base(block) == ptr && state->open == NULL;
  if (plain) {
    gcap_scratch_make_free(state, block);
    if (!put_cached(state, block)) gcap_scratch_put_own(scratch, state, block);
  }
  gcap_scratch_unlock_stream(entered);
  return plain;
}

gcap_status_t gcap_scratch_alloc(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream, void** out_ptr) {
  gcap_status_t status = NULL;
  *out_ptr = alloc_own(scratch, bytes, stream);
  if (*out_ptr == NULL) {
    if (bytes == 0) return NULL;
    status = gcap_scratch_alloc_slowly(scratch, bytes, stream, out_ptr);
  }
  gcap_trace_allocation(bytes);
  return status;
}

gcap_status_t gcap_scratch_free(gcap_scratch_t* scratch, void* ptr) {
  if (ptr == NULL || free_own(scratch, ptr)) return NULL;
  return gcap_scratch_free_slowly(scratch, ptr);
}
