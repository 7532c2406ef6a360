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

static gcap_scratch_block_t* take_cached(const gcap_scratch_t* scratch, gcap_scratch_stream_t* user, size_t bytes) {
  unsigned bin = gcap_scratch_pool_bin(bytes);
  gcap_scratch_block_t** link = &user->cache[bin];
  for (int looks = 0; *link != NULL && looks < kCacheLooks; link = &(*link)->next, ++looks) {
    gcap_scratch_block_t* block = *link;
    if (!gcap_scratch_fits_whole(scratch, block, bytes)) continue;
    *link = block->next;
    --user->num_cached;
    if (user->cache_credit[bin] < kMaxCredit) user->cache_credit[bin] += kCreditOfHit;
    return block;
  }
  return NULL;
}

static bool put_cached(gcap_scratch_stream_t* user, gcap_scratch_block_t* block) {
  unsigned bin = gcap_scratch_pool_bin(block->bytes);
  if (bin >= GCAP_SCRATCH_NUM_CACHE_BINS) return false;
  if (user->cache_credit[bin] == 0 && user->num_frees % kTryOneIn != 0) return false;
  gcap_scratch_block_set_mark(block, (uintptr_t)user | GCAP_SCRATCH_CACHED);
  block->next = user->cache[bin];
  user->cache[bin] = block;
  ++user->num_cached;
  return true;
}

void gcap_scratch_front_init(gcap_scratch_stream_t* user) {
  memset(user->cache_credit, kFirstCredit, sizeof(user->cache_credit));
}

void gcap_scratch_flush(gcap_scratch_t* scratch, gcap_scratch_stream_t* user) {
  for (unsigned bin = 0; user->num_cached > 0; ++bin) {
    while (user->cache[bin] != NULL) {
      gcap_scratch_block_t* block = user->cache[bin];
      user->cache[bin] = block->next;
      --user->num_cached;
      user->cache_credit[bin] -= user->cache_credit[bin] > 1 ? 2 : user->cache_credit[bin];
      gcap_scratch_block_set_mark(block, (uintptr_t)user | GCAP_SCRATCH_FREE);
      gcap_scratch_put_own(scratch, user, block);
    }
  }
}

void gcap_scratch_flush_all(gcap_scratch_t* scratch) {
  for (gcap_scratch_stream_t* user = scratch->streams; user != NULL; user = user->next)
    gcap_scratch_flush(scratch, user);
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

void gcap_scratch_mark_live(gcap_scratch_stream_t* user, size_t requested_bytes, gcap_scratch_block_t* block) {
  gcap_scratch_block_set_state(block, GCAP_SCRATCH_LIVE);
  block->requested_bytes = requested_bytes;
  ++user->num_allocs;
  user->in_use_bytes += block->bytes;
  user->requested_in_use_bytes += requested_bytes;
  if (user->max_in_use_bytes < user->in_use_bytes) user->max_in_use_bytes = user->in_use_bytes;
  if (user->max_alloc_bytes < requested_bytes) user->max_alloc_bytes = requested_bytes;
}

void gcap_scratch_mark_free(gcap_scratch_stream_t* user, gcap_scratch_block_t* block) {
  ++user->num_frees;
  user->in_use_bytes -= block->bytes;
  user->requested_in_use_bytes -= block->requested_bytes;
  gcap_scratch_block_set_state(block, GCAP_SCRATCH_FREE);
  block->used_before = gcap_stream_sync_id(gcap_scratch_user_stream(user)) + 1;
}

static gcap_scratch_block_t* take_from_pool(gcap_scratch_t* scratch, gcap_scratch_stream_t* user, size_t bytes) {
  gcap_scratch_block_t* block = find_own(&user->pool, bytes);
  if (block == NULL) return NULL;
  block = gcap_scratch_detach_own(user, block, gcap_scratch_fits_whole(scratch, block, bytes) ? block->bytes : bytes);
  if (block == NULL) return NULL;
  gcap_scratch_pages_set(&scratch->pages, gcap_scratch_block_base(block), block);
  return block;
}

static gcap_scratch_block_t* take(gcap_scratch_t* scratch, gcap_scratch_stream_t* user, size_t bytes) {
  gcap_scratch_block_t* block = NULL;
  if (bytes <= GCAP_SCRATCH_MAX_CACHED_BYTES) block = take_cached(scratch, user, bytes);
  if (block == NULL) block = take_from_pool(scratch, user, bytes);
  if (block != NULL || user->num_cached == 0) return block;
  gcap_scratch_flush(scratch, user);  // joining also frees the block struct that cutting may have lacked
  return take_from_pool(scratch, user, bytes);
}

// What the thread's last allocation found: the same stream of the same arena comes again. The number tells an arena
// from one that had its address before.
static _Thread_local struct {
  uint64_t number;  // 0: nothing
  gcap_scratch_stream_t* user;
} last_found;

static gcap_scratch_stream_t* find_stream(gcap_scratch_t* scratch, const gcap_stream_t* stream) {
  if (last_found.number == scratch->number && gcap_scratch_user_stream(last_found.user) == stream)
    return last_found.user;
  gcap_scratch_stream_t* user = gcap_scratch_find_stream(scratch, stream);
  last_found.number = user == NULL ? 0 : scratch->number;
  last_found.user = user;
  return user;
}

static void* alloc_own(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream) {
  size_t rounded = gcap_scratch_block_bytes(bytes);
  if (rounded == 0 || stream == NULL) return NULL;  // nothing was asked for, or it overflows, or an error
  if (gcap_thread_captures() || scratch->debug != NULL) return NULL;
  if (atomic_load_explicit(&scratch->deficit_bytes, memory_order_relaxed) != 0) return NULL;
  gcap_scratch_stream_t* user = find_stream(scratch, stream);
  atomic_bool* entered = user == NULL ? NULL : gcap_scratch_enter(scratch, user);
  if (entered == NULL) return NULL;
  void* ptr = NULL;
  if (user->open == NULL && gcap_scratch_user_stream(user) == stream) {
    gcap_scratch_block_t* block = take(scratch, user, rounded);
    if (block != NULL) {
      gcap_scratch_mark_live(user, bytes, block);
      ptr = gcap_scratch_block_base(block);
    }
  }
  gcap_scratch_leave(entered);
  return ptr;
}

static bool free_own(gcap_scratch_t* scratch, void* ptr) {
  if (gcap_thread_captures() || scratch->debug != NULL) return false;
  gcap_scratch_block_t* block = gcap_scratch_pages_find(&scratch->pages, ptr);
  const uintptr_t mark = block == NULL ? 0 : gcap_scratch_block_mark(block);
  if ((mark & GCAP_SCRATCH_MARK_BITS) != GCAP_SCRATCH_LIVE) return false;
  gcap_scratch_stream_t* user = (gcap_scratch_stream_t*)(mark & ~GCAP_SCRATCH_MARK_BITS);
  if (gcap_scratch_is_nobody(scratch, user)) return false;
  atomic_bool* entered = gcap_scratch_enter(scratch, user);
  if (entered == NULL) return false;
  // Looked at again under the lock: a live block of the user, in no graph, that starts at the address.
  bool plain = gcap_scratch_block_mark(block) == mark && gcap_scratch_block_base(block) == ptr && user->open == NULL;
  if (plain) {
    gcap_scratch_mark_free(user, block);
    if (!put_cached(user, block)) gcap_scratch_put_own(scratch, user, block);
  }
  gcap_scratch_leave(entered);
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
