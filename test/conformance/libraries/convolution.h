// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// convolution.h: a cuDNN handle with the descriptors and the memory of one convolution, which serve the other calls
// too. All members are public, so that a test may spoil them.
#ifndef GCAP_TEST_CONFORMANCE_LIBRARIES_CONVOLUTION_H_
#define GCAP_TEST_CONFORMANCE_LIBRARIES_CONVOLUTION_H_

#include <vector>

#include "cudnn.h"
#include "gtest/gtest.h"
#include "test/conformance/libraries/numbers.h"

namespace conformance {

inline cudnnDataType_t DnnType(cudaDataType type) {
  return type == CUDA_R_16F ? CUDNN_DATA_HALF : type == CUDA_R_16BF ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

// A tensor descriptor.
class TensorDesc {
 public:
  TensorDesc(cudnnDataType_t type, int n, int c, int h, int w, cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateTensorDescriptor(&desc_));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetTensor4dDescriptor(desc_, format, type, n, c, h, w));
  }
  ~TensorDesc() { EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyTensorDescriptor(desc_)); }
  TensorDesc(const TensorDesc&) = delete;
  TensorDesc& operator=(const TensorDesc&) = delete;
  cudnnTensorDescriptor_t get() const { return desc_; }

 private:
  cudnnTensorDescriptor_t desc_ = nullptr;
};

class ActivationDesc {
 public:
  explicit ActivationDesc(cudnnActivationMode_t mode, double coef = 0.0) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateActivationDescriptor(&desc_));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetActivationDescriptor(desc_, mode, CUDNN_NOT_PROPAGATE_NAN, coef));
  }
  ~ActivationDesc() { EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyActivationDescriptor(desc_)); }
  ActivationDesc(const ActivationDesc&) = delete;
  ActivationDesc& operator=(const ActivationDesc&) = delete;
  cudnnActivationDescriptor_t get() const { return desc_; }

 private:
  cudnnActivationDescriptor_t desc_ = nullptr;
};

class PoolingDesc {
 public:
  // Windows of 2 x 2 side by side.
  explicit PoolingDesc(cudnnPoolingMode_t mode, int pad = 0) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreatePoolingDescriptor(&desc_));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetPooling2dDescriptor(desc_, mode, CUDNN_NOT_PROPAGATE_NAN, 2, 2, pad, pad, 2, 2));
  }
  ~PoolingDesc() { EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyPoolingDescriptor(desc_)); }
  PoolingDesc(const PoolingDesc&) = delete;
  PoolingDesc& operator=(const PoolingDesc&) = delete;
  cudnnPoolingDescriptor_t get() const { return desc_; }

 private:
  cudnnPoolingDescriptor_t desc_ = nullptr;
};

class OpTensorDesc {
 public:
  explicit OpTensorDesc(cudnnOpTensorOp_t op, cudnnDataType_t compute = CUDNN_DATA_FLOAT) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateOpTensorDescriptor(&desc_));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetOpTensorDescriptor(desc_, op, compute, CUDNN_NOT_PROPAGATE_NAN));
  }
  ~OpTensorDesc() { EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyOpTensorDescriptor(desc_)); }
  OpTensorDesc(const OpTensorDesc&) = delete;
  OpTensorDesc& operator=(const OpTensorDesc&) = delete;
  cudnnOpTensorDescriptor_t get() const { return desc_; }

 private:
  cudnnOpTensorDescriptor_t desc_ = nullptr;
};

// 3 x 3 filters, 16 to 32 channels, two images of 8 x 8, padded to keep their size.
class Convolution {
 public:
  static constexpr size_t kWorkspaceBytes = size_t{4} << 20;

  explicit Convolution(cudaStream_t stream, cudaDataType type = CUDA_R_32F,
                       cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW)
      : values_x(Eighths(5, 2 * 16 * 64)),
        values_w(Eighths(6, 32 * 16 * 9)),
        values_bias(Eighths(7, 32)),
        values_z(Eighths(8, 2 * 32 * 64)),
        desc_x(DnnType(type), 2, 16, 8, 8, format),
        desc_y(DnnType(type), 2, 32, 8, 8, format),
        desc_z(DnnType(type), 2, 32, 8, 8, format),
        desc_bias(DnnType(type), 1, 32, 1, 1),
        relu(CUDNN_ACTIVATION_RELU),
        data_x(values_x, type),
        data_w(values_w, type),
        data_y(std::vector<double>(2 * 32 * 64, 0.5), type),
        data_z(values_z, type),
        data_bias(values_bias, type),
        data_workspace(kWorkspaceBytes) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreate(&handle));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(handle, stream));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateFilterDescriptor(&desc_w));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetFilter4dDescriptor(desc_w, DnnType(type), format, 32, 16, 3, 3));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateConvolutionDescriptor(&desc_conv));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetConvolution2dDescriptor(desc_conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    used_handle = handle;
    x = desc_x.get(), y = desc_y.get(), z = desc_z.get(), bias = desc_bias.get();
    w = desc_w, conv = desc_conv, activation = relu.get();
    pointer_x = Bytes(data_x), pointer_w = Bytes(data_w), pointer_y = Bytes(data_y);
    pointer_z = data_z.get(), pointer_bias = data_bias.get();
    workspace = data_workspace.get();
  }
  ~Convolution() {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyConvolutionDescriptor(desc_conv));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyFilterDescriptor(desc_w));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroy(handle));  // NULL when a test has destroyed it
  }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  cudnnStatus_t Forward() {
    return cudnnConvolutionForward(used_handle, alpha_pointer, x, pointer_x, w, pointer_w, conv, algorithm, workspace,
                                   workspace_bytes, beta_pointer, y, pointer_y);
  }
  cudnnStatus_t Fused() {
    return cudnnConvolutionBiasActivationForward(used_handle, alpha_pointer, x, pointer_x, w, pointer_w, conv,
                                                 algorithm, workspace, workspace_bytes, beta_pointer, z, pointer_z,
                                                 bias, pointer_bias, activation, y, pointer_y);
  }
  cudnnStatus_t WorkspaceSize(size_t* bytes) {
    return cudnnGetConvolutionForwardWorkspaceSize(used_handle, x, w, conv, y, algorithm, bytes);
  }
  cudnnStatus_t OutputDim() {
    int dims[4];
    return cudnnGetConvolution2dForwardOutputDim(conv, x, w, &dims[0], &dims[1], &dims[2], &dims[3]);
  }
  // Finds nothing but what it does to captures: returns "status/results/status of the first".
  template <typename Find>
  std::string Search(Find find) {
    cudnnConvolutionFwdAlgoPerf_t results[8];
    int count = -1;
    const cudnnStatus_t status = find(&count, results);
    return std::to_string(status) + "/" + std::to_string(count) + "/" +
           (count > 0 ? std::to_string(results[0].status) : "");
  }

  std::vector<double> values_x, values_w, values_bias, values_z;
  TensorDesc desc_x, desc_y, desc_z, desc_bias;
  ActivationDesc relu;
  Numbers data_x, data_w, data_y, data_z, data_bias;
  DeviceMemory data_workspace;
  cudnnHandle_t handle = nullptr;
  cudnnFilterDescriptor_t desc_w = nullptr;
  cudnnConvolutionDescriptor_t desc_conv = nullptr;
  // What the calls are given.
  cudnnHandle_t used_handle;
  cudnnTensorDescriptor_t x, y, z, bias;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  cudnnActivationDescriptor_t activation;
  char *pointer_x, *pointer_w, *pointer_y;
  void *pointer_z, *pointer_bias, *workspace;
  size_t workspace_bytes = kWorkspaceBytes;
  cudnnConvolutionFwdAlgo_t algorithm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  float alpha = 1.0f, beta = 0.0f;
  const void* alpha_pointer = &alpha;
  const void* beta_pointer = &beta;

 private:
  static char* Bytes(const Numbers& numbers) { return static_cast<char*>(numbers.get()); }
};

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_LIBRARIES_CONVOLUTION_H_
