// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// set_work.h: whose capture a scope is, for who captures the same work several times.
#ifndef GCAP_LIB_CAPTURE_SET_WORK_H_
#define GCAP_LIB_CAPTURE_SET_WORK_H_

#include <stdbool.h>
#include <stdint.h>

#include "gcap/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

// The scope captures `work`, which is not 0; a rehearsal is followed by another scope of the same work and stream,
// whose scratch is to lie where this one's does.
void gcap_capture_set_work(gcap_capture_t* capture, uint64_t work, bool is_rehearsal);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_CAPTURE_SET_WORK_H_
