// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// table.h: an implementer's table of any version, read into the newest one and checked.
#ifndef GCAP_KIT_EP_TABLE_H_
#define GCAP_KIT_EP_TABLE_H_

#include "gcap/kit/ep_ops.h"

// Copies `given` into `*out_ops`; members that its version lacks are zero.
//   INVALID_ARGUMENT  as gcap_ep_create
gcap_status_t gcap_ep_ops_read(const gcap_ep_ops_t* given, gcap_ep_ops_t* out_ops) GCAP_NODISCARD;

#endif  // GCAP_KIT_EP_TABLE_H_
