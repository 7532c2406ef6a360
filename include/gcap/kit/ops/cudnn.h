// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cudnn.h: the cuDNN handle of a stream, and what the operators by cuDNN have in common.
#ifndef GCAP_KIT_OPS_CUDNN_H_
#define GCAP_KIT_OPS_CUDNN_H_

#include <cudnn.h>

#include "gcap/status.h"
#include "gcap/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns the cuDNN handle attached to `stream`, which is made on first use and destroyed with the stream.
//   FAILED_PRECONDITION  there is no handle yet, and the stream or the calling thread is capturing: call this function
//                        in a warm-up run
//   INVALID_ARGUMENT     a NULL argument, or the stream is EXTERNAL
//   LIBRARY_ERROR        cuDNN failed
// Also what gcap_stream_attachment returns.
GCAP_API gcap_status_t gcap_stream_cudnn_handle(gcap_stream_t* stream, cudnnHandle_t* out_handle) GCAP_NODISCARD;

// How the elements of images and filters follow one another.
typedef enum gcap_image_layout {
  GCAP_IMAGE_NCHW = 0,
  GCAP_IMAGE_NHWC,  // channels innermost; a weight is [k,kernel_h,kernel_w,c/groups]
} gcap_image_layout_t;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_OPS_CUDNN_H_
