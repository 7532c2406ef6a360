// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the cuDNN ops share about calls of the library: their failures, and their place in the ledger of a capture,
// which the library may break without saying so. No state.
#include "ops/cudnn/cudnn_status.h"

#include <string.h>

#include "lib/internal/capture_check.h"

gcap_status_t gcap_cudnn_status(cudnnStatus_t code, const char* call, const char* file, int line) {
  gcap_note_in_capture(call, file, line);
  if (code == CUDNN_STATUS_SUCCESS) return NULL;
  (void)cudaGetLastError();  // the status carries the failure from here on
  return gcap_status_make(GCAP_LIBRARY_ERROR, file, line, "%.*s failed: %s (%d)", (int)strcspn(call, "("), call,
                          cudnnGetErrorString(code), (int)code);
}
