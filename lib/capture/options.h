// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// options.h: a scope's options, as this module reads them.
#ifndef GCAP_LIB_CAPTURE_OPTIONS_H_
#define GCAP_LIB_CAPTURE_OPTIONS_H_

#include "gcap/capture.h"

// The caller's options in the library's layout; of NULL the defaults.
//   INVALID_ARGUMENT  as gcap_sized_read
gcap_status_t gcap_capture_options_read(const gcap_capture_options_t* given,
                                        gcap_capture_options_t* out_options) GCAP_NODISCARD;

// The driver's name for a mode of options that were checked.
enum cudaStreamCaptureMode gcap_capture_mode_to_cuda(gcap_capture_mode_t mode);

#endif  // GCAP_LIB_CAPTURE_OPTIONS_H_
