// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cublas.h: the cuBLAS handle of a stream.
#ifndef GCAP_KIT_OPS_CUBLAS_H_
#define GCAP_KIT_OPS_CUBLAS_H_

#include <cublas_v2.h>

#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns the cuBLAS handle attached to `stream`, a USER stream included, which is made on first use and destroyed with
// the stream. The handle is bound to the stream and has a workspace of its own, so that no call allocates in a capture:
// 32 MiB of device memory on devices of compute capability 9.0 and newer, 4 MiB on older ones, which are cuBLAS's own
// defaults. cublasSetStream would take the workspace away: leave stream and workspace as they are.
// cublasDestroy waits for the device, which breaks the captures of all threads (rule R12 of docs/capture_rules.md):
// while a capture scope is open anywhere, the handle of a stream that ends is kept for the next stream of the device.
//   FAILED_PRECONDITION  there is no handle yet, and the stream or the calling thread is capturing: call this function
//                        in a warm-up run
//   INVALID_ARGUMENT     a NULL argument, or the stream is EXTERNAL
//   LIBRARY_ERROR        cuBLAS failed
//   CUDA_ERROR           no memory for the workspace, or the runtime refused
//   RESOURCE_EXHAUSTED   no host memory
// Also what gcap_stream_attachment returns.
GCAP_API gcap_status_t gcap_stream_cublas_handle(gcap_stream_t* stream, cublasHandle_t* out_handle) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_OPS_CUBLAS_H_
