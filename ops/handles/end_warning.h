// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// end_warning.h: what is said of a library's object that could not be ended.
#ifndef GCAP_OPS_HANDLES_END_WARNING_H_
#define GCAP_OPS_HANDLES_END_WARNING_H_

#include "gcap/status.h"

// For destructors, which have no status to return. Takes `status`, the library's answer to an end. Logs a failure
// unless the end before it failed as well: once a device is lost, no object of a library ends. Thread-safe.
void gcap_warn_of_end(gcap_status_t status);

#endif  // GCAP_OPS_HANDLES_END_WARNING_H_
