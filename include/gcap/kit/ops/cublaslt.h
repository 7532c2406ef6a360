// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cublaslt.h: the cuBLASLt handle of a stream.
#ifndef GCAP_KIT_OPS_CUBLASLT_H_
#define GCAP_KIT_OPS_CUBLASLT_H_

#include <cublasLt.h>

#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns the cuBLASLt handle attached to `stream`, a USER stream included, which is made on first use and destroyed
// with the stream. cuBLASLt binds a handle to nothing, so plans that were made with it may run on other streams while
// it lives. cublasLtDestroy breaks the captures of all threads: while a capture scope is open anywhere, the handle of a
// stream that ends is kept for the next stream of the device.
//   FAILED_PRECONDITION  there is no handle yet, and the stream or the calling thread is capturing: call this function
//                        in a warm-up run
//   INVALID_ARGUMENT     a NULL argument, or the stream is EXTERNAL
//   LIBRARY_ERROR        cuBLASLt failed
//   RESOURCE_EXHAUSTED   no host memory
// Also what gcap_stream_attachment returns.
GCAP_API gcap_status_t gcap_stream_cublaslt_handle(gcap_stream_t* stream, cublasLtHandle_t* out_handle) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_OPS_CUBLASLT_H_
