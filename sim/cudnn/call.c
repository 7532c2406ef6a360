// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the tensor calls share: operands, the checks of y = alpha * op(x) + beta * y, its accesses and its submission.
// Stateless.
#include <string.h>

#include "sim/cudnn/internal.h"

int64_t gcap_sim_dnn_windows(int64_t in, int64_t window, int pad, int stride) {
  const int64_t room = in + 2 * (int64_t)pad - window;
  return room < 0 ? 0 : 1 + room / stride;
}

int gcap_sim_dnn_same_dims(const gcap_sim_dnn_shape_t* a, const gcap_sim_dnn_shape_t* b) {
  return a->rank == b->rank && memcmp(a->dims, b->dims, sizeof(a->dims)) == 0;
}

void gcap_sim_dnn_require_image(const char* function, const gcap_sim_dnn_shape_t* shape) {
  if (shape->rank != 4) {
    gcap_sim_stop(function, "%lld dimensions are not modelled, 4 are", (long long)shape->rank);
  }
}

cudaDataType gcap_sim_dnn_element_type(const char* function, cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT: return CUDA_R_32F;
    case CUDNN_DATA_DOUBLE: return CUDA_R_64F;
    case CUDNN_DATA_HALF: return CUDA_R_16F;
    case CUDNN_DATA_BFLOAT16: return CUDA_R_16BF;
    default: gcap_sim_stop(function, "data type %d is not modelled: float, double, half and bfloat16 are", (int)type);
  }
}

gcap_sim_dnn_operand_t gcap_sim_dnn_operand(const char* function, cudnnTensorDescriptor_t desc, const void* data) {
  const cudaDataType type = gcap_sim_dnn_element_type(function, desc->type);
  if ((uintptr_t)data % gcap_sim_element_bytes(type) != 0) {
    gcap_sim_stop(function, "%p is not aligned to the tensor's elements, which faults on a GPU (716)", data);
  }
  // const ends here: one struct for inputs and outputs
  return (gcap_sim_dnn_operand_t){.shape = desc->shape, .type = type, .data = (void*)data};
}

void gcap_sim_dnn_add_access(gcap_sim_access_list_t* list, const gcap_sim_dnn_operand_t* operand,
                             gcap_sim_access_kind_t kind) {
  const gcap_sim_dnn_shape_t* shape = &operand->shape;
  gcap_sim_access_add_strided(list, operand->data, gcap_sim_element_bytes(operand->type), GCAP_SIM_DNN_MAX_RANK,
                              shape->dims, shape->strides, kind);
}

cudnnStatus_t gcap_sim_dnn_broadcast(const char* function, gcap_sim_dnn_operand_t* operand,
                                     const gcap_sim_dnn_shape_t* to) {
  gcap_sim_dnn_shape_t* shape = &operand->shape;
  for (int i = 0; i < GCAP_SIM_DNN_MAX_RANK; ++i) {
    if (shape->dims[i] != to->dims[i] && shape->dims[i] != 1) {
      return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "dimension %d is %lld, neither 1 nor %lld", i,
                               (long long)shape->dims[i], (long long)to->dims[i]);
    }
    shape->strides[i] = shape->dims[i] == 1 ? 0 : shape->strides[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

// Measured: descriptors take negative strides, calls do not.
static cudnnStatus_t check_strides(const char* function, const gcap_sim_dnn_shape_t* shape) {
  for (int i = 0; i < 4; ++i) {
    if (shape->strides[i] < 0) {
      return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED, "stride %d is negative", i);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t gcap_sim_dnn_begin_mixed(const char* function, cudnnHandle_t handle, const void* alpha,
                                       cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                       cudnnTensorDescriptor_t y_desc, void* y, gcap_sim_dnn_call_t* out) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with_handle(function, handle);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_check(function, &gcap_sim_dnn_tensor_kind, x_desc, "the input's descriptor");
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = gcap_sim_dnn_check(function, &gcap_sim_dnn_tensor_kind, y_desc, "the output's descriptor");
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_strides(function, &x_desc->shape);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_strides(function, &y_desc->shape);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  gcap_sim_dnn_require_image(function, &x_desc->shape);
  gcap_sim_dnn_require_image(function, &y_desc->shape);
  if (alpha == NULL || beta == NULL || x == NULL || y == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "a scalar or a data pointer is NULL");
  }
  *out = (gcap_sim_dnn_call_t){.x = gcap_sim_dnn_operand(function, x_desc, x),
                               .y = gcap_sim_dnn_operand(function, y_desc, y)};
  const cudaDataType scalar_type = gcap_sim_element_compute_type(out->x.type == out->y.type ? out->y.type : CUDA_R_32F);
  out->alpha = gcap_sim_element_load(alpha, scalar_type, 0);
  out->beta = gcap_sim_element_load(beta, scalar_type, 0);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t gcap_sim_dnn_begin(const char* function, cudnnHandle_t handle, const void* alpha,
                                 cudnnTensorDescriptor_t x_desc, const void* x, const void* beta,
                                 cudnnTensorDescriptor_t y_desc, void* y, gcap_sim_dnn_call_t* out) {
  cudnnStatus_t status = gcap_sim_dnn_begin_mixed(function, handle, alpha, x_desc, x, beta, y_desc, y, out);
  if (status == CUDNN_STATUS_SUCCESS && out->x.type != out->y.type) {
    status = gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "input and output have different types");
  }
  return status;
}

cudnnStatus_t gcap_sim_dnn_require_same_dims(const char* function, const gcap_sim_dnn_call_t* call) {
  if (!gcap_sim_dnn_same_dims(&call->x.shape, &call->y.shape)) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "input and output have different dimensions");
  }
  return CUDNN_STATUS_SUCCESS;
}

void gcap_sim_dnn_describe(const void* payload, gcap_sim_access_list_t* list) {
  const gcap_sim_dnn_call_t* call = payload;
  gcap_sim_dnn_add_access(list, &call->x, GCAP_SIM_READ);
  if (call->beta != 0.0) {
    gcap_sim_dnn_add_access(list, &call->y, GCAP_SIM_READ);
  }
  gcap_sim_dnn_add_access(list, &call->y, GCAP_SIM_WRITE);
}

cudnnStatus_t gcap_sim_dnn_submit(cudnnHandle_t handle, const gcap_sim_library_kernel_t* kernel, const void* payload) {
  return gcap_sim_dnn_status(kernel->name, gcap_sim_access_submit(handle->stream, kernel, payload));
}

void gcap_sim_dnn_for_each(const gcap_sim_dnn_shape_t* shape, gcap_sim_dnn_visit_t visit, const void* payload) {
  const int64_t* dims = shape->dims;
  for (int64_t n = 0; n < dims[0]; ++n) {
    for (int64_t c = 0; c < dims[1]; ++c) {
      for (int64_t h = 0; h < dims[2]; ++h) {
        for (int64_t w = 0; w < dims[3]; ++w) {
          visit(payload, n, c, h, w);
        }
      }
    }
  }
}
