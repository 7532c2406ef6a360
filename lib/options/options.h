// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options.h: an EP's options in the library's layout.
#ifndef GCAP_LIB_OPTIONS_OPTIONS_H_
#define GCAP_LIB_OPTIONS_OPTIONS_H_

#include "gcap/options.h"
#include "lib/internal/sized.h"

extern const gcap_sized_type_t gcap_kernel_options_type;

// The caller's options in the library's layout; of NULL the defaults.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_options_read(const gcap_options_t* given, gcap_options_t* out_options) GCAP_NODISCARD;
gcap_status_t gcap_kernel_options_read(const gcap_kernel_options_t* given,
                                       gcap_kernel_options_t* out_options) GCAP_NODISCARD;

// Sets what follows from other options: has_user_stream, use_unified_stream, graph_scope. They are in the library's
// layout.
void gcap_options_derive(gcap_options_t* options);

#endif  // GCAP_LIB_OPTIONS_OPTIONS_H_
