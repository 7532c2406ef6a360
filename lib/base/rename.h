// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// rename.h: what a failure is about, by a better name than who made the status had.
#ifndef GCAP_LIB_BASE_RENAME_H_
#define GCAP_LIB_BASE_RENAME_H_

#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Puts `name` where the message first has `known`, not followed by a digit, or before a message that has it not. Takes
// the status. NULL stays NULL. Without memory the message stays.
gcap_status_t gcap_status_rename(gcap_status_t status, const char* known, const char* name) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_LIB_BASE_RENAME_H_
