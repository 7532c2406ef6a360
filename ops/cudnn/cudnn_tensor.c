// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Tensors of the cuDNN ops. No state.
#include "ops/cudnn/cudnn_tensor.h"

#include <stdint.h>

#include "ops/cudnn/cudnn_status.h"
#include "ops/handles/end_warning.h"

// What the widest load of a kernel takes.
enum { VECTOR_BYTES = 16 };

cudnnDataType_t gcap_cudnn_data_type(gcap_dtype_t dtype) {
  if (dtype == GCAP_DTYPE_F16) return CUDNN_DATA_HALF;
  return dtype == GCAP_DTYPE_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

cudnnTensorFormat_t gcap_cudnn_tensor_format(gcap_image_layout_t layout) {
  return layout == GCAP_IMAGE_NHWC ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

gcap_status_t gcap_cudnn_describe_tensor(gcap_dtype_t dtype, gcap_image_layout_t layout, const int shape[4],
                                         cudnnTensorDescriptor_t* out_tensor) {
  GCAP_RETURN_IF_ERROR(GCAP_CUDNN(cudnnCreateTensorDescriptor(out_tensor)));
  return GCAP_CUDNN(cudnnSetTensor4dDescriptor(*out_tensor, gcap_cudnn_tensor_format(layout),
                                               gcap_cudnn_data_type(dtype), shape[0], shape[1], shape[2], shape[3]));
}

void gcap_cudnn_end_tensor(cudnnTensorDescriptor_t tensor) {
  if (tensor != NULL) gcap_warn_of_end(GCAP_CUDNN(cudnnDestroyTensorDescriptor(tensor)));
}

gcap_status_t gcap_cudnn_check_at_least(const char* name, int value, int minimum) {
  if (value >= minimum) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %d, it must be at least %d", name, value, minimum);
}

gcap_status_t gcap_cudnn_check_shape(int n, int c, int h, int w) {
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_at_least("n", n, 0));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_at_least("c", c, 1));
  GCAP_RETURN_IF_ERROR(gcap_cudnn_check_at_least("h", h, 1));
  return gcap_cudnn_check_at_least("w", w, 1);
}

gcap_status_t gcap_cudnn_check_type(gcap_dtype_t dtype, bool tf32) {
  if (dtype != GCAP_DTYPE_F32 && dtype != GCAP_DTYPE_F16 && dtype != GCAP_DTYPE_BF16) {
    return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "dtype is %s (%d), allowed are f32, f16 and bf16", gcap_dtype_name(dtype),
                       (int)dtype);
  }
  if (!tf32 || dtype == GCAP_DTYPE_F32) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "tf32 is true and dtype is %s: tf32 is for f32", gcap_dtype_name(dtype));
}

gcap_status_t gcap_cudnn_check_layout(gcap_image_layout_t layout) {
  if (layout == GCAP_IMAGE_NCHW || layout == GCAP_IMAGE_NHWC) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "layout is %d, allowed are 0..%d", (int)layout, (int)GCAP_IMAGE_NHWC);
}

gcap_status_t gcap_cudnn_check_address(const char* name, const void* address, gcap_dtype_t dtype) {
  const size_t alignment = dtype == GCAP_DTYPE_F32 ? sizeof(float) : VECTOR_BYTES;
  if (address == NULL) return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is NULL", name);
  if ((uintptr_t)address % alignment == 0) return NULL;
  return GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s is %p, an operand of %s must be %zu-byte aligned", name, address,
                     gcap_dtype_name(dtype), alignment);
}
