// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Watching free and realloc for pageable memory that graphs name.
//
// The idea: a graph's copy keeps an address of the program's own memory, as registered memory is, which nothing else
// remembers when the memory is freed. So these addresses are kept in a tree, and the simulator stands before the C
// library's free and realloc to look there. While no graph names pageable memory that costs one load. Under a
// sanitizer, which stands there itself and reports the use as well, this is left out. The definitions are weak, so that
// an allocator linked into the program takes precedence, and pass on to whatever comes next in the search order.
// Locking: a mutex of its own, under which nothing is allocated or freed; free may be called with or without the global
// mutex.
#include "sim/check/watch.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sim/base/heap.h"
#include "sim/base/span.h"
#include "sim/check/origin.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gcap_sim_span_t* tree;
static atomic_size_t num_watched;

// --- Watches --------------------------------------------------------------------------------------------------------

gcap_sim_watch_t* gcap_sim_watch_begin(const void* address) {
  gcap_sim_watch_t* watch = gcap_sim_calloc(1, sizeof(*watch));
  watch->span = (gcap_sim_span_t){.begin = (uintptr_t)address, .bytes = 1, .owner = watch};
  pthread_mutex_lock(&lock);
  gcap_sim_watch_t* first = gcap_sim_span_find(tree, address);
  if (first) {
    watch->same = first->same;
    first->same = watch;
  } else {
    watch->in_tree = true;
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
  if (!watch->same) return;
  watch->same->in_tree = true;
  gcap_sim_span_insert(&tree, &watch->same->span);
}

void gcap_sim_watch_end(gcap_sim_watch_t* watch) {
  if (!watch) return;
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

// --- Standing before the C library ----------------------------------------------------------------------------------

#ifndef SANITIZED

// Stops watching what lies in the block, which is gone.
static void note_free(const void* memory, size_t bytes, const void* frame) {
  pthread_mutex_lock(&lock);
  gcap_sim_watch_t* gone = NULL;
  for (;;) {
    gcap_sim_watch_t* first = gcap_sim_span_overlap(tree, memory, bytes);
    if (!first) break;
    gcap_sim_span_remove(&tree, &first->span);
    gcap_sim_watch_t* last = first;
    while (last->same) last = last->same;
    last->same = gone;
    gone = first;
  }
  void* frames[GCAP_SIM_MAX_FRAMES];
  size_t count = gone ? gcap_sim_stack_unwind(frame, frames, GCAP_SIM_MAX_FRAMES) : 0;
  for (; gone; gone = gone->same) {
    gone->freed = true;
    gone->num_frames = count;
    memcpy(gone->frames, frames, count * sizeof(void*));
    atomic_fetch_sub_explicit(&num_watched, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&lock);
}

typedef void (*free_fn_t)(void*);
typedef void* (*realloc_fn_t)(void*, size_t);

// An address sanitizer that is linked into the program alone, not into this, is found by its own name.
extern void __interceptor_free(void* memory) __attribute__((weak));
extern void* __interceptor_realloc(void* memory, size_t bytes) __attribute__((weak));

static _Atomic(free_fn_t) next_free;
static _Atomic(realloc_fn_t) next_realloc;

// Looks for both. The search itself may free something: that is kept then, which is little and happens once.
static _Thread_local bool searching;

static void search(void) {
  searching = true;
  void* found[] = {dlsym(RTLD_NEXT, "free"), dlsym(RTLD_NEXT, "realloc")};
  free_fn_t free_function;
  realloc_fn_t realloc_function;
  // Functions and data pointers are alike wherever dlsym exists, but C does not convert them.
  memcpy(&free_function, &found[0], sizeof(free_function));
  memcpy(&realloc_function, &found[1], sizeof(realloc_function));
  if (__interceptor_free && __interceptor_realloc) {
    free_function = __interceptor_free;
    realloc_function = __interceptor_realloc;
  }
  atomic_store_explicit(&next_free, free_function, memory_order_relaxed);
  atomic_store_explicit(&next_realloc, realloc_function, memory_order_relaxed);
  searching = false;
}

static void pass_on_free(void* memory) {
  if (searching) return;
  free_fn_t function = atomic_load_explicit(&next_free, memory_order_relaxed);
  if (!function) search();
  if (!function) function = atomic_load_explicit(&next_free, memory_order_relaxed);
  function(memory);
}

static void* pass_on_realloc(void* memory, size_t bytes) {
  if (searching) return NULL;
  realloc_fn_t function = atomic_load_explicit(&next_realloc, memory_order_relaxed);
  if (!function) search();
  if (!function) function = atomic_load_explicit(&next_realloc, memory_order_relaxed);
  return function(memory, bytes);
}

// Below the frame that calls: that one belongs to the stack too.
#define CALLER() ((const char*)__builtin_dwarf_cfa() - 1)

__attribute__((weak, noinline)) void free(void* memory) {
  if (memory && atomic_load_explicit(&num_watched, memory_order_relaxed)) {
    note_free(memory, malloc_usable_size(memory), CALLER());
  }
  pass_on_free(memory);
}

// A block that grows or shrinks may move, and what is in it with it: who keeps its old address is wrong either way.
__attribute__((weak, noinline)) void* realloc(void* memory, size_t bytes) {
  bool watched = memory && atomic_load_explicit(&num_watched, memory_order_relaxed);
  size_t before = watched ? malloc_usable_size(memory) : 0;
  uintptr_t address = (uintptr_t)memory;
  void* result = pass_on_realloc(memory, bytes);
  if (watched && (uintptr_t)result != address && (result || bytes == 0)) {
    note_free((const void*)address, before, CALLER());
  }
  return result;
}

#endif  // SANITIZED
