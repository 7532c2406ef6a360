// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The choice of a convolution's algorithm. cuDNN ranks what it has, or runs all of it on memory from the caller's
// scratch; of those the first is taken that can do what the plan asks and fits into the workspace. No state.
#include <stdint.h>
#include <stdlib.h>

#include "lib/internal/capture_check.h"
#include "lib/internal/cuda_guard.h"
#include "ops/cudnn/conv2d_plan.h"
#include "ops/cudnn/cudnn_status.h"

// cuDNN fuses an identity activation with one algorithm only.
static bool can_do(const gcap_conv2d_t* conv, cudnnConvolutionFwdAlgo_t algorithm) {
  return conv->activation == NULL || conv->options.relu ||
         algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
}

gcap_status_t gcap_conv2d_need(const gcap_conv2d_t* conv, cudnnConvolutionFwdAlgo_t algorithm, size_t* out_bytes) {
  *out_bytes = SIZE_MAX;
  size_t bytes = 0;
  const cudnnStatus_t code = cudnnGetConvolutionForwardWorkspaceSize(conv->options.handle, conv->x, conv->weight,
                                                                     conv->convolution, conv->y, algorithm, &bytes);
  if (CUDNN_STATUS_CATEGORY(code) == CUDNN_STATUS_NOT_SUPPORTED) return NULL;
  GCAP_RETURN_IF_ERROR(gcap_cudnn_status(code, "cudnnGetConvolutionForwardWorkspaceSize", __FILE__, __LINE__));
  *out_bytes = bytes;
  return NULL;
}

static gcap_status_t none_fits(const gcap_conv2d_options_t* o, size_t smallest) {
  if (smallest == SIZE_MAX) {
    return GCAP_STATUS(GCAP_UNIMPLEMENTED, "cuDNN has no algorithm for this convolution of %s%s%s",
                       gcap_dtype_name(o->dtype), o->no_bias ? "" : " with bias", o->relu ? " and ReLU" : "");
  }
  return GCAP_STATUS(GCAP_UNIMPLEMENTED, "max_workspace_bytes is %zu, cuDNN's algorithms for this convolution need %zu",
                     o->max_workspace_bytes, smallest);
}

// Takes the first of the candidates, the fastest, that can do it and fits. A candidate's own `memory` is for the math
// type it names, so the need is asked for with the descriptor that run will use.
static gcap_status_t take_first(gcap_conv2d_t* conv, const cudnnConvolutionFwdAlgoPerf_t* candidates, int count) {
  size_t smallest = SIZE_MAX;
  for (int i = 0; i < count; ++i) {
    if (candidates[i].status != CUDNN_STATUS_SUCCESS || !can_do(conv, candidates[i].algo)) continue;
    size_t bytes;
    GCAP_RETURN_IF_ERROR(gcap_conv2d_need(conv, candidates[i].algo, &bytes));
    if (bytes == SIZE_MAX) continue;
    if (bytes <= conv->options.max_workspace_bytes) {
      conv->algorithm = candidates[i].algo;
      conv->algorithm_bytes = bytes;
      return NULL;
    }
    if (bytes < smallest) smallest = bytes;
  }
  return none_fits(&conv->options, smallest);
}

gcap_status_t gcap_conv2d_choose(gcap_conv2d_t* conv) {
  const gcap_conv2d_options_t* o = &conv->options;
  int capacity = 0, count = 0;
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnGetConvolutionForwardAlgorithmMaxCount(o->handle, &capacity)));
  cudnnConvolutionFwdAlgoPerf_t* candidates = calloc((size_t)capacity, sizeof(*candidates));
  if (candidates == NULL) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no host memory for %d algorithms", capacity);
  gcap_status_t status = NULL;
  if (o->search == GCAP_CONV2D_SEARCH_EXHAUSTIVE) {
    status = gcap_conv2d_find(conv, capacity, candidates, &count);
  } else {
    status = GCAP_CUDNN(cudnnGetConvolutionForwardAlgorithm_v7(o->handle, conv->x, conv->weight, conv->convolution,
                                                               conv->y, capacity, &count, candidates));
  }
  if (status == NULL) status = take_first(conv, candidates, count);
  free(candidates);
  return status;
}

// --- Exhaustive -----------------------------------------------------------------------------------------------------

// The operands of a search. Zeros, which take no longer and no shorter than other numbers.
typedef struct trial {
  void *x, *weight, *y, *workspace;
  size_t workspace_bytes;
} trial_t;

static gcap_status_t take_zeros(const gcap_conv2d_options_t* o, size_t bytes, void** out_memory) {
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(o->search_scratch, bytes, o->search_stream, out_memory));
  return GCAP_CUDA(cudaMemsetAsync(*out_memory, 0, bytes, gcap_stream_handle(o->search_stream)));
}

// The most that an algorithm within the limit needs.
static gcap_status_t largest_need(const gcap_conv2d_t* conv, size_t* out_bytes) {
  *out_bytes = 0;
  for (int algorithm = 0; algorithm < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++algorithm) {
    size_t bytes;
    GCAP_RETURN_IF_ERROR(gcap_conv2d_need(conv, (cudnnConvolutionFwdAlgo_t)algorithm, &bytes));
    if (bytes != SIZE_MAX && bytes <= conv->options.max_workspace_bytes && bytes > *out_bytes) *out_bytes = bytes;
  }
  return NULL;
}

static gcap_status_t take_operands(const gcap_conv2d_t* conv, trial_t* trial) {
  const gcap_conv2d_options_t* o = &conv->options;
  const size_t element = conv->element_bytes, c = (size_t)o->c, k = (size_t)o->k;
  const int* y = conv->output_shape;
  const size_t pixels = (size_t)conv->padded_d * (size_t)conv->padded_h * (size_t)conv->padded_w;
  const size_t y_pixels = (size_t)y[2] * (size_t)y[3] * (size_t)y[4];
  const size_t taps = (size_t)o->kernel_d * (size_t)o->kernel_h * (size_t)o->kernel_w;
  GCAP_RETURN_IF_ERROR(take_zeros(o, (size_t)o->n * c * pixels * element, &trial->x));
  GCAP_RETURN_IF_ERROR(take_zeros(o, k * (c / (size_t)o->groups) * taps * element, &trial->weight));
  GCAP_RETURN_IF_ERROR(take_zeros(o, (size_t)o->n * k * y_pixels * element, &trial->y));
  GCAP_RETURN_IF_ERROR(largest_need(conv, &trial->workspace_bytes));
  if (trial->workspace_bytes == 0) return NULL;
  return gcap_scratch_alloc(o->search_scratch, trial->workspace_bytes, o->search_stream, &trial->workspace);
}

static gcap_status_t return_operands(const gcap_conv2d_options_t* o, const trial_t* trial) {
  gcap_status_t status = gcap_scratch_free(o->search_scratch, trial->workspace);
  status = gcap_status_join(status, gcap_scratch_free(o->search_scratch, trial->y));
  status = gcap_status_join(status, gcap_scratch_free(o->search_scratch, trial->weight));
  return gcap_status_join(status, gcap_scratch_free(o->search_scratch, trial->x));
}

static gcap_status_t run_all(const gcap_conv2d_t* conv, cudnnHandle_t handle, int capacity,
                             cudnnConvolutionFwdAlgoPerf_t* out_candidates, int* out_count) {
  trial_t trial = {0};
  gcap_status_t status = take_operands(conv, &trial);
  if (status == NULL) {
    status = GCAP_CUDNN(cudnnFindConvolutionForwardAlgorithmEx(handle, conv->x, trial.x, conv->weight, trial.weight,
                                                               conv->convolution, conv->y, trial.y, capacity, out_count,
                                                               out_candidates, trial.workspace, trial.workspace_bytes));
  }
  return gcap_status_join(status, return_operands(&conv->options, &trial));
}

// cuDNN answers success when its trials broke a capture of the stream, so one is refused first.
gcap_status_t gcap_conv2d_find(const gcap_conv2d_t* conv, int capacity, cudnnConvolutionFwdAlgoPerf_t* out_candidates,
                               int* out_count) {
  gcap_stream_t* stream = conv->options.search_stream;
  cudnnHandle_t handle = NULL;
  GCAP_RETURN_IF_ERROR(
      gcap_check_stream_not_capturing(gcap_stream_handle(stream), "gcap_conv2d_create with an exhaustive search"));
  GCAP_RETURN_IF_ERROR(gcap_stream_cudnn_handle(stream, &handle));
  const int device_id = gcap_stream_device(stream);
  gcap_thread_setting_t previous;
  GCAP_RETURN_IF_ERROR(gcap_thread_enter(device_id, &previous));
  gcap_status_t status = run_all(conv, handle, capacity, out_candidates, out_count);
  return gcap_status_join(status, gcap_thread_leave(device_id, &previous));
}
