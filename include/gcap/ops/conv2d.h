// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// conv2d.h: two-dimensional convolution with bias and optional ReLU, and max-pooling, by cuDNN, planned before capture.
#ifndef GCAP_OPS_CONV2D_H_
#define GCAP_OPS_CONV2D_H_

#include <cudnn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

// y[n,k,oh,ow] = conv(x[n,c,h,w], weight[k,c,kernel_h,kernel_w]) + bias[k] (then ReLU). fp32, NCHW, cross-correlation,
// as ONNX Conv; oh = (h + 2·pad_h − kernel_h) / stride_h + 1.
// What has no default is 0 at first, and is refused then.
typedef struct gcap_conv2d_options {
  size_t struct_size;          // set by gcap_conv2d_options_init
  cudnnHandle_t handle;        // for planning only; borrowed until create returns
  int n, c, h, w;              // input, each >= 1
  int k;                       // output channels, >= 1
  int kernel_h, kernel_w;      // each >= 1
  int stride_h, stride_w;      // each >= 1, default 1
  int pad_h, pad_w;            // each >= 0, default 0
  bool relu;                   // default false
  size_t max_workspace_bytes;  // most that the algorithm may need; 0, the default: none
} gcap_conv2d_options_t;

// Fills in the defaults. Programs call the init function, which says how large their struct is.
GCAP_API void gcap_conv2d_options_set_defaults(gcap_conv2d_options_t* options);
static inline void gcap_conv2d_options_init(gcap_conv2d_options_t* options) {
  options->struct_size = sizeof(*options);
  gcap_conv2d_options_set_defaults(options);
}

// Conv2d: a planned convolution of fixed shapes: descriptors, the algorithm and its workspace size.
// Thread:   immutable after creation: any number of threads may run it, each with its own stream and workspace.
// Capture:  create before a capture, destroy after it. gcap_conv2d_run is legal once the stream has its handle, and
//           allocates nothing.
// Lifetime: outlives the graphs that recorded it.
typedef struct gcap_conv2d gcap_conv2d_t;

// Plans a convolution.
//   INVALID_ARGUMENT     a NULL argument or handle, a dimension out of range, or a kernel larger than the padded input;
//                        the message names the argument
//   FAILED_PRECONDITION  the calling thread is capturing, which fails its scope: the graph would lack the plan's work
//   UNIMPLEMENTED        no algorithm within the workspace
//   LIBRARY_ERROR        cuDNN failed
//   RESOURCE_EXHAUSTED   no host memory
GCAP_API gcap_status_t gcap_conv2d_create(const gcap_conv2d_options_t* options,
                                          gcap_conv2d_t** out_conv) GCAP_NODISCARD;
GCAP_API void gcap_conv2d_destroy(gcap_conv2d_t* conv);  // NULL is fine

GCAP_API size_t gcap_conv2d_workspace_bytes(const gcap_conv2d_t* conv);
GCAP_API void gcap_conv2d_output_shape(const gcap_conv2d_t* conv, int out_shape[4]);  // n, k, oh, ow

// Issues the convolution on `stream`, with the stream's own handle. All addresses are device memory. `workspace` has
// gcap_conv2d_workspace_bytes bytes, which this stream alone uses until the work is done; NULL if that size is 0.
//   INVALID_ARGUMENT     a NULL argument, named in the message
//   FAILED_PRECONDITION  see gcap_stream_cudnn_handle
//   LIBRARY_ERROR        cuDNN failed
//   CUDA_ERROR           the stream's device could not be made current
GCAP_API gcap_status_t gcap_conv2d_run(const gcap_conv2d_t* conv, gcap_stream_t* stream, const float* x,
                                       const float* weight, const float* bias, float* y,
                                       void* workspace) GCAP_NODISCARD;

// y[n,c,oh,ow] = the maximum of each window of x[n,c,h,w], no padding; oh = (h − window) / stride + 1.
// What has no default is 0 at first, and is refused then.
typedef struct gcap_maxpool2d_options {
  size_t struct_size;  // set by gcap_maxpool2d_options_init
  int n, c, h, w;      // each >= 1
  int window;          // >= 1; square
  int stride;          // >= 1, default 1; the same in both directions
} gcap_maxpool2d_options_t;

// Fills in the defaults. Programs call the init function, which says how large their struct is.
GCAP_API void gcap_maxpool2d_options_set_defaults(gcap_maxpool2d_options_t* options);
static inline void gcap_maxpool2d_options_init(gcap_maxpool2d_options_t* options) {
  options->struct_size = sizeof(*options);
  gcap_maxpool2d_options_set_defaults(options);
}

// Maxpool2d: a planned max-pooling of fixed shapes.
// Thread, Capture, Lifetime: as gcap_conv2d_t. No workspace is needed.
typedef struct gcap_maxpool2d gcap_maxpool2d_t;

// Plans a max-pooling.
//   INVALID_ARGUMENT     a NULL argument, a dimension below 1, or a window larger than the input; the message names the
//                        argument
//   FAILED_PRECONDITION  the calling thread is capturing, which fails its scope: the graph would lack the plan's work
//   LIBRARY_ERROR        cuDNN failed
//   RESOURCE_EXHAUSTED   no host memory
GCAP_API gcap_status_t gcap_maxpool2d_create(const gcap_maxpool2d_options_t* options,
                                             gcap_maxpool2d_t** out_pool) GCAP_NODISCARD;
GCAP_API void gcap_maxpool2d_destroy(gcap_maxpool2d_t* pool);                               // NULL is fine
GCAP_API void gcap_maxpool2d_output_shape(const gcap_maxpool2d_t* pool, int out_shape[4]);  // n, c, oh, ow

// Issues the max-pooling on `stream`, with the stream's own handle. `x` and `y` are device memory.
//   INVALID_ARGUMENT, FAILED_PRECONDITION, LIBRARY_ERROR, CUDA_ERROR  as gcap_conv2d_run
GCAP_API gcap_status_t gcap_maxpool2d_run(const gcap_maxpool2d_t* pool, gcap_stream_t* stream, const float* x,
                                          float* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_OPS_CONV2D_H_
