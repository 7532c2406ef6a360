// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Descriptors: plain values with create, set, get and destroy. All of it is legal in a capture and touches no device.
// Setting checks what can be checked alone, as measured on 9.19; how descriptors fit together is checked by the calls
// that take several. The functions that take arrays are in descriptor_nd.c. Not locked, as the real ones.
#include <string.h>

#include "sim/cudnn/internal.h"

const gcap_sim_object_kind_t gcap_sim_dnn_tensor_kind = {0x646e6e2d74656e73u, "cudnn tensor descriptor"};
const gcap_sim_object_kind_t gcap_sim_dnn_filter_kind = {0x646e6e2d66696c74u, "cudnn filter descriptor"};
const gcap_sim_object_kind_t gcap_sim_dnn_convolution_kind = {0x646e6e2d636f6e76u, "cudnn convolution descriptor"};
const gcap_sim_object_kind_t gcap_sim_dnn_pooling_kind = {0x646e6e2d706f6f6cu, "cudnn pooling descriptor"};
const gcap_sim_object_kind_t gcap_sim_dnn_activation_kind = {0x646e6e2d61637476u, "cudnn activation descriptor"};
const gcap_sim_object_kind_t gcap_sim_dnn_op_tensor_kind = {0x646e6e2d6f707473u, "cudnn op tensor descriptor"};

static cudnnStatus_t create(const char* function, const gcap_sim_object_kind_t* kind, size_t bytes, void** out) {
  cudnnStatus_t status = gcap_sim_dnn_enter(function);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (out == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the out pointer is NULL");
  }
  *out = gcap_sim_object_create(kind, bytes);
  if (*out == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "out of host memory");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t gcap_sim_dnn_enter_with(const char* function, const gcap_sim_object_kind_t* kind,
                                      const void* descriptor) {
  cudnnStatus_t status = gcap_sim_dnn_enter(function);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (descriptor == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the %s is NULL", kind->name);
  }
  gcap_sim_object_check(kind, descriptor, function);
  return CUDNN_STATUS_SUCCESS;
}

// NULL is fine, as measured.
static cudnnStatus_t destroy(const char* function, const gcap_sim_object_kind_t* kind, void* descriptor) {
  cudnnStatus_t status = gcap_sim_dnn_enter(function);
  if (status == CUDNN_STATUS_SUCCESS && descriptor != NULL) {
    gcap_sim_object_check(kind, descriptor, function);
    gcap_sim_object_destroy(kind, descriptor);
  }
  return status;
}

// The pair of functions that every kind of descriptor has.
#define CREATE_AND_DESTROY(Name, name)                                                                \
  cudnnStatus_t cudnnCreate##Name##Descriptor(cudnn##Name##Descriptor_t* desc) {                      \
    void* object = NULL;                                                                              \
    cudnnStatus_t status =                                                                            \
        create(__func__, &gcap_sim_dnn_##name##_kind, sizeof(**desc), desc != NULL ? &object : NULL); \
    if (status == CUDNN_STATUS_SUCCESS) {                                                             \
      *desc = object;                                                                                 \
    }                                                                                                 \
    return status;                                                                                    \
  }                                                                                                   \
  cudnnStatus_t cudnnDestroy##Name##Descriptor(cudnn##Name##Descriptor_t desc) {                      \
    return destroy(__func__, &gcap_sim_dnn_##name##_kind, desc);                                      \
  }

CREATE_AND_DESTROY(Tensor, tensor)
CREATE_AND_DESTROY(Filter, filter)
CREATE_AND_DESTROY(Convolution, convolution)
CREATE_AND_DESTROY(Pooling, pooling)
CREATE_AND_DESTROY(Activation, activation)
CREATE_AND_DESTROY(OpTensor, op_tensor)

cudnnStatus_t gcap_sim_dnn_check(const char* function, const gcap_sim_object_kind_t* kind, const void* descriptor,
                                 const char* what) {
  if (descriptor == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "%s is NULL", what);
  }
  gcap_sim_object_check(kind, descriptor, function);
  if (!((const gcap_sim_dnn_head_t*)descriptor)->is_set) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "%s was created but never set", what);
  }
  return CUDNN_STATUS_SUCCESS;
}

// Bytes of an element of any type that a descriptor takes; 0 for one that it refuses.
static size_t type_bytes(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE: return 8;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32: return 4;
    case CUDNN_DATA_HALF:
    case CUDNN_DATA_BFLOAT16: return 2;
    case CUDNN_DATA_INT8:
    case CUDNN_DATA_UINT8: return 1;
    case CUDNN_DATA_INT8x4:
    case CUDNN_DATA_UINT8x4: return 4;
    case CUDNN_DATA_INT8x32: return 32;
    default: return 0;
  }
}

static int is_vector_type(cudnnDataType_t type) {
  return type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_UINT8x4 || type == CUDNN_DATA_INT8x32;
}

static cudnnStatus_t check_type_and_format(const char* function, cudnnDataType_t type, cudnnTensorFormat_t format) {
  if (type_bytes(type) == 0) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "data type %d is none for a tensor", (int)type);
  }
  if (format == CUDNN_TENSOR_NCHW_VECT_C && is_vector_type(type)) {
    gcap_sim_stop(function, "tensor format %d is not modelled", (int)format);
  }
  if (format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "format %d is none for data type %d", (int)format,
                             (int)type);
  }
  return CUDNN_STATUS_SUCCESS;
}

// The strides of a packed array in one of the two modelled orders.
static void pack(cudnnTensorFormat_t format, gcap_sim_dnn_shape_t* shape) {
  static const int nchw[] = {GCAP_SIM_DNN_W, GCAP_SIM_DNN_H, GCAP_SIM_DNN_D, GCAP_SIM_DNN_C, GCAP_SIM_DNN_N};
  static const int nhwc[] = {GCAP_SIM_DNN_C, GCAP_SIM_DNN_W, GCAP_SIM_DNN_H, GCAP_SIM_DNN_D, GCAP_SIM_DNN_N};
  const int* order = format == CUDNN_TENSOR_NCHW ? nchw : nhwc;
  int64_t stride = 1;
  for (int i = 0; i < GCAP_SIM_DNN_MAX_RANK; ++i) {
    shape->strides[order[i]] = stride;
    stride *= shape->dims[order[i]];
  }
}

int gcap_sim_dnn_place(int64_t rank, int dimension) {
  static const int of_volume[] = {0, 1, 3, 4, 2};
  return rank == GCAP_SIM_DNN_MAX_RANK ? of_volume[dimension] : dimension;
}

// Dimensions must be positive, and no array has 2^31 elements or more.
static cudnnStatus_t make_shape(const char* function, int rank, const int* dims, gcap_sim_dnn_shape_t* out) {
  int64_t elements = 1;
  *out = (gcap_sim_dnn_shape_t){.rank = rank, .dims = {[GCAP_SIM_DNN_D] = 1}};
  for (int i = 0; i < rank; ++i) {
    const int size = dims[gcap_sim_dnn_place(rank, i)];
    if (size < 1) {
      return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "dimension %d is %d, which is not positive",
                               gcap_sim_dnn_place(rank, i), size);
    }
    if (elements > INT32_MAX / size) {
      return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED, "the elements are too many, up to dimension %d",
                               gcap_sim_dnn_place(rank, i));
    }
    elements *= size;
    out->dims[i] = size;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t gcap_sim_dnn_set_tensor(const char* function, cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format,
                                      cudnnDataType_t type, int rank, const int* dims, const int* strides) {
  gcap_sim_dnn_shape_t shape;
  cudnnStatus_t status = check_type_and_format(function, type, format);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = make_shape(function, rank, dims, &shape);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  pack(format, &shape);
  for (int i = 0; strides != NULL && i < rank; ++i) {
    const int stride = strides[gcap_sim_dnn_place(rank, i)];
    if (stride == 0) {
      return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "stride %d is 0", gcap_sim_dnn_place(rank, i));
    }
    shape.strides[i] = stride;
  }
  desc->type = type;
  desc->shape = shape;
  desc->head.is_set = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc, cudnnTensorFormat_t format,
                                         cudnnDataType_t dataType, int n, int c, int h, int w) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_tensor_kind, tensorDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const int dims[] = {n, c, h, w};
  return gcap_sim_dnn_set_tensor(__func__, tensorDesc, format, dataType, 4, dims, NULL);
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t dataType, int n, int c,
                                           int h, int w, int nStride, int cStride, int hStride, int wStride) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_tensor_kind, tensorDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const int dims[] = {n, c, h, w};
  const int strides[] = {nStride, cStride, hStride, wStride};
  return gcap_sim_dnn_set_tensor(__func__, tensorDesc, CUDNN_TENSOR_NCHW, dataType, 4, dims, strides);
}

static void require_image_if_set(const char* function, const gcap_sim_dnn_head_t* head,
                                 const gcap_sim_dnn_shape_t* shape) {
  if (head->is_set) {
    gcap_sim_dnn_require_image(function, shape);
  }
}

cudnnStatus_t cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t* dataType, int* n,
                                         int* c, int* h, int* w, int* nStride, int* cStride, int* hStride,
                                         int* wStride) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_tensor_kind, tensorDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  require_image_if_set(__func__, &tensorDesc->head, &tensorDesc->shape);
  int* dims[] = {n, c, h, w};
  int* strides[] = {nStride, cStride, hStride, wStride};
  GCAP_SIM_DNN_PUT(dataType, tensorDesc->type);
  for (int i = 0; i < 4; ++i) {
    GCAP_SIM_DNN_PUT(dims[i], (int)tensorDesc->shape.dims[i]);
    GCAP_SIM_DNN_PUT(strides[i], (int)tensorDesc->shape.strides[i]);
  }
  return CUDNN_STATUS_SUCCESS;
}

// From the first to the last element, gaps included.
static size_t shape_bytes(const gcap_sim_dnn_shape_t* shape, cudnnDataType_t type) {
  int64_t last = 0;
  for (int i = 0; i < GCAP_SIM_DNN_MAX_RANK; ++i) {
    const int64_t stride = shape->strides[i];
    last += (shape->dims[i] - 1) * (stride < 0 ? -stride : stride);
  }
  return (size_t)(last + 1) * type_bytes(type);
}

// Measured: a descriptor that was never set has 0 bytes.
cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t tensorDesc, size_t* size) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_tensor_kind, tensorDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (size == NULL) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "the out pointer is NULL");
  }
  *size = tensorDesc->head.is_set ? shape_bytes(&tensorDesc->shape, tensorDesc->type) : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t gcap_sim_dnn_set_filter(const char* function, cudnnFilterDescriptor_t desc, cudnnDataType_t type,
                                      cudnnTensorFormat_t format, int rank, const int* dims) {
  gcap_sim_dnn_shape_t shape;
  cudnnStatus_t status = check_type_and_format(function, type, format);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = make_shape(function, rank, dims, &shape);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  pack(format, &shape);
  desc->type = type;
  desc->format = format;
  desc->shape = shape;
  desc->head.is_set = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc, cudnnDataType_t dataType,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_filter_kind, filterDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const int dims[] = {k, c, h, w};
  return gcap_sim_dnn_set_filter(__func__, filterDesc, dataType, format, 4, dims);
}

cudnnStatus_t cudnnGetFilter4dDescriptor(const cudnnFilterDescriptor_t filterDesc, cudnnDataType_t* dataType,
                                         cudnnTensorFormat_t* format, int* k, int* c, int* h, int* w) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_filter_kind, filterDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  require_image_if_set(__func__, &filterDesc->head, &filterDesc->shape);
  int* dims[] = {k, c, h, w};
  GCAP_SIM_DNN_PUT(dataType, filterDesc->type);
  GCAP_SIM_DNN_PUT(format, filterDesc->format);
  for (int i = 0; i < 4; ++i) {
    GCAP_SIM_DNN_PUT(dims[i], (int)filterDesc->shape.dims[i]);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t filterDesc, size_t* size) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_filter_kind, filterDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (size == NULL) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "the out pointer is NULL");
  }
  *size = filterDesc->head.is_set ? shape_bytes(&filterDesc->shape, filterDesc->type) : 0;
  return CUDNN_STATUS_SUCCESS;
}

static int is_compute_type(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF || type == CUDNN_DATA_INT32;
}

// A group count and a math type given before stay.
cudnnStatus_t gcap_sim_dnn_set_convolution(const char* function, cudnnConvolutionDescriptor_t desc, int axes,
                                           const int* pad, const int* stride, const int* dilation,
                                           cudnnConvolutionMode_t mode, cudnnDataType_t compute_type) {
  for (int i = 0; i < axes; ++i) {
    if (pad[i] < 0 || stride[i] < 1 || dilation[i] < 1) {
      return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM,
                               "padding must not be negative; strides and dilations not < 1");
    }
  }
  if ((mode != CUDNN_CONVOLUTION && mode != CUDNN_CROSS_CORRELATION) || !is_compute_type(compute_type)) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "mode %d is no convolution mode or %d no compute type",
                             (int)mode, (int)compute_type);
  }
  desc->axes = axes;
  for (int i = 0; i < 3; ++i) {  // the depth last; of an image it is one element, which stays where it is
    const int from = axes == 2 ? i : (i + 1) % 3;
    desc->pad[i] = i < axes ? pad[from] : 0;
    desc->stride[i] = i < axes ? stride[from] : 1;
    desc->dilation[i] = i < axes ? dilation[from] : 1;
  }
  desc->mode = mode;
  desc->compute_type = compute_type;
  desc->head.is_set = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convDesc, int pad_h, int pad_w, int u, int v,
                                              int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t computeType) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_convolution_kind, convDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const int pad[] = {pad_h, pad_w};
  const int stride[] = {u, v};
  const int dilation[] = {dilation_h, dilation_w};
  return gcap_sim_dnn_set_convolution(__func__, convDesc, 2, pad, stride, dilation, mode, computeType);
}

cudnnStatus_t cudnnGetConvolution2dDescriptor(const cudnnConvolutionDescriptor_t convDesc, int* pad_h, int* pad_w,
                                              int* u, int* v, int* dilation_h, int* dilation_w,
                                              cudnnConvolutionMode_t* mode, cudnnDataType_t* computeType) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_convolution_kind, convDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (convDesc->axes == 3) {
    gcap_sim_stop(__func__, "the convolution has 3 spatial dimensions");
  }
  GCAP_SIM_DNN_PUT(pad_h, convDesc->pad[0]);
  GCAP_SIM_DNN_PUT(pad_w, convDesc->pad[1]);
  GCAP_SIM_DNN_PUT(u, convDesc->stride[0]);
  GCAP_SIM_DNN_PUT(v, convDesc->stride[1]);
  GCAP_SIM_DNN_PUT(dilation_h, convDesc->dilation[0]);
  GCAP_SIM_DNN_PUT(dilation_w, convDesc->dilation[1]);
  GCAP_SIM_DNN_PUT(mode, convDesc->mode);
  GCAP_SIM_DNN_PUT(computeType, convDesc->compute_type);
  return CUDNN_STATUS_SUCCESS;
}

// NOTE: every math type computes in full floats here; a GPU may multiply TF32 unless CUDNN_FMA_MATH is asked for.
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc, cudnnMathType_t mathType) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_convolution_kind, convDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if ((unsigned)mathType > CUDNN_FMA_MATH) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "%d is no math type", (int)mathType);
  }
  convDesc->math_type = mathType;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc, cudnnMathType_t* mathType) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_convolution_kind, convDesc);
  if (status == CUDNN_STATUS_SUCCESS) {
    GCAP_SIM_DNN_PUT(mathType, convDesc->math_type);
  }
  return status;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int groupCount) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_convolution_kind, convDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (groupCount < 1) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "group count %d is less than 1", groupCount);
  }
  convDesc->more_groups = groupCount - 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int* groupCount) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_convolution_kind, convDesc);
  if (status == CUDNN_STATUS_SUCCESS) {
    GCAP_SIM_DNN_PUT(groupCount, 1 + convDesc->more_groups);
  }
  return status;
}

// Measured: a negative padding is taken; it crops.
cudnnStatus_t gcap_sim_dnn_set_pooling(const char* function, cudnnPoolingDescriptor_t desc, cudnnPoolingMode_t mode,
                                       cudnnNanPropagation_t nan, const int* window, const int* pad,
                                       const int* stride) {
  if (window[0] < 1 || window[1] < 1 || stride[0] < 1 || stride[1] < 1) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "windows and strides must not be < 1");
  }
  if ((unsigned)mode > CUDNN_POOLING_MAX_DETERMINISTIC) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "mode %d is no pooling mode", (int)mode);
  }
  memcpy(desc->window, window, sizeof(desc->window));
  memcpy(desc->pad, pad, sizeof(desc->pad));
  memcpy(desc->stride, stride, sizeof(desc->stride));
  desc->mode = mode;
  desc->nan = nan;
  desc->head.is_set = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t poolingDesc, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t maxpoolingNanOpt, int windowHeight, int windowWidth,
                                          int verticalPadding, int horizontalPadding, int verticalStride,
                                          int horizontalStride) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_pooling_kind, poolingDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const int window[] = {windowHeight, windowWidth};
  const int pad[] = {verticalPadding, horizontalPadding};
  const int stride[] = {verticalStride, horizontalStride};
  return gcap_sim_dnn_set_pooling(__func__, poolingDesc, mode, maxpoolingNanOpt, window, pad, stride);
}

cudnnStatus_t cudnnGetPooling2dDescriptor(const cudnnPoolingDescriptor_t poolingDesc, cudnnPoolingMode_t* mode,
                                          cudnnNanPropagation_t* maxpoolingNanOpt, int* windowHeight, int* windowWidth,
                                          int* verticalPadding, int* horizontalPadding, int* verticalStride,
                                          int* horizontalStride) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_pooling_kind, poolingDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  GCAP_SIM_DNN_PUT(mode, poolingDesc->mode);
  GCAP_SIM_DNN_PUT(maxpoolingNanOpt, poolingDesc->nan);
  GCAP_SIM_DNN_PUT(windowHeight, poolingDesc->window[0]);
  GCAP_SIM_DNN_PUT(windowWidth, poolingDesc->window[1]);
  GCAP_SIM_DNN_PUT(verticalPadding, poolingDesc->pad[0]);
  GCAP_SIM_DNN_PUT(horizontalPadding, poolingDesc->pad[1]);
  GCAP_SIM_DNN_PUT(verticalStride, poolingDesc->stride[0]);
  GCAP_SIM_DNN_PUT(horizontalStride, poolingDesc->stride[1]);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activationDesc, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t reluNanOpt, double coef) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_activation_kind, activationDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if ((unsigned)mode > CUDNN_ACTIVATION_SWISH || (unsigned)reluNanOpt > CUDNN_PROPAGATE_NAN) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "%d is no activation mode or %d no NaN propagation",
                             (int)mode, (int)reluNanOpt);
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
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_activation_kind, activationDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  GCAP_SIM_DNN_PUT(mode, activationDesc->mode);
  GCAP_SIM_DNN_PUT(reluNanOpt, activationDesc->nan);
  GCAP_SIM_DNN_PUT(coef, activationDesc->coef);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc, cudnnOpTensorOp_t opTensorOp,
                                         cudnnDataType_t opTensorCompType, cudnnNanPropagation_t opTensorNanOpt) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_op_tensor_kind, opTensorDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if ((unsigned)opTensorOp > CUDNN_OP_TENSOR_NOT || (unsigned)opTensorNanOpt > CUDNN_PROPAGATE_NAN ||
      type_bytes(opTensorCompType) == 0) {
    return gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM,
                             "%d is no operation, %d no NaN propagation or %d no type", (int)opTensorOp,
                             (int)opTensorNanOpt, (int)opTensorCompType);
  }
  opTensorDesc->op = opTensorOp;
  opTensorDesc->compute_type = opTensorCompType;
  opTensorDesc->nan = opTensorNanOpt;
  opTensorDesc->head.is_set = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetOpTensorDescriptor(const cudnnOpTensorDescriptor_t opTensorDesc, cudnnOpTensorOp_t* opTensorOp,
                                         cudnnDataType_t* opTensorCompType, cudnnNanPropagation_t* opTensorNanOpt) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_op_tensor_kind, opTensorDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  GCAP_SIM_DNN_PUT(opTensorOp, opTensorDesc->op);
  GCAP_SIM_DNN_PUT(opTensorCompType, opTensorDesc->compute_type);
  GCAP_SIM_DNN_PUT(opTensorNanOpt, opTensorDesc->nan);
  return CUDNN_STATUS_SUCCESS;
}
