// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// batch_norm.h: batch normalization for inference, by cuDNN, planned before capture.
#ifndef GCAP_KIT_OPS_BATCH_NORM_H_
#define GCAP_KIT_OPS_BATCH_NORM_H_

#include <stddef.h>
#include <string.h>

#include "gcap/kit/ops/cudnn.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// y[n,c,h,w] = scale[c] · (x[n,c,h,w] − mean[c]) / sqrt(variance[c] + epsilon) + bias[c], as ONNX BatchNormalization.
// An input of another rank is [n,c,h,1] or [n,c,1,1] with as many elements. The four parameters are F32 whatever dtype
// is. What has no default is 0 at first, and is refused then; but for n.
typedef struct gcap_batch_norm_options {
  size_t struct_size;          // set by gcap_batch_norm_options_init
  int n, c, h, w;              // each >= 1, but n >= 0
  float epsilon;               // >= 0, default 1e-5
  gcap_dtype_t dtype;          // of x and y: F32, the default, F16 or BF16
  gcap_image_layout_t layout;  // of x and y; default NCHW
} gcap_batch_norm_options_t;

// Sets the size and the defaults.
static inline void gcap_batch_norm_options_init(gcap_batch_norm_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
  options->epsilon = 1e-5f;
}

// Batch norm: a planned normalization of fixed shapes.
// Thread:   immutable after creation: any number of threads may run it, each with its own stream.
// Capture:  create before a capture, destroy after it. gcap_batch_norm_run is legal once the stream has its handle,
//           allocates nothing and records kernel nodes only. No workspace is needed.
// Lifetime: outlives the graphs that recorded it.
typedef struct gcap_batch_norm gcap_batch_norm_t;

// Plans a normalization.
//   INVALID_ARGUMENT     a NULL argument, an unknown enum value, or a number out of range; the message names the argument
//   FAILED_PRECONDITION  the calling thread is capturing, which fails its scope: the graph would lack the plan's work
//   LIBRARY_ERROR        cuDNN failed
//   RESOURCE_EXHAUSTED   no host memory
GCAP_API gcap_status_t gcap_batch_norm_create(const gcap_batch_norm_options_t* options,
                                              gcap_batch_norm_t** out_norm) GCAP_NODISCARD;
GCAP_API void gcap_batch_norm_destroy(gcap_batch_norm_t* norm);  // NULL is fine

// Issues the normalization on `stream`, with the stream's own handle. All addresses are device memory: F32 aligned as
// floats, F16 and BF16 to 16 bytes. `y` may be `x`. If n is 0, there is nothing to do, and all may be NULL.
//   INVALID_ARGUMENT     a NULL argument or a misaligned address, named in the message
//   FAILED_PRECONDITION  see gcap_stream_cudnn_handle
//   LIBRARY_ERROR        cuDNN failed
//   CUDA_ERROR           the stream's device could not be made current
GCAP_API gcap_status_t gcap_batch_norm_run(const gcap_batch_norm_t* norm, gcap_stream_t* stream, const void* x,
                                           const float* scale, const float* bias, const float* mean,
                                           const float* variance, void* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_OPS_BATCH_NORM_H_
