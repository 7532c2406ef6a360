// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// user_stream.h: the order of a run and the stream of its caller.
#ifndef GCAP_KIT_SESSION_USER_STREAM_H_
#define GCAP_KIT_SESSION_USER_STREAM_H_

#include "kit/session/resources.h"

// The next work of the thread's streams of all EPs comes after what `user_stream` was given so far. In a turn of the
// EPs, outside of a capture.
//   INVALID_ARGUMENT     the legacy default stream, or a stream of another device than the main EP's
//   FAILED_PRECONDITION  `user_stream` is capturing
//   CUDA_ERROR           the runtime refused
gcap_status_t gcap_session_run_after(const gcap_session_parts_t* parts, cudaStream_t user_stream) GCAP_NODISCARD;

// The next work of `user_stream` comes after what the thread's streams were given so far. Likewise.
gcap_status_t gcap_session_run_before(const gcap_session_parts_t* parts, cudaStream_t user_stream) GCAP_NODISCARD;

#endif  // GCAP_KIT_SESSION_USER_STREAM_H_
