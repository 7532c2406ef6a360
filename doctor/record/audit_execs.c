// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Executables, and what each points into. A word of an argument is a pointer if it lies in memory that lives as the
// executable is made. The executable then refers to that piece of memory, not to an address: whatever lies there later
// is another piece. Locking: the audit's lock, over memory alone; graphs are read without it.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "doctor/base/grow.h"
#include "doctor/record/audit.h"
#include "doctor/record/audit_state.h"
#include "doctor/record/audit_tell.h"
#include "doctor/record/writer.h"

enum { kFewExecs = 8 };  // of one place, of which nothing is told at the end

gcap_doctor_audit_exec_t* gcap_doctor_audit_find_exec(const void* handle) {
  const uint32_t place = gcap_doctor_map_get(&gcap_doctor_audit.places, (uintptr_t)handle);
  return place != 0 ? &gcap_doctor_audit.execs[place - 1] : NULL;
}

void gcap_doctor_audit_forget_pointers(gcap_doctor_audit_exec_t* exec) {
  for (size_t i = 0; i < exec->num_used; ++i)
    gcap_doctor_memory_release(&gcap_doctor_audit.memory, exec->used[i].piece);
  free(exec->nodes);
  free(exec->pointers);
  free(exec->used);
  free(exec->hosts);
  exec->hosts = NULL;
  exec->num_hosts = 0;
  exec->nodes = NULL;
  exec->pointers = NULL;
  exec->used = NULL;
  exec->num_nodes = exec->num_pointers = exec->num_used = 0;
}

// With the lock held. NULL without memory.
static gcap_doctor_audit_exec_t* add_exec(const void* handle) {
  gcap_doctor_audit_exec_t* exec = gcap_doctor_audit_find_exec(handle);
  if (exec != NULL) return exec;
  uint32_t place = gcap_doctor_audit.first_free;
  if (place != 0) {
    gcap_doctor_audit.first_free = gcap_doctor_audit.execs[place - 1].next_free;
  } else {
    if (!gcap_doctor_grow(&gcap_doctor_audit.execs, &gcap_doctor_audit.exec_capacity, gcap_doctor_audit.num_execs + 1,
                          sizeof(*gcap_doctor_audit.execs)))
      return NULL;
    place = (uint32_t)++gcap_doctor_audit.num_execs;
  }
  gcap_doctor_audit.execs[place - 1] = (gcap_doctor_audit_exec_t){0};
  if (gcap_doctor_map_set(&gcap_doctor_audit.places, (uintptr_t)handle, place))
    return &gcap_doctor_audit.execs[place - 1];
  gcap_doctor_audit.execs[place - 1].next_free = gcap_doctor_audit.first_free;
  gcap_doctor_audit.first_free = place;
  return NULL;
}

void gcap_doctor_audit_exec_gone(const void* handle) {
  if (!atomic_load_explicit(&gcap_doctor_audit.is_on, memory_order_relaxed)) return;
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  gcap_doctor_audit_exec_t* exec = gcap_doctor_audit_find_exec(handle);
  if (exec != NULL) {
    const uint32_t place = gcap_doctor_map_get(&gcap_doctor_audit.places, (uintptr_t)handle);
    gcap_doctor_audit_forget_pointers(exec);
    gcap_doctor_map_remove(&gcap_doctor_audit.places, (uintptr_t)handle);
    *exec = (gcap_doctor_audit_exec_t){.next_free = gcap_doctor_audit.first_free};
    gcap_doctor_audit.first_free = place;
  }
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
}

// --- What they point into --------------------------------------------------------------------------------------------

static int by_piece(const void* left, const void* right) {
  const gcap_doctor_audit_pointer_t *a = left, *b = right;
  if (a->piece != b->piece) return a->piece < b->piece ? -1 : 1;
  if (a->word.node != b->word.node) return a->word.node < b->word.node ? -1 : 1;
  return a->word.argument < b->word.argument ? -1 : a->word.argument > b->word.argument;
}

void gcap_doctor_audit_refer(gcap_doctor_audit_exec_t* exec) {
  gcap_doctor_audit_used_t* used = calloc(exec->num_pointers + 1, sizeof(*used));
  if (used == NULL) {
    exec->num_pointers = 0;
    return;
  }
  if (exec->num_pointers > 1) qsort(exec->pointers, exec->num_pointers, sizeof(*exec->pointers), by_piece);
  size_t num_used = 0;
  for (size_t i = 0; i < exec->num_pointers; ++i) {
    if (num_used != 0 && used[num_used - 1].piece == exec->pointers[i].piece) continue;
    used[num_used++].piece = exec->pointers[i].piece;
    gcap_doctor_memory_retain(&gcap_doctor_audit.memory, exec->pointers[i].piece);
  }
  exec->used = used;
  exec->num_used = num_used;
}

void gcap_doctor_audit_add_host(gcap_doctor_audit_exec_t* exec, gcap_doctor_thread_t* thread,
                                const gcap_doctor_audit_word_t* word) {
  enum { kMaxHosts = 64 };  // a launch looks at each
  if (exec->hosts == NULL) exec->hosts = calloc(kMaxHosts, sizeof(*exec->hosts));
  if (exec->hosts == NULL || exec->num_hosts == kMaxHosts) return;
  atomic_store_explicit(&gcap_doctor_audit.has_hosts, true, memory_order_relaxed);
  exec->hosts[exec->num_hosts++] = (gcap_doctor_audit_host_t){
      .word = *word,
      .thread = thread->id,
      .is_stack = gcap_doctor_thread_has_on_stack(thread, (const void*)(uintptr_t)word->value)};
}

// With the lock held. Takes the nodes of the read.
static void take_read(gcap_doctor_thread_t* thread, gcap_doctor_audit_exec_t* exec, gcap_doctor_audit_read_t* read) {
  gcap_doctor_audit_forget_pointers(exec);
  exec->bytes = read->allocated_bytes;
  exec->epoch = UINT64_MAX;  // a piece may have been freed before this: the first launch looks
  exec->nodes = read->nodes;
  exec->num_nodes = read->num_nodes;
  read->nodes = NULL;
  exec->pointers = calloc(read->num_words + 1, sizeof(*exec->pointers));
  for (size_t i = 0; exec->pointers != NULL && i < read->num_words; ++i) {
    const gcap_doctor_audit_word_t* word = &read->words[i];
    const uint32_t piece = gcap_doctor_audit_piece(word->value);
    if (piece != 0) exec->pointers[exec->num_pointers++] = (gcap_doctor_audit_pointer_t){piece, *word};
    if (piece == 0 && word->is_host) gcap_doctor_audit_add_host(exec, thread, word);
  }
  gcap_doctor_audit_refer(exec);
}

gcap_doctor_audit_read_t gcap_doctor_audit_begin_read(void) {
  gcap_doctor_audit_read_t read = {0};
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  read.low = gcap_doctor_audit.low;
  read.high = gcap_doctor_audit.high;
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
  return read;
}

// --- Where they are made ---------------------------------------------------------------------------------------------

// With the lock held. Executables that are made at one place are a group. Where no stack is known, no place is.
static void join_group(gcap_doctor_audit_exec_t* exec, const gcap_doctor_memory_place_t* made) {
  if (made->stack == 0) return;
  uint32_t group = gcap_doctor_map_get(&gcap_doctor_audit.group_of_stack, made->stack);
  if (group == 0) {
    if (!gcap_doctor_grow(&gcap_doctor_audit.groups, &gcap_doctor_audit.group_capacity,
                          gcap_doctor_audit.num_groups + 1, sizeof(*gcap_doctor_audit.groups)))
      return;
    gcap_doctor_audit.groups[gcap_doctor_audit.num_groups] = (gcap_doctor_audit_group_t){0};
    group = (uint32_t)++gcap_doctor_audit.num_groups;
    if (!gcap_doctor_map_set(&gcap_doctor_audit.group_of_stack, made->stack, group)) return;
  }
  gcap_doctor_audit.groups[group - 1].last = *made;
  ++gcap_doctor_audit.groups[group - 1].made;
  exec->group = group;
}

void gcap_doctor_audit_take_graph(gcap_doctor_thread_t* thread, const void* handle, void* graph,
                                  const gcap_doctor_memory_place_t* made) {
  gcap_doctor_audit_read_t read = gcap_doctor_audit_begin_read();
  gcap_doctor_audit_read_graph(&read, graph);
  if (read.untold != 0 && !atomic_exchange(&gcap_doctor_audit.has_said_untold, true)) {
    gcap_doctor_writer_note(
        "the driver does not tell the arguments of some kernels, so launches on memory that those use are not "
        "audited.");
  }
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  gcap_doctor_audit_exec_t* exec = add_exec(handle);
  if (exec != NULL) take_read(thread, exec, &read);
  if (exec != NULL && made != NULL) join_group(exec, made);
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
  gcap_doctor_audit_read_free(&read);
}

// With the lock held. `seen` has the pieces that groups point into. Without memory for it a piece counts again.
static void add_to_group(const gcap_doctor_audit_exec_t* exec, gcap_doctor_map_t* seen) {
  gcap_doctor_audit_group_t* group = &gcap_doctor_audit.groups[exec->group - 1];
  ++group->live;
  group->idle += exec->launches < 2;
  group->nodes += exec->num_nodes;
  group->bytes += exec->bytes;
  for (size_t i = 0; i < exec->num_used; ++i) {
    const uint64_t key = (uint64_t)exec->group << 32 | exec->used[i].piece;
    const gcap_doctor_memory_piece_t* piece = gcap_doctor_memory_at(&gcap_doctor_audit.memory, exec->used[i].piece);
    if (piece->is_freed || gcap_doctor_map_get(seen, key) != 0) continue;
    gcap_doctor_map_set(seen, key, 1);
    group->memory += piece->end - piece->begin;
  }
}

void gcap_doctor_audit_tell_groups(gcap_doctor_line_t* out) {
  gcap_doctor_map_t seen = {0};
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  for (size_t i = 0; i < gcap_doctor_audit.num_execs; ++i) {
    if (gcap_doctor_audit.execs[i].group != 0) add_to_group(&gcap_doctor_audit.execs[i], &seen);
  }
  for (size_t i = 0; i < gcap_doctor_audit.num_groups; ++i) {
    const gcap_doctor_audit_group_t* group = &gcap_doctor_audit.groups[i];
    if (group->made < kFewExecs) continue;
    gcap_doctor_audit_tell_group(out, group);
  }
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
  gcap_doctor_map_clear(&seen);
}
