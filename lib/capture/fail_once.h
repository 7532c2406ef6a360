// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// fail_once.h: the latch, for who hands a failure on that may be in the latch already.
#ifndef GCAP_LIB_CAPTURE_FAIL_ONCE_H_
#define GCAP_LIB_CAPTURE_FAIL_ONCE_H_

#include "gcap/capture.h"

// As gcap_capture_fail. But a failure that was latched where it was made, and came up with prefixes before its message,
// is counted once.
void gcap_capture_fail_once(gcap_capture_t* capture, gcap_status_t cause);

#endif  // GCAP_LIB_CAPTURE_FAIL_ONCE_H_
