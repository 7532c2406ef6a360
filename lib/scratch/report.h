// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// report.h: what the arena holds, in words.
#ifndef GCAP_LIB_SCRATCH_REPORT_H_
#define GCAP_LIB_SCRATCH_REPORT_H_

#include "lib/scratch/arena.h"

// gcap_scratch_describe with `separator` between the parts, without the blocks one by one.
int gcap_scratch_describe_held(const gcap_scratch_t* scratch, const char* separator, char* out_text, size_t text_bytes);

#endif  // GCAP_LIB_SCRATCH_REPORT_H_
