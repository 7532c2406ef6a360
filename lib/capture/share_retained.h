// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// share_retained.h: one owner more of what a capture retained, for who must call its callbacks without a lock while
// another thread may let go of it; what is retained, and how many bytes.
#ifndef GCAP_LIB_CAPTURE_SHARE_RETAINED_H_
#define GCAP_LIB_CAPTURE_SHARE_RETAINED_H_

#include "gcap/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns `retained`, of which the caller is an owner from now on. Each owner lets go with gcap_retained_release; the
// last one runs the releases. NULL stays NULL.
gcap_retained_t* gcap_retained_share(gcap_retained_t* retained);

// The sum of what `bytes` of each entry (gcap_capture_retain) answers now; 0 for NULL.
size_t gcap_retained_bytes(const gcap_retained_t* retained);

// Calls `visit` with the `user` of each entry. NULL has none.
void gcap_retained_each(const gcap_retained_t* retained, void (*visit)(void* context, const void* user), void* context);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_CAPTURE_SHARE_RETAINED_H_
