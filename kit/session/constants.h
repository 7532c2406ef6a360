// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// constants.h: the constants of a model in the memory of the EPs that read them, once for all shapes, ids and threads.
#ifndef GCAP_KIT_SESSION_CONSTANTS_H_
#define GCAP_KIT_SESSION_CONSTANTS_H_

#include "kit/session/parts.h"

// Fills in parts->constants, also of a part on failure. In a turn of the EPs; the copies are done on return.
//   RESOURCE_EXHAUSTED  no host memory
//   CUDA_ERROR          a constant could not be copied
//   others              of the EPs' allocators
gcap_status_t gcap_constants_create(gcap_session_parts_t* parts) GCAP_NODISCARD;

// Gives the constants back; what the device may still read is kept, and so is what cannot be freed.
//   errors of the EPs' allocators
gcap_status_t gcap_constants_free(gcap_session_parts_t* parts, bool may_be_read) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_CONSTANTS_H_
