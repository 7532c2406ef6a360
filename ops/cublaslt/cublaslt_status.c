// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the files of the matrix product share about calls of the library: their failures, and their place in the ledger
// of a capture, which the library may break without saying so. No state.
#include "ops/cublaslt/cublaslt_status.h"

#include <string.h>

#include "lib/internal/capture_check.h"

gcap_status_t gcap_cublaslt_status(cublasStatus_t code, const char* call, const char* file, int line) {
  gcap_note_in_capture(call, file, line);
  if (code == CUBLAS_STATUS_SUCCESS) return NULL;
  (void)cudaGetLastError();  // the status carries the failure from here on
  return gcap_status_make(GCAP_LIBRARY_ERROR, file, line, "%.*s failed: %s (%d), %s", (int)strcspn(call, "("), call,
                          cublasLtGetStatusName(code), (int)code, cublasLtGetStatusString(code));
}
