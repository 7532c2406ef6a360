// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The biased lock of each stream, and the lock of the arena, which is all of them.
//
// A stream's lock is biased to the thread that uses the stream: that thread takes the lock by a plain store and a look
// whether it still may. A thread that locks the arena takes that right away first, then lets the kernel run a memory
// fence on every processor that runs a thread of the process (membarrier), and then waits until the other thread is not
// inside.
// After the fence either the thread's store is seen, or the thread sees that it may not. So the fence that each entry
// would need is paid by those who come seldom. The field calls this a biased lock.
//
// A stream's lock is held for some tens of instructions by the fast path, or as long as the arena is locked. A
// thread that does not get it soon had better wait for the arena's mutex, where it sleeps.

#include "lib/scratch/lock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
  kPatience = 100,  // looks at a lock, about a microsecond
  kMaxTries = 8,    // to lock a stream; then the mutex decides, which is fair
  kMaxIntrusions = 16
};

// --- One stream -----------------------------------------------------------------------------------------------------

static bool take_lock(gcap_scratch_stream_state_t* state) {
  for (int looks = 0; looks < kPatience; ++looks) {
    if (atomic_load_explicit(&state->locked, memory_order_relaxed)) continue;
    if (!atomic_exchange_explicit(&state->locked, true, memory_order_acquire)) return true;
  }
  return false;
}

// A thread that finds the arena locked waits, and does not lock the arena in turn: else one slow call would make slow
// calls of all that came meanwhile, and these again, without an end.
atomic_bool* gcap_scratch_lock_stream_slowly(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    gcap_scratch_bias_t* bias = atomic_load_explicit(&state->bias, memory_order_acquire);
    if (bias != NULL && bias->thread != gcap_scratch_this_thread()) return NULL;
    if (bias != NULL && gcap_scratch_lock_by_bias(state, bias)) return &bias->entered;
    if (bias == NULL && take_lock(state)) {
      if (atomic_load_explicit(&state->bias, memory_order_relaxed) == NULL) return &state->locked;
      gcap_scratch_unlock_stream(&state->locked);  // the arena was unlocked meanwhile, and a thread has its bias again
    } else if (bias == NULL) {
      pthread_mutex_lock(&scratch->mutex);
      pthread_mutex_unlock(&scratch->mutex);
    }
  }
  return NULL;
}

void gcap_scratch_add_to_lock(gcap_scratch_stream_state_t* state) {
  while (!take_lock(state)) sched_yield();  // a free of an address that is none may be looking at it
  state->resting_bias = NULL;
}

void gcap_scratch_remove_from_lock(gcap_scratch_stream_state_t* state) {
  state->num_intrusions = 0;
  gcap_scratch_unlock_stream(&state->locked);
}

// --- The arena ------------------------------------------------------------------------------------------------------

static void fence_all_threads(void) {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return;
  // Cannot be, since the process is registered. A store is seen by all processors long before this is over.
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void gcap_scratch_lock_arena(gcap_scratch_t* scratch) {
  int cancel_state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
  pthread_mutex_lock(&scratch->mutex);
  scratch->cancel_state = cancel_state;
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
  const int cancel_state = scratch->cancel_state;
  for (gcap_scratch_stream_state_t* state = scratch->streams; state != NULL; state = state->next) {
    atomic_store_explicit(&state->bias, state->resting_bias, memory_order_release);
    gcap_scratch_unlock_stream(&state->locked);
  }
  pthread_mutex_unlock(&scratch->mutex);
  pthread_setcancelstate(cancel_state, NULL);
}

// --- Biases ---------------------------------------------------------------------------------------------------------

bool gcap_scratch_can_bias(void) {
#if defined(__SANITIZE_THREAD__)
  return false;  // the sanitizer knows nothing of membarrier, and would see races
#else
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
#endif
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
