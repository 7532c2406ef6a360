// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// table.h: an implementer's table of any version, read into this library's and checked.
#ifndef GCAP_LIB_RUNTIME_TABLE_H_
#define GCAP_LIB_RUNTIME_TABLE_H_

#include "gcap/runtime_ops.h"

// Copies `given` into `*out_ops`; members that its version lacks are zero.
//   INVALID_ARGUMENT  as gcap_runtime_create_from
gcap_status_t gcap_runtime_ops_read(const gcap_runtime_ops_t* given, gcap_runtime_ops_t* out_ops) GCAP_NODISCARD;

// The first member that a host lacks to capture with this table; NULL: all are there.
const char* gcap_runtime_ops_missing_to_capture(const gcap_runtime_ops_t* ops);

#endif  // GCAP_LIB_RUNTIME_TABLE_H_
