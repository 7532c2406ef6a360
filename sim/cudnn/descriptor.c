// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Descriptors: plain values with create, set, get and destroy. All of it is legal in a capture and touches no device.
// Setting checks what can be checked alone; how descriptors fit together is checked by the calls that take several.
// Not locked, as the real ones.
#include "sim/cudnn/internal.h"

const sim_object_kind_t sim_dnn_tensor_kind = {0x646e6e2d74656e73u, "cudnn tensor descriptor"};
const sim_object_kind_t sim_dnn_filter_kind = {0x646e6e2d66696c74u, "cudnn filter descriptor"};
const sim_object_kind_t sim_dnn_convolution_kind = {0x646e6e2d636f6e76u, "cudnn convolution descriptor"};
const sim_object_kind_t sim_dnn_pooling_kind = {0x646e6e2d706f6f6cu, "cudnn pooling descriptor"};
const sim_object_kind_t sim_dnn_activation_kind = {0x646e6e2d61637476u, "cudnn activation descriptor"};

static cudnnStatus_t create(const char* function, const sim_object_kind_t* kind, size_t bytes, void** out) {
  cudnnStatus_t status = sim_dnn_enter(function);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (out == NULL) {
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the out pointer is NULL");
  }
  *out = sim_object_create(kind, bytes);
  if (*out == NULL) {
    return sim_dnn_fail(function, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "out of host memory");
  }
  return CUDNN_STATUS_SUCCESS;
}

// Enters a call on one descriptor, which need not be set yet.
static cudnnStatus_t enter(const char* function, const sim_object_kind_t* kind, const void* descriptor) {
  cudnnStatus_t status = sim_dnn_enter(function);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (descriptor == NULL) {
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the %s is NULL", kind->name);
  }
  sim_object_check(kind, descriptor, function);
  return CUDNN_STATUS_SUCCESS;
}

// NULL is fine, as measured.
static cudnnStatus_t destroy(const char* function, const sim_object_kind_t* kind, void* descriptor) {
  cudnnStatus_t status = sim_dnn_enter(function);
  if (status == CUDNN_STATUS_SUCCESS && descriptor != NULL) {
    sim_object_check(kind, descriptor, function);
    sim_object_destroy(kind, descriptor);
  }
  return status;
}

// The pair of functions that every kind of descriptor has.
#define CREATE_AND_DESTROY(Name, name)                                                                           \
  cudnnStatus_t cudnnCreate##Name##Descriptor(cudnn##Name##Descriptor_t* name##Desc) {                           \
    void* object = NULL;                                                                                         \
    const size_t bytes = sizeof **name##Desc;                                                                    \
    cudnnStatus_t status = create(__func__, &sim_dnn_##name##_kind, bytes, name##Desc != NULL ? &object : NULL); \
    if (status == CUDNN_STATUS_SUCCESS) {                                                                        \
      *name##Desc = object;                                                                                      \
    }                                                                                                            \
    return status;                                                                                               \
  }                                                                                                              \
  cudnnStatus_t cudnnDestroy##Name##Descriptor(cudnn##Name##Descriptor_t name##Desc) {                           \
    return destroy(__func__, &sim_dnn_##name##_kind, name##Desc);                                                \
  }

CREATE_AND_DESTROY(Tensor, tensor)
CREATE_AND_DESTROY(Filter, filter)
CREATE_AND_DESTROY(Convolution, convolution)
CREATE_AND_DESTROY(Pooling, pooling)
CREATE_AND_DESTROY(Activation, activation)

cudnnStatus_t sim_dnn_check(const char* function, const sim_object_kind_t* kind, const void* descriptor,
                            const char* what) {
  if (descriptor == NULL) {
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "%s is NULL", what);
  }
  sim_object_check(kind, descriptor, function);
  if (!((const sim_dnn_head_t*)descriptor)->is_set) {
    return sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "%s was created but never set", what);
  }
  return CUDNN_STATUS_SUCCESS;
}

void sim_dnn_stop_unless_float(const char* function, cudnnDataType_t type) {
  if (type != CUDNN_DATA_FLOAT) {
    sim_stop(function, "data type %d is not modelled, only CUDNN_DATA_FLOAT is", (int)type);
  }
}

// The strides of a packed array in one of the two modelled orders.
static void pack(const char* function, cudnnTensorFormat_t format, sim_dnn_shape_t* shape) {
  static const int nchw[] = {SIM_DNN_W, SIM_DNN_H, SIM_DNN_C, SIM_DNN_N};
  static const int nhwc[] = {SIM_DNN_C, SIM_DNN_W, SIM_DNN_H, SIM_DNN_N};
  if (format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC) {
    sim_stop(function, "tensor format %d is not modelled", (int)format);
  }
  const int* order = format == CUDNN_TENSOR_NCHW ? nchw : nhwc;
  int64_t stride = 1;
  for (int i = 0; i < 4; ++i) {
    shape->strides[order[i]] = stride;
    stride *= shape->dims[order[i]];
  }
}

static int all_at_least(int64_t least, const int64_t* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i] < least) {
      return 0;
    }
  }
  return 1;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc, cudnnTensorFormat_t format,
                                         cudnnDataType_t dataType, int n, int c, int h, int w) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_tensor_kind, tensorDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  sim_dnn_shape_t shape = {.dims = {n, c, h, w}};
  if (!all_at_least(1, shape.dims, 4)) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "a dimension of %d x %d x %d x %d is not positive", n, c, h,
                        w);
  }
  pack(__func__, format, &shape);
  tensorDesc->type = dataType;
  tensorDesc->shape = shape;
  tensorDesc->head.is_set = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t dataType, int n, int c,
                                           int h, int w, int nStride, int cStride, int hStride, int wStride) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_tensor_kind, tensorDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const sim_dnn_shape_t shape = {.dims = {n, c, h, w}, .strides = {nStride, cStride, hStride, wStride}};
  if (!all_at_least(1, shape.dims, 4) || !all_at_least(1, shape.strides, 4)) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "a dimension or a stride is not positive");
  }
  tensorDesc->type = dataType;
  tensorDesc->shape = shape;
  tensorDesc->head.is_set = 1;
  return CUDNN_STATUS_SUCCESS;
}

// Out pointers of the getters may be NULL.
#define PUT(out, value)  \
  do {                   \
    if ((out) != NULL) { \
      *(out) = (value);  \
    }                    \
  } while (0)

cudnnStatus_t cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t* dataType, int* n,
                                         int* c, int* h, int* w, int* nStride, int* cStride, int* hStride,
                                         int* wStride) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_tensor_kind, tensorDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  int* dims[] = {n, c, h, w};
  int* strides[] = {nStride, cStride, hStride, wStride};
  PUT(dataType, tensorDesc->type);
  for (int i = 0; i < 4; ++i) {
    PUT(dims[i], (int)tensorDesc->shape.dims[i]);
    PUT(strides[i], (int)tensorDesc->shape.strides[i]);
  }
  return CUDNN_STATUS_SUCCESS;
}

// From the first to the last element, gaps included.
static size_t shape_bytes(const char* function, const sim_dnn_shape_t* shape, cudnnDataType_t type) {
  sim_dnn_stop_unless_float(function, type);
  int64_t last = 0;
  for (int i = 0; i < 4; ++i) {
    last += (shape->dims[i] - 1) * shape->strides[i];
  }
  return (size_t)(last + 1) * sizeof(float);
}

// Measured: a descriptor that was never set has 0 bytes.
cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t tensorDesc, size_t* size) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_tensor_kind, tensorDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (size == NULL) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "the out pointer is NULL");
  }
  *size = tensorDesc->head.is_set ? shape_bytes(__func__, &tensorDesc->shape, tensorDesc->type) : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc, cudnnDataType_t dataType,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_filter_kind, filterDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  sim_dnn_shape_t shape = {.dims = {k, c, h, w}};
  if (!all_at_least(1, shape.dims, 4)) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "a dimension of %d x %d x %d x %d is not positive", k, c, h,
                        w);
  }
  pack(__func__, format, &shape);
  filterDesc->type = dataType;
  filterDesc->format = format;
  filterDesc->shape = shape;
  filterDesc->head.is_set = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilter4dDescriptor(const cudnnFilterDescriptor_t filterDesc, cudnnDataType_t* dataType,
                                         cudnnTensorFormat_t* format, int* k, int* c, int* h, int* w) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_filter_kind, filterDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  int* dims[] = {k, c, h, w};
  PUT(dataType, filterDesc->type);
  PUT(format, filterDesc->format);
  for (int i = 0; i < 4; ++i) {
    PUT(dims[i], (int)filterDesc->shape.dims[i]);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t filterDesc, size_t* size) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_filter_kind, filterDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (size == NULL) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "the out pointer is NULL");
  }
  *size = filterDesc->head.is_set ? shape_bytes(__func__, &filterDesc->shape, filterDesc->type) : 0;
  return CUDNN_STATUS_SUCCESS;
}

// A group count and a math type given before stay.
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convDesc, int pad_h, int pad_w, int u, int v,
                                              int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t computeType) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_convolution_kind, convDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (pad_h < 0 || pad_w < 0 || u < 1 || v < 1 || dilation_h < 1 || dilation_w < 1) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM,
                        "padding must not be negative; strides and dilations not < 1");
  }
  if (mode != CUDNN_CONVOLUTION && mode != CUDNN_CROSS_CORRELATION) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "mode %d is no convolution mode", (int)mode);
  }
  convDesc->pad[0] = pad_h;
  convDesc->pad[1] = pad_w;
  convDesc->stride[0] = u;
  convDesc->stride[1] = v;
  convDesc->dilation[0] = dilation_h;
  convDesc->dilation[1] = dilation_w;
  convDesc->mode = mode;
  convDesc->compute_type = computeType;
  convDesc->head.is_set = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolution2dDescriptor(const cudnnConvolutionDescriptor_t convDesc, int* pad_h, int* pad_w,
                                              int* u, int* v, int* dilation_h, int* dilation_w,
                                              cudnnConvolutionMode_t* mode, cudnnDataType_t* computeType) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_convolution_kind, convDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  PUT(pad_h, convDesc->pad[0]);
  PUT(pad_w, convDesc->pad[1]);
  PUT(u, convDesc->stride[0]);
  PUT(v, convDesc->stride[1]);
  PUT(dilation_h, convDesc->dilation[0]);
  PUT(dilation_w, convDesc->dilation[1]);
  PUT(mode, convDesc->mode);
  PUT(computeType, convDesc->compute_type);
  return CUDNN_STATUS_SUCCESS;
}

// NOTE: every math type computes in full floats here; a GPU may multiply TF32 unless CUDNN_FMA_MATH is asked for.
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc, cudnnMathType_t mathType) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_convolution_kind, convDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if ((unsigned)mathType > CUDNN_FMA_MATH) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "%d is no math type", (int)mathType);
  }
  convDesc->math_type = mathType;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc, cudnnMathType_t* mathType) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_convolution_kind, convDesc);
  if (status == CUDNN_STATUS_SUCCESS) {
    PUT(mathType, convDesc->math_type);
  }
  return status;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int groupCount) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_convolution_kind, convDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (groupCount < 1) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "group count %d is less than 1", groupCount);
  }
  convDesc->more_groups = groupCount - 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int* groupCount) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_convolution_kind, convDesc);
  if (status == CUDNN_STATUS_SUCCESS) {
    PUT(groupCount, 1 + convDesc->more_groups);
  }
  return status;
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t poolingDesc, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t maxpoolingNanOpt, int windowHeight, int windowWidth,
                                          int verticalPadding, int horizontalPadding, int verticalStride,
                                          int horizontalStride) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_pooling_kind, poolingDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (windowHeight < 1 || windowWidth < 1 || verticalStride < 1 || horizontalStride < 1 || verticalPadding < 0 ||
      horizontalPadding < 0) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "padding must not be negative; windows and strides not < 1");
  }
  if ((unsigned)mode > CUDNN_POOLING_MAX_DETERMINISTIC) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "mode %d is no pooling mode", (int)mode);
  }
  poolingDesc->window[0] = windowHeight;
  poolingDesc->window[1] = windowWidth;
  poolingDesc->pad[0] = verticalPadding;
  poolingDesc->pad[1] = horizontalPadding;
  poolingDesc->stride[0] = verticalStride;
  poolingDesc->stride[1] = horizontalStride;
  poolingDesc->mode = mode;
  poolingDesc->nan = maxpoolingNanOpt;
  poolingDesc->head.is_set = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPooling2dDescriptor(const cudnnPoolingDescriptor_t poolingDesc, cudnnPoolingMode_t* mode,
                                          cudnnNanPropagation_t* maxpoolingNanOpt, int* windowHeight, int* windowWidth,
                                          int* verticalPadding, int* horizontalPadding, int* verticalStride,
                                          int* horizontalStride) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_pooling_kind, poolingDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  PUT(mode, poolingDesc->mode);
  PUT(maxpoolingNanOpt, poolingDesc->nan);
  PUT(windowHeight, poolingDesc->window[0]);
  PUT(windowWidth, poolingDesc->window[1]);
  PUT(verticalPadding, poolingDesc->pad[0]);
  PUT(horizontalPadding, poolingDesc->pad[1]);
  PUT(verticalStride, poolingDesc->stride[0]);
  PUT(horizontalStride, poolingDesc->stride[1]);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activationDesc, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t reluNanOpt, double coef) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_activation_kind, activationDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if ((unsigned)mode > CUDNN_ACTIVATION_SWISH) {
    return sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "mode %d is no activation mode", (int)mode);
  }
  activationDesc->mode = mode;
  activationDesc->nan = reluNanOpt;
  activationDesc->coef = coef;
  activationDesc->head.is_set = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetActivationDescriptor(const cudnnActivationDescriptor_t activationDesc,
                                           cudnnActivationMode_t* mode, cudnnNanPropagation_t* reluNanOpt,
                                           double* coef) {
  cudnnStatus_t status = enter(__func__, &sim_dnn_activation_kind, activationDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  PUT(mode, activationDesc->mode);
  PUT(reluNanOpt, activationDesc->nan);
  PUT(coef, activationDesc->coef);
  return CUDNN_STATUS_SUCCESS;
}
