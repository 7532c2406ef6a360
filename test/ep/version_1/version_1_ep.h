// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// version_1_ep.h: an EP as one was written for version 1 of the table: each member forwards to a runtime by hand. Its
// only op, Copy, has one input and one output.
#ifndef GCAP_TEST_EP_VERSION_1_VERSION_1_EP_H_
#define GCAP_TEST_EP_VERSION_1_VERSION_1_EP_H_

#include "gcap/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

struct gcap_ep;

// Makes the EP, without the member of that name (or NULL), and without sign_graph. What follows the table in memory is
// no member. The runtime stays the caller's.
gcap_status_t version_1_ep_create(gcap_runtime_t* runtime, const char* missing, struct gcap_ep** out_ep);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_TEST_EP_VERSION_1_VERSION_1_EP_H_
