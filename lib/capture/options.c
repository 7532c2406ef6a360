// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A scope's options. Values only, so there is nothing to lock.

#include "lib/capture/options.h"

#include <inttypes.h>

#include "lib/capture/inner.h"
#include "lib/internal/sized.h"

GCAP_SIZED_OPTIONS(, gcap_capture_options);

gcap_status_t gcap_capture_mode_to_cuda(gcap_capture_mode_t mode, enum cudaStreamCaptureMode* out_mode) {
  switch (mode) {
    case GCAP_CAPTURE_THREAD_LOCAL: *out_mode = cudaStreamCaptureModeThreadLocal; return NULL;
    case GCAP_CAPTURE_GLOBAL: *out_mode = cudaStreamCaptureModeGlobal; return NULL;
    case GCAP_CAPTURE_RELAXED: *out_mode = cudaStreamCaptureModeRelaxed; return NULL;
  }
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "capture mode is %d, allowed are THREAD_LOCAL (0), GLOBAL (1), RELAXED (2)",
                     (int)mode);
}

gcap_status_t gcap_capture_options_check(const gcap_capture_options_t* options) {
  enum cudaStreamCaptureMode mode;
  GCAP_RETURN_IF_ERROR(gcap_capture_mode_to_cuda(options->mode, &mode));
  if (options->ledger_calls <= GCAP_CAPTURE_MAX_LEDGER_CALLS) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "ledger_calls is %" PRIu32 ", allowed are 0..%u", options->ledger_calls,
                     GCAP_CAPTURE_MAX_LEDGER_CALLS);
}
