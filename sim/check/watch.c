// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Watches of pageable memory that graphs name.
//
// The idea: a graph's copy keeps an address of the program's own memory, as registered memory is, which nothing else
// remembers when the memory is freed. So these addresses are kept in a tree, and who stands before the C library's free
// and realloc (sim/watch_free.c, in programs that link it) tells of each block that goes. Without it no watch is ever
// found freed. Locking: a mutex of its own, under which nothing is allocated or freed; a block may go with or without
// the global mutex.
#include "sim/check/watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/heap.h"
#include "sim/base/span.h"
#include "sim/check/origin.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gcap_sim_span_t* tree;
static atomic_size_t num_watched;

gcap_sim_watch_t* gcap_sim_watch_begin(const void* address) {
  gcap_sim_watch_t* watch = gcap_sim_calloc(1, sizeof(*watch));
  watch->span = (gcap_sim_span_t){.begin = (uintptr_t)address, .bytes = 1, .owner = watch};
  pthread_mutex_lock(&lock);
  gcap_sim_watch_t* first = gcap_sim_span_find(tree, address);
  if (first != NULL) {
    watch->same = first->same;
    first->same = watch;
  } else {
    gcap_sim_span_insert(&tree, &watch->span);
  }
  atomic_fetch_add_explicit(&num_watched, 1, memory_order_relaxed);
  pthread_mutex_unlock(&lock);
  return watch;
}

bool gcap_sim_watch_any(void) { return atomic_load_explicit(&num_watched, memory_order_relaxed) > 0; }

static void unlink_watch(gcap_sim_watch_t* watch) {
  gcap_sim_watch_t* first = gcap_sim_span_find(tree, (const void*)watch->span.begin);
  if (first != watch) {
    while (first->same != watch) first = first->same;
    first->same = watch->same;
    return;
  }
  gcap_sim_span_remove(&tree, &watch->span);
  if (watch->same != NULL) gcap_sim_span_insert(&tree, &watch->same->span);
}

void gcap_sim_watch_end(gcap_sim_watch_t* watch) {
  if (watch == NULL) return;
  pthread_mutex_lock(&lock);
  if (!watch->freed) {
    unlink_watch(watch);
    atomic_fetch_sub_explicit(&num_watched, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&lock);
  free(watch);
}

bool gcap_sim_watch_freed(const gcap_sim_watch_t* watch) {
  pthread_mutex_lock(&lock);
  bool freed = watch->freed;
  pthread_mutex_unlock(&lock);
  return freed;
}

void gcap_sim_watch_note_free(const void* memory, size_t bytes, const void* frame) {
  pthread_mutex_lock(&lock);
  gcap_sim_watch_t* gone = NULL;
  for (;;) {
    gcap_sim_watch_t* first = gcap_sim_span_overlap(tree, memory, bytes);
    if (first == NULL) break;
    gcap_sim_span_remove(&tree, &first->span);
    gcap_sim_watch_t* last = first;
    while (last->same != NULL) last = last->same;
    last->same = gone;
    gone = first;
  }
  void* frames[GCAP_SIM_MAX_FRAMES];
  size_t count = gone != NULL ? gcap_sim_stack_unwind(frame, frames, GCAP_SIM_MAX_FRAMES) : 0;
  for (; gone != NULL; gone = gone->same) {
    gone->freed = true;
    gone->num_frames = count;
    memcpy(gone->frames, frames, count * sizeof(void*));
    atomic_fetch_sub_explicit(&num_watched, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&lock);
}
