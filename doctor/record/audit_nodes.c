// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Changes to a node of an executable. The other nodes keep what they point into. Locking: the audit's lock, over memory
// alone; nodes are read without it.
#include <pthread.h>
#include <stdlib.h>

#include "doctor/record/audit_state.h"

// With the lock held. What was told of a piece before stays told.
static void keep_told(const gcap_doctor_audit_exec_t* exec, const gcap_doctor_audit_used_t* before, size_t count) {
  for (size_t i = 0, k = 0; i < exec->num_used; ++i) {
    while (k < count && before[k].piece < exec->used[i].piece) ++k;
    if (k < count && before[k].piece == exec->used[i].piece) exec->used[i].is_told = before[k].is_told;
  }
}

// Whether a word is of the node, or of a node of its child graph.
static bool is_within(const gcap_doctor_audit_exec_t* exec, uint32_t node, const gcap_doctor_audit_word_t* word) {
  return word->node >= node && word->node - node <= exec->nodes[node].inner;
}

// With the lock held. The host's memory of a node's copy.
static void replace_hosts(gcap_doctor_audit_exec_t* exec, gcap_doctor_thread_t* thread, uint32_t node,
                          const gcap_doctor_audit_read_t* read) {
  size_t count = 0;
  for (size_t i = 0; i < exec->num_hosts; ++i) {
    if (!is_within(exec, node, &exec->hosts[i].word)) exec->hosts[count++] = exec->hosts[i];
  }
  exec->num_hosts = count;
  for (size_t i = 0; i < read->num_words; ++i) {
    gcap_doctor_audit_word_t word = read->words[i];
    word.node = node;
    if (word.is_host && gcap_doctor_audit_piece(word.value) == 0) gcap_doctor_audit_add_host(exec, thread, &word);
  }
}

// With the lock held. The node has the words of the read, in place of its own. The other pointers keep their pieces.
static void replace_words(gcap_doctor_audit_exec_t* exec, uint32_t node, const gcap_doctor_audit_read_t* read) {
  gcap_doctor_audit_pointer_t* pointers = calloc(exec->num_pointers + read->num_words + 1, sizeof(*pointers));
  if (pointers == NULL) return;
  size_t count = 0;
  for (size_t i = 0; i < exec->num_pointers; ++i) {
    if (!is_within(exec, node, &exec->pointers[i].word)) pointers[count++] = exec->pointers[i];
  }
  for (size_t i = 0; i < read->num_words; ++i) {
    const uint32_t piece = gcap_doctor_audit_piece(read->words[i].value);
    if (piece == 0) continue;
    pointers[count] = (gcap_doctor_audit_pointer_t){piece, read->words[i]};
    pointers[count++].word.node = node;
  }
  gcap_doctor_audit_used_t* before = exec->used;
  const size_t num_before = exec->num_used;
  free(exec->pointers);
  exec->pointers = pointers;
  exec->num_pointers = count;
  exec->used = NULL;
  exec->num_used = 0;
  gcap_doctor_audit_refer(exec);
  keep_told(exec, before, num_before);
  for (size_t i = 0; i < num_before; ++i) gcap_doctor_memory_release(&gcap_doctor_audit.memory, before[i].piece);
  free(before);
  exec->epoch = UINT64_MAX;  // the next launch looks
}

// Once an executable was updated, calls name its nodes by the graph that it was made of, whose handles are not kept: of
// an executable with a change to a node that is not known nothing is known any more.
static void change_node(gcap_doctor_thread_t* thread, const void* handle, const void* node,
                        const gcap_doctor_audit_read_t* read, bool is_off) {
  pthread_mutex_lock(&gcap_doctor_audit.lock);
  gcap_doctor_audit_exec_t* exec = gcap_doctor_audit_find_exec(handle);
  size_t i = 0;
  while (exec != NULL && i < exec->num_nodes && exec->nodes[i].handle != node) ++i;
  if (exec != NULL && i == exec->num_nodes) {
    gcap_doctor_audit_forget_pointers(exec);
  } else if (exec != NULL && read != NULL) {
    exec->nodes[i].kernel = read->num_nodes != 0 ? read->nodes[0].kernel : NULL;
    replace_hosts(exec, thread, (uint32_t)i, read);
    replace_words(exec, (uint32_t)i, read);
  } else if (exec != NULL) {
    exec->nodes[i].is_off = is_off;
    exec->epoch = UINT64_MAX;
  }
  pthread_mutex_unlock(&gcap_doctor_audit.lock);
}

// Of what the call does not describe here nothing is known any more.
void gcap_doctor_audit_set_node(gcap_doctor_thread_t* thread, const gcap_doctor_memory_call_t* call,
                                const void* arguments) {
  uint64_t exec, node, about;
  gcap_doctor_audit_read_t read = gcap_doctor_audit_begin_read();
  gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_EXEC, &exec);
  gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_NODE, &node);
  void* handle = (void*)(uintptr_t)node;
  if (gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_KERNEL, &about)) {
    gcap_doctor_audit_read_kernel(&read, handle, (const void*)(uintptr_t)about);
  } else if (gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_COPY, &about)) {
    gcap_doctor_audit_read_copy(&read, handle, (const void*)(uintptr_t)about);
  } else if (gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_MEMSET, &about)) {
    gcap_doctor_audit_read_memset(&read, handle, (const void*)(uintptr_t)about);
  }
  change_node(thread, (const void*)(uintptr_t)exec, handle, &read, false);
  gcap_doctor_audit_read_free(&read);
}

void gcap_doctor_audit_enable_node(gcap_doctor_thread_t* thread, const gcap_doctor_memory_call_t* call,
                                   const void* arguments) {
  uint64_t exec, node, enabled;
  gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_EXEC, &exec);
  gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_NODE, &node);
  gcap_doctor_memory_argument(call, arguments, GCAP_DOCTOR_MEMORY_ARGUMENT_ENABLED, &enabled);
  change_node(thread, (const void*)(uintptr_t)exec, (const void*)(uintptr_t)node, NULL, (uint32_t)enabled == 0);
}
