// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the arena knows of streams: the list of their states, the directory that finds one without a lock, and the sums
// over all.
//
// The directory holds no more than the list does, at a quarter to a half of its places. Whoever finds a state in it
// takes the state's lock and looks whether the state still is the stream's: it is used again for another stream.
// Locking: the arena is locked, but for gcap_scratch_find_stream.

#include "lib/scratch/streams.h"

#include <stdlib.h>

#include "lib/scratch/lock.h"
#include "lib/scratch/need.h"

enum { kFirstDirectoryLog2 = 3 };  // places of the first directory

// --- The directory --------------------------------------------------------------------------------------------------

static void enter(gcap_scratch_directory_t* directory, gcap_scratch_stream_state_t* state) {
  size_t place = gcap_scratch_first_place(directory, gcap_scratch_stream_of(state));
  while (atomic_load_explicit(&directory->places[place & directory->mask], memory_order_relaxed) != NULL) ++place;
  atomic_store_explicit(&directory->places[place & directory->mask], state, memory_order_release);
}

// Fills the directory with what is on the list.
static void fill(gcap_scratch_directory_t* directory, gcap_scratch_stream_state_t* states) {
  for (size_t i = 0; i <= directory->mask; ++i) {
    atomic_store_explicit(&directory->places[i], NULL, memory_order_relaxed);
  }
  for (gcap_scratch_stream_state_t* state = states; state != NULL; state = state->next) enter(directory, state);
}

// Makes room for one stream more.
static bool make_room(gcap_scratch_t* scratch) {
  gcap_scratch_directory_t* directory = atomic_load_explicit(&scratch->directory, memory_order_relaxed);
  if (directory != NULL && 2 * (scratch->num_streams + 1) <= directory->mask) return true;
  unsigned log2 = directory == NULL ? kFirstDirectoryLog2 : 64 - directory->shift + 1;
  gcap_scratch_directory_t* grown = calloc(1, sizeof(*grown) + ((size_t)1 << log2) * sizeof(grown->places[0]));
  if (grown == NULL) return false;
  grown->shift = 64 - log2;
  grown->mask = ((size_t)1 << log2) - 1;
  grown->outgrown = directory;
  fill(grown, scratch->streams);
  atomic_store_explicit(&scratch->directory, grown, memory_order_release);
  return true;
}

// --- The list -------------------------------------------------------------------------------------------------------

static gcap_scratch_stream_state_t* new_state(gcap_scratch_t* scratch) {
  if (!make_room(scratch)) return NULL;
  gcap_scratch_stream_state_t* state = scratch->forgotten;
  if (state == NULL) return calloc(1, sizeof(*state));
  scratch->forgotten = state->next;
  return state;
}

// Work of another device would reach the memory only where the program has enabled that, and no red zone of a block is
// written or read by another device. Host memory is any stream's.
static gcap_status_t check_device(const gcap_scratch_t* scratch, const gcap_stream_t* stream) {
  const int device_id = scratch->device_id;
  if (device_id < 0 || gcap_stream_device(stream) == device_id) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "stream %p is one of device %d, the memory of this scratch is on device %d",
                     (void*)gcap_stream_handle(stream), gcap_stream_device(stream), device_id);
}

gcap_status_t gcap_scratch_get_stream(gcap_scratch_t* scratch, gcap_stream_t* stream,
                                      gcap_scratch_stream_state_t** out_state) {
  gcap_scratch_stream_state_t* state = gcap_scratch_find_stream(scratch, stream);
  if (state == NULL) {
    GCAP_RETURN_IF_ERROR(check_device(scratch, stream));
    state = new_state(scratch);
    if (state == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to note a stream of scratch");
    gcap_scratch_add_to_lock(state);
    atomic_store_explicit(&state->stream, stream, memory_order_relaxed);
    gcap_scratch_cache_init(&state->cache);
    state->owner.stream = &state->owner;
    gcap_scratch_slabs_add_stream(&scratch->store.slabs, &state->owner);
    state->next = scratch->streams;
    scratch->streams = state;
    ++scratch->num_streams;
    enter(atomic_load_explicit(&scratch->directory, memory_order_relaxed), state);
  }
  *out_state = state;
  return NULL;
}

void gcap_scratch_remove_stream(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  gcap_scratch_fold_peaks(scratch);
  scratch->stats.num_allocs += state->owner.num_allocs;
  const uint64_t largest_bytes = gcap_scratch_largest_alloc(state);
  if (scratch->stats.max_alloc_bytes < largest_bytes) scratch->stats.max_alloc_bytes = largest_bytes;
  state->owner.num_allocs = state->owner.num_frees = 0;
  state->max_alloc_bytes = state->most_alloc_bytes = state->peak_bytes = state->period_bytes = 0;
  state->largest_need = (gcap_scratch_need_t){0};
  state->has_runs = false;
  gcap_scratch_need_deinit(state);
  gcap_scratch_slabs_remove_stream(&scratch->store.slabs, &state->owner);
  gcap_scratch_stream_state_t** link = &scratch->streams;
  while (*link != state) link = &(*link)->next;
  *link = state->next;
  --scratch->num_streams;
  atomic_store_explicit(&state->stream, NULL, memory_order_relaxed);
  fill(atomic_load_explicit(&scratch->directory, memory_order_relaxed), scratch->streams);
  state->promise = GCAP_SCRATCH_NO_PROMISE;
  state->use = (gcap_scratch_use_t){.run = 0};
  state->next = scratch->forgotten;
  scratch->forgotten = state;
  gcap_scratch_remove_from_lock(state);
}

static void free_list(gcap_scratch_stream_state_t* states) {
  while (states != NULL) {
    gcap_scratch_stream_state_t* state = states;
    states = state->next;
    gcap_scratch_need_deinit(state);
    free(state);
  }
}

void gcap_scratch_free_streams(gcap_scratch_t* scratch) {
  free_list(scratch->streams);
  free_list(scratch->forgotten);
  gcap_scratch_directory_t* directory = atomic_load_explicit(&scratch->directory, memory_order_relaxed);
  while (directory != NULL) {
    gcap_scratch_directory_t* outgrown = directory->outgrown;
    free(directory);
    directory = outgrown;
  }
}

// --- Counters over all ----------------------------------------------------------------------------------------------

uint64_t gcap_scratch_num_live_of_all(const gcap_scratch_t* scratch) {
  uint64_t num_live = gcap_scratch_num_live(&scratch->unknown_stream);
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    num_live += gcap_scratch_num_live(state);
  }
  return num_live;
}

uint64_t gcap_scratch_in_use_bytes(const gcap_scratch_t* scratch) {
  uint64_t bytes = scratch->unknown_stream.in_use_bytes;
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next)
    bytes += state->in_use_bytes;
  return bytes;
}

void gcap_scratch_fold_peaks(gcap_scratch_t* scratch) {
  uint64_t bytes = scratch->unknown_stream.max_in_use_bytes;
  scratch->unknown_stream.max_in_use_bytes = scratch->unknown_stream.in_use_bytes;
  for (gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    gcap_scratch_fold_peak(state);
    bytes += state->period_bytes;
    state->period_bytes = state->in_use_bytes;
  }
  if (scratch->stats.max_in_use_bytes < bytes) scratch->stats.max_in_use_bytes = bytes;
}

static void add_counters(const gcap_scratch_stream_state_t* state, gcap_allocator_stats_t* stats) {
  stats->num_allocs += state->owner.num_allocs;
  stats->in_use_bytes += state->in_use_bytes;
  stats->requested_in_use_bytes += state->requested_in_use_bytes;
  const uint64_t largest_bytes = gcap_scratch_largest_alloc(state);
  if (stats->max_alloc_bytes < largest_bytes) stats->max_alloc_bytes = largest_bytes;
}

void gcap_scratch_sum_stats(gcap_scratch_t* scratch, gcap_allocator_stats_t* out_stats) {
  gcap_scratch_lock_arena(scratch);
  gcap_scratch_fold_peaks(scratch);
  *out_stats = scratch->stats;
  add_counters(&scratch->unknown_stream, out_stats);
  for (const gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    add_counters(state, out_stats);
  }
  gcap_scratch_unlock_arena(scratch);
}
