// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// capture_check.h: whether a thread or a stream is capturing, and what refuses calls that a capture forbids. For a
// thread the driver is not asked, for a stream it is.
#ifndef GCAP_LIB_INTERNAL_CAPTURE_CHECK_H_
#define GCAP_LIB_INTERNAL_CAPTURE_CHECK_H_

#include <cuda_runtime_api.h>
#include <stdbool.h>

#include "gcap/status.h"
#include "lib/base/capture_hooks.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- The calling thread ---------------------------------------------------------------------------------------------

// The refusal of `operation` on a thread that captures, or that is the one of a forked child (forked.h).
gcap_status_t gcap_refuse_capturing_thread(const char* operation) __attribute__((cold)) GCAP_NODISCARD;

// FAILED_PRECONDITION while this thread captures, naming the refused `operation`.
static inline gcap_status_t gcap_check_thread_not_capturing(const char* operation) {
  return gcap_thread_captures() ? gcap_refuse_capturing_thread(operation) : NULL;
}

// The same for work that the scope would lack: also sets its latch, so that no graph comes of it.
static inline gcap_status_t gcap_refuse_in_capture(const char* operation) {
  gcap_status_t status = gcap_check_thread_not_capturing(operation);
  if (status != NULL) gcap_thread_capture_hooks->fail(status);
  return status;
}

// Notes an operation that GCAP_CUDA was not given, such as a library's call, after it was done.
static inline void gcap_note_in_capture(const char* operation, const char* file, int line) {
  gcap_note(operation, cudaSuccess, NULL, file, line);
}

// --- A stream -------------------------------------------------------------------------------------------------------

// Tells whether the stream is in a capture, of whatever thread, also in one that was invalidated and is not ended yet.
// The question breaks no capture. While a blocking stream captures, the driver answers it with an error for the legacy
// default stream, which itself can never be captured: who may have that stream asks only where the error is welcome.
//   CUDA_ERROR  the runtime does not say; `*out_capturing` is false
gcap_status_t gcap_is_stream_capturing(cudaStream_t stream, bool* out_capturing) GCAP_NODISCARD;

// Refuses what a captured stream forbids. The printf-style `who` names the refused operation, or whose stream it is:
// "gcap_stream_destroy: stream 0x… is capturing; end the capture first".
//   FAILED_PRECONDITION  the stream is in a capture
//   CUDA_ERROR           the runtime does not say
gcap_status_t gcap_check_stream_not_capturing(cudaStream_t stream, const char* who, ...)
    __attribute__((format(printf, 2, 3))) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_INTERNAL_CAPTURE_CHECK_H_
