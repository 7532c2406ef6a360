// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// table.h: an implementer's table of any version, read into the newest one and checked.
#ifndef GCAP_LIB_EP_TABLE_H_
#define GCAP_LIB_EP_TABLE_H_

#include "gcap/ep_ops.h"

// Copies `given` into `*out_ops`; members that its version lacks, or that this gcap does not know, are zero.
//   INVALID_ARGUMENT  as gcap_ep_create
gcap_status_t gcap_ep_ops_read(const gcap_ep_ops_t* given, gcap_ep_ops_t* out_ops);

// Whether a host can capture with this table: each function that captures is there, or the runtime has it. Else
// `*out_missing` is the name of the first that lacks.
bool gcap_ep_ops_can_capture(const gcap_ep_ops_t* ops, const char** out_missing);

#endif  // GCAP_LIB_EP_TABLE_H_
