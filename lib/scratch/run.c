// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs: the blocks that a stream allocates between the begin of a run and its end are freed at the end, unless they
// were freed or kept before.
//
// A live block carries the number of its stream's run, and the stream knows how many of its live blocks are of the run.
// So an allocation pays a copy and a free a comparison, and an end at which nothing is left looks at nothing. Where
// blocks are left, the end walks over all blocks once for each: leaks are rare, and are to be mended. They are freed
// node by node, so that a node's warning needs no memory to be put together.
//
// Locking: the stream's lock where that is to be had, else the arena is locked. Each block is freed in a locked arena
// of its own, for the callback for events runs between two. A run's number is never used again for the stream, so
// whoever comes in between, and frees or allocates or begins the next run, changes nothing of what is left to be freed.

#include "lib/scratch/run.h"

#include <inttypes.h>

#include "gcap/log.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/forked.h"
#include "lib/scratch/debug.h"
#include "lib/scratch/inner.h"
#include "lib/scratch/lock.h"
#include "lib/scratch/need.h"
#include "lib/scratch/nodes.h"
#include "lib/scratch/reservation.h"
#include "lib/scratch/slow_path.h"
#include "lib/scratch/streams.h"

// --- The lock of a stream -------------------------------------------------------------------------------------------

typedef struct hold {
  gcap_scratch_t* scratch;
  gcap_scratch_stream_state_t* state;  // NULL: the arena does not know the stream, and is locked
  atomic_bool* entered;                // NULL: the arena is locked
} hold_t;

static hold_t lock(gcap_scratch_t* scratch, const gcap_stream_t* stream) {
  hold_t hold = {.scratch = scratch, .state = gcap_scratch_find_stream(scratch, stream)};
  if (hold.state != NULL) hold.entered = gcap_scratch_lock_stream(scratch, hold.state);
  if (hold.entered != NULL && gcap_scratch_stream_of(hold.state) == stream) return hold;
  if (hold.entered != NULL) gcap_scratch_unlock_stream(hold.entered);  // it is another stream's by now
  gcap_scratch_lock_arena(scratch);
  hold.state = gcap_scratch_find_stream(scratch, stream);
  hold.entered = NULL;
  return hold;
}

static void unlock(const hold_t* hold) {
  if (hold->entered != NULL) {
    gcap_scratch_unlock_stream(hold->entered);
  } else {
    gcap_scratch_unlock_arena(hold->scratch);
  }
}

// --- Begin ----------------------------------------------------------------------------------------------------------

static gcap_status_t begin_locked(hold_t* hold, gcap_stream_t* stream) {
  if (hold->state == NULL) GCAP_RETURN_IF_ERROR(gcap_scratch_get_stream(hold->scratch, stream, &hold->state));
  gcap_scratch_stream_state_t* state = hold->state;
  if (state->use.run != 0) {
    return GCAP_STATUS(GCAP_ALREADY_EXISTS, "stream %p has an open run of scratch with %" PRIu64 " live blocks",
                       (void*)gcap_stream_handle(stream), gcap_scratch_num_live_of_run(state));
  }
  state->use = (gcap_scratch_use_t){.run = ++state->last_run};
  state->num_others = gcap_scratch_num_live(state);
  gcap_scratch_need_begin(state);
  return NULL;
}

gcap_status_t gcap_scratch_begin_run(gcap_scratch_t* scratch, gcap_stream_t* stream) {
  hold_t hold = lock(scratch, stream);
  gcap_status_t status = begin_locked(&hold, stream);
  unlock(&hold);
  return status;
}

void gcap_scratch_set_node(gcap_scratch_t* scratch, gcap_stream_t* stream, const char* name) {
  const hold_t hold = lock(scratch, stream);
  if (hold.state != NULL && hold.state->use.run != 0) hold.state->use.node = name;
  unlock(&hold);
}

gcap_status_t gcap_scratch_keep(gcap_scratch_t* scratch, void* ptr) {
  GCAP_RETURN_IF_NULL(scratch);
  if (ptr == NULL) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(__func__));
  gcap_scratch_lock_arena(scratch);
  gcap_scratch_block_t* block = NULL;
  gcap_status_t status = gcap_scratch_find_live(&scratch->store, ptr, scratch->zone_bytes, &block);
  status = gcap_scratch_debug_explain(scratch, ptr, status);
  if (status == NULL) {
    gcap_scratch_need_keep(gcap_scratch_block_state(block), block);
    gcap_scratch_leave_run(scratch, block);
  }
  gcap_scratch_unlock_arena(scratch);
  return status;
}

// --- End ------------------------------------------------------------------------------------------------------------

// The run of blocks that the end of theirs could not free. No stream has a run of this number.
#define ORPHANED UINT64_MAX

// Who left blocks of no node.
#define NO_NAME "work without a node's name"

// What one node left to the end of a run.
typedef struct leftover {
  gcap_scratch_t* scratch;
  const gcap_scratch_stream_state_t* state;  // NULL: of any stream
  uint64_t run;
  const char* node;         // NULL: blocks of no node
  size_t num_freed, bytes;  // as requested
  gcap_status_t status;     // what frees failed with
} leftover_t;

static gcap_scratch_block_t* find_left(const leftover_t* left, bool of_node) {
  const gcap_scratch_store_t* store = &left->scratch->store;
  for (size_t i = 0; i < store->num_regions; ++i) {
    for (gcap_scratch_block_t* block = store->regions[i]->first; block != NULL; block = block->upper) {
      if (gcap_scratch_block_phase(block) != GCAP_SCRATCH_LIVE || block->use.run != left->run) continue;
      if (left->state != NULL && gcap_scratch_block_state(block) != left->state) continue;
      if (!of_node || gcap_scratch_is_same_node(block->use.node, left->node)) return block;
    }
  }
  return NULL;
}

static void free_block(leftover_t* left, gcap_scratch_block_t* block, gcap_allocator_event_t* out_event) {
  const size_t bytes = block->requested_bytes;
  gcap_status_t damage = NULL;
  gcap_status_t status = gcap_scratch_free_live(left->scratch, block, /*forced=*/true, out_event, &damage);
  const bool freed = status == NULL;
  if (freed) {
    ++left->num_freed;
    left->bytes += bytes;
  } else {
    gcap_scratch_leave_run(left->scratch, block);
    block->use.run = ORPHANED;
  }
  status = gcap_status_join(status, damage);
  status = gcap_status_annotate(status, gcap_status_code(status),
                                "%zu bytes of scratch that %s%s%s left to the end of its run%s", bytes,
                                left->node != NULL ? "node '" : NO_NAME, left->node != NULL ? left->node : "",
                                left->node != NULL ? "'" : "", freed ? "" : " cannot be freed");
  left->status = gcap_status_join(left->status, status);
}

// Frees the next block, or gives false. The first one chooses the node.
static bool free_next(leftover_t* left, bool is_first) {
  gcap_allocator_event_t event = {0};
  gcap_scratch_lock_arena(left->scratch);
  gcap_scratch_block_t* block = find_left(left, /*of_node=*/!is_first);
  if (block != NULL) {
    if (is_first) left->node = block->use.node;
    free_block(left, block, &event);
  }
  gcap_scratch_unlock_arena(left->scratch);
  gcap_scratch_debug_report(left->scratch, &event);
  return block != NULL;
}

static void warn(const leftover_t* left) {
  if (left->num_freed == 0) return;
  const bool is_named = left->node != NULL;
  gcap_log(GCAP_LOG_WARNING,
           "%s%s%s left %zu blocks of scratch (%zu bytes) to the end of its run, where they were freed; free them, or "
           "keep them with gcap_scratch_keep",
           is_named ? "node '" : NO_NAME, is_named ? left->node : "", is_named ? "'" : "", left->num_freed,
           left->bytes);
}

void gcap_scratch_free_orphans(gcap_scratch_t* scratch) {
  if (gcap_thread_captures()) return;
  gcap_scratch_lock_arena(scratch);
  const int paused = gcap_scratch_pause_lock(scratch);
  leftover_t left = {.scratch = scratch, .run = ORPHANED};
  while (left.status == NULL && free_next(&left, /*is_first=*/true)) {
  }
  gcap_scratch_resume_lock(scratch, paused);
  gcap_scratch_unlock_arena(scratch);
  if (left.status != NULL) gcap_log(GCAP_LOG_WARNING, "%s", gcap_status_message(left.status));
  gcap_status_ignore(left.status);  // the caller finds out whether a block is live
}

static gcap_status_t free_all_left(gcap_scratch_t* scratch, const gcap_scratch_stream_state_t* state, uint64_t run,
                                   bool warns) {
  gcap_scratch_free_orphans(scratch);
  gcap_status_t status = NULL;
  gcap_scratch_lock_arena(scratch);
  const int paused = gcap_scratch_pause_lock(scratch);  // the callbacks do not end the arena meanwhile
  leftover_t left = {.scratch = scratch, .state = state, .run = run};
  while (free_next(&left, /*is_first=*/true)) {
    while (free_next(&left, /*is_first=*/false)) {
    }
    if (warns) warn(&left);
    status = gcap_status_join(status, left.status);
    left = (leftover_t){.scratch = scratch, .state = state, .run = run};
  }
  gcap_scratch_resume_lock(scratch, paused);
  gcap_scratch_unlock_arena(scratch);
  return status;
}

// A rehearsal that no capture followed, though the stream has had another run since.
static bool is_abandoned(const gcap_scratch_stream_state_t* state, uint64_t run) {
  return state->rehearsed != NULL && state->rehearsed->run < run;
}

static void drop_abandoned(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, uint64_t run) {
  gcap_scratch_lock_arena(scratch);
  if (is_abandoned(state, run)) gcap_scratch_drop_rehearsed(state);
  gcap_scratch_unlock_arena(scratch);
}

gcap_status_t gcap_scratch_end_run(gcap_scratch_t* scratch, gcap_stream_t* stream) {
  return gcap_scratch_end_run_of(scratch, stream, /*work=*/0, /*has_failed=*/false);
}

gcap_status_t gcap_scratch_end_run_of(gcap_scratch_t* scratch, gcap_stream_t* stream, uint64_t work, bool has_failed) {
  const hold_t hold = lock(scratch, stream);
  gcap_scratch_stream_state_t* state = hold.state;
  const uint64_t run = state == NULL ? 0 : state->use.run;
  const bool is_left = run != 0 && gcap_scratch_num_live_of_run(state) > 0;
  const bool leaves_rehearsed = run != 0 && is_abandoned(state, run);
  if (run != 0) {
    gcap_scratch_need_end(state, has_failed ? 0 : work);
    state->use = (gcap_scratch_use_t){.run = 0};
    state->promise = GCAP_SCRATCH_NO_PROMISE;
  }
  unlock(&hold);
  if (run == 0) {
    return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "stream %p has no open run of scratch to end",
                       (void*)gcap_stream_handle(stream));
  }
  if (leaves_rehearsed) drop_abandoned(scratch, state, run);
  return is_left ? free_all_left(scratch, state, run, !has_failed) : NULL;
}

void gcap_scratch_drop_run(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  for (size_t i = 0; state->use.run != 0 && i < scratch->store.num_regions; ++i) {
    for (gcap_scratch_block_t* block = scratch->store.regions[i]->first; block != NULL; block = block->upper) {
      if (gcap_scratch_block_phase(block) != GCAP_SCRATCH_LIVE || gcap_scratch_block_state(block) != state) continue;
      if (block->use.run == state->use.run) gcap_scratch_leave_run(scratch, block);  // not the orphans of earlier runs
    }
  }
  state->use = (gcap_scratch_use_t){.run = 0};
}
