// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The descriptor functions that take arrays. The simulator has images, of four dimensions, two of them spatial, and for
// convolutions volumes, of one more. Other counts stop the program where the real library takes them, and get its
// answer where it does not. Stateless.
#include "sim/cudnn/internal.h"

enum { kRank = 4, kLeading = 2 };

// Real tensors have up to CUDNN_DIM_MAX dimensions.
static cudnnStatus_t check_rank(const char* function, int rank) {
  if (rank < 1) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "%d dimensions", rank);
  }
  if (rank > CUDNN_DIM_MAX) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_NOT_SUPPORTED, "%d dimensions, the most are %d", rank,
                             CUDNN_DIM_MAX);
  }
  if (rank != kRank && rank != GCAP_SIM_DNN_MAX_RANK) {
    gcap_sim_stop(function, "%d dimensions are not modelled, 4 and 5 are", rank);
  }
  return CUDNN_STATUS_SUCCESS;
}

static void stop_without(const char* function, const void* array) {
  if (array == NULL) {
    gcap_sim_stop(function, "an array is NULL, which crashes the real library");
  }
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc, cudnnDataType_t dataType, int nbDims,
                                         const int dimA[], const int strideA[]) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_tensor_kind, tensorDesc);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_rank(__func__, nbDims);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  stop_without(__func__, dimA);
  stop_without(__func__, strideA);
  return gcap_sim_dnn_set_tensor(__func__, tensorDesc, CUDNN_TENSOR_NCHW, dataType, nbDims, dimA, strideA);
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensorDesc, cudnnTensorFormat_t format,
                                           cudnnDataType_t dataType, int nbDims, const int dimA[]) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_tensor_kind, tensorDesc);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_rank(__func__, nbDims);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  stop_without(__func__, dimA);
  return gcap_sim_dnn_set_tensor(__func__, tensorDesc, format, dataType, nbDims, dimA, NULL);
}

// Fills as many entries as asked for, and tells how many there are.
cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensorDesc, int nbDimsRequested,
                                         cudnnDataType_t* dataType, int* nbDims, int dimA[], int strideA[]) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_tensor_kind, tensorDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  GCAP_SIM_DNN_PUT(dataType, tensorDesc->type);
  const gcap_sim_dnn_shape_t* shape = &tensorDesc->shape;
  GCAP_SIM_DNN_PUT(nbDims, tensorDesc->head.is_set ? (int)shape->rank : 0);
  for (int i = 0; i < shape->rank; ++i) {
    const int place = gcap_sim_dnn_place(shape->rank, i);
    if (place < nbDimsRequested) {
      GCAP_SIM_DNN_PUT(dimA + place, (int)shape->dims[i]);
      GCAP_SIM_DNN_PUT(strideA + place, (int)shape->strides[i]);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc, cudnnDataType_t dataType,
                                         cudnnTensorFormat_t format, int nbDims, const int filterDimA[]) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_filter_kind, filterDesc);
  if (status == CUDNN_STATUS_SUCCESS && nbDims < 3) {
    status = gcap_sim_dnn_fail(__func__, CUDNN_STATUS_BAD_PARAM, "%d dimensions are too few for a filter", nbDims);
  }
  if (status == CUDNN_STATUS_SUCCESS) {
    status = check_rank(__func__, nbDims);
  }
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  stop_without(__func__, filterDimA);
  return gcap_sim_dnn_set_filter(__func__, filterDesc, dataType, format, nbDims, filterDimA);
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filterDesc, int nbDimsRequested,
                                         cudnnDataType_t* dataType, cudnnTensorFormat_t* format, int* nbDims,
                                         int filterDimA[]) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_filter_kind, filterDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  GCAP_SIM_DNN_PUT(dataType, filterDesc->type);
  GCAP_SIM_DNN_PUT(format, filterDesc->format);
  const gcap_sim_dnn_shape_t* shape = &filterDesc->shape;
  GCAP_SIM_DNN_PUT(nbDims, filterDesc->head.is_set ? (int)shape->rank : 0);
  for (int i = 0; i < shape->rank; ++i) {
    const int place = gcap_sim_dnn_place(shape->rank, i);
    if (place < nbDimsRequested) {
      GCAP_SIM_DNN_PUT(filterDimA + place, (int)shape->dims[i]);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convDesc, int arrayLength, const int padA[],
                                              const int filterStrideA[], const int dilationA[],
                                              cudnnConvolutionMode_t mode, cudnnDataType_t computeType) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_convolution_kind, convDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (arrayLength != 2 && arrayLength != 3) {
    gcap_sim_stop(__func__, "%d spatial dimensions are not modelled, 2 and 3 are", arrayLength);
  }
  stop_without(__func__, padA);
  stop_without(__func__, filterStrideA);
  stop_without(__func__, dilationA);
  return gcap_sim_dnn_set_convolution(__func__, convDesc, arrayLength, padA, filterStrideA, dilationA, mode,
                                      computeType);
}

cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t poolingDesc, const cudnnPoolingMode_t mode,
                                          const cudnnNanPropagation_t maxpoolingNanOpt, int nbDims,
                                          const int windowDimA[], const int paddingA[], const int strideA[]) {
  cudnnStatus_t status = gcap_sim_dnn_enter_with(__func__, &gcap_sim_dnn_pooling_kind, poolingDesc);
  if (status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  if (nbDims != 2) {
    gcap_sim_stop(__func__, "%d spatial dimensions are not modelled, 2 are", nbDims);
  }
  stop_without(__func__, windowDimA);
  stop_without(__func__, paddingA);
  stop_without(__func__, strideA);
  return gcap_sim_dnn_set_pooling(__func__, poolingDesc, mode, maxpoolingNanOpt, windowDimA, paddingA, strideA);
}

// --- Output dimensions, in both forms -------------------------------------------------------------------------------

static cudnnStatus_t put_dims(const char* function, const int64_t* dims, int* n, int* c, int* h, int* w) {
  int* out[] = {n, c, h, w};
  for (int i = 0; i < kRank; ++i) {
    if (out[i] == NULL) {
      return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "an out pointer is NULL");
    }
    *out[i] = (int)dims[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t put_array(const char* function, const int64_t* dims, int expected, int rank, int* out) {
  if (rank != expected || out == NULL) {
    return gcap_sim_dnn_fail(function, CUDNN_STATUS_BAD_PARAM, "the output has %d dimensions, not %d, or no place",
                             expected, rank);
  }
  for (int i = 0; i < rank; ++i) {
    out[gcap_sim_dnn_place(rank, i)] = (int)dims[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t convDesc,
                                                    const cudnnTensorDescriptor_t inputTensorDesc,
                                                    const cudnnFilterDescriptor_t filterDesc, int* n, int* c, int* h,
                                                    int* w) {
  int64_t dims[GCAP_SIM_DNN_MAX_RANK];
  cudnnStatus_t status = gcap_sim_dnn_conv_output_dims(__func__, convDesc, inputTensorDesc, filterDesc, dims);
  if (status == CUDNN_STATUS_SUCCESS) {
    gcap_sim_dnn_require_image(__func__, &inputTensorDesc->shape);
  }
  return status == CUDNN_STATUS_SUCCESS ? put_dims(__func__, dims, n, c, h, w) : status;
}

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t convDesc,
                                                    const cudnnTensorDescriptor_t inputTensorDesc,
                                                    const cudnnFilterDescriptor_t filterDesc, int nbDims,
                                                    int tensorOuputDimA[]) {
  int64_t dims[GCAP_SIM_DNN_MAX_RANK];
  cudnnStatus_t status = gcap_sim_dnn_conv_output_dims(__func__, convDesc, inputTensorDesc, filterDesc, dims);
  return status == CUDNN_STATUS_SUCCESS ? put_array(__func__, dims, convDesc->axes + kLeading, nbDims, tensorOuputDimA)
                                        : status;
}

cudnnStatus_t cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t poolingDesc,
                                                const cudnnTensorDescriptor_t inputTensorDesc, int* n, int* c, int* h,
                                                int* w) {
  int64_t dims[kRank];
  cudnnStatus_t status = gcap_sim_dnn_pooling_output_dims(__func__, poolingDesc, inputTensorDesc, dims);
  return status == CUDNN_STATUS_SUCCESS ? put_dims(__func__, dims, n, c, h, w) : status;
}

cudnnStatus_t cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t poolingDesc,
                                                const cudnnTensorDescriptor_t inputTensorDesc, int nbDims,
                                                int outputTensorDimA[]) {
  int64_t dims[kRank];
  cudnnStatus_t status = gcap_sim_dnn_pooling_output_dims(__func__, poolingDesc, inputTensorDesc, dims);
  return status == CUDNN_STATUS_SUCCESS ? put_array(__func__, dims, kRank, nbDims, outputTensorDimA) : status;
}
