// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Batch normalization as inference does it, with given statistics: one set of parameters for each channel, or for each
// element of an image. Parameters are doubles where the data is, else floats. May run in
// place. Stateless.
#include <math.h>

#include "sim/cudnn/internal.h"

enum { kScale, kBias, kMean, kVariance, kNumParameters };

// The payload; it starts with the call, as gcap_sim_dnn_describe wants. Parameters have stride 0 where they are
// broadcast.
typedef struct batch_norm {
  gcap_sim_dnn_call_t call;
  gcap_sim_dnn_operand_t parameters[kNumParameters];
  double epsilon;
} batch_norm_t;

static int is_mode(cudnnBatchNormMode_t mode) { return (unsigned)mode <= CUDNN_BATCHNORM_SPATIAL_PERSISTENT; }

static void normalize_element(const void* payload, int64_t n, int64_t c, int64_t h, int64_t w) {
  const batch_norm_t* norm = payload;
  double values[kNumParameters];
  for (int i = 0; i < kNumParameters; ++i) {
    values[i] = gcap_sim_dnn_load(&norm->parameters[i], n, c, h, w);
  }
  const cudaDataType type = gcap_sim_element_compute_type(norm->call.y.type);
  const double centred = gcap_sim_element_round(type, gcap_sim_dnn_load(&norm->call.x, n, c, h, w) - values[kMean]);
  const double variance = gcap_sim_element_round(type, values[kVariance] + norm->epsilon);
  const double normal = gcap_sim_element_round(type, centred / gcap_sim_element_round(type, sqrt(variance)));
  const double scaled = gcap_sim_element_round(type, values[kScale] * normal);
  gcap_sim_dnn_store(&norm->call, n, c, h, w, scaled + values[kBias]);
}

static void run(void* payload) {
  gcap_sim_dnn_for_each(&((const batch_norm_t*)payload)->call.y.shape, normalize_element, payload);
}

static void describe(const void* payload, gcap_sim_access_list_t* list) {
  const batch_norm_t* norm = payload;
  for (int i = 0; i < kNumParameters; ++i) {
    gcap_sim_dnn_add_access(list, &norm->parameters[i], GCAP_SIM_READ);
  }
  gcap_sim_dnn_describe(&norm->call, list);
}

static cudnnStatus_t check_parameters(const char* function, cudnnBatchNormMode_t mode, const gcap_sim_dnn_call_t* call,
                                      cudnnTensorDescriptor_t desc) {
  cudnnStatus_t status = gcap_sim_dnn_check(function, &gcap_sim_dnn_tensor_kind, desc, "the parameters' descriptor");
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const int64_t* x = call->x.shape.dims;
  const int per_element = mode == CUDNN_BATCHNORM_PER_ACTIVATION;
  const gcap_sim_dnn_shape_t expected = {.rank = 4,
                                         .dims = {1, x[1], per_element ? x[2] : 1, per_element ? x[3] : 1, 1}};
  if (!gcap_sim_dnn_same_dims(&expected, &desc->shape)) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the parameters must be 1 x %lld x %lld x %lld",
                             (long long)expected.dims[1], (long long)expected.dims[2], (long long)expected.dims[3]);
  }
  const int is_double = call->x.type == CUDA_R_64F;
  if (desc->type != (is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)) {
    const int is_bfloat = call->x.type == CUDA_R_16BF;
    return gcap_sim_dnn_fail(function, is_bfloat ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_BAD_PARAM,
                             "the parameters must be %s", is_double ? "doubles" : "floats");
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t bind_parameters(const char* function, cudnnTensorDescriptor_t desc, const void* const* data,
                                     batch_norm_t* out) {
  for (int i = 0; i < kNumParameters; ++i) {
    if (data[i] == NULL) {
      return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "scale, bias, mean or variance is NULL");
    }
    out->parameters[i] = gcap_sim_dnn_operand(function, desc, data[i]);
    const cudnnStatus_t status = gcap_sim_dnn_broadcast(function, &out->parameters[i], &out->call.x.shape);
    if (status != CUDNN_STATUS_SUCCESS) {
      return status;
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void* alpha, const void* beta,
    const cudnnTensorDescriptor_t xDesc, const void* x, const cudnnTensorDescriptor_t yDesc, void* y,
    const cudnnTensorDescriptor_t bnScaleBiasMeanVarDesc, const void* bnScale, const void* bnBias,
    const void* estimatedMean, const void* estimatedVariance, double epsilon) {
  const void* const data[kNumParameters] = {bnScale, bnBias, estimatedMean, estimatedVariance};
  batch_norm_t norm = {0};
  if (handle == NULL || bnScaleBiasMeanVarDesc == NULL) {
    gcap_sim_stop(__func__, "the handle or the parameters' descriptor is NULL, which crashes the real library");
  }
  cudnnStatus_t status = gcap_sim_dnn_begin(__func__, handle, alpha, xDesc, x, beta, yDesc, y, &norm.call);
  if (status == CUDNN_STATUS_SUCCESS && (!is_mode(mode) || epsilon < CUDNN_BN_MIN_EPSILON)) {
    status = gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "%d is no mode or %g no epsilon", (int)mode, epsilon);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_require_same_dims(__func__, &norm.call);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_parameters(__func__, mode, &norm.call, bnScaleBiasMeanVarDesc);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = bind_parameters(__func__, bnScaleBiasMeanVarDesc, data, &norm);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  norm.epsilon = gcap_sim_element_round(gcap_sim_element_compute_type(norm.call.y.type), epsilon);
  const gcap_sim_library_kernel_t kernel = {__func__, run, describe, sizeof(norm), 0};
  return gcap_sim_dnn_submit(handle, &kernel, &norm);
}

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derivedBnDesc, const cudnnTensorDescriptor_t xDesc,
                                            cudnnBatchNormMode_t mode) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_tensor_kind, derivedBnDesc);
  if (status == CUDNN_STATUS_SUCCESS && xDesc == NULL) {
    gcap_sim_stop(__func__, "the input's descriptor is NULL, which crashes the real library");
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_check(__func__, &gcap_sim_dnn_tensor_kind, xDesc, "the input's descriptor");
  }
  if (status == CUDNN_STATUS_SUCCESS && !is_mode(mode)) {
    status = gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "%d is no mode", (int)mode);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  gcap_sim_dnn_require_image(__func__, &xDesc->shape);
  const int64_t* x = xDesc->shape.dims;
  const int per_element = mode == CUDNN_BATCHNORM_PER_ACTIVATION;
  const int dims[] = {1, (int)x[1], per_element ? (int)x[2] : 1, per_element ? (int)x[3] : 1};
  const cudnnDataType_t type = xDesc->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  return gcap_sim_dnn_set_tensor(__func__, derivedBnDesc, CUDNN_TENSOR_NCHW, type, 4, dims, NULL);
}
