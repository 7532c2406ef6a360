// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The three ways to an algorithm: ranking what there is, ranking by running on memory of the library's own, and by
// running on the caller's. The simulator has no timing model: all three rank alike, and times are not measured. What
// differs is what they do to a capture. Stateless.
#include "sim/api/submit.h"
#include "sim/cudnn/internal.h"

// The best first, as a GPU ranks small convolutions.
static const cudnnConvolutionFwdAlgo_t ranking[] = {
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT,
    CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
    CUDNN_CONVOLUTION_FWD_ALGO_DIRECT,
};

enum {
  kRankingSize = sizeof(ranking) / sizeof(ranking[0]),
  kMaxCount = 10  // measured: the real library asks for more room than it fills
};

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with_handle(__func__, handle);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (count == NULL) {
    gcap_sim_stop(__func__, "the out pointer is NULL, which crashes the real library");
  }
  *count = kMaxCount;
  return CUDNN_STATUS_SUCCESS;
}

// What a search says of an algorithm that it ran with a result of `ran` and so much workspace.
static cudnnStatus_t judge(const gcap_sim_dnn_conv_t* conv, cudnnConvolutionFwdAlgo_t algo, size_t usable_bytes,
                           cudnnStatus_t ran) {
  if (!gcap_sim_dnn_conv_has(conv, algo)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (ran != CUDNN_STATUS_SUCCESS) {
    return CUDNN_STATUS_INTERNAL_ERROR;
  }
  const int fits = gcap_sim_dnn_conv_workspace(conv, algo) <= usable_bytes;
  return fits ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE;
}

// Fills up to `requested` results, those that succeed first.
static int rank(const gcap_sim_dnn_conv_t* conv, cudnnMathType_t math_type, size_t usable_bytes, cudnnStatus_t ran,
                int requested, cudnnConvolutionFwdAlgoPerf_t* out) {
  int count = 0;
  for (int good = 1; good >= 0; --good) {
    for (int i = 0; i < kRankingSize && count < requested; ++i) {
      const cudnnStatus_t status = judge(conv, ranking[i], usable_bytes, ran);
      if ((status == CUDNN_STATUS_SUCCESS) != good) {
        continue;
      }
      out[count++] = (cudnnConvolutionFwdAlgoPerf_t){
          .algo = ranking[i],
          .status = status,
          .time = -1.0f,
          .memory = status == CUDNN_STATUS_NOT_SUPPORTED ? 0 : gcap_sim_dnn_conv_workspace(conv, ranking[i]),
          .determinism = CUDNN_DETERMINISTIC,
          .mathType = math_type};
    }
  }
  return count;
}

static cudnnStatus_t begin(const char* function, cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                           cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t conv_desc, cudnnTensorDescriptor_t y,
                           const cudnnConvolutionFwdAlgoPerf_t* results, gcap_sim_dnn_conv_t* out) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with_handle(function, handle);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_make_conv(function, x, w, conv_desc, y, out);
  }
  if (status == CUDNN_STATUS_SUCCESS && results == NULL) {
    gcap_sim_stop(function, "the array of results is NULL, which crashes the real library");
  }
  return status;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, const cudnnTensorDescriptor_t srcDesc,
                                                     const cudnnFilterDescriptor_t filterDesc,
                                                     const cudnnConvolutionDescriptor_t convDesc,
                                                     const cudnnTensorDescriptor_t destDesc,
                                                     const int requestedAlgoCount, int* returnedAlgoCount,
                                                     cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  gcap_sim_dnn_conv_t conv;
  cudnnStatus_t status = begin(__func__, handle, srcDesc, filterDesc, convDesc, destDesc, perfResults, &conv);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const int requested = requestedAlgoCount < 0 ? kRankingSize : requestedAlgoCount;  // measured; it also does without
  const int count = rank(&conv, convDesc->math_type, SIZE_MAX, CUDNN_STATUS_SUCCESS, requested, perfResults);
  GCAP_SIM_DNN_PUT(returnedAlgoCount, count);  // a place for the number
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_room(const char* function, int requested, const int* returned) {
  if (requested < 1 || returned == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "no room for results");
  }
  return CUDNN_STATUS_SUCCESS;
}

// A search waits for its stream, so it invalidates the stream's capture, in every mode.
static cudnnStatus_t wait_for_stream(const char* function, cudnnHandle_t handle) {
  gcap_sim_invalidate_stream(handle->stream, function);
  return gcap_sim_stream_is_invalidated(handle->stream) ? CUDNN_STATUS_INTERNAL_ERROR : CUDNN_STATUS_SUCCESS;
}

// Measured: where it may not allocate it says so, finds nothing and invalidates. Else it answers success: in a relaxed
// capture of its stream with an internal error in each result.
cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
                                                   const cudnnFilterDescriptor_t wDesc,
                                                   const cudnnConvolutionDescriptor_t convDesc,
                                                   const cudnnTensorDescriptor_t yDesc, const int requestedAlgoCount,
                                                   int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  gcap_sim_dnn_conv_t conv;
  cudnnStatus_t status = begin(__func__, handle, xDesc, wDesc, convDesc, yDesc, perfResults, &conv);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_room(__func__, requestedAlgoCount, returnedAlgoCount);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  *returnedAlgoCount = 0;
  if (gcap_sim_library_gate_unsafe(__func__) != cudaSuccess) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
                             "device memory cannot be allocated during a capture");
  }
  const cudnnStatus_t ran = wait_for_stream(__func__, handle);
  *returnedAlgoCount = rank(&conv, convDesc->math_type, SIZE_MAX, ran, requestedAlgoCount, perfResults);
  return CUDNN_STATUS_SUCCESS;
}

// Measured: a silent killer. It answers success in every capture, with an internal error in each result. Without a
// capture y is overwritten.
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t handle, const cudnnTensorDescriptor_t xDesc,
                                                     const void* x, const cudnnFilterDescriptor_t wDesc, const void* w,
                                                     const cudnnConvolutionDescriptor_t convDesc,
                                                     const cudnnTensorDescriptor_t yDesc, void* y,
                                                     const int requestedAlgoCount, int* returnedAlgoCount,
                                                     cudnnConvolutionFwdAlgoPerf_t* perfResults, void* workSpace,
                                                     size_t workSpaceSizeInBytes) {
  gcap_sim_dnn_conv_t conv;
  cudnnStatus_t status = begin(__func__, handle, xDesc, wDesc, convDesc, yDesc, perfResults, &conv);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_room(__func__, requestedAlgoCount, returnedAlgoCount);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_bind_conv(__func__, x, w, y, &conv);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  cudnnStatus_t ran = wait_for_stream(__func__, handle);
  if (gcap_sim_library_gate_unsafe(__func__) != cudaSuccess) {
    ran = CUDNN_STATUS_INTERNAL_ERROR;
  }
  if (ran == CUDNN_STATUS_SUCCESS) {
    conv.alpha = 1.0f;
    conv.algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    ran = gcap_sim_dnn_submit_conv(__func__, handle->stream, &conv);
  }
  const size_t usable = workSpace != NULL ? workSpaceSizeInBytes : 0;
  *returnedAlgoCount = rank(&conv, convDesc->math_type, usable, ran, requestedAlgoCount, perfResults);
  return CUDNN_STATUS_SUCCESS;
}
