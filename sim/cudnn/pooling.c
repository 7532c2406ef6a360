// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Pooling: the output size and the forward pass. Padding never wins a maximum; an average counts it or not, by mode. As
// measured for floats, the maximum of padding alone is -FLT_MAX, and a negative padding crops. NaN wins when the
// descriptor says so; a GPU's kernels differ there. Stateless.
#include <float.h>
#include <math.h>

#include "sim/cudnn/internal.h"

// The payload; it starts with the call, as gcap_sim_dnn_describe wants.
typedef struct pooling {
  gcap_sim_dnn_call_t call;
  struct cudnnPoolingStruct desc;
} pooling_t;

static cudnnStatus_t output_dims(const char* function, cudnnPoolingDescriptor_t desc, const gcap_sim_dnn_shape_t* in,
                                 int64_t* out) {
  out[0] = in->dims[0];
  out[1] = in->dims[1];
  for (int i = 0; i < 2; ++i) {
    out[2 + i] = gcap_sim_dnn_windows(in->dims[2 + i], desc->window[i], desc->pad[i], desc->stride[i]);
    if (out[2 + i] == 0) {
      return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the window is larger than the padded input");
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t gcap_sim_dnn_pooling_output_dims(const char* function, cudnnPoolingDescriptor_t desc,
                                               cudnnTensorDescriptor_t x, int64_t* out) {
  cudnnStatus_t status = gcap_sim_dnn_enter(function);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_check(function, &gcap_sim_dnn_pooling_kind, desc, "the pooling's descriptor");
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_check(function, &gcap_sim_dnn_tensor_kind, x, "the input's descriptor");
  }
  return status == CUDNN_STATUS_SUCCESS ? output_dims(function, desc, &x->shape, out) : status;
}

// One window whose first pixel is (row, col), which may lie in the padding.
static double pool(const pooling_t* pooling, int64_t n, int64_t c, int64_t row, int64_t col) {
  const gcap_sim_dnn_operand_t* x = &pooling->call.x;
  const int64_t* dims = x->shape.dims;
  const int* window = pooling->desc.window;
  const int propagate = pooling->desc.nan == CUDNN_PROPAGATE_NAN;
  const cudaDataType type = gcap_sim_element_compute_type(x->type);
  double largest = type == CUDA_R_64F ? -DBL_MAX : -FLT_MAX;
  double sum = 0.0;
  int count = 0;
  for (int64_t h = row < 0 ? 0 : row; h < row + window[0] && h < dims[2]; ++h) {
    for (int64_t w = col < 0 ? 0 : col; w < col + window[1] && w < dims[3]; ++w) {
      const double value = gcap_sim_dnn_load(x, n, c, h, w);
      if (value > largest || (propagate && isnan(value))) {
        largest = value;
      }
      sum = gcap_sim_element_round(type, sum + value);
      ++count;
    }
  }
  switch (pooling->desc.mode) {
    case CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING: return sum / (double)(window[0] * window[1]);
    case CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING: return sum / (double)count;
    default: return largest;
  }
}

static void pool_element(const void* payload, int64_t n, int64_t c, int64_t h, int64_t w) {
  const pooling_t* pooling = payload;
  const struct cudnnPoolingStruct* desc = &pooling->desc;
  const int64_t row = h * desc->stride[0] - desc->pad[0];
  const int64_t col = w * desc->stride[1] - desc->pad[1];
  gcap_sim_dnn_store(&pooling->call, n, c, h, w, pool(pooling, n, c, row, col));
}

static void run(void* payload) {
  gcap_sim_dnn_for_each(&((const pooling_t*)payload)->call.y.shape, pool_element, payload);
}

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, const cudnnPoolingDescriptor_t poolingDesc, const void* alpha,
                                  const cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                  const cudnnTensorDescriptor_t yDesc, void* y) {
  pooling_t pooling;
  cudnnStatus_t status = gcap_sim_dnn_begin(__func__, handle, alpha, xDesc, x, beta, yDesc, y, &pooling.call);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_check(__func__, &gcap_sim_dnn_pooling_kind, poolingDesc, "the pooling's descriptor");
  }
  gcap_sim_dnn_shape_t expected = {.rank = 4, .dims = {[GCAP_SIM_DNN_D] = 1}};
  if (status == CUDNN_STATUS_SUCCESS) {
    status = output_dims(__func__, poolingDesc, &pooling.call.x.shape, expected.dims);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (!gcap_sim_dnn_same_dims(&expected, &pooling.call.y.shape)) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "the output must be %lld x %lld x %lld x %lld",
                             (long long)expected.dims[0], (long long)expected.dims[1], (long long)expected.dims[2],
                             (long long)expected.dims[3]);
  }
  pooling.desc = *poolingDesc;
  const gcap_sim_library_kernel_t kernel = {__func__, run, gcap_sim_dnn_describe, sizeof(pooling), 0};
  return gcap_sim_dnn_submit(handle, &kernel, &pooling);
}
