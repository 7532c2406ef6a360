// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The calling thread's run trace. One struct a thread, so there is nothing to lock.

#include "lib/internal/run_trace.h"

GCAP_THREAD_LOCAL gcap_run_trace_t gcap_thread_run_trace;
GCAP_THREAD_LOCAL uint64_t gcap_thread_initializations[GCAP_NUM_INITIALIZATIONS];
