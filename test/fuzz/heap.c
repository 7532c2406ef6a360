// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The idea: the linker sends every heap call of the program's own objects through the functions here (--wrap), and the
// simulator says whether the thread is in a call of CUDA. No locking: the counters are the thread's own.
#include "test/fuzz/heap.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "sim/base/thread.h"

static _Thread_local unsigned skips_left, failures_left;

void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* memory, size_t bytes);
char* __real_strdup(const char* text);
int __real_vasprintf(char** out_text, const char* format, va_list args);

void* __wrap_malloc(size_t bytes);
void* __wrap_calloc(size_t count, size_t bytes);
void* __wrap_realloc(void* memory, size_t bytes);
char* __wrap_strdup(const char* text);
int __wrap_vasprintf(char** out_text, const char* format, va_list args);

void fuzz_heap_fail(unsigned skip, unsigned count) {
  gcap_sim_thread();  // the record is made now, and so not while calls fail
  skips_left = skip;
  failures_left = count;
}

static bool must_fail(void) {
  if (failures_left == 0 || gcap_sim_thread()->in_call) return false;
  if (skips_left > 0) {
    --skips_left;
    return false;
  }
  --failures_left;
  errno = ENOMEM;
  return true;
}

void* __wrap_malloc(size_t bytes) { return must_fail() ? NULL : __real_malloc(bytes); }

void* __wrap_calloc(size_t count, size_t bytes) { return must_fail() ? NULL : __real_calloc(count, bytes); }

void* __wrap_realloc(void* memory, size_t bytes) { return must_fail() ? NULL : __real_realloc(memory, bytes); }

char* __wrap_strdup(const char* text) { return must_fail() ? NULL : __real_strdup(text); }

int __wrap_vasprintf(char** out_text, const char* format, va_list args) {
  if (!must_fail()) return __real_vasprintf(out_text, format, args);
  *out_text = NULL;
  return -1;
}
