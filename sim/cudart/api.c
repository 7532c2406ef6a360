// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The way into every API call and out of it: the table of functions, the lock, counters and injected faults.
//
// The idea: an entry point is `code = sim_enter(row); if ok, the work; return sim_leave(code)`, and everything that all
// functions have in common hangs on these two. Locking: sim_enter takes the global mutex and sim_leave gives it back.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "submit.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct row {
  const char* name;
  sim_class_t class;
  uint64_t calls;
} row_t;

static row_t rows[SIM_API_COUNT] = {
#define SIM_API(name, class) {#name, SIM_##class, 0},
#define SIM_NOT_MODELLED(name, params)
#include "api.inc"
#undef SIM_API
#undef SIM_NOT_MODELLED
};

// Names that are not in the table: functions of the simulated libraries, and kinds of their handles. All are literals.
typedef struct tally {
  const char* name;
  uint64_t value;
} tally_t;

typedef struct tallies {
  tally_t* items;
  size_t count;
  size_t capacity;
} tallies_t;

static tallies_t library_calls;
static tallies_t library_handles;

static struct {
  const char* function;  // NULL: calls of any function
  char name[128];
  uint64_t calls_left;  // 0: nothing armed
  cudaError_t code;
} fault;

pthread_mutex_t* sim_mutex(void) { return &lock; }

void sim_lock(void) {
  if (sim_thread()->in_device_work) sim_die("a kernel's twin calls CUDA or the simulator: no device code can");
  pthread_mutex_lock(&lock);
}

void sim_unlock(void) {
  sim_deferred_t* deferred = sim_take_deferred();
  pthread_mutex_unlock(&lock);
  if (deferred) sim_run_deferred(deferred);
}

void sim_die(const char* format, ...) {
  va_list args;
  va_start(args, format);
  fprintf(stderr, "gcap sim: ");
  vfprintf(stderr, format, args);
  fprintf(stderr, "\n");
  va_end(args);
  abort();
}

void sim_log(const char* format, ...) {
  if (!getenv("GCAP_SIM_LOG")) return;
  va_list args;
  va_start(args, format);
  fprintf(stderr, "gcap sim: ");
  vfprintf(stderr, format, args);
  fprintf(stderr, "\n");
  va_end(args);
}

// The armed fault's code when this call is the one it was armed for.
static cudaError_t take_fault(const char* function, bool by_name_only) {
  if (fault.calls_left == 0) return cudaSuccess;
  if (fault.function ? strcmp(fault.function, function) != 0 : by_name_only) return cudaSuccess;
  fault.calls_left -= 1;
  return fault.calls_left == 0 ? fault.code : cudaSuccess;
}

cudaError_t sim_enter(sim_api_t api) {
  sim_thread_t* thread = sim_thread();
  row_t* row = &rows[api];
  sim_lock();
  thread->call = row->name;
  row->calls += 1;
  cudaError_t code = take_fault(row->name, row->class == SIM_PURE);
  if (code != cudaSuccess || row->class == SIM_PURE) return code;
  if (thread->in_host_function) return cudaErrorNotPermitted;
  sim_turn();
  if (row->class == SIM_UNSAFE) return sim_gate_unsafe();
  if (row->class == SIM_FORBIDDEN) return sim_gate_forbidden();
  return cudaSuccess;
}

cudaError_t sim_leave(cudaError_t code) {
  // Not ready is an answer, not an error: the real runtime does not keep it either.
  if (code != cudaSuccess && code != cudaErrorNotReady) sim_thread()->last_error = code;
  sim_unlock();
  return code;
}

static tally_t* tally_of(tallies_t* tallies, const char* name) {
  for (size_t i = 0; i < tallies->count; ++i) {
    if (strcmp(tallies->items[i].name, name) == 0) return &tallies->items[i];
  }
  sim_reserve(&tallies->items, &tallies->capacity, tallies->count + 1, sizeof(tally_t));
  tallies->items[tallies->count] = (tally_t){.name = name};
  return &tallies->items[tallies->count++];
}

cudaError_t sim_library_call(const char* function, sim_call_class_t call_class) {
  sim_thread_t* thread = sim_thread();
  sim_lock();
  thread->call = function;
  tally_of(&library_calls, function)->value += 1;
  cudaError_t code = take_fault(function, false);
  if (code == cudaSuccess && thread->in_host_function) code = cudaErrorNotPermitted;
  if (code == cudaSuccess) {
    sim_turn();
    if (call_class == SIM_CALL_UNSAFE) code = sim_gate_unsafe();
    if (call_class == SIM_CALL_UNSAFE_BESIDE_OTHERS) code = sim_gate_unsafe_beside_others();
  }
  sim_unlock();
  return code;
}

void sim_invalidate_captures(const char* function) {
  sim_lock();
  sim_thread()->call = function;
  (void)sim_gate_forbidden();  // the point is what it does to the captures; these functions answer success
  sim_unlock();
}

void sim_invalidate_stream(cudaStream_t stream, const char* function) {
  sim_lock();
  sim_thread()->call = function;
  (void)sim_gate_not_capturing(sim_stream_get(stream));
  sim_unlock();
}

void sim_count_handle(const char* kind, int delta) {
  sim_lock();
  tally_of(&library_handles, kind)->value += (uint64_t)(int64_t)delta;
  sim_unlock();
}

void gcap_sim_fail_nth(const char* function, uint64_t n, cudaError_t code) {
  sim_lock();
  fault.function = NULL;
  if (function) {
    if (strlen(function) >= sizeof(fault.name)) sim_die("gcap_sim_fail_nth: no function has a name as long as that");
    strcpy(fault.name, function);
    fault.function = fault.name;
  }
  fault.calls_left = n;
  fault.code = code;
  sim_unlock();
}

uint64_t gcap_sim_calls(const char* function) {
  uint64_t calls = 0;
  sim_lock();
  for (size_t i = 0; i < SIM_API_COUNT; ++i) {
    if (!function || strcmp(rows[i].name, function) == 0) calls += rows[i].calls;
  }
  for (size_t i = 0; i < library_calls.count; ++i) {
    if (!function || strcmp(library_calls.items[i].name, function) == 0) calls += library_calls.items[i].value;
  }
  sim_unlock();
  return calls;
}

size_t gcap_sim_live(const char* kind) {
  size_t live = 0;
  sim_lock();
  for (sim_kind_t k = 0; k < SIM_KIND_COUNT; ++k) {
    if (!kind || strcmp(sim_kind_name(k), kind) == 0) live += sim_handle_count(k);
  }
  live += sim_allocation_count(kind);
  for (size_t i = 0; i < library_handles.count; ++i) {
    if (!kind || strcmp(library_handles.items[i].name, kind) == 0) live += library_handles.items[i].value;
  }
  sim_unlock();
  return live;
}
