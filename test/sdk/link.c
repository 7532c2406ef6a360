// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A program that links gcap and a CUDA runtime: the library is of its headers' version, and reaches the runtime.
#include <stdio.h>

#include "gcap/gcap.h"

int main(void) {
  if (gcap_version() != GCAP_VERSION) {
    fprintf(stderr, "the library is %d, its headers are %d\n", gcap_version(), GCAP_VERSION);
    return 1;
  }
  gcap_stream_t* stream = NULL;
  gcap_status_t status = gcap_stream_create(/*device_id=*/0, &stream);
  status = gcap_status_join(status, gcap_stream_destroy(stream));
  if (status == NULL) return 0;
  fprintf(stderr, "%s\n", gcap_status_message(status));
  gcap_status_free(status);
  return 1;
}
