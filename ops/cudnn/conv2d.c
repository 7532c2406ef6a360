// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Convolution with bias and optional ReLU by cuDNN's fused call, planned once for a shape: descriptors, an algorithm
// and what it needs. A plan does not change after creation and run touches nothing in it, so there is no lock; the
// handle that run uses is the stream's own.
//
// The math type is CUDNN_FMA_MATH: the default lets the library round fp32 inputs to TF32, three decimal digits, on
// tensor cores.
#include "gcap/ops/conv2d.h"

#include <limits.h>
#include <stdlib.h>

#include "lib/internal/capture_check.h"
#include "lib/internal/check_argument.h"
#include "lib/internal/cuda_guard.h"
#include "lib/internal/run_trace.h"
#include "lib/internal/sized.h"
#include "ops/cudnn/cudnn_status.h"

struct gcap_conv2d {
  cudnnTensorDescriptor_t x, y, bias;
  cudnnFilterDescriptor_t weight;
  cudnnConvolutionDescriptor_t convolution;
  cudnnActivationDescriptor_t activation;
  cudnnConvolutionFwdAlgo_t algorithm;
  size_t workspace_bytes;
  int output_shape[4];
};

// The length of one side of the output: the kernel's positions on the padded input.
static gcap_status_t output_side(char side, int input, int pad, int kernel, int stride, int* out_length) {
  *out_length = 0;
  const long long padded = input + 2LL * pad;
  if (padded > INT_MAX) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%c is %d and pad_%c is %d: the padded input exceeds %d", side, input,
                       side, pad, INT_MAX);
  }
  if (kernel > padded) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "kernel_%c is %d, the padded input is %lld (%c %d, pad_%c %d)", side,
                       kernel, padded, side, input, side, pad);
  }
  *out_length = (int)((padded - kernel) / stride + 1);
  return NULL;
}

GCAP_SIZED_OPTIONS(static, gcap_conv2d_options, .stride_h = 1, .stride_w = 1);

static gcap_status_t check_options(const gcap_conv2d_options_t* o) {
  const struct {
    const char* name;
    int value, minimum;
  } members[] = {{"n", o->n, 1},
                 {"c", o->c, 1},
                 {"h", o->h, 1},
                 {"w", o->w, 1},
                 {"k", o->k, 1},
                 {"kernel_h", o->kernel_h, 1},
                 {"kernel_w", o->kernel_w, 1},
                 {"stride_h", o->stride_h, 1},
                 {"stride_w", o->stride_w, 1},
                 {"pad_h", o->pad_h, 0},
                 {"pad_w", o->pad_w, 0}};
  for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); ++i) {
    GCAP_RETURN_IF_ERROR(gcap_cudnn_check_at_least(members[i].name, members[i].value, members[i].minimum));
  }
  return NULL;
}

static gcap_status_t compute_output_shape(const gcap_conv2d_options_t* o, int out_shape[4]) {
  out_shape[0] = o->n;
  out_shape[1] = o->k;
  GCAP_RETURN_IF_ERROR(output_side('h', o->h, o->pad_h, o->kernel_h, o->stride_h, &out_shape[2]));
  return output_side('w', o->w, o->pad_w, o->kernel_w, o->stride_w, &out_shape[3]);
}

static gcap_status_t describe_tensor(cudnnTensorDescriptor_t* out_tensor, int n, int c, int h, int w) {
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreateTensorDescriptor(out_tensor)));
  return GCAP_CUDNN(cudnnSetTensor4dDescriptor(*out_tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w));
}

static gcap_status_t describe(gcap_conv2d_t* conv, const gcap_conv2d_options_t* o) {
  const int* shape = conv->output_shape;
  GCAP_RETURN_IF_ERROR(describe_tensor(&conv->x, o->n, o->c, o->h, o->w));
  GCAP_RETURN_IF_ERROR(describe_tensor(&conv->y, shape[0], shape[1], shape[2], shape[3]));
  GCAP_RETURN_IF_ERROR(describe_tensor(&conv->bias, 1, o->k, 1, 1));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreateFilterDescriptor(&conv->weight)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnSetFilter4dDescriptor(conv->weight, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, o->k,
                                                             o->c, o->kernel_h, o->kernel_w)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreateConvolutionDescriptor(&conv->convolution)));
  GCAP_RETURN_IF_ERROR(
      GCAP_CUDNN(cudnnSetConvolution2dDescriptor(conv->convolution, o->pad_h, o->pad_w, o->stride_h, o->stride_w, 1, 1,
                                                 CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnSetConvolutionMathType(conv->convolution, CUDNN_FMA_MATH)));
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreateActivationDescriptor(&conv->activation)));
  return GCAP_CUDNN(cudnnSetActivationDescriptor(
      conv->activation, o->relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0.0));
}

// cuDNN fuses an identity activation with one algorithm only.
static bool fuses(cudnnConvolutionFwdAlgo_t algorithm, bool relu) {
  return relu || algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
}

// Takes the fastest of the ranked algorithms that may be fused and fits. A candidate's own `memory` is for
// the math type it names, so the need is asked for with the descriptor that run will use.
static gcap_status_t take_first(gcap_conv2d_t* conv, const gcap_conv2d_options_t* o,
                                const cudnnConvolutionFwdAlgoPerf_t* candidates, int count) {
  size_t smallest = SIZE_MAX;
  for (int i = 0; i < count; ++i) {
    const cudnnConvolutionFwdAlgo_t algorithm = candidates[i].algo;
    if (candidates[i].status != CUDNN_STATUS_SUCCESS || !fuses(algorithm, o->relu)) continue;
    size_t bytes = 0;
    const cudnnStatus_t code = cudnnGetConvolutionForwardWorkspaceSize(o->handle, conv->x, conv->weight,
                                                                       conv->convolution, conv->y, algorithm, &bytes);
    if (CUDNN_STATUS_CATEGORY(code) == CUDNN_STATUS_NOT_SUPPORTED) continue;
    GCAP_RETURN_IF_ERROR(gcap_cudnn_status(code, "cudnnGetConvolutionForwardWorkspaceSize", __FILE__, __LINE__));
    if (bytes <= o->max_workspace_bytes) {
      conv->algorithm = algorithm;
      conv->workspace_bytes = bytes;
      return NULL;
    }
    if (bytes < smallest) smallest = bytes;
  }
  if (smallest == SIZE_MAX) {
    return GCAP_STATUS(GCAP_UNIMPLEMENTED, "cuDNN has no algorithm for this convolution with bias%s",
                       o->relu ? " and ReLU" : "");
  }
  return GCAP_STATUS(GCAP_UNIMPLEMENTED, "max_workspace_bytes is %zu, cuDNN's algorithms for this convolution need %zu",
                     o->max_workspace_bytes, smallest);
}

static gcap_status_t choose_algorithm(gcap_conv2d_t* conv, const gcap_conv2d_options_t* o) {
  int capacity = 0, count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnGetConvolutionForwardAlgorithmMaxCount(o->handle, &capacity)));
  cudnnConvolutionFwdAlgoPerf_t* candidates = calloc((size_t)capacity, sizeof(*candidates));
  if (candidates == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %d algorithms", capacity);
  gcap_status_t status = GCAP_CUDNN(cudnnGetConvolutionForwardAlgorithm_v7(
      o->handle, conv->x, conv->weight, conv->convolution, conv->y, capacity, &count, candidates));
  if (status == NULL) status = take_first(conv, o, candidates, count);
  free(candidates);
  return status;
}

gcap_status_t gcap_conv2d_create(const gcap_conv2d_options_t* options, gcap_conv2d_t** out_conv) {
  GCAP_RETURN_IF_NULL(out_conv);
  *out_conv = NULL;
  int shape[4];
  GCAP_RETURN_IF_NULL(options);
  gcap_conv2d_options_t known;
  GCAP_RETURN_IF_ERROR(gcap_conv2d_options_read(options, &known));
  options = &known;
  GCAP_RETURN_IF_NULL(options->handle);
  GCAP_RETURN_IF_ERROR(check_options(options));
  GCAP_RETURN_IF_ERROR(compute_output_shape(options, shape));
  GCAP_RETURN_IF_ERROR(gcap_refuse_in_capture("a convolution is planned before the capture"));
  gcap_trace_initialization();
  gcap_conv2d_t* conv = calloc(1, sizeof(*conv));
  if (conv == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for a convolution");
  for (int i = 0; i < 4; ++i) conv->output_shape[i] = shape[i];
  gcap_status_t status = describe(conv, options);
  if (status == NULL) status = choose_algorithm(conv, options);
  if (status != NULL) {
    gcap_conv2d_destroy(conv);
    return status;
  }
  *out_conv = conv;
  return NULL;
}

void gcap_conv2d_destroy(gcap_conv2d_t* conv) {
  if (conv == NULL) return;
  if (conv->activation != NULL) gcap_cudnn_warn(GCAP_CUDNN(cudnnDestroyActivationDescriptor(conv->activation)));
  if (conv->convolution != NULL) gcap_cudnn_warn(GCAP_CUDNN(cudnnDestroyConvolutionDescriptor(conv->convolution)));
  if (conv->weight != NULL) gcap_cudnn_warn(GCAP_CUDNN(cudnnDestroyFilterDescriptor(conv->weight)));
  if (conv->bias != NULL) gcap_cudnn_warn(GCAP_CUDNN(cudnnDestroyTensorDescriptor(conv->bias)));
  if (conv->y != NULL) gcap_cudnn_warn(GCAP_CUDNN(cudnnDestroyTensorDescriptor(conv->y)));
  if (conv->x != NULL) gcap_cudnn_warn(GCAP_CUDNN(cudnnDestroyTensorDescriptor(conv->x)));
  free(conv);
}

size_t gcap_conv2d_workspace_bytes(const gcap_conv2d_t* conv) { return conv->workspace_bytes; }

void gcap_conv2d_output_shape(const gcap_conv2d_t* conv, int out_shape[4]) {
  for (int i = 0; i < 4; ++i) out_shape[i] = conv->output_shape[i];
}

static gcap_status_t check_workspace(const gcap_conv2d_t* conv, const void* workspace) {
  if (workspace != NULL || conv->workspace_bytes == 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "workspace is NULL, the plan needs %zu bytes", conv->workspace_bytes);
}

gcap_status_t gcap_conv2d_run(const gcap_conv2d_t* conv, gcap_stream_t* stream, const float* x, const float* weight,
                              const float* bias, float* y, void* workspace) {
  static const float one = 1.0f, zero = 0.0f;
  GCAP_RETURN_IF_NULL(conv);
  GCAP_RETURN_IF_NULL(stream);
  GCAP_RETURN_IF_NULL(x);
  GCAP_RETURN_IF_NULL(weight);
  GCAP_RETURN_IF_NULL(bias);
  GCAP_RETURN_IF_NULL(y);
  GCAP_RETURN_IF_ERROR(check_workspace(conv, workspace));
  cudnnHandle_t handle = NULL;
  GCAP_RETURN_IF_ERROR(gcap_stream_cudnn_handle(stream, &handle));
  const int device_id = gcap_stream_device(stream);
  int previous = 0;
  GCAP_RETURN_IF_ERROR(gcap_device_push(device_id, &previous));
  // The summand z is not wanted: its factor is 0, and y stands in for it.
  gcap_status_t status = GCAP_CUDNN(cudnnConvolutionBiasActivationForward(
      handle, &one, conv->x, x, conv->weight, weight, conv->convolution, conv->algorithm, workspace,
      conv->workspace_bytes, &zero, conv->y, y, conv->bias, bias, conv->activation, conv->y, y));
  return gcap_status_join(status, gcap_device_pop(device_id, previous));
}
