// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options.h: an EP's options in the library's layout.
#ifndef GCAP_LIB_OPTIONS_OPTIONS_H_
#define GCAP_LIB_OPTIONS_OPTIONS_H_

#include "gcap/options.h"

// The caller's options in the library's layout; of NULL the defaults.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_options_read(const gcap_options_t* given, gcap_options_t* out_options) GCAP_NODISCARD;

#endif  // GCAP_LIB_OPTIONS_OPTIONS_H_
