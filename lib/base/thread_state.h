// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// thread_state.h: what the modules below the capture scope must know of it, without depending on it.
//
// The capture module is the only writer. Readers are the allocators and ops, which skip or refuse what is illegal in a
// capture without asking the driver, and gcap_status_make, which reports failures to the open scope's latch.
#ifndef GCAP_LIB_BASE_THREAD_STATE_H_
#define GCAP_LIB_BASE_THREAD_STATE_H_

#include "gcap/status.h"

// Scopes that this thread has open: 0 or 1.
extern _Thread_local int gcap_thread_capture_depth;

// FAILED_PRECONDITION while this thread captures, naming the refused `operation`.
static inline gcap_status_t gcap_check_thread_not_capturing(const char* operation) {
  if (gcap_thread_capture_depth == 0) return NULL;
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: this thread is capturing; end the capture first", operation);
}

// Told of every status made on this thread whose code means that device work was lost; NULL outside a scope.
typedef void (*gcap_status_observer_t)(gcap_status_t status);
extern _Thread_local gcap_status_observer_t gcap_thread_status_observer;

#endif  // GCAP_LIB_BASE_THREAD_STATE_H_
