// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run_trace.h: lib/base/thread_state.h for C++, which does not know its thread-local variables.
#ifndef GCAP_TEST_BASE_RUN_TRACE_H_
#define GCAP_TEST_BASE_RUN_TRACE_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// How many initialisations were traced on this thread so far.
uint64_t ThreadInitialisations(void);

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_TEST_BASE_RUN_TRACE_H_
