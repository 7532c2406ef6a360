// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Convolution calls: the output size, the algorithms and their workspace, the forward pass and the fused one.
// Descriptors and pointers are checked into a sim_dnn_conv_t, which the queued work carries. The simulator has the
// three algorithms of conv_math.c; the others are ones that a given shape may not have on a GPU either, and are
// answered so. Stateless.
#include <string.h>

#include "sim/cudnn/internal.h"

// What the simulated heuristic answers, the best first: those it has, then those it has not.
static const cudnnConvolutionFwdAlgo_t ranking[] = {
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
    CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING,
    CUDNN_CONVOLUTION_FWD_ALGO_DIRECT,
};

enum {
  kRankingSize = sizeof ranking / sizeof ranking[0],
  kMaxCount = 10  // measured: the real library asks for more room than it fills
};

static int has_algorithm(cudnnConvolutionFwdAlgo_t algo) { return (unsigned)algo <= CUDNN_CONVOLUTION_FWD_ALGO_GEMM; }

static cudnnStatus_t check_descriptors(const char* function, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                       cudnnConvolutionDescriptor_t conv) {
  cudnnStatus_t status = sim_dnn_check(function, &sim_dnn_tensor_kind, x, "the input's descriptor");
  if (status == CUDNN_STATUS_SUCCESS) {
    status = sim_dnn_check(function, &sim_dnn_filter_kind, w, "the filter's descriptor");
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = sim_dnn_check(function, &sim_dnn_convolution_kind, conv, "the convolution's descriptor");
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    sim_dnn_stop_unless_float(function, x->type);
    sim_dnn_stop_unless_float(function, w->type);
    sim_dnn_stop_unless_float(function, conv->compute_type);
  }
  return status;
}

// Fills all but the data pointers. The output's strides are left to the caller.
static cudnnStatus_t make_conv(const char* function, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                               cudnnConvolutionDescriptor_t conv, sim_dnn_conv_t* out) {
  cudnnStatus_t status = check_descriptors(function, x, w, conv);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  *out = (sim_dnn_conv_t){.x_shape = x->shape, .w_shape = w->shape, .groups = 1 + conv->more_groups};
  memcpy(out->pad, conv->pad, sizeof out->pad);
  memcpy(out->stride, conv->stride, sizeof out->stride);
  memcpy(out->dilation, conv->dilation, sizeof out->dilation);
  out->flip = conv->mode == CUDNN_CONVOLUTION;
  const int64_t* w_dims = w->shape.dims;
  // NOTE: cuDNN 9.19 computes something when the groups do not match; nobody wants that.
  if (w_dims[1] * out->groups != x->shape.dims[1] || w_dims[0] % out->groups != 0) {
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM,
                        "%lld input channels, %d groups and a filter of %lld x %lld channels do not match",
                        (long long)x->shape.dims[1], out->groups, (long long)w_dims[0], (long long)w_dims[1]);
  }
  if (sim_dnn_offset(&x->shape, 0, 0, x->shape.dims[2] - 1, x->shape.dims[3] - 1) > INT32_MAX) {
    sim_stop(function, "a channel that spans more than 2^31 elements is not modelled");
  }
  int64_t* y_dims = out->y_shape.dims;
  y_dims[0] = x->shape.dims[0];
  y_dims[1] = w_dims[0];
  for (int i = 0; i < 2; ++i) {
    const int64_t window = (w_dims[2 + i] - 1) * conv->dilation[i] + 1;
    y_dims[2 + i] = sim_dnn_windows(x->shape.dims[2 + i], window, conv->pad[i], conv->stride[i]);
    if (y_dims[2 + i] == 0) {
      return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the filter is larger than the padded input");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

// The same with the output's descriptor, which must have the dimensions that the convolution gives.
static cudnnStatus_t make_conv_with_output(const char* function, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                           cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y,
                                           sim_dnn_conv_t* out) {
  cudnnStatus_t status = make_conv(function, x, w, conv, out);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = sim_dnn_check(function, &sim_dnn_tensor_kind, y, "the output's descriptor");
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  sim_dnn_stop_unless_float(function, y->type);
  if (!sim_dnn_same_dims(&out->y_shape, &y->shape)) {
    const int64_t* dims = out->y_shape.dims;
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the output must be %lld x %lld x %lld x %lld",
                        (long long)dims[0], (long long)dims[1], (long long)dims[2], (long long)dims[3]);
  }
  out->y_shape = y->shape;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_algorithm(const char* function, cudnnConvolutionFwdAlgo_t algo) {
  if (!has_algorithm(algo)) {
    return sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED, "algorithm %d is not supported", (int)algo);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t convDesc,
                                                    const cudnnTensorDescriptor_t inputTensorDesc,
                                                    const cudnnFilterDescriptor_t filterDesc, int* n, int* c, int* h,
                                                    int* w) {
  sim_dnn_conv_t conv;
  cudnnStatus_t status = sim_dnn_enter(__func__);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = make_conv(__func__, inputTensorDesc, filterDesc, convDesc, &conv);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  int* out[] = {n, c, h, w};
  for (int i = 0; i < 4; ++i) {
    if (out[i] == NULL) {
      return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "an out pointer is NULL");
    }
    *out[i] = (int)conv.y_shape.dims[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  cudnnStatus_t status = sim_dnn_enter_with_handle(__func__, handle);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (count == NULL) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "the out pointer is NULL");
  }
  *count = kMaxCount;
  return CUDNN_STATUS_SUCCESS;
}

// What a search says of an algorithm that it ran with a result of `ran` and so much workspace.
static cudnnStatus_t judge(const sim_dnn_conv_t* conv, cudnnConvolutionFwdAlgo_t algo, size_t usable_bytes,
                           cudnnStatus_t ran) {
  if (!has_algorithm(algo)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (ran != CUDNN_STATUS_SUCCESS) {
    return CUDNN_STATUS_INTERNAL_ERROR;
  }
  const int fits = sim_dnn_conv_workspace(conv, algo) <= usable_bytes;
  return fits ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE;
}

// Fills up to `requested` results, those that succeed first. The simulator has no timing model: times are not measured.
static int rank(const sim_dnn_conv_t* conv, cudnnMathType_t math_type, size_t usable_bytes, cudnnStatus_t ran,
                int requested, cudnnConvolutionFwdAlgoPerf_t* out) {
  int count = 0;
  for (int good = 1; good >= 0; --good) {
    for (int i = 0; i < kRankingSize && count < requested; ++i) {
      const cudnnStatus_t status = judge(conv, ranking[i], usable_bytes, ran);
      if ((status == CUDNN_STATUS_SUCCESS) != good) {
        continue;
      }
      out[count++] = (cudnnConvolutionFwdAlgoPerf_t){.algo = ranking[i],
                                                     .status = status,
                                                     .time = -1.0f,
                                                     .memory = sim_dnn_conv_workspace(conv, ranking[i]),
                                                     .determinism = CUDNN_DETERMINISTIC,
                                                     .mathType = math_type};
    }
  }
  return count;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
                                                     const cudnnFilterDescriptor_t filterDesc,
                                                     const cudnnConvolutionDescriptor_t convDesc,
                                                     const cudnnTensorDescriptor_t destDesc,
                                                     const int requestedAlgoCount, int* returnedAlgoCount,
                                                     cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  sim_dnn_conv_t conv;
  cudnnStatus_t status = sim_dnn_enter_with_handle(__func__, handle);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = make_conv_with_output(__func__, srcDesc, filterDesc, convDesc, destDesc, &conv);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (requestedAlgoCount < 0 || returnedAlgoCount == NULL || perfResults == NULL) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "no room for results");
  }
  *returnedAlgoCount =
      rank(&conv, convDesc->math_type, SIZE_MAX, CUDNN_STATUS_SUCCESS, requestedAlgoCount, perfResults);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
                                                      const cudnnFilterDescriptor_t wDesc,
                                                      const cudnnConvolutionDescriptor_t convDesc,
                                                      const cudnnTensorDescriptor_t yDesc,
                                                      cudnnConvolutionFwdAlgo_t algo, size_t* sizeInBytes) {
  sim_dnn_conv_t conv;
  cudnnStatus_t status = sim_dnn_enter_with_handle(__func__, handle);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = make_conv_with_output(__func__, xDesc, wDesc, convDesc, yDesc, &conv);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_algorithm(__func__, algo);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (sizeInBytes == NULL) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "the out pointer is NULL");
  }
  *sizeInBytes = sim_dnn_conv_workspace(&conv, algo);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t bind_workspace(const char* function, cudnnConvolutionFwdAlgo_t algo, void* workspace, size_t bytes,
                                    sim_dnn_conv_t* conv) {
  cudnnStatus_t status = check_algorithm(function, algo);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const size_t needed = sim_dnn_conv_workspace(conv, algo);
  if (bytes < needed || (needed != 0 && workspace == NULL)) {
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the workspace is %p of %zu bytes, algorithm %d needs %zu",
                        workspace, bytes, (int)algo, needed);
  }
  if (needed != 0 && (uintptr_t)workspace % sizeof(float) != 0) {
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the workspace %p is misaligned", workspace);
  }
  conv->algo = algo;
  conv->workspace = needed != 0 ? workspace : NULL;
  return CUDNN_STATUS_SUCCESS;
}

static cudaError_t submit_table(const char* function, cudaStream_t stream, const sim_dnn_conv_t* conv) {
  sim_access_list_t list = {0};
  sim_access_add(&list, conv->workspace, sim_dnn_conv_workspace(conv, conv->algo), SIM_WRITE);
  return sim_access_submit(&list, stream, function, sim_dnn_run_conv_table, conv, sizeof *conv);
}

// One kernel, or two where a table has to be computed first.
static cudnnStatus_t submit(const char* function, cudaStream_t stream, const sim_dnn_conv_t* conv) {
  const int has_table = conv->algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  if (has_table) {
    const cudaError_t error = submit_table(function, stream, conv);
    if (error != cudaSuccess) {
      return sim_dnn_status(function, error);
    }
  }
  const int64_t bias_dims[] = {conv->w_shape.dims[0]};
  sim_access_list_t list = {0};
  sim_dnn_add_access(&list, &conv->x_shape, conv->x, SIM_READ);
  sim_dnn_add_access(&list, &conv->w_shape, conv->w, SIM_READ);
  sim_dnn_add_access(&list, &conv->z_shape, conv->z, SIM_READ);
  sim_access_add_strided(&list, conv->bias, sizeof *conv->bias, 1, bias_dims, &conv->bias_stride, SIM_READ);
  sim_access_add(&list, conv->workspace, sim_dnn_conv_workspace(conv, conv->algo), has_table ? SIM_READ : SIM_WRITE);
  sim_dnn_add_access(&list, &conv->y_shape, conv->y, SIM_WRITE);
  return sim_dnn_status(function, sim_access_submit(&list, stream, function, sim_dnn_run_conv, conv, sizeof *conv));
}

// Enters a forward call and checks all that the plain and the fused one have in common.
static cudnnStatus_t begin(const char* function, cudnnHandle_t handle, const void* alpha,
                           cudnnTensorDescriptor_t x_desc, const void* x, cudnnFilterDescriptor_t w_desc, const void* w,
                           cudnnConvolutionDescriptor_t conv_desc, const void* beta, cudnnTensorDescriptor_t y_desc,
                           void* y, sim_dnn_conv_t* out) {
  cudnnStatus_t status = sim_dnn_enter_with_handle(function, handle);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = make_conv_with_output(function, x_desc, w_desc, conv_desc, y_desc, out);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (alpha == NULL || beta == NULL || x == NULL || w == NULL || y == NULL) {
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "a scalar or a data pointer is NULL");
  }
  if (((uintptr_t)x | (uintptr_t)w | (uintptr_t)y) % sizeof(float) != 0) {
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, "a data pointer is misaligned");
  }
  out->x = x;
  out->w = w;
  out->y = y;
  memcpy(&out->alpha, alpha, sizeof out->alpha);
  memcpy(&out->beta, beta, sizeof out->beta);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t xDesc,
                                      const void* x, const cudnnFilterDescriptor_t wDesc, const void* w,
                                      const cudnnConvolutionDescriptor_t convDesc, cudnnConvolutionFwdAlgo_t algo,
                                      void* workSpace, size_t workSpaceSizeInBytes, const void* beta,
                                      const cudnnTensorDescriptor_t yDesc, void* y) {
  sim_dnn_conv_t conv;
  cudnnStatus_t status = begin(__func__, handle, alpha, xDesc, x, wDesc, w, convDesc, beta, yDesc, y, &conv);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = bind_workspace(__func__, algo, workSpace, workSpaceSizeInBytes, &conv);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (conv.beta != 0.0f) {
    conv.z = conv.y;
    conv.z_shape = conv.y_shape;
  }
  return submit(__func__, handle->stream, &conv);
}

// The activation of a fused call: ReLU with any algorithm, identity with IMPLICIT_PRECOMP_GEMM alone. So the
// documentation; cuDNN 9.19 takes identity with others too, which older ones refuse.
static cudnnStatus_t check_activation(const char* function, cudnnActivationDescriptor_t activation,
                                      cudnnConvolutionFwdAlgo_t algo) {
  cudnnStatus_t status = sim_dnn_check(function, &sim_dnn_activation_kind, activation, "the activation's descriptor");
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (activation->mode == CUDNN_ACTIVATION_IDENTITY && algo != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) {
    return sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED, "identity goes with IMPLICIT_PRECOMP_GEMM alone");
  }
  if (activation->mode != CUDNN_ACTIVATION_IDENTITY && activation->mode != CUDNN_ACTIVATION_RELU) {
    return sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED, "activation %d cannot be fused", (int)activation->mode);
  }
  return CUDNN_STATUS_SUCCESS;
}

// The bias is 1 x k x 1 x 1.
static cudnnStatus_t bind_bias(const char* function, cudnnTensorDescriptor_t desc, const void* bias,
                               sim_dnn_conv_t* conv) {
  cudnnStatus_t status = sim_dnn_check(function, &sim_dnn_tensor_kind, desc, "the bias's descriptor");
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  sim_dnn_stop_unless_float(function, desc->type);
  const int64_t* dims = desc->shape.dims;
  if (bias == NULL) {
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the bias is NULL");
  }
  if (dims[0] != 1 || dims[1] != conv->w_shape.dims[0] || dims[2] != 1 || dims[3] != 1) {
    return sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED_SHAPE, "the bias must be 1 x %lld x 1 x 1",
                        (long long)conv->w_shape.dims[0]);
  }
  conv->bias = bias;
  conv->bias_stride = desc->shape.strides[1];
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t bind_addend(const char* function, cudnnTensorDescriptor_t desc, const void* z,
                                 sim_dnn_conv_t* conv) {
  cudnnStatus_t status = sim_dnn_check(function, &sim_dnn_tensor_kind, desc, "z's descriptor");
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  sim_dnn_stop_unless_float(function, desc->type);
  if (z == NULL || !sim_dnn_same_dims(&desc->shape, &conv->y_shape)) {
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "z must have the output's dimensions and not be NULL");
  }
  conv->z = conv->beta != 0.0f ? z : NULL;
  conv->z_shape = desc->shape;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, const cudnnTensorDescriptor_t xDesc, const void* x,
    const cudnnFilterDescriptor_t wDesc, const void* w, const cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionFwdAlgo_t algo, void* workSpace, size_t workSpaceSizeInBytes, const void* alpha2,
    const cudnnTensorDescriptor_t zDesc, const void* z, const cudnnTensorDescriptor_t biasDesc, const void* bias,
    const cudnnActivationDescriptor_t activationDesc, const cudnnTensorDescriptor_t yDesc, void* y) {
  sim_dnn_conv_t conv;
  cudnnStatus_t status = begin(__func__, handle, alpha1, xDesc, x, wDesc, w, convDesc, alpha2, yDesc, y, &conv);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = bind_addend(__func__, zDesc, z, &conv);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = bind_bias(__func__, biasDesc, bias, &conv);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_activation(__func__, activationDesc, algo);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = bind_workspace(__func__, algo, workSpace, workSpaceSizeInBytes, &conv);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  conv.relu = activationDesc->mode == CUDNN_ACTIVATION_RELU;
  conv.propagate_nan = activationDesc->nan == CUDNN_PROPAGATE_NAN;
  return submit(__func__, handle->stream, &conv);
}

// Measured: it allocates and waits for its stream, so it invalidates the stream's capture in every mode and others as
// an unsafe call does; yet it answers success, and says internal error in each result. Without a capture y is
// overwritten.
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
                                                     const void* x, const cudnnFilterDescriptor_t wDesc, const void* w,
                                                     const cudnnConvolutionDescriptor_t convDesc,
                                                     const cudnnTensorDescriptor_t yDesc, void* y,
                                                     const int requestedAlgoCount, int* returnedAlgoCount,
                                                     cudnnConvolutionFwdAlgoPerf_t* perfResults, void* workSpace,
                                                     size_t workSpaceSizeInBytes) {
  static const float one = 1.0f;
  static const float zero = 0.0f;
  sim_dnn_conv_t conv;
  cudnnStatus_t status = begin(__func__, handle, &one, xDesc, x, wDesc, w, convDesc, &zero, yDesc, y, &conv);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (requestedAlgoCount < 0 || returnedAlgoCount == NULL || perfResults == NULL) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "no room for results");
  }
  sim_invalidate_stream(handle->stream, __func__);
  cudnnStatus_t ran = sim_dnn_status(__func__, sim_library_call(__func__, SIM_CALL_UNSAFE));
  if (ran == CUDNN_STATUS_SUCCESS) {
    conv.algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    ran = submit(__func__, handle->stream, &conv);
  }
  const size_t usable = workSpace != NULL ? workSpaceSizeInBytes : 0;
  *returnedAlgoCount = rank(&conv, convDesc->math_type, usable, ran, requestedAlgoCount, perfResults);
  return CUDNN_STATUS_SUCCESS;
}
