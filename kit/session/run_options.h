// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// run_options.h: a run's options in the library's layout.
#ifndef GCAP_KIT_SESSION_RUN_OPTIONS_H_
#define GCAP_KIT_SESSION_RUN_OPTIONS_H_

#include "gcap/kit/run_options.h"
#include "lib/options/inner.h"

extern const gcap_option_table_t gcap_run_option_table;  // of gcap_run_options_t

// The caller's options in the library's layout; of NULL the defaults.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_run_options_read(const gcap_run_options_t* given, gcap_run_options_t* out_options) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_RUN_OPTIONS_H_
