// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Softmax over the channels of each pixel, or over a whole image. Only FAST does without the maximum. May run in place:
// a group is totalled before its first value is written. Stateless.
#include <math.h>

#include "sim/cudnn/internal.h"

// The payload; it starts with the call, as gcap_sim_dnn_describe wants.
typedef struct softmax {
  gcap_sim_dnn_call_t call;
  cudnnSoftmaxAlgorithm_t algorithm;
  cudnnSoftmaxMode_t mode;
} softmax_t;

// The values that one softmax normalizes: a box of channels and pixels of one image.
typedef struct box {
  int64_t n;
  int64_t first[3];
  int64_t end[3];
} box_t;

typedef struct totals {
  double shift;
  double sum;
} totals_t;

static totals_t total(const softmax_t* softmax, const box_t* box) {
  const gcap_sim_dnn_call_t* call = &softmax->call;
  const cudaDataType type = gcap_sim_element_compute_type(call->y.type);
  totals_t totals = {softmax->algorithm == CUDNN_SOFTMAX_FAST ? 0.0 : -INFINITY, 0.0};
  for (int pass = softmax->algorithm == CUDNN_SOFTMAX_FAST; pass < 2; ++pass) {
    for (int64_t c = box->first[0]; c < box->end[0]; ++c) {
      for (int64_t h = box->first[1]; h < box->end[1]; ++h) {
        for (int64_t w = box->first[2]; w < box->end[2]; ++w) {
          const double value = gcap_sim_dnn_load(&call->x, box->n, c, h, w);
          if (pass == 0) {
            totals.shift = fmax(totals.shift, value);
          } else {
            const double power = exp(gcap_sim_element_round(type, value - totals.shift));
            totals.sum = gcap_sim_element_round(type, totals.sum + gcap_sim_element_round(type, power));
          }
        }
      }
    }
  }
  return totals;
}

static void normalize(const softmax_t* softmax, const box_t* box) {
  const gcap_sim_dnn_call_t* call = &softmax->call;
  const cudaDataType type = gcap_sim_element_compute_type(call->y.type);
  const totals_t totals = total(softmax, box);
  for (int64_t c = box->first[0]; c < box->end[0]; ++c) {
    for (int64_t h = box->first[1]; h < box->end[1]; ++h) {
      for (int64_t w = box->first[2]; w < box->end[2]; ++w) {
        const double value = gcap_sim_element_round(type, gcap_sim_dnn_load(&call->x, box->n, c, h, w) - totals.shift);
        const int is_log = softmax->algorithm == CUDNN_SOFTMAX_LOG;
        const double term = gcap_sim_element_round(type, is_log ? log(totals.sum) : exp(value));
        gcap_sim_dnn_store(call, box->n, c, h, w, is_log ? value - term : term / totals.sum);
      }
    }
  }
}

static void run(void* payload) {
  const softmax_t* softmax = payload;
  const int64_t* dims = softmax->call.x.shape.dims;
  for (int64_t n = 0; n < dims[0]; ++n) {
    if (softmax->mode == CUDNN_SOFTMAX_MODE_INSTANCE) {
      const box_t image = {n, {0, 0, 0}, {dims[1], dims[2], dims[3]}};
      normalize(softmax, &image);
      continue;
    }
    for (int64_t h = 0; h < dims[2]; ++h) {
      for (int64_t w = 0; w < dims[3]; ++w) {
        const box_t pixel = {n, {0, h, w}, {dims[1], h + 1, w + 1}};
        normalize(softmax, &pixel);
      }
    }
  }
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode,
                                  const void* alpha, const cudnnTensorDescriptor_t xDesc, const void* x,
                                  const void* beta, const cudnnTensorDescriptor_t yDesc, void* y) {
  softmax_t softmax = {.algorithm = algo, .mode = mode};
  cudnnStatus_t status = gcap_sim_dnn_begin(__func__, handle, alpha, xDesc, x, beta, yDesc, y, &softmax.call);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if ((unsigned)algo > CUDNN_SOFTMAX_LOG || (unsigned)mode > CUDNN_SOFTMAX_MODE_CHANNEL) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "%d is no softmax algorithm or %d no mode", (int)algo,
                             (int)mode);
  }
  status = gcap_sim_dnn_require_same_dims(__func__, &softmax.call);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const gcap_sim_library_kernel_t kernel = {__func__, run, gcap_sim_dnn_describe, sizeof(softmax), 0};
  return gcap_sim_dnn_submit(handle, &kernel, &softmax);
}
