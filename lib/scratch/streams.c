// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the arena knows of streams: their locks, the list of them, and the directory that finds one without a lock.
//
// The directory holds no more than the list does, at a quarter to a half of its places. Whoever finds a struct in it
// takes its lock and looks whether it still is the stream's: a struct is used again for another stream.
// Locking: a stream's lock is held for some tens of instructions by the fast path, or as long as the arena is held. Who
// does not get it soon had better wait for the arena's mutex, where waiting is asleep.
//
// The lock is biased to the thread that uses the stream: it enters by a plain store and a look whether it still may.
// Whoever wants to hold the arena takes that right away first, then lets the kernel run a memory fence on every
// processor that runs a thread of ours (membarrier), and then waits until the thread is not inside. After the fence
// either the thread's store is seen, or the thread sees that it may not. So the fence that each entry would need is
// paid by those who come seldom.

#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/scratch/arena.h"

enum {
  kPatience = 100,          // looks at a lock, about a microsecond
  kFirstDirectoryLog2 = 3,  // places of the first directory
  kMaxTries = 8,            // to enter; then the mutex decides, which is fair
  kMaxIntrusions = 16
};

// --- Locks ----------------------------------------------------------------------------------------------------------

static bool take_lock(gcap_scratch_stream_state_t* state) {
  for (int looks = 0; looks < kPatience; ++looks) {
    if (atomic_load_explicit(&state->locked, memory_order_relaxed)) continue;
    if (!atomic_exchange_explicit(&state->locked, true, memory_order_acquire)) return true;
  }
  return false;
}

// Who finds the arena held waits, and does not hold it himself in turn: else one slow call would make another of each
// call that came meanwhile, and these again, without an end.
atomic_bool* gcap_scratch_lock_stream_slowly(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    gcap_scratch_bias_t* bias = atomic_load_explicit(&state->bias, memory_order_acquire);
    if (bias != NULL && bias->thread != gcap_scratch_this_thread()) return NULL;
    if (bias != NULL && gcap_scratch_lock_by_bias(state, bias)) return &bias->entered;
    if (bias == NULL && take_lock(state)) {
      if (atomic_load_explicit(&state->bias, memory_order_relaxed) == NULL) return &state->locked;
      gcap_scratch_unlock_stream(&state->locked);  // the arena was let go of meanwhile, and a thread has its bias again
    } else if (bias == NULL) {
      pthread_mutex_lock(&scratch->mutex);
      pthread_mutex_unlock(&scratch->mutex);
    }
  }
  return NULL;
}

bool gcap_scratch_can_bias(void) {
#if defined(__SANITIZE_THREAD__)
  return false;  // the sanitizer knows nothing of membarrier, and would see races
#else
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#endif
}

static void fence_all_threads(void) {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return;
  // Cannot be, since the process is registered. A store is seen by all processors long before this is over.
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void gcap_scratch_lock_arena(gcap_scratch_t* scratch) {
  pthread_mutex_lock(&scratch->mutex);
  bool others = false;
  for (gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    while (!take_lock(state)) sched_yield();  // the holder may be a thread that was put to sleep
    state->resting_bias = atomic_load_explicit(&state->bias, memory_order_relaxed);
    if (state->resting_bias == NULL) continue;
    others = others || state->resting_bias->thread != gcap_scratch_this_thread();
    atomic_store_explicit(&state->bias, NULL, memory_order_relaxed);
  }
  if (!others) return;
  fence_all_threads();
  for (gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    const gcap_scratch_bias_t* bias = state->resting_bias;
    while (bias != NULL && atomic_load_explicit(&bias->entered, memory_order_acquire)) sched_yield();
  }
}

void gcap_scratch_unlock_arena(gcap_scratch_t* scratch) {
  for (gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    atomic_store_explicit(&state->bias, state->resting_bias, memory_order_release);
    gcap_scratch_unlock_stream(&state->locked);
  }
  pthread_mutex_unlock(&scratch->mutex);
}

// A bias of the calling thread; NULL when all were given to others. A thread that is about to enter by a bias may have
// been so for long, so none changes its thread.
static gcap_scratch_bias_t* own_bias(gcap_scratch_stream_state_t* state) {
  for (unsigned i = 0; i < state->num_biases; ++i) {
    if (state->biases[i].thread == gcap_scratch_this_thread()) return &state->biases[i];
  }
  if (state->num_biases == GCAP_SCRATCH_NUM_BIASES) return NULL;
  gcap_scratch_bias_t* bias = &state->biases[state->num_biases++];
  bias->thread = gcap_scratch_this_thread();
  return bias;
}

void gcap_scratch_note_thread(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, bool intruder) {
  const gcap_scratch_bias_t* bias = state->resting_bias;
  if (bias != NULL && bias->thread == gcap_scratch_this_thread()) return;
  if (bias != NULL) ++state->num_intrusions;
  const bool may_bias = scratch->can_bias && state->num_intrusions < kMaxIntrusions;
  if (!may_bias) state->resting_bias = NULL;
  if (may_bias && !intruder) state->resting_bias = own_bias(state);
}

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

gcap_status_t gcap_scratch_get_stream(gcap_scratch_t* scratch, gcap_stream_t* stream,
                                      gcap_scratch_stream_state_t** out_state) {
  gcap_scratch_stream_state_t* state = gcap_scratch_find_stream(scratch, stream);
  if (state == NULL) {
    state = new_state(scratch);
    if (state == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory to note a stream of scratch");
    while (!take_lock(state)) sched_yield();  // a free of an address that is none may be looking at it
    state->resting_bias = NULL;
    atomic_store_explicit(&state->stream, stream, memory_order_relaxed);
    gcap_scratch_cache_init(state);
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
  scratch->stats.num_allocs += state->num_allocs;
  if (scratch->stats.max_alloc_bytes < state->max_alloc_bytes) scratch->stats.max_alloc_bytes = state->max_alloc_bytes;
  state->num_allocs = state->num_frees = state->max_alloc_bytes = state->peak_bytes = 0;
  while (state->spares != NULL) {
    gcap_scratch_block_t* spare = state->spares;
    state->spares = spare->next;
    gcap_scratch_block_recycle(scratch, NULL, spare);
  }
  gcap_scratch_stream_state_t** link = &scratch->streams;
  while (*link != state) link = &(*link)->next;
  *link = state->next;
  --scratch->num_streams;
  atomic_store_explicit(&state->stream, NULL, memory_order_relaxed);
  fill(atomic_load_explicit(&scratch->directory, memory_order_relaxed), scratch->streams);
  state->num_intrusions = 0;
  state->prepared = false;
  state->next = scratch->forgotten;
  scratch->forgotten = state;
  gcap_scratch_unlock_stream(&state->locked);
}

static void free_list(gcap_scratch_stream_state_t* states) {
  while (states != NULL) {
    gcap_scratch_stream_state_t* state = states;
    states = state->next;
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
    bytes += state->max_in_use_bytes;
    if (state->peak_bytes < state->max_in_use_bytes) state->peak_bytes = state->max_in_use_bytes;
    state->max_in_use_bytes = state->in_use_bytes;
  }
  if (scratch->stats.max_in_use_bytes < bytes) scratch->stats.max_in_use_bytes = bytes;
}
