// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The simulator's free and realloc, for programs that link this file.
//
// The idea: only the C library's free and realloc know when pageable memory goes that a graph names or that is
// registered. This file stands before both, for the whole program, and tells the checker (sim/check/watch.c). While
// nothing is watched that costs one load. Under a sanitizer, which stands there itself and reports the use as well,
// this file is empty. The definitions pass on to whatever comes next in the search order. It is no part of the
// simulator's archive: replacing functions of the C library is the choice of who links a test. Locking: none; the
// functions that come next are looked up by whoever is first, and all find the same.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // RTLD_NEXT; without Bazel this file is compiled by a plain command
#endif

#include <dlfcn.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/check/watch.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifndef SANITIZED

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
  if (__interceptor_free != NULL && __interceptor_realloc != NULL) {
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
  if (function == NULL) search();
  if (function == NULL) function = atomic_load_explicit(&next_free, memory_order_relaxed);
  function(memory);
}

static void* pass_on_realloc(void* memory, size_t bytes) {
  if (searching) return NULL;
  realloc_fn_t function = atomic_load_explicit(&next_realloc, memory_order_relaxed);
  if (function == NULL) search();
  if (function == NULL) function = atomic_load_explicit(&next_realloc, memory_order_relaxed);
  return function(memory, bytes);
}

// Weak, so that an allocator linked into the program takes precedence; for all of the program, shared libraries
// included.
#define REPLACES __attribute__((weak, noinline, visibility("default")))

// Below the frame that calls: that one belongs to the stack too.
#define CALLER() ((const char*)__builtin_dwarf_cfa() - 1)

REPLACES void free(void* memory) {
  if (memory != NULL && gcap_sim_watch_any()) {
    gcap_sim_watch_note_free(memory, malloc_usable_size(memory), CALLER());
  }
  pass_on_free(memory);
}

// A block that grows or shrinks may move, and what is in it with it: who keeps its old address is wrong either way.
REPLACES void* realloc(void* memory, size_t bytes) {
  bool watched = memory != NULL && gcap_sim_watch_any();
  size_t before = watched ? malloc_usable_size(memory) : 0;
  uintptr_t address = (uintptr_t)memory;
  void* result = pass_on_realloc(memory, bytes);
  if (watched && (uintptr_t)result != address && (result != NULL || bytes == 0)) {
    gcap_sim_watch_note_free((const void*)address, before, CALLER());
  }
  return result;
}

#endif  // SANITIZED
