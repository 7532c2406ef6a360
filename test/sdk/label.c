// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A program that opens and closes a label. NVTX loads the tool that NVTX_INJECTION64_PATH names at the first range.
#include "gcap/gcap.h"

int main(void) {
  gcap_label("decoder");
  gcap_label(NULL);
  return 0;
}
