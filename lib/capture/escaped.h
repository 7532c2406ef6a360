// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// escaped.h: work that the capturing thread gave to a stream outside of the capture. It runs at once, and the graph
// lacks it, while the driver ends the capture well.
#ifndef GCAP_LIB_CAPTURE_ESCAPED_H_
#define GCAP_LIB_CAPTURE_ESCAPED_H_

#include "lib/capture/capture_internal.h"

// Looks at the call that the ledger noted last, of a capture that is still active. A stream of the capture becomes a
// member, with work that is not joined. For any other stream the first such call is remembered. NULL: the call did not
// say its stream; then only a function that always works on the default stream is known to escape.
void gcap_capture_look_for_escape(gcap_capture_t* capture, const char* operation, cudaStream_t stream);

// A status that names the remembered call and its stream; NULL when no work escaped. The caller owns it.
gcap_status_t gcap_capture_escape_status(const gcap_capture_t* capture) GCAP_NODISCARD;

#endif  // GCAP_LIB_CAPTURE_ESCAPED_H_
