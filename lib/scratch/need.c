// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Needs. The stream counts what it has handed out, and the most since it last began to count anew. A run begins anew,
// so that its end knows the most of the run; what was handed out before the run is not the run's. The need of a work is
// that of its last run: the first one may have searched for algorithms in memory that no later one asks for.
//
// What a work's first run keeps is taken for what outlives its runs, such as a cache, and is not a part of the need.
// What a later one keeps, the captured one will keep too.
//
// Works are few: as many as a stream has graph ids. A table that is full starts anew, and its works need what the
// stream's largest run needed. Locking: the stream's lock, or the arena is locked.

#include "lib/scratch/need.h"

// A cell of the table. Far more works than a stream has graphs.
#define MAX_WORKS 4096
typedef struct cell {
  uint64_t work;
  gcap_scratch_need_t need;
} cell_t;

static gcap_scratch_need_t most_of(gcap_scratch_need_t a, gcap_scratch_need_t b) {
  return (gcap_scratch_need_t){.bytes = a.bytes > b.bytes ? a.bytes : b.bytes,
                               .largest_bytes = a.largest_bytes > b.largest_bytes ? a.largest_bytes : b.largest_bytes};
}

gcap_scratch_need_t gcap_scratch_need_of(const gcap_scratch_stream_state_t* state, uint64_t work) {
  const cell_t* cell = work != 0 ? gcap_hash_table_find(&state->needs, work) : NULL;
  if (cell != NULL) return cell->need;
  if (state->has_runs) return state->largest_need;
  return (gcap_scratch_need_t){gcap_scratch_peak_bytes(state), gcap_scratch_largest_alloc(state)};
}

void gcap_scratch_need_begin(gcap_scratch_stream_state_t* state) {
  gcap_scratch_fold_peak(state);
  state->run_peak_bytes = state->in_use_bytes_at_run = state->in_use_bytes;
  state->kept_bytes = 0;
  state->has_runs = true;
  if (state->most_alloc_bytes < state->max_alloc_bytes) state->most_alloc_bytes = state->max_alloc_bytes;
  state->max_alloc_bytes = 0;
}

static void file(gcap_scratch_stream_state_t* state, uint64_t work, gcap_scratch_need_t need, uint64_t kept_bytes) {
  cell_t* cell = gcap_hash_table_find(&state->needs, work);
  if (cell != NULL) need.bytes += kept_bytes;
  if (cell == NULL && state->needs.count == MAX_WORKS) gcap_scratch_need_deinit(state);
  state->needs.cell_bytes = sizeof(*cell);
  if (cell == NULL) cell = gcap_hash_table_insert(&state->needs, work);
  if (cell != NULL) cell->need = need;
}

void gcap_scratch_need_end(gcap_scratch_stream_state_t* state, uint64_t work) {
  gcap_scratch_fold_peak(state);
  const uint64_t had_bytes = state->run_peak_bytes - state->in_use_bytes_at_run;
  const uint64_t kept_bytes = state->kept_bytes < had_bytes ? state->kept_bytes : had_bytes;
  const gcap_scratch_need_t need = {.bytes = had_bytes - kept_bytes, .largest_bytes = state->max_alloc_bytes};
  state->largest_need = most_of(state->largest_need, need);
  if (work != 0) file(state, work, need, kept_bytes);
}

void gcap_scratch_need_keep(gcap_scratch_stream_state_t* state, const gcap_scratch_block_t* block) {
  if (state->use.run != 0 && block->use.run == state->use.run) state->kept_bytes += block->bytes;
}

void gcap_scratch_need_deinit(gcap_scratch_stream_state_t* state) { gcap_hash_table_deinit(&state->needs); }
