// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Calls that treat each element alone: adding a tensor, which may be broadcast, and activations. Stateless.
#include <math.h>

#include "sim/cudnn/internal.h"

// The payload of an activation; it starts with the call, as sim_dnn_submit wants. An addition's is the call alone.
typedef struct activation {
  sim_dnn_call_t call;
  struct cudnnActivationStruct desc;
} activation_t;

// y = alpha * x + beta * y, where x has stride 0 in the dimensions in which it is broadcast.
static void run_addition(void* payload) {
  const sim_dnn_call_t* call = payload;
  const int64_t* dims = call->y_shape.dims;
  for (int64_t n = 0; n < dims[0]; ++n) {
    for (int64_t c = 0; c < dims[1]; ++c) {
      for (int64_t h = 0; h < dims[2]; ++h) {
        for (int64_t w = 0; w < dims[3]; ++w) {
          const float value = call->x[sim_dnn_offset(&call->x_shape, n, c, h, w)];
          sim_dnn_store(call, sim_dnn_offset(&call->y_shape, n, c, h, w), value);
        }
      }
    }
  }
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha, const cudnnTensorDescriptor_t aDesc,
                             const void* A, const void* beta, const cudnnTensorDescriptor_t cDesc, void* C) {
  sim_dnn_call_t call;
  cudnnStatus_t status = sim_dnn_begin(__func__, handle, alpha, aDesc, A, beta, cDesc, C, &call);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  sim_dnn_shape_t* a = &call.x_shape;
  for (int i = 0; i < 4; ++i) {
    if (a->dims[i] == 1) {
      a->strides[i] = 0;
    } else if (a->dims[i] != call.y_shape.dims[i]) {
      return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "dimension %d of A is %lld, neither 1 nor C's %lld", i,
                          (long long)a->dims[i], (long long)call.y_shape.dims[i]);
    }
  }
  return sim_dnn_submit(__func__, handle, run_addition, &call, sizeof call);
}

static float activate(const struct cudnnActivationStruct* desc, float value) {
  const float coef = (float)desc->coef;
  const int is_relu = desc->mode == CUDNN_ACTIVATION_RELU || desc->mode == CUDNN_ACTIVATION_CLIPPED_RELU;
  if (isnan(value)) {
    return is_relu && desc->nan == CUDNN_NOT_PROPAGATE_NAN ? 0.0f : value;
  }
  switch (desc->mode) {
    case CUDNN_ACTIVATION_SIGMOID: return 1.0f / (1.0f + expf(-value));
    case CUDNN_ACTIVATION_RELU: return value > 0.0f ? value : 0.0f;
    case CUDNN_ACTIVATION_TANH: return tanhf(value);
    case CUDNN_ACTIVATION_CLIPPED_RELU: return value > 0.0f ? fminf(value, coef) : 0.0f;
    case CUDNN_ACTIVATION_ELU: return value > 0.0f ? value : coef * expm1f(value);
    default: return value;
  }
}

static void run_activation(void* payload) {
  const activation_t* activation = payload;
  const sim_dnn_call_t* call = &activation->call;
  const int64_t* dims = call->y_shape.dims;
  for (int64_t n = 0; n < dims[0]; ++n) {
    for (int64_t c = 0; c < dims[1]; ++c) {
      for (int64_t h = 0; h < dims[2]; ++h) {
        for (int64_t w = 0; w < dims[3]; ++w) {
          const float value = activate(&activation->desc, call->x[sim_dnn_offset(&call->x_shape, n, c, h, w)]);
          sim_dnn_store(call, sim_dnn_offset(&call->y_shape, n, c, h, w), value);
        }
      }
    }
  }
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t activationDesc,
                                     const void* alpha, const cudnnTensorDescriptor_t xDesc, const void* x,
                                     const void* beta, const cudnnTensorDescriptor_t yDesc, void* y) {
  activation_t activation;
  cudnnStatus_t status = sim_dnn_begin(__func__, handle, alpha, xDesc, x, beta, yDesc, y, &activation.call);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = sim_dnn_check(__func__, &sim_dnn_activation_kind, activationDesc, "the activation's descriptor");
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (activationDesc->mode == CUDNN_ACTIVATION_SWISH) {
    sim_stop(__func__, "CUDNN_ACTIVATION_SWISH is not modelled");
  }
  if (activationDesc->mode == CUDNN_ACTIVATION_IDENTITY) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "identity is for the fused convolution alone");
  }
  if (!sim_dnn_same_dims(&activation.call.x_shape, &activation.call.y_shape)) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "input and output have different dimensions");
  }
  activation.desc = *activationDesc;
  return sim_dnn_submit(__func__, handle, run_activation, &activation, sizeof activation);
}
