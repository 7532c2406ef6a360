// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A scope's options. Values only, so there is nothing to lock.

#include "lib/capture/options.h"

#include <inttypes.h>

#include "lib/capture/inner.h"
#include "lib/internal/sized.h"

GCAP_SIZED_OPTIONS(, gcap_capture_options);

enum cudaStreamCaptureMode gcap_capture_mode_to_cuda(gcap_capture_mode_t mode) {
  if (mode == GCAP_CAPTURE_GLOBAL) return cudaStreamCaptureModeGlobal;
  return mode == GCAP_CAPTURE_RELAXED ? cudaStreamCaptureModeRelaxed : cudaStreamCaptureModeThreadLocal;
}

gcap_status_t gcap_capture_options_check(const gcap_capture_options_t* options) {
  if ((unsigned)options->mode > GCAP_CAPTURE_RELAXED) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT,
                       "capture mode is %d, allowed are THREAD_LOCAL (0), GLOBAL (1), RELAXED (2)", (int)options->mode);
  }
  if (options->ledger_calls <= GCAP_CAPTURE_MAX_LEDGER_CALLS) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "ledger_calls is %" PRIu32 ", allowed are 0..%u", options->ledger_calls,
                     GCAP_CAPTURE_MAX_LEDGER_CALLS);
}
