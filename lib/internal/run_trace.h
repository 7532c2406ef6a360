// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run_trace.h: what a thread's runs do besides issuing work, for the graph manager's policy STABLE and for warm-ups;
// and who hears of the scratch that they are handed.
#ifndef GCAP_LIB_INTERNAL_RUN_TRACE_H_
#define GCAP_LIB_INTERNAL_RUN_TRACE_H_

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/capture_hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

// What is done once, and what a capture must find done.
typedef enum gcap_initialization {
  GCAP_INITIALIZED_ATTACHMENT = 0,  // of a stream, as a library's handle
  GCAP_INITIALIZED_PLAN,
  GCAP_INITIALIZED_MEMORY,  // from the driver
  GCAP_INITIALIZED_OTHER,   // as the user says
  GCAP_NUM_INITIALIZATIONS,
} gcap_initialization_t;

// Two runs with the same trace will not surprise a capture. Only ever counted up; a reader takes differences.
typedef struct gcap_run_trace {
  uint64_t allocations;      // a hash over sizes and order
  uint64_t initializations;  // of all kinds
  // Hears that this thread was handed scratch of the stream, with no lock held; NULL: nobody hears. Whoever sets it is
  // who hears of the thread's calls, too (lib/capture/steps.h).
  void (*hand_out)(void* address, size_t bytes, cudaStream_t stream);
} gcap_run_trace_t;

extern GCAP_THREAD_LOCAL gcap_run_trace_t gcap_thread_run_trace;
extern GCAP_THREAD_LOCAL uint64_t gcap_thread_initializations[GCAP_NUM_INITIALIZATIONS];

static inline void gcap_trace_allocation(size_t bytes) {
  gcap_run_trace_t* trace = &gcap_thread_run_trace;
  trace->allocations = (trace->allocations ^ (uint64_t)bytes) * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

static inline void gcap_trace_initialization(gcap_initialization_t what) {
  ++gcap_thread_run_trace.initializations;
  ++gcap_thread_initializations[what];
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_INTERNAL_RUN_TRACE_H_
