// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a launch finds: pieces of memory that its executable points into and that are gone, and another thread in a
// launch of the same executable. A free of a piece that is referred to moves an epoch on, and a launch compares that
// epoch with the one at which its executable was looked at last: without such a free a launch costs one look-up and one
// comparison, and with one it costs the pieces of its own executable. What is told is told once for each executable and
// piece. Locking: the audit's lock, over memory alone; lines are written without it.
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "doctor/record/audit_state.h"
#include "doctor/record/audit_tell.h"
#include "doctor/record/handles.h"
#include "doctor/record/stacks.h"

enum { kMaxTold = 16 };  // pieces at one launch; the others are told at later ones

// With the lock held. Memory that was pinned in place is the program's still: a copy may use it.
static bool is_stale(const gcap_doctor_audit_pointer_t* pointer, const gcap_doctor_memory_piece_t* piece,
                     const gcap_doctor_audit_node_t* node) {
  const bool is_of_kernel =
      pointer->word.use == GCAP_DOCTOR_AUDIT_ARGUMENT || pointer->word.use == GCAP_DOCTOR_AUDIT_WORD;
  return piece->is_freed && !node->is_off && (is_of_kernel || piece->what != GCAP_DOCTOR_MEMORY_REGISTERED);
}

// With the lock held. Whose the address is now; a place of none where it is nobody's.
static void find_taken(gcap_doctor_audit_stale_t* stale, uint64_t value) {
  const uint32_t piece = gcap_doctor_audit_living_piece(value);
  if (piece == 0) return;
  gcap_doctor_memory_piece_t* of = gcap_doctor_memory_at(&gcap_doctor_audit.memory, piece);
  // A block's segment lives on: that is no other owner.
  const bool is_around = gcap_doctor_memory_layer_of(stale->what) == GCAP_DOCTOR_MEMORY_OF_FRAMEWORK &&
                         gcap_doctor_memory_layer_of(of->what) == GCAP_DOCTOR_MEMORY_OF_DRIVER;
  if (is_around) return;
  stale->taken = of->made;
  stale->taken_bytes = of->end - of->begin;
  of->made.is_written = true;
}

// With the lock held. Fills in what is to be told of a piece; false if no pointer into it counts.
static bool describe(const gcap_doctor_audit_exec_t* exec, uint32_t piece, gcap_doctor_audit_stale_t* out_stale) {
  gcap_doctor_memory_piece_t* of = gcap_doctor_memory_at(&gcap_doctor_audit.memory, piece);
  *out_stale = (gcap_doctor_audit_stale_t){.bytes = of->end - of->begin, .what = of->what};
  for (size_t i = 0; i < exec->num_pointers; ++i) {
    const gcap_doctor_audit_pointer_t* pointer = &exec->pointers[i];
    if (pointer->piece != piece || !is_stale(pointer, of, &exec->nodes[pointer->word.node])) continue;
    // A whole argument says more than a word of one.
    const bool is_better = out_stale->word.use == GCAP_DOCTOR_AUDIT_WORD && pointer->word.use != GCAP_DOCTOR_AUDIT_WORD;
    if (out_stale->num_pointers++ == 0 || is_better) {
      out_stale->word = pointer->word;
      out_stale->node = exec->nodes[pointer->word.node];
    }
  }
  if (out_stale->num_pointers == 0) return false;
  out_stale->made = of->made;
  of->made.is_written = true;
  if (of->freed != NULL) {
    out_stale->freed = *of->freed;
    of->freed->is_written = true;
  }
  find_taken(out_stale, out_stale->word.value);
  return true;
}

// With the lock held. Whether the host's memory of a copy is surely gone: on the stack of this thread, below the frame
// that launches, or where no page is mapped any more.
static bool is_host_gone(const gcap_doctor_audit_host_t* host, const gcap_doctor_thread_t* thread, uintptr_t frame) {
  unsigned char in_core;
  const uintptr_t page = (uintptr_t)host->word.value & ~(uintptr_t)4095;
  if (host->is_stack && host->thread == thread->id) return host->word.value < frame;
  return mincore((void*)page, 1, &in_core) != 0 && errno == ENOMEM;
}

// With the lock held.
static size_t look_at_hosts(gcap_doctor_audit_exec_t* exec, const gcap_doctor_thread_t* thread, uintptr_t frame,
                            gcap_doctor_audit_stale_t* out_stale, size_t most) {
  size_t count = 0;
  for (size_t i = 0; i < exec->num_hosts && count < most; ++i) {
    gcap_doctor_audit_host_t* host = &exec->hosts[i];
    const gcap_doctor_audit_node_t* node = &exec->nodes[host->word.node];
    if (host->is_told || node->is_off || !is_host_gone(host, thread, frame)) continue;
    host->is_told = true;
    out_stale[count++] =
        (gcap_doctor_audit_stale_t){.word = host->word,
                                    .node = *node,
                                    .num_pointers = 1,
                                    .what = host->is_stack ? GCAP_DOCTOR_MEMORY_STACK : GCAP_DOCTOR_MEMORY_PAGEABLE};
  }
  return count;
}

// With the lock held. Looks at the pieces of an executable.
static size_t look(gcap_doctor_audit_exec_t* exec, gcap_doctor_audit_stale_t* out_stale) {
  size_t count = 0;
  for (size_t i = 0; i < exec->num_used && count < kMaxTold; ++i) {
    gcap_doctor_audit_used_t* used = &exec->used[i];
    if (used->is_told || !gcap_doctor_memory_at(&gcap_doctor_audit.memory, used->piece)->is_freed) continue;
    used->is_told = describe(exec, used->piece, &out_stale[count]);
    count += used->is_told;
  }
  if (count < kMaxTold) exec->epoch = gcap_doctor_audit.memory.epoch;
  return count;
}

// With the lock held. Whether another thread is in a launch of the executable, which is told once.
static uint32_t find_sharer(gcap_doctor_audit_exec_t* exec, uint32_t thread) {
  const uint32_t other = exec->launching != thread ? exec->launching : 0;
  exec->launching = thread;
  if (other == 0 || exec->is_told) return 0;
  exec->is_told = true;
  return other;
}

void gcap_doctor_audit_launched(gcap_doctor_thread_t* thread, uint32_t callback, const gcap_doctor_cupti_call_t* data,
                                const void* handle) {
  gcap_doctor_audit_stale_t stale[kMaxTold];
  size_t count = 0;
  uint32_t sharer = 0;
  const bool has_hosts = atomic_load_explicit(&gcap_doctor_audit.has_hosts, memory_order_relaxed);
  uintptr_t frame = has_hosts ? gcap_doctor_stacks_program_frame() : 0;
  // A coroutine has a stack of its own, which says nothing of the thread's.
  if (!gcap_doctor_thread_has_on_stack(thread, (const void*)frame)) frame = 0;
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  gcap_doctor_audit_exec_t* exec = gcap_doctor_audit_find_exec(handle);
  if (exec != NULL) {
    exec->launches += exec->launches < 2;
    sharer = find_sharer(exec, thread->id);
    if (exec->epoch != gcap_doctor_audit.memory.epoch) count = look(exec, stale);
    if (exec->num_hosts != 0) count += look_at_hosts(exec, thread, frame, stale + count, kMaxTold - count);
  }
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
  if (count == 0 && sharer == 0) return;
  const gcap_doctor_memory_place_t place = gcap_doctor_audit_place(thread, callback, data);
  const uint32_t id = gcap_doctor_exec(handle);
  gcap_doctor_audit_tell_launch(thread, &place, id);
  for (size_t i = 0; i < count; ++i) gcap_doctor_audit_tell_stale(thread, &stale[i], id, place.call);
  if (sharer != 0) gcap_doctor_audit_tell_shared(thread, sharer, id, place.call);
  gcap_doctor_thread_flush(thread);
}

void gcap_doctor_audit_launch_ended(const gcap_doctor_thread_t* thread, const void* handle) {
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  gcap_doctor_audit_exec_t* exec = gcap_doctor_audit_find_exec(handle);
  if (exec != NULL && exec->launching == thread->id) exec->launching = 0;
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
}
