// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the tensor calls share: the checks of y = alpha * op(x) + beta * y, its accesses and its submission. Stateless.
#include <string.h>

#include "sim/cudnn/internal.h"

int64_t sim_dnn_windows(int64_t in, int64_t window, int pad, int stride) {
  const int64_t room = in + 2 * (int64_t)pad - window;
  return room < 0 ? 0 : 1 + room / stride;
}

int sim_dnn_same_dims(const sim_dnn_shape_t* a, const sim_dnn_shape_t* b) {
  return memcmp(a->dims, b->dims, sizeof a->dims) == 0;
}

void sim_dnn_add_access(sim_access_list_t* list, const sim_dnn_shape_t* shape, const float* data,
                        sim_access_kind_t kind) {
  sim_access_add_strided(list, data, sizeof *data, 4, shape->dims, shape->strides, kind);
}

cudnnStatus_t sim_dnn_begin(const char* function, cudnnHandle_t handle, const void* alpha,
                            cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                            cudnnTensorDescriptor_t y_desc, void* y, sim_dnn_call_t* out) {
  cudnnStatus_t status = sim_dnn_enter_with_handle(function, handle);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = sim_dnn_check(function, &sim_dnn_tensor_kind, x_desc, "the input's descriptor");
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = sim_dnn_check(function, &sim_dnn_tensor_kind, y_desc, "the output's descriptor");
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (alpha == NULL || beta == NULL || x == NULL || y == NULL) {
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "a scalar or a data pointer is NULL");
  }
  sim_dnn_stop_unless_float(function, x_desc->type);
  sim_dnn_stop_unless_float(function, y_desc->type);
  *out = (sim_dnn_call_t){.x_shape = x_desc->shape, .y_shape = y_desc->shape, .x = x, .y = y};
  memcpy(&out->alpha, alpha, sizeof out->alpha);
  memcpy(&out->beta, beta, sizeof out->beta);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t sim_dnn_submit(const char* function, cudnnHandle_t handle, void (*run)(void*), const void* payload,
                             size_t payload_bytes) {
  const sim_dnn_call_t* call = payload;
  sim_access_list_t list = {0};
  sim_dnn_add_access(&list, &call->x_shape, call->x, SIM_READ);
  if (call->beta != 0.0f) {
    sim_dnn_add_access(&list, &call->y_shape, call->y, SIM_READ);
  }
  sim_dnn_add_access(&list, &call->y_shape, call->y, SIM_WRITE);
  const cudaError_t error = sim_access_submit(&list, handle->stream, function, run, payload, payload_bytes);
  return sim_dnn_status(function, error);
}
