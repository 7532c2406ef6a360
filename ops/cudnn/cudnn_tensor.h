// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cudnn_tensor.h: tensors of the cuDNN ops: our types as cuDNN's, descriptors, and the checks of what callers give.
#ifndef GCAP_OPS_CUDNN_CUDNN_TENSOR_H_
#define GCAP_OPS_CUDNN_CUDNN_TENSOR_H_

#include <stdbool.h>

#include "gcap/kit/ops/cudnn.h"
#include "gcap/tensor.h"

// Of a checked type and layout.
cudnnDataType_t gcap_cudnn_data_type(gcap_dtype_t dtype);
cudnnTensorFormat_t gcap_cudnn_tensor_format(gcap_image_layout_t layout);

// Makes a descriptor of n, c, h, w. On failure it may be there and has to be ended.
gcap_status_t gcap_cudnn_describe_tensor(gcap_dtype_t dtype, gcap_image_layout_t layout, const int shape[4],
                                         cudnnTensorDescriptor_t* out_tensor) GCAP_NODISCARD;
void gcap_cudnn_end_tensor(cudnnTensorDescriptor_t tensor);  // NULL is fine

// INVALID_ARGUMENT when `value`, called `name`, is below `minimum`.
gcap_status_t gcap_cudnn_check_at_least(const char* name, int value, int minimum) GCAP_NODISCARD;
gcap_status_t gcap_cudnn_check_shape(int n, int c, int h, int w) GCAP_NODISCARD;
gcap_status_t gcap_cudnn_check_type(gcap_dtype_t dtype, bool tf32) GCAP_NODISCARD;
gcap_status_t gcap_cudnn_check_layout(gcap_image_layout_t layout) GCAP_NODISCARD;

// INVALID_ARGUMENT when the operand of a run is NULL or not aligned: F32 as floats, the others to 16 bytes, since
// cuDNN's kernels for tensor cores load so much at once and the library is told nothing of addresses when it chooses.
gcap_status_t gcap_cudnn_check_address(const char* name, const void* address, gcap_dtype_t dtype) GCAP_NODISCARD;

#endif  // GCAP_OPS_CUDNN_CUDNN_TENSOR_H_
