// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// check_end.h: whether a scratch could end once all graphs have ended, for lib/runtime, which must know before it ends
// them.
#ifndef GCAP_LIB_SCRATCH_CHECK_END_H_
#define GCAP_LIB_SCRATCH_CHECK_END_H_

#include "gcap/scratch.h"

// The refusal that gcap_scratch_destroy would answer although no graph were left: a block is live that no graph keeps,
// a reservation is open, or a call waits for upstream, the device or a callback. NULL: there is none. Changes nothing.
//   FAILED_PRECONDITION  as gcap_scratch_destroy
gcap_status_t gcap_scratch_check_end(gcap_scratch_t* scratch) GCAP_NODISCARD;

#endif  // GCAP_LIB_SCRATCH_CHECK_END_H_
