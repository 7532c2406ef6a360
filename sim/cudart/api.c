// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The way into every API call and out of it: the table of functions, the lock, counters.
//
// The idea: an entry point is `code = sim_enter(row); if ok, the work; return sim_leave(code)`, and everything that all
// functions have in common hangs on these two. Locking: sim_enter takes the global mutex and sim_leave gives it back.
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check/leak.h"
#include "call.h"
#include "core.h"
#include "submit.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static sim_function_t functions[SIM_API_COUNT] = {
#define SIM_API(name, class) {#name, SIM_##class, 0, 0},
#define SIM_NOT_MODELLED(name, params)
#include "api.inc"
#undef SIM_API
#undef SIM_NOT_MODELLED
};

static struct {
  bool ready;
  sim_name_table_t functions;
  sim_name_table_t handles;  // of the libraries: kinds to counts
  uint64_t calls;            // of all functions
  size_t live_handles;       // of all kinds of the libraries
} tally;

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
  const sim_thread_t* thread = sim_thread();
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  // A report names the call under way, whoever found the mistake.
  const char* call = thread->in_call && !strstr(text, thread->call) ? thread->call : "";
  fprintf(stderr, "gcap sim: %s%s%s\n", call, *call ? ": " : "", text);
  abort();
}

// --- Functions by name ----------------------------------------------------------------------------------------------

// A forked child has a simulator of its own: death tests rely on that.
static void before_fork(void) { pthread_mutex_lock(&lock); }

static void after_fork(void) { pthread_mutex_unlock(&lock); }

static void in_forked_child(void) {
  sim_scheduler_forked();
  pthread_mutex_unlock(&lock);
}

static void prepare(void) {
  tally.ready = true;
  pthread_atfork(before_fork, after_fork, in_forked_child);
  for (size_t i = 0; i < SIM_API_COUNT; ++i) sim_name_add(&tally.functions, functions[i].name, &functions[i]);
  sim_log_prepare();
}

static sim_function_t* find_function(const char* name) {
  if (!tally.ready) prepare();
  return sim_name_find(&tally.functions, name);
}

sim_function_t* sim_function_named(const char* name) {
  sim_function_t* function = find_function(name);
  if (function) return function;
  // Each function of the runtime is in the table, but that of a library shows only when it is called.
  if (strncmp(name, "cuda", 4) == 0) sim_die("'%s' is no function of the simulated runtime", name);
  function = sim_calloc(1, sizeof(*function));
  char* copy = sim_calloc(strlen(name) + 1, 1);
  *function = (sim_function_t){.name = strcpy(copy, name), .class = SIM_CONTEXT};
  sim_name_add(&tally.functions, function->name, function);
  return function;
}

// --- In and out -----------------------------------------------------------------------------------------------------

// What all calls begin with, under the lock: returns what the call answers in place of its work, or success.
static cudaError_t begin(sim_thread_t* thread, sim_function_t* function) {
  if (!tally.ready) prepare();
  if (thread->turn) sim_turns_arrive(thread);
  thread->call = function->name;
  thread->in_call = true;
  thread->call_number = ++tally.calls;
  function->calls += 1;
  if (sim_log_on) sim_log_begin(thread, function, tally.calls);
  return sim_fault_any ? sim_fault_enter(function) : cudaSuccess;
}

cudaError_t sim_enter(sim_api_t api) {
  sim_thread_t* thread = sim_thread();
  sim_function_t* function = &functions[api];
  sim_lock();
  sim_origin_enter(__builtin_return_address(0), __builtin_dwarf_cfa());
  cudaError_t code = begin(thread, function);
  if (code != cudaSuccess || function->class == SIM_PURE) return code;
  if (thread->in_host_function) return cudaErrorNotPermitted;
  sim_turn();
  if (function->class != SIM_FREE) thread->uses_device = true;
  if (function->class == SIM_UNSAFE) return sim_gate_unsafe();
  if (function->class == SIM_FORBIDDEN) return sim_gate_forbidden(thread->device);
  return cudaSuccess;
}

__attribute__((noinline)) void sim_begin_call(const char* name) {
  sim_lock();
  sim_origin_enter(__builtin_return_address(0), __builtin_dwarf_cfa());
  sim_thread()->call = name;
}

cudaError_t sim_leave_quietly(cudaError_t code) {
  sim_thread_t* thread = sim_thread();
  if (sim_log_on) sim_log_end(thread, code);
  thread->in_call = false;
  sim_unlock();
  return code;
}

cudaError_t sim_leave(cudaError_t code) {
  if (sim_fault_any) code = sim_fault_leave(code);
  // Not ready is an answer, not an error: the real runtime does not keep it either.
  if (code != cudaSuccess && code != cudaErrorNotReady) sim_thread()->last_error = code;
  return sim_leave_quietly(code);
}

// --- Libraries ------------------------------------------------------------------------------------------------------

cudaError_t sim_library_call(const char* name, sim_call_class_t call_class) {
  sim_thread_t* thread = sim_thread();
  sim_lock();
  sim_origin_enter_now(__builtin_return_address(0), __builtin_dwarf_cfa());
  cudaError_t code = begin(thread, sim_function_named(name));
  if (code == cudaSuccess && thread->in_host_function) code = cudaErrorNotPermitted;
  if (code == cudaSuccess) {
    sim_turn();
    if (call_class == SIM_CALL_UNSAFE) code = sim_gate_unsafe();
  }
  return sim_leave_quietly(code);
}

// What a library does after its call has been let in is told in a line of its own, under the same number.
static void begin_effect(const char* name) {
  sim_thread_t* thread = sim_thread();
  sim_lock();
  thread->call = name;
  if (sim_log_on) sim_log_begin(thread, sim_function_named(name), thread->call_number);
}

void sim_invalidate_captures(const char* function) {
  begin_effect(function);
  (void)sim_gate_forbidden(-1);  // the point is what it does to the captures; these functions answer success
  sim_leave_quietly(cudaSuccess);
}

void sim_invalidate_stream(cudaStream_t stream, const char* function) {
  begin_effect(function);
  (void)sim_gate_not_capturing(sim_stream_get(stream));
  sim_leave_quietly(cudaSuccess);
}

static void count_handle(const char* kind, ptrdiff_t delta) {
  size_t* count = sim_name_find(&tally.handles, kind);
  if (!count) {
    count = sim_calloc(1, sizeof(*count));
    sim_name_add(&tally.handles, kind, count);  // kinds are literals
  }
  *count += (size_t)delta;
  tally.live_handles += (size_t)delta;
}

void sim_handle_made(const char* kind, const void* object) {
  sim_lock();
  count_handle(kind, 1);
  sim_leak_object_made(kind, object);
  sim_unlock();
}

void sim_handle_gone(const char* kind, const void* object) {
  sim_lock();
  count_handle(kind, -1);
  sim_leak_object_gone(object);
  sim_unlock();
}

// --- Counters -------------------------------------------------------------------------------------------------------

uint64_t gcap_sim_calls(const char* name) {
  sim_lock();
  const sim_function_t* function = name ? find_function(name) : NULL;
  uint64_t calls = name ? (function ? function->calls : 0) : tally.calls;
  sim_unlock();
  return calls;
}

size_t gcap_sim_live(const char* kind) {
  sim_lock();
  size_t live = sim_allocation_count(kind);
  for (sim_kind_t k = 0; k < SIM_KIND_COUNT; ++k) {
    if (!kind || strcmp(sim_kind_name(k), kind) == 0) live += sim_handle_count(k);
  }
  const size_t* of_library = kind ? sim_name_find(&tally.handles, kind) : &tally.live_handles;
  if (of_library) live += *of_library;
  sim_unlock();
  return live;
}
