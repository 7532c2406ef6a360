// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// unjoined.h: which streams of a capture were never joined.
#ifndef GCAP_LIB_CAPTURE_UNJOINED_H_
#define GCAP_LIB_CAPTURE_UNJOINED_H_

#include <cuda_runtime_api.h>

#include "gcap/status.h"
#include "lib/capture/members.h"

// Marks the members that have captured work which does not come before what the origin reached. To be called before the
// capture ends, for then nobody can tell any more.
gcap_status_t gcap_capture_find_unjoined(gcap_capture_members_t* members, cudaStream_t origin) GCAP_NODISCARD;

#endif  // GCAP_LIB_CAPTURE_UNJOINED_H_
