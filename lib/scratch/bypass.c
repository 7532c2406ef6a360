// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Memory without a cache of ours, for an upstream that caches itself. Every region is just as large as the request that
// it was got for, is handed out whole, and goes back as soon as no stream uses it any more. The arena knows that by the
// timelines, as for all free blocks; it asks no driver. So a region may be free and not yet given back. Meanwhile it
// serves a request of its size, by the rules of every other free block: a run that is not waited for holds what an
// arena would, not the sum of all that it ever allocated.
//
// Captures are as without the option. What they use is cut from what their stream owns: what was prepared, what its
// warm-up left, and what captures lacked, whose regions are held until a capture takes them. When the graph is released
// the parts become one block again, and the region goes back. Nothing is given back, and nothing asked for, by a thread
// that captures.
//
// Locking: the arena is locked, and unlocked around each call of upstream. All calls take the slow path.

#include "lib/scratch/bypass.h"

#include "gcap/log.h"
#include "lib/base/capture_hooks.h"
#include "lib/scratch/place.h"
#include "lib/scratch/unknown_stream.h"
#include "lib/scratch/upstream.h"

typedef struct wanted {
  const gcap_scratch_stream_state_t* state;
  size_t bytes;
} wanted_t;

static bool is_wanted(const void* context, const gcap_scratch_block_t* block) {
  const wanted_t* wanted = context;
  const bool is_whole = gcap_scratch_block_lower(block) == NULL && block->upper == NULL;
  return is_whole && block->bytes == wanted->bytes && gcap_scratch_may_have(wanted->state, block);
}

gcap_status_t gcap_scratch_place_whole(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, size_t bytes,
                                       gcap_scratch_block_t** out_block) {
  const wanted_t wanted = {.state = state, .bytes = bytes};
  const bool is_unknown = gcap_scratch_is_unknown_stream(scratch, state);
  if (is_unknown) gcap_scratch_settle(scratch, /*all=*/false);
  *out_block = gcap_scratch_pool_find(&scratch->store.untagged, bytes, is_wanted, &wanted);
  for (gcap_scratch_stream_state_t* other = scratch->streams; *out_block == NULL && !is_unknown && other != NULL;
       other = other->next)
    *out_block = gcap_scratch_pool_find(&other->owner.pool, bytes, is_wanted, &wanted);
  return *out_block == NULL ? NULL : gcap_scratch_detach(&scratch->store, bytes, out_block);
}

gcap_status_t gcap_scratch_give_back_passed(gcap_scratch_t* scratch) {
  if (gcap_thread_captures()) return NULL;
  gcap_scratch_settle(scratch, /*all=*/false);
  if (gcap_scratch_pool_first(&scratch->store.untagged) == NULL) return NULL;
  return gcap_scratch_give_back_idle(scratch, /*all=*/false);
}

void gcap_scratch_log_refusal(gcap_status_t status) {
  if (status == NULL) return;
  gcap_log(GCAP_LOG_WARNING, "scratch keeps memory that upstream did not take back: %s", gcap_status_message(status));
  gcap_status_free(status);
}
