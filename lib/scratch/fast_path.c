// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The fast path: a stream's allocations out of memory that it used last itself, which needs no question about streams,
// no lock but its own, no driver and no host memory. A freed block goes to the stream's cache as it is, and the next
// request of just that size takes it from there. Otherwise a block of the stream's pool is cut. When neither has one
// the cached blocks are joined with their neighbours and moved to the pool, and it is tried once more. All that is left
// over takes the slow path (slow_path.c).
//
// Cost: cutting and joining touch a bounded number of blocks; finding one does too, but where all of a bin are smaller
// than the request, and no bin above has one.
// Locking: the stream's lock. A free finds the lock by the block, and looks again under it.

#include "gcap/scratch.h"
#include "lib/base/capture_hooks.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/run_trace.h"
#include "lib/scratch/lock.h"
#include "lib/scratch/slow_path.h"
#include "lib/scratch/streams.h"
#include "lib/scratch/unknown_stream.h"
#include "lib/stream/inner.h"

static gcap_scratch_block_t* take_from_pool(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes) {
  gcap_scratch_block_t* block = gcap_scratch_pool_find_quickly(&state->owner.pool, bytes);
  if (block == NULL) return NULL;
  const bool whole = gcap_scratch_fits_whole(block, bytes, scratch->options.max_dead_bytes_per_chunk);
  block = gcap_scratch_detach_own(&state->owner, block, whole ? block->bytes : bytes);
  if (block == NULL) return NULL;
  gcap_scratch_pages_set(&scratch->store.pages, gcap_scratch_block_base(block), block);
  return block;
}

static gcap_scratch_block_t* take(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes) {
  gcap_scratch_cache_t* cache = &state->cache;
  gcap_scratch_block_t* block = gcap_scratch_cache_take(cache, bytes, scratch->options.max_dead_bytes_per_chunk);
  if (block == NULL) block = take_from_pool(scratch, state, bytes);
  if (block != NULL || cache->num_blocks == 0) return block;
  gcap_scratch_cache_flush(cache, &state->owner);  // joining also frees the block struct that cutting may have lacked
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
  if (gcap_thread_captures() || gcap_scratch_takes_detour(scratch)) return NULL;
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
  if (gcap_thread_captures() || gcap_scratch_takes_detour(scratch)) return false;
  gcap_scratch_block_t* block = gcap_scratch_pages_find(&scratch->store.pages, ptr);
  const uintptr_t tag = block == NULL ? 0 : gcap_scratch_block_tag(block);
  if ((tag & GCAP_SCRATCH_TAG_BITS) != GCAP_SCRATCH_LIVE) return false;
  gcap_scratch_stream_state_t* state = gcap_scratch_state_of((gcap_scratch_owner_t*)(tag & ~GCAP_SCRATCH_TAG_BITS));
  if (gcap_scratch_is_unknown_stream(scratch, state)) return false;
  atomic_bool* entered = gcap_scratch_lock_stream(scratch, state);
  if (entered == NULL) return false;
  // Looked at again under the lock: a live block of the stream, in no graph, that starts at the address.
  bool plain = gcap_scratch_block_tag(block) == tag && gcap_scratch_block_base(block) == ptr && state->open == NULL;
  if (plain) {
    gcap_scratch_make_free(state, gcap_stream_sync_id(gcap_scratch_stream_of(state)) + 1, block);
    if (!gcap_scratch_cache_put(&state->cache, &state->owner, block)) gcap_scratch_put_own(&state->owner, block);
  }
  gcap_scratch_unlock_stream(entered);
  return plain;
}

gcap_status_t gcap_scratch_alloc(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream, void** out_ptr) {
  GCAP_RETURN_IF_NULL(out_ptr);
  gcap_status_t status = NULL;
  *out_ptr = scratch == NULL ? NULL : alloc_own(scratch, bytes, stream);
  if (*out_ptr == NULL) {
    GCAP_RETURN_IF_NULL(scratch);
    GCAP_RETURN_IF_NULL(stream);
    if (bytes == 0) return NULL;
    status = gcap_scratch_alloc_slowly(scratch, bytes, stream, out_ptr);
  }
  gcap_trace_allocation(bytes);
  if (gcap_thread_run_trace.hand_out != NULL && status == NULL) {
    gcap_thread_run_trace.hand_out(*out_ptr, bytes, gcap_stream_handle(stream));
  }
  return status;
}

gcap_status_t gcap_scratch_free(gcap_scratch_t* scratch, void* ptr) {
  GCAP_RETURN_IF_NULL(scratch);
  if (free_own(scratch, ptr) || ptr == NULL) return NULL;
  return gcap_scratch_free_slowly(scratch, ptr);
}
