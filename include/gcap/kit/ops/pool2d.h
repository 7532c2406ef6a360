// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// pool2d.h: two-dimensional max and average pooling, by cuDNN or, where cuDNN lacks the windows, by a kernel of gcap's;
// planned before capture.
#ifndef GCAP_KIT_OPS_POOL2D_H_
#define GCAP_KIT_OPS_POOL2D_H_

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "gcap/kit/ops/cudnn.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gcap_pool2d_mode {
  GCAP_POOL2D_MAX = 0,  // padding never wins; a NaN does
  GCAP_POOL2D_AVERAGE,
} gcap_pool2d_mode_t;

// y[n,c,oh,ow] = the maximum or the average of each window of x[n,c,h,w], as ONNX MaxPool, AveragePool and, with
// `global`, GlobalMaxPool and GlobalAveragePool. oh = (h + pad_h + pad_h_end − reach_h) / stride_h + 1, where reach_h
// is dilation_h · (kernel_h − 1) + 1; with `ceil_mode` rounded up, but not for a window that begins behind the last
// row. A one-dimensional pooling has h, kernel_h and stride_h 1. What has no default is 0 at first, and is refused
// then; but for n.
//
// If dilation leaves a window no element of x, its maximum is -infinity and its average is NaN, or 0 with
// count_include_pad.
typedef struct gcap_pool2d_options {
  size_t struct_size;          // set by gcap_pool2d_options_init
  int n, c, h, w;              // input, each >= 1, but n >= 0
  int kernel_h, kernel_w;      // each >= 1
  int stride_h, stride_w;      // each >= 1, default 1
  int pad_h, pad_w;            // before the first row and column, each in 0..reach - 1, default 0
  int pad_h_end, pad_w_end;    // behind the last row and column; -1, the default: as pad_h and pad_w
  gcap_pool2d_mode_t mode;     // default MAX
  bool count_include_pad;      // an average counts pads as zeros, but not what is behind them; default false
  bool global;                 // one window over all of h and w: kernel to pads, dilation and ceil_mode are not read
  gcap_dtype_t dtype;          // of x and y: F32, the default, F16 or BF16
  gcap_image_layout_t layout;  // of x and y; default NCHW
  int dilation_h, dilation_w;  // each >= 1, default 1
  bool ceil_mode;              // a last window may reach over the end; default false
} gcap_pool2d_options_t;

// Sets the size and the defaults.
static inline void gcap_pool2d_options_init(gcap_pool2d_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
  options->stride_h = options->stride_w = 1;
  options->pad_h_end = options->pad_w_end = -1;
  options->dilation_h = options->dilation_w = 1;
}

// Pool2d: a planned pooling of fixed shapes.
// Thread:   immutable after creation: any number of threads may run it, each with its own stream.
// Capture:  create before a capture, destroy after it. gcap_pool2d_run is legal once the stream has its handle, allocates
//           nothing and records kernel nodes only. No workspace is needed. cuDNN has no dilation and pads both ends
//           alike: what has other windows is done by a kernel of gcap's, which needs no handle.
// Lifetime: outlives the graphs that recorded it.
typedef struct gcap_pool2d gcap_pool2d_t;

// Plans a pooling.
//   INVALID_ARGUMENT     a NULL argument, an unknown enum value, a number out of range, a reach larger than the padded
//                        input, a padded input of more than 2^30 rows or columns, or, for gcap's kernel, a tensor of
//                        more than 2^40 elements; the message names the argument
//   FAILED_PRECONDITION  the calling thread is capturing, which fails its scope: the graph would lack the plan's work
//   LIBRARY_ERROR        cuDNN failed
//   RESOURCE_EXHAUSTED   no host memory
GCAP_API gcap_status_t gcap_pool2d_create(const gcap_pool2d_options_t* options,
                                          gcap_pool2d_t** out_pool) GCAP_NODISCARD;
GCAP_API void gcap_pool2d_destroy(gcap_pool2d_t* pool);  // NULL is fine

// Issues the pooling on `stream`, with the stream's own handle if cuDNN does it. `x` and `y` are device memory: F32
// aligned as floats, F16 and BF16 to 16 bytes. If n is 0, there is nothing to do, and both may be NULL.
//   INVALID_ARGUMENT     a NULL argument or a misaligned address, named in the message
//   FAILED_PRECONDITION  see gcap_stream_cudnn_handle
//   LIBRARY_ERROR        cuDNN failed
//   CUDA_ERROR           the stream's device could not be made current, or the launch failed
GCAP_API gcap_status_t gcap_pool2d_run(const gcap_pool2d_t* pool, gcap_stream_t* stream, const void* x,
                                       void* y) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_OPS_POOL2D_H_
