// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The fast path: a stream's allocations out of memory that it used last itself, which needs no question about streams,
// no lock but its own, no driver and no host memory. A freed block goes to the stream's cache as it is, and the next
// request of just that size takes it from there. Otherwise a block of the stream's pool is cut. When neither has one
// the cached blocks are joined with their neighbours and moved to the pool, and it is tried once more. All that is left
// over goes the slow way (scratch.c): other streams' memory, captures, reservations, growth, and every error.
//
// Cost: cutting and joining touch a bounded number of blocks. Moving the cache takes a few steps a block, each of which
// was put there by one free.
// Locking: the stream's lock. A free finds the lock by the block, and looks again under it.

#include <string.h>

#include "lib/base/thread_state.h"
#include "lib/scratch/arena.h"

// Blocks of a cache bin that are looked at for the size: in the steady state it is among the last freed.
enum { kCacheLooks = 4 };

// Blocks of a pool bin that are looked at for one that is large enough. More would find more of them that fit exactly,
// each at the price of a cache miss; a larger block is cut instead.
enum { kPoolLooks = 8 };

// Sizes that come again make the cache worth while; sizes that are all different only go through it. Each bin has a
// credit, which a block that is taken raises and one that leaves otherwise lowers. Without credit a freed block goes
// straight to the pool, but for one in so many, by which the bin may earn credit again.
enum { kFirstCredit = 8, kMaxCredit = 64, kCreditOfHit = 4, kTryOneIn = 16 };

// --- The cache ------------------------------------------------------------------------------------------------------

static scratch_block_t* take_cached(scratch_stream_t* user, size_t bytes) {
  unsigned bin = scratch_pool_bin(bytes);
  scratch_block_t** link = &user->cache[bin];
  for (int looks = 0; *link != NULL && looks < kCacheLooks; link = &(*link)->next, ++looks) {
    scratch_block_t* block = *link;
    if (block->bytes != bytes) continue;
    *link = block->next;
    --user->num_cached;
    if (user->cache_credit[bin] < kMaxCredit) user->cache_credit[bin] += kCreditOfHit;
    return block;
  }
  return NULL;
}

static bool put_cached(scratch_stream_t* user, scratch_block_t* block) {
  unsigned bin = block->bin;
  if (bin >= SCRATCH_NUM_CACHE_BINS) return false;
  if (user->cache_credit[bin] == 0 && user->num_frees % kTryOneIn != 0) return false;
  block->state = SCRATCH_CACHED;
  block->next = user->cache[bin];
  user->cache[bin] = block;
  ++user->num_cached;
  return true;
}

void scratch_front_init(scratch_stream_t* user) {
  memset(user->cache_credit, kFirstCredit, sizeof(user->cache_credit));
}

void scratch_flush(gcap_scratch_t* scratch, scratch_stream_t* user) {
  for (unsigned bin = 0; user->num_cached > 0; ++bin) {
    while (user->cache[bin] != NULL) {
      scratch_block_t* block = user->cache[bin];
      user->cache[bin] = block->next;
      --user->num_cached;
      if (user->cache_credit[bin] > 0) --user->cache_credit[bin];
      block->state = SCRATCH_FREE;
      scratch_put(scratch, block);
    }
  }
}

void scratch_flush_all(gcap_scratch_t* scratch) {
  for (scratch_stream_t* user = scratch->streams; user != NULL; user = user->next) scratch_flush(scratch, user);
}

// --- The pool -------------------------------------------------------------------------------------------------------

// A block of the pool of at least `bytes`, in a bounded number of steps: it may overlook one whose bin holds smaller
// ones too.
static scratch_block_t* find_quickly(const scratch_pool_t* pool, size_t bytes) {
  unsigned bin = scratch_pool_bin(bytes);
  scratch_block_t* block = pool->bins[bin];
  for (int looks = 0; block != NULL && looks < kPoolLooks; block = block->next, ++looks) {
    if (block->bytes >= bytes) return block;
  }
  bin = scratch_pool_next_bin(pool, bin + 1);
  return bin < SCRATCH_NUM_BINS ? pool->bins[bin] : NULL;
}

// --- Allocation and free --------------------------------------------------------------------------------------------

void scratch_mark_live(scratch_stream_t* user, size_t requested_bytes, scratch_block_t* block) {
  block->state = SCRATCH_LIVE;
  block->unused_bytes = (uint32_t)(block->bytes - requested_bytes);
  ++user->num_allocs;
  user->in_use_bytes += block->bytes;
  user->requested_in_use_bytes += requested_bytes;
  if (user->max_in_use_bytes < user->in_use_bytes) user->max_in_use_bytes = user->in_use_bytes;
  if (user->max_alloc_bytes < requested_bytes) user->max_alloc_bytes = requested_bytes;
}

void scratch_mark_free(scratch_stream_t* user, scratch_block_t* block) {
  ++user->num_frees;
  user->in_use_bytes -= block->bytes;
  user->requested_in_use_bytes -= scratch_block_requested_bytes(block);
  block->state = SCRATCH_FREE;
  block->sync_id = gcap_stream_sync_id(scratch_user_stream(user));
}

static scratch_block_t* take(gcap_scratch_t* scratch, scratch_stream_t* user, size_t bytes) {
  if (bytes <= SCRATCH_MAX_CACHED_BYTES) {
    scratch_block_t* cached = take_cached(user, bytes);
    if (cached != NULL) return cached;
  }
  scratch_block_t* block = find_quickly(&user->pool, bytes);
  if (block != NULL && scratch_detach_own(user, block, bytes, &scratch->pages)) return block;
  if (user->num_cached == 0) return NULL;
  scratch_flush(scratch, user);  // joining also frees the block struct that cutting may have lacked
  block = find_quickly(&user->pool, bytes);
  return block != NULL && scratch_detach_own(user, block, bytes, &scratch->pages) ? block : NULL;
}

static void* alloc_own(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream) {
  size_t rounded = scratch_block_bytes(bytes);
  if (rounded == 0) return NULL;  // nothing was asked for, or it overflows
  if (gcap_thread_captures() || scratch->debug != NULL) return NULL;
  if (atomic_load_explicit(&scratch->deficit_bytes, memory_order_relaxed) != 0) return NULL;
  scratch_stream_t* user = scratch_find_stream(scratch, stream);
  if (user == NULL || !scratch_try_lock(user)) return NULL;
  void* ptr = NULL;
  if (user->open == NULL && scratch_user_stream(user) == stream) {
    scratch_block_t* block = take(scratch, user, rounded);
    if (block != NULL) {
      scratch_mark_live(user, bytes, block);
      ptr = scratch_block_base(block);
    }
  }
  scratch_unlock(user);
  return ptr;
}

// Whether it is a live block of the user, in no graph, that starts at the address. Called with the user's lock.
static bool is_plain(const scratch_block_t* block, const scratch_stream_t* user, const void* ptr) {
  return scratch_block_user(block) == user && block->state == SCRATCH_LIVE && scratch_block_base(block) == ptr &&
         !block->kept && user->open == NULL;
}

static bool free_own(gcap_scratch_t* scratch, void* ptr) {
  if (gcap_thread_captures() || scratch->debug != NULL) return false;
  scratch_block_t* block = scratch_pages_find(&scratch->pages, ptr);
  scratch_stream_t* user = block == NULL ? NULL : scratch_block_user(block);
  if (user == NULL || !scratch_try_lock(user)) return false;
  bool plain = is_plain(block, user, ptr);
  if (plain) {
    scratch_mark_free(user, block);
    if (!put_cached(user, block)) scratch_put(scratch, block);
  }
  scratch_unlock(user);
  return plain;
}

gcap_status_t gcap_scratch_alloc(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream, void** out_ptr) {
  gcap_status_t status = NULL;
  *out_ptr = alloc_own(scratch, bytes, stream);
  if (*out_ptr == NULL) {
    if (bytes == 0) return NULL;
    status = scratch_alloc_slowly(scratch, bytes, stream, out_ptr);
  }
  gcap_trace_allocation(bytes);
  return status;
}

gcap_status_t gcap_scratch_free(gcap_scratch_t* scratch, void* ptr) {
  if (ptr == NULL || free_own(scratch, ptr)) return NULL;
  return scratch_free_slowly(scratch, ptr);
}
