// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// thread_state.h: what the modules below the capture scope must know of it, without depending on it, and what they tell
// the modules above of a run.
//
// The capture module alone sets the hooks. Readers are the allocators and ops, which skip or refuse what is illegal in
// a capture without asking the driver; gcap_status_make, which reports failures to the scope's latch; GCAP_CUDA, which
// reports calls to its ledger.
#ifndef GCAP_LIB_BASE_THREAD_STATE_H_
#define GCAP_LIB_BASE_THREAD_STATE_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "gcap/status.h"

// What the scope that this thread has open wants to hear of.
typedef struct gcap_capture_hooks {
  // Sets the latch. Called by itself for every status made on this thread whose code means that device work was lost.
  void (*fail)(gcap_status_t cause);
  // Notes an operation after it was done; NULL when the ledger is off. `operation` is copied. `stream` may be NULL:
  // that of the scope.
  void (*note)(const char* operation, cudaStream_t stream, const char* file, int line);
  // gcap_capture_retain of the scope.
  gcap_status_t (*retain)(void (*release)(void* user), void* user);
} gcap_capture_hooks_t;

// NULL unless this thread has a scope open.
extern _Thread_local const gcap_capture_hooks_t* gcap_thread_capture_hooks;

static inline bool gcap_thread_captures(void) { return gcap_thread_capture_hooks != NULL; }

// FAILED_PRECONDITION while this thread captures, naming the refused `operation`.
static inline gcap_status_t gcap_check_thread_not_capturing(const char* operation) {
  if (!gcap_thread_captures()) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: this thread is capturing; end the capture first", operation);
}

// The same for work that the scope would lack: also sets its latch, so that no graph comes of it.
static inline gcap_status_t gcap_refuse_in_capture(const char* operation) {
  gcap_status_t status = gcap_check_thread_not_capturing(operation);
  if (status != NULL) gcap_thread_capture_hooks->fail(status);
  return status;
}

// Notes an operation that GCAP_CUDA was not given, such as a library's call, after it was done.
static inline void gcap_note_in_capture(const char* operation, const char* file, int line) {
  if (!gcap_thread_captures() || gcap_thread_capture_hooks->note == NULL) return;
  gcap_thread_capture_hooks->note(operation, NULL, file, line);
}

// What this thread's runs do besides issuing work: two runs with the same trace will not surprise a capture. Only ever
// counted up; a reader takes differences.
typedef struct gcap_run_trace {
  uint64_t allocations;      // a hash over sizes and order
  uint64_t initialisations;  // library handles, plans, memory from the driver: what a capture must find done
} gcap_run_trace_t;

extern _Thread_local gcap_run_trace_t gcap_thread_run_trace;

static inline void gcap_trace_allocation(size_t bytes) {
  gcap_run_trace_t* trace = &gcap_thread_run_trace;
  trace->allocations = (trace->allocations ^ (uint64_t)bytes) * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

static inline void gcap_trace_initialisation(void) { ++gcap_thread_run_trace.initialisations; }

#endif  // GCAP_LIB_BASE_THREAD_STATE_H_
