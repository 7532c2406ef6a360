// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// lock.h: the locks of the arena and of its streams.
//
// Each stream has a lock over its pool, its cache and all blocks that it owns. The fast path takes that one lock alone,
// which no two streams share. Everything else locks the arena: its mutex and, below it, the lock of every stream.
// Blocks change hands between streams only then, so a lock of one stream is enough to see that a neighbour is the same
// stream's, and to join with it. Below these locks only those of the stream module are taken.
//
// A thread cannot be cancelled while it has locked the arena, nor while it has unlocked it for a while, in upstream or
// in a wait: else the arena would stay locked, or count for ever what was under way. It is cancelled afterwards.
//
// The functions of this folder are called while the arena is locked, unless they say otherwise; those that reach
// upstream unlock it meanwhile, and say so.
#ifndef GCAP_LIB_SCRATCH_LOCK_H_
#define GCAP_LIB_SCRATCH_LOCK_H_

#include "lib/internal/run_trace.h"
#include "lib/scratch/arena.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- The arena ------------------------------------------------------------------------------------------------------

// Called with no lock of it held.
void gcap_scratch_lock_arena(gcap_scratch_t* scratch);
void gcap_scratch_unlock_arena(gcap_scratch_t* scratch);

// Unlocks the arena for a while, in the middle of a call: it does not end meanwhile. What the first gives the second
// wants.
static inline int gcap_scratch_pause_lock(gcap_scratch_t* scratch) {
  ++scratch->num_waiting_calls;
  const int cancel_state = scratch->cancel_state;
  scratch->cancel_state = PTHREAD_CANCEL_DISABLE;
  gcap_scratch_unlock_arena(scratch);
  return cancel_state;
}
static inline void gcap_scratch_resume_lock(gcap_scratch_t* scratch, int cancel_state) {
  gcap_scratch_lock_arena(scratch);
  scratch->cancel_state = cancel_state;
  --scratch->num_waiting_calls;
}

// --- One stream -----------------------------------------------------------------------------------------------------

// Names the calling thread.
static inline const void* gcap_scratch_this_thread(void) { return &gcap_thread_run_trace; }

// Locks by a bias of the calling thread; false when the arena is locked, or was meanwhile.
static inline bool gcap_scratch_lock_by_bias(gcap_scratch_stream_state_t* state, gcap_scratch_bias_t* bias) {
  atomic_store_explicit(&bias->entered, true, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);  // the rest of the fence is gcap_scratch_lock_arena's
  if (atomic_load_explicit(&state->bias, memory_order_acquire) == bias) return true;
  atomic_store_explicit(&bias->entered, false, memory_order_release);
  return false;
}
atomic_bool* gcap_scratch_lock_stream_slowly(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state);
// Takes the lock of one stream: gives what gcap_scratch_unlock_stream is to be called with, or NULL when the calling
// thread had better lock the arena. Called with no lock of it held.
static inline atomic_bool* gcap_scratch_lock_stream(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state) {
  gcap_scratch_bias_t* bias = atomic_load_explicit(&state->bias, memory_order_acquire);
  const bool mine = bias != NULL && bias->thread == gcap_scratch_this_thread();
  return mine && gcap_scratch_lock_by_bias(state, bias) ? &bias->entered
                                                        : gcap_scratch_lock_stream_slowly(scratch, state);
}
static inline void gcap_scratch_unlock_stream(atomic_bool* entered) {
  atomic_store_explicit(entered, false, memory_order_release);
}

// A state that is used for another stream takes part in the lock of the arena, and no more.
void gcap_scratch_add_to_lock(gcap_scratch_stream_state_t* state);
void gcap_scratch_remove_from_lock(gcap_scratch_stream_state_t* state);

// --- Biases ---------------------------------------------------------------------------------------------------------

// Makes the calling thread the one that takes the stream's lock without an exchange, unless threads have come and gone
// too often. `intruder`: it only freed a block.
void gcap_scratch_note_thread(gcap_scratch_t* scratch, gcap_scratch_stream_state_t* state, bool intruder);
// Whether threads can have a bias in this process.
bool gcap_scratch_can_bias(void);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_SCRATCH_LOCK_H_
