// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rename.h: another name for what a failure is about, such as a key's in the place of its id.
#ifndef GCAP_LIB_BASE_RENAME_H_
#define GCAP_LIB_BASE_RENAME_H_

#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Puts `name` in the place of the first `known` of the message that no digit follows; where there is none, before the
// message. Takes the status. NULL stays NULL. Without memory the message stays.
gcap_status_t gcap_status_rename(gcap_status_t status, const char* known, const char* name) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_BASE_RENAME_H_
