// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options.h: an arena's options and their defaults.
#ifndef GCAP_LIB_SCRATCH_OPTIONS_H_
#define GCAP_LIB_SCRATCH_OPTIONS_H_

#include "gcap/scratch.h"
#include "lib/internal/sized.h"

extern const gcap_sized_type_t gcap_scratch_options_type;

// The caller's options in the library's layout; of NULL the defaults.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_scratch_options_read(const gcap_scratch_options_t* given,
                                        gcap_scratch_options_t* out_options) GCAP_NODISCARD;

#endif  // GCAP_LIB_SCRATCH_OPTIONS_H_
