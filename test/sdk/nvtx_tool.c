// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A tool that NVTX loads, and that takes no range.
#include <stdio.h>

int InitializeInjectionNvtx2(void* (*export_table)(unsigned));

int InitializeInjectionNvtx2(void* (*export_table)(unsigned)) {
  (void)export_table;
  puts("NVTX asks");
  return 1;
}
