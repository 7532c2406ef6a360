// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run_trace.h: what a thread's runs do besides issuing work, for the graph manager's policy STABLE.
#ifndef GCAP_LIB_INTERNAL_RUN_TRACE_H_
#define GCAP_LIB_INTERNAL_RUN_TRACE_H_

#include <stddef.h>
#include <stdint.h>

#include "lib/base/capture_hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

// Two runs with the same trace will not surprise a capture. Only ever counted up; a reader takes differences.
typedef struct gcap_run_trace {
  uint64_t allocations;      // a hash over sizes and order
  uint64_t initializations;  // library handles, plans, memory from the driver: what a capture must find done
} gcap_run_trace_t;

extern GCAP_THREAD_LOCAL gcap_run_trace_t gcap_thread_run_trace;

static inline void gcap_trace_allocation(size_t bytes) {
  gcap_run_trace_t* trace = &gcap_thread_run_trace;
  trace->allocations = (trace->allocations ^ (uint64_t)bytes) * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

static inline void gcap_trace_initialization(void) { ++gcap_thread_run_trace.initializations; }

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_INTERNAL_RUN_TRACE_H_
