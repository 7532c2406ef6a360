// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// synchronize.h: the wait for a raw cudaStream_t, by modules that do not know the stream module.
#ifndef GCAP_LIB_INTERNAL_SYNCHRONIZE_H_
#define GCAP_LIB_INTERNAL_SYNCHRONIZE_H_

#include <cuda_runtime_api.h>

#include "gcap/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Waits until all work that `stream` was given is finished. Where the stream has a wrapper, the wrapper waits, as
// gcap_stream_synchronize does: its timeline learns of the wait, its deferred releases run, and its refusals hold. The
// caller is then the thread that uses the wrapper. Where there is none, or several, of which only the newest could be
// found and another thread may use that: waits without disturbing a capture of another thread, and no timeline learns
// of it, which is safe.
//   FAILED_PRECONDITION  the wrapped stream is capturing, or the calling thread is, which fails its scope
//   CUDA_ERROR           the runtime cannot say that the work is finished
//   errors of the wrapper's deferred releases
gcap_status_t gcap_synchronize_stream(cudaStream_t stream) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GCAP_LIB_INTERNAL_SYNCHRONIZE_H_
