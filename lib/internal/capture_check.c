// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The question whether a stream is capturing, and the one sentence that refuses because of it. No state, nothing to
// lock.

#include "lib/internal/capture_check.h"

#include <stdarg.h>
#include <stdio.h>

#include "lib/internal/forked.h"

gcap_status_t gcap_refuse_capturing_thread(const char* operation) {
  GCAP_RETURN_IF_ERROR(gcap_check_not_forked(operation));
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: this thread is capturing; end the capture first", operation);
}

gcap_status_t gcap_is_stream_capturing(cudaStream_t stream, bool* out_capturing) {
  *out_capturing = false;
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamIsCapturing(stream, &state)));
  *out_capturing = state != cudaStreamCaptureStatusNone;
  return NULL;
}

gcap_status_t gcap_check_stream_not_capturing(cudaStream_t stream, const char* who, ...) {
  enum cudaStreamCaptureStatus state = cudaStreamCaptureStatusNone;
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaStreamIsCapturing(stream, &state)));
  if (state == cudaStreamCaptureStatusNone) return NULL;
  char name[128];  // longer names are cut
  va_list args;
  va_start(args, who);
  vsnprintf(name, sizeof(name), who, args);
  va_end(args);
  return GCAP_STATUS(GCAP_FAILED_PRECONDITION, "%s: stream %p is capturing%s; end the capture first", name,
                     (void*)stream,
                     state == cudaStreamCaptureStatusInvalidated ? " (its capture is invalidated but not ended)" : "");
}
