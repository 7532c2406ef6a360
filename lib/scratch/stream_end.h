// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// stream_end.h: what happens when a stream ends under the scratch. See gcap_scratch_forget_stream too.
#ifndef GCAP_LIB_SCRATCH_STREAM_END_H_
#define GCAP_LIB_SCRATCH_STREAM_END_H_

#include "gcap/stream.h"
#include "lib/internal/stream_watch.h"

// A stream is about to be destroyed; `watch` is the arena's. Called with no lock of the arena held.
void gcap_scratch_stream_ends(gcap_stream_watch_t* watch, gcap_stream_t* stream);

#endif  // GCAP_LIB_SCRATCH_STREAM_END_H_
