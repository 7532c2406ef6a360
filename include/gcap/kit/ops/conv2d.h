// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// conv2d.h: convolution of images, and of volumes, with bias and ReLU, by cuDNN or, if small, by a kernel of gcap's;
// planned before capture.
#ifndef GCAP_KIT_OPS_CONV2D_H_
#define GCAP_KIT_OPS_CONV2D_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gcap/kit/ops/cudnn.h"
#include "gcap/scratch.h"
#include "gcap/status.h"
#include "gcap/stream.h"
#include "gcap/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// How the algorithm is found.
typedef enum gcap_conv2d_search {
  GCAP_CONV2D_SEARCH_HEURISTIC = 0,  // cuDNN ranks its algorithms
  GCAP_CONV2D_SEARCH_EXHAUSTIVE,     // cuDNN runs and times them
} gcap_conv2d_search_t;

// Whether a kernel of gcap's computes each output directly, in one launch. To issue that costs the host a fraction of
// what a call of cuDNN does, and there is no workspace; but cuDNN's algorithms compute large convolutions faster.
typedef enum gcap_conv2d_direct {
  // If the convolution is small: NCHW, a window of up to 9, up to 160 products for an output, up to 32,768 outputs.
  // An exhaustive search is then left out.
  GCAP_CONV2D_DIRECT_AUTO = 0,
  GCAP_CONV2D_DIRECT_NEVER,
  GCAP_CONV2D_DIRECT_ALWAYS,
} gcap_conv2d_direct_t;

// y[n,k,oh,ow] = conv(x[n,c,h,w], weight[k,c/groups,kernel_h,kernel_w]) + bias[k] (then ReLU): a cross-correlation, as
// ONNX Conv. oh = (h + pad_h + pad_h_end − dilation_h · (kernel_h − 1) − 1) / stride_h + 1. A one-dimensional
// convolution has h, kernel_h and stride_h 1. A third axis stands before h in x, y and the weight; what ends in _d is
// of this axis, and is not read if `d` is 0. What has no default is 0 at first, and is refused then; but for n and d.
typedef struct gcap_conv2d_options {
  size_t struct_size;              // set by gcap_conv2d_options_init
  cudnnHandle_t handle;            // for planning only; borrowed until create returns; not read if `direct` is ALWAYS
  int n, c, h, w;                  // input, each >= 1, but n >= 0
  int k;                           // output channels, >= 1
  int kernel_h, kernel_w;          // each >= 1
  int stride_h, stride_w;          // each >= 1, default 1
  int pad_h, pad_w;                // before the first row and column, each >= 0, default 0
  bool relu;                       // default false
  size_t max_workspace_bytes;      // most that the algorithm may need; 0, the default: none; SIZE_MAX: any
  gcap_dtype_t dtype;              // of all operands: F32, the default, F16 or BF16; sums are f32
  bool tf32;                       // F32 operands may be rounded to TF32 (10 bits) for speed; default false
  bool no_bias;                    // there is no bias; default false
  gcap_image_layout_t layout;      // of x, y and the weight; default NCHW
  int groups;                      // divides c and k; default 1
  int dilation_h, dilation_w;      // each >= 1, default 1
  int pad_h_end, pad_w_end;        // behind the last row and column; -1, the default: as pad_h and pad_w
  gcap_conv2d_search_t search;     // default HEURISTIC
  gcap_stream_t* search_stream;    // where an exhaustive search runs; else ignored
  gcap_scratch_t* search_scratch;  // where it takes its operands and workspace from, until create returns
  gcap_conv2d_direct_t direct;     // default AUTO; not ALWAYS with a third axis, which the kernel does not have
  int d;                           // size of a third axis; 0, the default: there is none. The layout is then NCHW
  int kernel_d;                    // >= 1
  int stride_d, dilation_d;        // each >= 1, default 1
  int pad_d, pad_d_end;            // >= 0, default 0; -1, the default: as pad_d
} gcap_conv2d_options_t;

// Sets the size and the defaults.
static inline void gcap_conv2d_options_init(gcap_conv2d_options_t* options) {
  memset(options, 0, sizeof(*options));
  options->struct_size = sizeof(*options);
  options->stride_h = options->stride_w = 1;
  options->groups = 1;
  options->dilation_h = options->dilation_w = 1;
  options->pad_h_end = options->pad_w_end = -1;
  options->stride_d = options->dilation_d = 1;
  options->pad_d_end = -1;
}

// Conv2d: a planned convolution of fixed shapes: descriptors, the algorithm and its workspace size. A plan is for one
// shape and one device; a kernel keeps the plan of the shapes that it was made for, so there is no cache here.
// Thread:   immutable after creation: any number of threads may run it, each with its own stream and workspace.
// Capture:  create before a capture, destroy after it. gcap_conv2d_run is legal once the stream has its handle, and
//           allocates nothing. It records kernel nodes; the first of them pads the input in the workspace, if pads
//           differ; and a memset, if there is a ReLU without a bias. A direct plan needs no handle, and records one
//           kernel node.
// Lifetime: outlives the graphs that recorded it.
typedef struct gcap_conv2d gcap_conv2d_t;

// Plans a convolution. An exhaustive search waits for its stream.
//   INVALID_ARGUMENT     a NULL argument or handle, an unknown enum value, a number out of range, groups that do not
//                        divide the channels, a kernel larger than the padded input, a direct plan for a tensor of
//                        more than 2^40 elements or for a third axis, or a third axis in NHWC; the message names the
//                        argument
//   FAILED_PRECONDITION  the calling thread is capturing, which fails its scope: the graph would lack the plan's work;
//                        or the search's stream is
//   UNIMPLEMENTED        no algorithm within the workspace
//   LIBRARY_ERROR        cuDNN failed
//   CUDA_ERROR           exhaustive search: the stream's device could not be made current, or a memset failed
//   RESOURCE_EXHAUSTED   no host memory, or no scratch for the search
// An exhaustive search also answers what gcap_scratch_alloc and gcap_scratch_free do.
GCAP_API gcap_status_t gcap_conv2d_create(const gcap_conv2d_options_t* options,
                                          gcap_conv2d_t** out_conv) GCAP_NODISCARD;
GCAP_API void gcap_conv2d_destroy(gcap_conv2d_t* conv);  // NULL is fine

// What a plan is.
typedef struct gcap_conv2d_info {
  size_t struct_size;      // set by gcap_conv2d_get_info
  bool is_direct;          // gcap's kernel does the convolution
  size_t workspace_bytes;  // at most max_workspace_bytes, and what a padded input and a bias of zeros take. 0 if direct
  int output_shape[4];     // n, k, oh, ow; in any layout
  int output_d;            // of the third axis, before oh; 0 without it
} gcap_conv2d_info_t;

// Reads what the plan is. Programs call gcap_conv2d_get_info, which sets the size.
GCAP_API void gcap_conv2d_read_info(const gcap_conv2d_t* conv, gcap_conv2d_info_t* out_info);
static inline void gcap_conv2d_get_info(const gcap_conv2d_t* conv, gcap_conv2d_info_t* out_info) {
  out_info->struct_size = sizeof(*out_info);
  gcap_conv2d_read_info(conv, out_info);
}

// Issues the convolution on `stream`, with the stream's own handle unless the plan is direct. All addresses are device
// memory: those of F32 aligned as floats, those of F16 and BF16 to 16 bytes. `bias` is NULL exactly if the plan has
// none. `workspace` has gcap_conv2d_info_t.workspace_bytes bytes, 256-byte aligned, which this stream alone uses until
// the work is done; NULL if that size is 0. If n is 0, there is nothing to do, and all addresses may be NULL.
//   INVALID_ARGUMENT     a NULL argument, a bias that the plan lacks, or a misaligned address, named in the message
//   FAILED_PRECONDITION  see gcap_stream_cudnn_handle
//   LIBRARY_ERROR        cuDNN failed
//   CUDA_ERROR           the stream's device could not be made current, or a copy, a memset or a launch failed
GCAP_API gcap_status_t gcap_conv2d_run(const gcap_conv2d_t* conv, gcap_stream_t* stream, const void* x,
                                       const void* weight, const void* bias, void* y, void* workspace) GCAP_NODISCARD;

#ifdef __cplusplus
}  // extern "C"
#endif
#endif  // GCAP_KIT_OPS_CONV2D_H_
