// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// capture_check.h: what calls that a capture forbids do while their thread captures. The driver is not asked.
#ifndef GCAP_LIB_INTERNAL_CAPTURE_CHECK_H_
#define GCAP_LIB_INTERNAL_CAPTURE_CHECK_H_

#include "lib/base/capture_hooks.h"

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

#endif  // GCAP_LIB_INTERNAL_CAPTURE_CHECK_H_
