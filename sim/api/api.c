// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The way into every API call and out of it: the table of functions, the lock, counters.
//
// The idea: an entry point is `code = gcap_sim_enter(row); if ok, the work; return gcap_sim_leave(code)`, and
// everything that all functions have in common hangs on these two. Locking: gcap_sim_enter takes the global mutex and
// gcap_sim_leave gives it back.
#include "sim/api/api.h"

#include <pthread.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "gcap_sim.h"
#include "sim/api/driver_log.h"
#include "sim/api/fault.h"
#include "sim/api/function.h"
#include "sim/api/handle.h"
#include "sim/api/log.h"
#include "sim/api/submit.h"
#include "sim/api/turns.h"
#include "sim/base/die.h"
#include "sim/base/heap.h"
#include "sim/base/lock.h"
#include "sim/base/name_table.h"
#include "sim/base/thread.h"
#include "sim/bridge/leak.h"
#include "sim/bridge/order.h"
#include "sim/check/origin.h"
#include "sim/check/report.h"
#include "sim/memory/allocation.h"
#include "sim/stream/capture.h"
#include "sim/stream/scheduler.h"
#include "sim/stream/stream.h"

static gcap_sim_function_t functions[GCAP_SIM_API_COUNT] = {
#define GCAP_SIM_API(name, class) {#name, GCAP_SIM_##class, false, 0, 0},
#define GCAP_SIM_DRIVER(name, class) {#name, GCAP_SIM_##class, true, 0, 0},
#define GCAP_SIM_NOT_MODELLED(name, params)
#include "sim/api/api.inc"
#undef GCAP_SIM_API
#undef GCAP_SIM_NOT_MODELLED
};

static struct {
  bool ready;
  gcap_sim_name_table_t functions;
  gcap_sim_name_table_t handles;  // of the libraries: kinds to counts
  uint64_t calls;                 // of all functions
  size_t live_handles;            // of all kinds of the libraries
} tally;

// --- What the parts below are handed ---------------------------------------------------------------------------------

static void thread_ends(gcap_sim_thread_t* thread) {
  gcap_sim_lock();
  gcap_sim_turns_thread_ends(thread);
  gcap_sim_log_thread_ends(thread);
  for (int i = 0; i < GCAP_SIM_MAX_DEVICES; ++i) {
    if (thread->streams[i] != NULL) gcap_sim_stream_retire(thread->streams[i]);
  }
  gcap_sim_origin_release(thread->site.origin);
  gcap_sim_unlock();
}

static void lose_device(void) { gcap_sim_fault_device(cudaErrorIllegalAddress); }

// Before the program's own constructors, which may call CUDA.
__attribute__((constructor(101))) static void hand_down(void) {
  gcap_sim_thread_at_end(thread_ends);
  gcap_sim_report_at_error(lose_device);
}

// --- Functions by name ----------------------------------------------------------------------------------------------

// A forked child has a simulator of its own: death tests rely on that.
static void before_fork(void) { pthread_mutex_lock(gcap_sim_mutex()); }

static void after_fork(void) { pthread_mutex_unlock(gcap_sim_mutex()); }

static void in_forked_child(void) {
  gcap_sim_scheduler_forked();
  gcap_sim_leak_forked(tally.calls);
  pthread_mutex_unlock(gcap_sim_mutex());
}

static void prepare(void) {
  tally.ready = true;
  pthread_atfork(before_fork, after_fork, in_forked_child);
  for (size_t i = 0; i < GCAP_SIM_API_COUNT; ++i) gcap_sim_name_add(&tally.functions, functions[i].name, &functions[i]);
  gcap_sim_log_prepare();
}

static gcap_sim_function_t* find_function(const char* name) {
  if (!tally.ready) prepare();
  return gcap_sim_name_find(&tally.functions, name);
}

gcap_sim_function_t* gcap_sim_function_named(const char* name) {
  gcap_sim_function_t* function = find_function(name);
  if (function != NULL) return function;
  // Each function of the runtime is in the table, but that of a library shows only when it is called.
  if (strncmp(name, "cuda", 4) == 0) gcap_sim_die("'%s' is no function of the simulated runtime", name);
  function = gcap_sim_calloc(1, sizeof(*function));
  char* copy = gcap_sim_calloc(strlen(name) + 1, 1);
  *function = (gcap_sim_function_t){.name = strcpy(copy, name), .class = GCAP_SIM_CONTEXT};
  gcap_sim_name_add(&tally.functions, function->name, function);
  return function;
}

// --- In and out -----------------------------------------------------------------------------------------------------

// What all calls begin with, under the lock: returns what the call answers in place of its work, or success.
static cudaError_t begin(gcap_sim_thread_t* thread, gcap_sim_function_t* function) {
  if (!tally.ready) prepare();
  if (thread->turn) gcap_sim_turns_arrive(thread);
  thread->call = function->name;
  thread->refused = cudaSuccess;
  thread->in_call = true;
  thread->call_number = ++tally.calls;
  ++function->calls;
  if (gcap_sim_log_on) gcap_sim_log_begin(thread, function, tally.calls);
  return gcap_sim_fault_any ? gcap_sim_fault_enter(function) : cudaSuccess;
}

// Measured: these leave a thread without a current context, as the driver's functions do; other calls of the runtime
// that need a device give it one.
static bool makes_context(gcap_sim_api_t api) {
  return !functions[api].is_driver && api != GCAP_SIM_API_cudaPointerGetAttributes &&
         api != GCAP_SIM_API_cudaStreamGetDevice && api != GCAP_SIM_API_cudaGetDevice &&
         api != GCAP_SIM_API_cudaGetDriverEntryPointByVersion && api != GCAP_SIM_API_cudaGetDriverEntryPoint;
}

cudaError_t gcap_sim_enter(gcap_sim_api_t api) {
  gcap_sim_thread_t* thread = gcap_sim_thread();
  gcap_sim_function_t* function = &functions[api];
  gcap_sim_lock();
  gcap_sim_origin_enter(__builtin_return_address(0), __builtin_dwarf_cfa());
  cudaError_t code = begin(thread, function);
  if (code != cudaSuccess || function->class == GCAP_SIM_PURE) return code;
  if (thread->in_host_function) return cudaErrorNotPermitted;
  if (makes_context(api)) thread->has_context = true;
  gcap_sim_order_call_begins();
  gcap_sim_turn();
  if (function->class != GCAP_SIM_FREE) thread->uses_device = true;
  if (function->class == GCAP_SIM_UNSAFE) return gcap_sim_gate_unsafe();
  if (function->class == GCAP_SIM_FORBIDDEN) return gcap_sim_gate_forbidden(thread->device);
  return cudaSuccess;
}

__attribute__((noinline)) void gcap_sim_begin_call(const char* name) {
  gcap_sim_lock();
  gcap_sim_origin_enter(__builtin_return_address(0), __builtin_dwarf_cfa());
  gcap_sim_thread()->call = name;
  if (!gcap_sim_thread()->in_host_function) gcap_sim_order_call_begins();
}

cudaError_t gcap_sim_leave_quietly(cudaError_t code) {
  gcap_sim_thread_t* thread = gcap_sim_thread();
  if (gcap_sim_log_on) gcap_sim_log_end(thread, code);
  thread->in_call = false;
  gcap_sim_unlock();
  return code;
}

cudaError_t gcap_sim_leave(cudaError_t code) {
  if (gcap_sim_fault_any) code = gcap_sim_fault_leave(code);
  if (code != cudaSuccess && code == gcap_sim_thread()->refused) gcap_sim_driver_log_tell();
  // Not ready is an answer, not an error: the real runtime does not keep it either.
  if (code != cudaSuccess && code != cudaErrorNotReady) gcap_sim_thread()->last_error = code;
  return gcap_sim_leave_quietly(code);
}

int gcap_sim_leave_driver(cudaError_t code) {
  if (gcap_sim_fault_any) code = gcap_sim_fault_leave(code);
  return (int)gcap_sim_leave_quietly(code);
}

// --- Libraries ------------------------------------------------------------------------------------------------------

cudaError_t gcap_sim_library_call(const char* name, gcap_sim_call_class_t call_class) {
  gcap_sim_thread_t* thread = gcap_sim_thread();
  gcap_sim_lock();
  gcap_sim_origin_enter_now(__builtin_return_address(0), __builtin_dwarf_cfa());
  cudaError_t code = begin(thread, gcap_sim_function_named(name));
  if (code == cudaSuccess && thread->in_host_function) code = cudaErrorNotPermitted;
  if (code == cudaSuccess) {
    gcap_sim_order_call_begins();
    gcap_sim_turn();
    if (call_class == GCAP_SIM_CALL_UNSAFE) code = gcap_sim_gate_unsafe();
  }
  return gcap_sim_leave_quietly(code);
}

// What a library does after its call has been let in is told in a line of its own, under the same number.
static void begin_effect(const char* name) {
  gcap_sim_thread_t* thread = gcap_sim_thread();
  gcap_sim_lock();
  thread->call = name;
  if (gcap_sim_log_on) gcap_sim_log_begin(thread, gcap_sim_function_named(name), thread->call_number);
}

void gcap_sim_invalidate_captures(const char* function) {
  begin_effect(function);
  (void)gcap_sim_gate_forbidden(-1);  // the point is what it does to the captures; these functions answer success
  gcap_sim_leave_quietly(cudaSuccess);
}

void gcap_sim_invalidate_stream(cudaStream_t stream, const char* function) {
  begin_effect(function);
  (void)gcap_sim_gate_not_capturing(gcap_sim_stream_get(stream));
  gcap_sim_leave_quietly(cudaSuccess);
}

static void count_handle(const char* kind, ptrdiff_t delta) {
  size_t* count = gcap_sim_name_find(&tally.handles, kind);
  if (count == NULL) {
    count = gcap_sim_calloc(1, sizeof(*count));
    gcap_sim_name_add(&tally.handles, kind, count);  // kinds are literals
  }
  *count += (size_t)delta;
  tally.live_handles += (size_t)delta;
}

void gcap_sim_object_made(const char* kind, const void* object) {
  count_handle(kind, 1);
  gcap_sim_leak_object_made(kind, object);
}

void gcap_sim_object_gone(const char* kind, const void* object) {
  count_handle(kind, -1);
  gcap_sim_leak_object_gone(object);
}

void gcap_sim_handle_made(const char* kind, const void* object) {
  gcap_sim_lock();
  gcap_sim_object_made(kind, object);
  gcap_sim_unlock();
}

void gcap_sim_handle_gone(const char* kind, const void* object) {
  gcap_sim_lock();
  gcap_sim_object_gone(kind, object);
  gcap_sim_unlock();
}

// --- Counters -------------------------------------------------------------------------------------------------------

uint64_t gcap_sim_calls(const char* name) {
  gcap_sim_lock();
  const gcap_sim_function_t* function = name != NULL ? find_function(name) : NULL;
  uint64_t calls = name != NULL ? (function != NULL ? function->calls : 0) : tally.calls;
  gcap_sim_unlock();
  return calls;
}

uint64_t gcap_sim_calls_for_faults(void) {
  gcap_sim_lock();
  uint64_t calls = tally.calls;
  for (size_t i = 0; i < GCAP_SIM_API_COUNT; ++i) calls -= functions[i].class == GCAP_SIM_PURE ? functions[i].calls : 0;
  gcap_sim_unlock();
  return calls;
}

size_t gcap_sim_live(const char* kind) {
  gcap_sim_lock();
  size_t live = gcap_sim_allocation_count(kind);
  for (gcap_sim_kind_t k = 0; k < GCAP_SIM_KIND_COUNT; ++k) {
    if (kind == NULL || strcmp(gcap_sim_kind_name(k), kind) == 0) live += gcap_sim_handle_count(k);
  }
  const size_t* of_library = kind != NULL ? gcap_sim_name_find(&tally.handles, kind) : &tally.live_handles;
  if (of_library != NULL) live += *of_library;
  gcap_sim_unlock();
  return live;
}
