// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Convolution by cuDNN or by gcap's kernel, planned once for a shape. What cuDNN does has descriptors, an algorithm and
// what that needs; with a bias or a ReLU it is the library's fused call, else the plain one, which more algorithms can
// do. A plan does not change after creation and run touches nothing in it, so there is no lock; the handle that run
// uses is the stream's own.
//
// The math type of F32 is CUDNN_FMA_MATH: the default lets the library round inputs to TF32, three decimal digits, on
// tensor cores.
#include "gcap/kit/ops/conv2d.h"

#include <stdlib.h>

#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/run_trace.h"
#include "lib/internal/sized.h"
#include "ops/cudnn/conv2d_plan.h"
#include "ops/cudnn/cudnn_status.h"
#include "ops/cudnn/cudnn_tensor.h"
#include "ops/handles/end_warning.h"

static cudnnMathType_t math_type(const gcap_conv2d_options_t* o) {
  if (o->dtype != GCAP_DTYPE_F32) return CUDNN_TENSOR_OP_MATH;
  return o->tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

// The function takes arrays of two axes too: those from the second entry on.
static gcap_status_t describe_convolution(gcap_conv2d_t* conv) {
  const gcap_conv2d_options_t* o = &conv->options;
  const int axes = conv->is_volume ? 3 : 2, first = 3 - axes;
  const int pads[] = {gcap_conv2d_symmetric_pad(o->pad_d, o->pad_d_end),
                      gcap_conv2d_symmetric_pad(o->pad_h, o->pad_h_end),
                      gcap_conv2d_symmetric_pad(o->pad_w, o->pad_w_end)};
  const int strides[] = {o->stride_d, o->stride_h, o->stride_w};
  const int dilations[] = {o->dilation_d, o->dilation_h, o->dilation_w};
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreateConvolutionDescriptor(&conv->convolution)));
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDNN(cudnnSetConvolutionNdDescriptor(conv->convolution, axes, pads + first, strides + first,
                                                 dilations + first, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnSetConvolutionGroupCount(conv->convolution, o->groups)));
  return GCAP_CUDNN(cudnnSetConvolutionMathType(conv->convolution, math_type(o)));
}

// Of n, c, h, w and, in a volume, d.
static gcap_status_t describe_tensor(const gcap_conv2d_t* conv, const int shape[5], cudnnTensorDescriptor_t* out) {
  const gcap_conv2d_options_t* o = &conv->options;
  if (!conv->is_volume) return gcap_cudnn_describe_tensor(o->dtype, o->layout, shape, out);
  const int dims[] = {shape[0], shape[1], shape[4], shape[2], shape[3]};
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreateTensorDescriptor(out)));
  return GCAP_CUDNN(
      cudnnSetTensorNdDescriptorEx(*out, CUDNN_TENSOR_NCHW, gcap_cudnn_data_type(o->dtype), /*nbDims=*/5, dims));
}

static gcap_status_t describe_weight(gcap_conv2d_t* conv) {
  const gcap_conv2d_options_t* o = &conv->options;
  const cudnnDataType_t type = gcap_cudnn_data_type(o->dtype);
  const int c = o->c / o->groups, dims[] = {o->k, c, o->kernel_d, o->kernel_h, o->kernel_w};
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreateFilterDescriptor(&conv->weight)));
  if (conv->is_volume) {
    return GCAP_CUDNN(cudnnSetFilterNdDescriptor(conv->weight, type, CUDNN_TENSOR_NCHW, /*nbDims=*/5, dims));
  }
  return GCAP_CUDNN(cudnnSetFilter4dDescriptor(conv->weight, type, gcap_cudnn_tensor_format(o->layout), o->k, c,
                                               o->kernel_h, o->kernel_w));
}

static gcap_status_t describe_fusion(gcap_conv2d_t* conv) {
  const gcap_conv2d_options_t* o = &conv->options;
  if (o->no_bias && !o->relu) return NULL;
  GCAP_RETURN_IF_ERROR(describe_tensor(conv, (const int[]){1, o->k, 1, 1, 1}, &conv->bias));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreateActivationDescriptor(&conv->activation)));
  return GCAP_CUDNN(cudnnSetActivationDescriptor(
      conv->activation, o->relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0.0));
}

static gcap_status_t describe(gcap_conv2d_t* conv) {
  const gcap_conv2d_options_t* o = &conv->options;
  const int x_shape[] = {o->n, o->c, conv->padded_h, conv->padded_w, conv->padded_d};
  GCAP_RETURN_IF_ERROR(describe_tensor(conv, x_shape, &conv->x));
  GCAP_RETURN_IF_ERROR(describe_tensor(conv, conv->output_shape, &conv->y));
  GCAP_RETURN_IF_ERROR(describe_weight(conv));
  GCAP_RETURN_IF_ERROR(describe_convolution(conv));
  return describe_fusion(conv);
}

static gcap_conv2d_part_t place_part(size_t* end, size_t bytes) {
  const size_t unit = GCAP_CONV2D_WORKSPACE_ALIGNMENT;
  const gcap_conv2d_part_t part = {(*end + unit - 1) / unit * unit, bytes};
  if (bytes != 0) *end = part.offset + bytes;
  return part;
}

// What stands behind the algorithm's part of the workspace.
static void place_parts(gcap_conv2d_t* conv) {
  const gcap_conv2d_options_t* o = &conv->options;
  const bool is_padded = conv->padded_h != o->h || conv->padded_w != o->w || conv->padded_d != o->d;
  const size_t pixels = (size_t)conv->padded_d * (size_t)conv->padded_h * (size_t)conv->padded_w;
  const size_t padded_bytes = (size_t)o->n * (size_t)o->c * pixels * conv->element_bytes;
  size_t end = conv->algorithm_bytes;
  conv->padded = place_part(&end, is_padded ? padded_bytes : 0);
  conv->zeros = place_part(&end, o->no_bias && o->relu ? (size_t)o->k * conv->element_bytes : 0);
}

static gcap_status_t plan(gcap_conv2d_t* conv) {
  const gcap_conv2d_options_t* o = &conv->options;
  conv->is_empty = o->n == 0;
  if (conv->is_empty) return NULL;
  conv->is_direct = gcap_conv2d_choose_direct(conv);
  if (conv->is_direct) return gcap_conv2d_plan_direct(conv);
  conv->element_bytes = gcap_dtype_bytes(o->dtype);
  conv->padded_d = o->d + abs(o->pad_d - o->pad_d_end);
  conv->padded_h = o->h + abs(o->pad_h - o->pad_h_end);
  conv->padded_w = o->w + abs(o->pad_w - o->pad_w_end);
  GCAP_RETURN_IF_ERROR(describe(conv));
  GCAP_RETURN_IF_ERROR(gcap_conv2d_choose(conv));
  place_parts(conv);
  return NULL;
}

gcap_status_t gcap_conv2d_create(const gcap_conv2d_options_t* options, gcap_conv2d_t** out_conv) {
  GCAP_RETURN_IF_NULL(out_conv);
  *out_conv = NULL;
  GCAP_RETURN_IF_NULL(options);
  gcap_conv2d_options_t known;
  int shape[5];
  bool is_volume = false;
  GCAP_RETURN_IF_ERROR(gcap_conv2d_check_options(options, &known, shape, &is_volume));
  GCAP_RETURN_IF_ERROR(gcap_refuse_in_capture("a convolution is planned before the capture"));
  gcap_trace_initialization(GCAP_INITIALIZED_PLAN);
  gcap_conv2d_t* conv = calloc(1, sizeof(*conv));
  if (conv == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a convolution");
  conv->options = known;
  conv->is_volume = is_volume;
  for (int i = 0; i < 5; ++i) conv->output_shape[i] = shape[i];
  gcap_status_t status = plan(conv);
  if (status != NULL) {
    gcap_conv2d_destroy(conv);
    return status;
  }
  *out_conv = conv;
  return NULL;
}

void gcap_conv2d_destroy(gcap_conv2d_t* conv) {
  if (conv == NULL) return;
  if (conv->activation != NULL) gcap_warn_of_end(GCAP_CUDNN(cudnnDestroyActivationDescriptor(conv->activation)));
  if (conv->convolution != NULL) gcap_warn_of_end(GCAP_CUDNN(cudnnDestroyConvolutionDescriptor(conv->convolution)));
  if (conv->weight != NULL) gcap_warn_of_end(GCAP_CUDNN(cudnnDestroyFilterDescriptor(conv->weight)));
  gcap_cudnn_end_tensor(conv->bias);
  gcap_cudnn_end_tensor(conv->y);
  gcap_cudnn_end_tensor(conv->x);
  free(conv);
}

static size_t workspace_bytes(const gcap_conv2d_t* conv) {
  if (conv->zeros.bytes != 0) return conv->zeros.offset + conv->zeros.bytes;
  return conv->padded.bytes != 0 ? conv->padded.offset + conv->padded.bytes : conv->algorithm_bytes;
}

void gcap_conv2d_read_info(const gcap_conv2d_t* conv, gcap_conv2d_info_t* out_info) {
  static const gcap_sized_type_t type = {.name = "gcap_conv2d_info", .bytes = sizeof(gcap_conv2d_info_t)};
  gcap_conv2d_info_t info = {.struct_size = sizeof(info),
                             .is_direct = conv->is_direct,
                             .workspace_bytes = workspace_bytes(conv),
                             .output_d = conv->is_volume ? conv->output_shape[4] : 0};
  for (int i = 0; i < 4; ++i) info.output_shape[i] = conv->output_shape[i];
  gcap_sized_write(&type, &info, out_info);
}

// The addresses of a run.
typedef struct operands {
  const void *x, *weight, *bias;
  void *y, *workspace;
} operands_t;

static gcap_status_t check_operands(const gcap_conv2d_t* conv, const operands_t* p) {
  const gcap_dtype_t dtype = conv->options.dtype;
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("x", p->x, dtype));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("weight", p->weight, dtype));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("y", p->y, dtype));
  if (!conv->options.no_bias) {
    GCAP_RETURN_IF_ERROR(gcap_cudnn_check_address("bias", p->bias, dtype));
  } else if (p->bias != NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "bias is not NULL, the plan has none");
  }
  const size_t bytes = workspace_bytes(conv);
  if (bytes == 0) return NULL;
  if (p->workspace == NULL) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "workspace is NULL, the plan needs %zu bytes", bytes);
  }
  if ((uintptr_t)p->workspace % GCAP_CONV2D_WORKSPACE_ALIGNMENT == 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "workspace is %p, it must be %d-byte aligned", p->workspace,
                     (int)GCAP_CONV2D_WORKSPACE_ALIGNMENT);
}

// Puts parts of the workspace in the place of the caller's operands.
static gcap_status_t prepare(const gcap_conv2d_t* conv, gcap_stream_t* stream, operands_t* p) {
  if (conv->padded.bytes != 0) {
    void* padded = (char*)p->workspace + conv->padded.offset;
    GCAP_RETURN_IF_ERROR(gcap_conv2d_pad_input(conv, stream, p->x, padded));
    p->x = padded;
  }
  if (conv->zeros.bytes != 0) {
    void* zeros = (char*)p->workspace + conv->zeros.offset;
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(zeros, 0, conv->zeros.bytes, gcap_stream_handle(stream))));
    p->bias = zeros;
  }
  return NULL;
}

static gcap_status_t issue(const gcap_conv2d_t* conv, gcap_stream_t* stream, cudnnHandle_t handle, operands_t p) {
  static const float one = 1.0f, zero = 0.0f;
  GCAP_RETURN_IF_ERROR(prepare(conv, stream, &p));
  if (conv->activation == NULL) {
    return GCAP_CUDNN(cudnnConvolutionForward(handle, &one, conv->x, p.x, conv->weight, p.weight, conv->convolution,
                                              conv->algorithm, p.workspace, conv->algorithm_bytes, &zero, conv->y,
                                              p.y));
  }
  // The summand z is not wanted: its factor is 0, and y stands in for it.
  return GCAP_CUDNN(cudnnConvolutionBiasActivationForward(
      handle, &one, conv->x, p.x, conv->weight, p.weight, conv->convolution, conv->algorithm, p.workspace,
      conv->algorithm_bytes, &zero, conv->y, p.y, conv->bias, p.bias, conv->activation, conv->y, p.y));
}

static gcap_status_t run_direct(const gcap_conv2d_t* conv, gcap_stream_t* stream, const operands_t* p) {
  gcap_direct_conv_params_t params = conv->direct;
  params.x = p->x;
  params.weight = p->weight;
  params.bias = p->bias;
  params.y = p->y;
  return gcap_direct_conv(stream, conv->options.dtype, &params);
}

gcap_status_t gcap_conv2d_run(const gcap_conv2d_t* conv, gcap_stream_t* stream, const void* x, const void* weight,
                              const void* bias, void* y, void* workspace) {
  GCAP_RETURN_IF_NULL(conv);
  GCAP_RETURN_IF_NULL(stream);
  if (conv->is_empty) return NULL;
  const operands_t operands = {x, weight, bias, y, workspace};
  GCAP_RETURN_IF_ERROR(check_operands(conv, &operands));
  if (conv->is_direct) return run_direct(conv, stream, &operands);
  cudnnHandle_t handle = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_cudnn_handle(stream, &handle));
  const int device_id = gcap_stream_device(stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  gcap_status_t status = issue(conv, stream, handle, operands);
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}
