// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// libraries_test.h: calls of cuBLASLt and cuDNN for tests, each with the buffers that it needs: products of every
// algorithm that the library of the build offers, and convolutions.
#ifndef GCAP_TEST_GRAPH_LIBRARIES_TEST_H_
#define GCAP_TEST_GRAPH_LIBRARIES_TEST_H_

#include <cublasLt.h>
#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace gcap {
namespace testing {

using Bytes = std::vector<uint8_t>;

enum class Element { kF32, kF16, kBf16 };

inline size_t SizeOf(Element element) { return element == Element::kF32 ? 4 : 2; }

// Multiples of 1/8 in [-1, 1], from a fixed sequence.
inline Bytes Eighths(Element element, size_t count, uint32_t seed) {
  Bytes bytes(count * SizeOf(element));
  uint32_t state = seed;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const float value = (static_cast<int>(state >> 24) % 17 - 8) / 8.0f;
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    if (element == Element::kBf16) bits >>= 16;
    if (element == Element::kF16 && value != 0) bits = (bits >> 16 & 0x8000) | ((bits >> 13 & 0x3ffff) - (112u << 10));
    std::memcpy(&bytes[i * SizeOf(element)], &bits, SizeOf(element));
  }
  return bytes;
}

// One call of a library. The last buffer is the output, the one before it the workspace.
struct Call {
  std::string name;
  Element element = Element::kF32;
  std::vector<size_t> counts;  // elements of each buffer
  std::function<bool(cudaStream_t, void* const*)> issue;

  size_t output() const { return counts.size() - 1; }
};

// --- cuBLASLt -------------------------------------------------------------------------------------------------------

constexpr int kMostAlgorithms = 16;

#define EXPECT_LT_OK(expr) EXPECT_EQ(CUBLAS_STATUS_SUCCESS, (expr)) << #expr

// D = alpha * A * B + beta * C of m x k and k x n.
class Product {
 public:
  Product(uint64_t m, uint64_t n, uint64_t k, Element element) : m_(m), n_(n), k_(k), element_(element) {
    const cudaDataType types[] = {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF};
    const cudaDataType type = types[static_cast<int>(element)];
    EXPECT_LT_OK(cublasLtCreate(&handle_));
    EXPECT_LT_OK(cublasLtMatmulDescCreate(&desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    EXPECT_LT_OK(cublasLtMatrixLayoutCreate(&a_, type, m, k, static_cast<int64_t>(m)));
    EXPECT_LT_OK(cublasLtMatrixLayoutCreate(&b_, type, k, n, static_cast<int64_t>(k)));
    EXPECT_LT_OK(cublasLtMatrixLayoutCreate(&d_, type, m, n, static_cast<int64_t>(m)));
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product() {
    for (const auto layout : {a_, b_, d_}) EXPECT_LT_OK(cublasLtMatrixLayoutDestroy(layout));
    EXPECT_LT_OK(cublasLtMatmulDescDestroy(desc_));
    EXPECT_LT_OK(cublasLtDestroy(handle_));
  }

  std::vector<cublasLtMatmulHeuristicResult_t> Algorithms(uint64_t max_workspace) const {
    cublasLtMatmulPreference_t preference = nullptr;
    EXPECT_LT_OK(cublasLtMatmulPreferenceCreate(&preference));
    EXPECT_LT_OK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                      &max_workspace, sizeof(max_workspace)));
    std::vector<cublasLtMatmulHeuristicResult_t> found(kMostAlgorithms);
    int count = 0;
    EXPECT_LT_OK(cublasLtMatmulAlgoGetHeuristic(handle_, desc_, a_, b_, d_, d_, preference, kMostAlgorithms,
                                                found.data(), &count));
    EXPECT_LT_OK(cublasLtMatmulPreferenceDestroy(preference));
    found.resize(static_cast<size_t>(count));
    return found;
  }

  Call CallOf(const cublasLtMatmulHeuristicResult_t& algorithm) {
    Call call;
    call.element = element_;
    call.counts = {m_ * k_, k_ * n_, m_ * n_, std::max(algorithm.workspaceSize, size_t{256}) / SizeOf(element_),
                   m_ * n_};
    call.issue = [this, algorithm](cudaStream_t stream, void* const* at) {
      return cublasLtMatmul(handle_, desc_, &alpha, at[0], a_, at[1], b_, &beta, at[2], d_, at[4], d_, &algorithm.algo,
                            at[3], algorithm.workspaceSize, stream) == CUBLAS_STATUS_SUCCESS;
    };
    int32_t id = -1, slices = 0;
    size_t written = 0;
    EXPECT_LT_OK(
        cublasLtMatmulAlgoConfigGetAttribute(&algorithm.algo, CUBLASLT_ALGO_CONFIG_ID, &id, sizeof(id), &written));
    EXPECT_LT_OK(cublasLtMatmulAlgoConfigGetAttribute(&algorithm.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &slices,
                                                      sizeof(slices), &written));
    call.name = "algorithm " + std::to_string(id) + ", split-K " + std::to_string(slices) + ", workspace " +
                std::to_string(algorithm.workspaceSize) + ", " + std::to_string(m_) + "x" + std::to_string(n_) + "x" +
                std::to_string(k_);
    return call;
  }

  float alpha = 1.0f, beta = 0.5f;  // on the host, as a call finds them

 private:
  const uint64_t m_, n_, k_;
  const Element element_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

// --- cuDNN ----------------------------------------------------------------------------------------------------------

#define EXPECT_DNN_OK(expr) EXPECT_EQ(CUDNN_STATUS_SUCCESS, (expr)) << #expr

struct ConvolutionShape {
  int images, channels, side, filters, filter_side;
};

// A convolution of squares with stride 1, padded so that its output is as large as its input, times alpha.
class Convolution {
 public:
  Convolution(const ConvolutionShape& shape, cudaStream_t stream) : shape_(shape) {
    EXPECT_DNN_OK(cudnnCreate(&handle_));
    EXPECT_DNN_OK(cudnnSetStream(handle_, stream));
    EXPECT_DNN_OK(cudnnCreateTensorDescriptor(&x_));
    EXPECT_DNN_OK(cudnnCreateTensorDescriptor(&y_));
    EXPECT_DNN_OK(cudnnCreateFilterDescriptor(&w_));
    EXPECT_DNN_OK(cudnnCreateConvolutionDescriptor(&conv_));
    const ConvolutionShape& s = shape;
    const int pad = s.filter_side / 2;
    EXPECT_DNN_OK(
        cudnnSetTensor4dDescriptor(x_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, s.images, s.channels, s.side, s.side));
    EXPECT_DNN_OK(
        cudnnSetTensor4dDescriptor(y_, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, s.images, s.filters, s.side, s.side));
    EXPECT_DNN_OK(cudnnSetFilter4dDescriptor(w_, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, s.filters, s.channels,
                                             s.filter_side, s.filter_side));
    EXPECT_DNN_OK(
        cudnnSetConvolution2dDescriptor(conv_, pad, pad, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;
  ~Convolution() {
    EXPECT_DNN_OK(cudnnDestroyConvolutionDescriptor(conv_));
    EXPECT_DNN_OK(cudnnDestroyFilterDescriptor(w_));
    EXPECT_DNN_OK(cudnnDestroyTensorDescriptor(y_));
    EXPECT_DNN_OK(cudnnDestroyTensorDescriptor(x_));
    EXPECT_DNN_OK(cudnnDestroy(handle_));
  }

  // False: the library does not offer the algorithm.
  bool Find(cudnnConvolutionFwdAlgo_t algorithm, Call* out_call) {
    size_t workspace = 0;
    if (cudnnGetConvolutionForwardWorkspaceSize(handle_, x_, w_, conv_, y_, algorithm, &workspace) !=
        CUDNN_STATUS_SUCCESS) {
      return false;
    }
    const auto count = [](int a, int b, int c, int d) { return static_cast<size_t>(a) * b * c * d; };
    const ConvolutionShape& s = shape_;
    out_call->name = "algorithm " + std::to_string(algorithm) + " of " + std::to_string(s.images) + "x" +
                     std::to_string(s.channels) + "x" + std::to_string(s.side) + ", filters of " +
                     std::to_string(s.filter_side) + ", workspace " + std::to_string(workspace);
    out_call->counts = {count(s.images, s.channels, s.side, s.side),
                        count(s.filters, s.channels, s.filter_side, s.filter_side),
                        (std::max(workspace, size_t{256}) + 3) / 4, count(s.images, s.filters, s.side, s.side)};
    out_call->issue = [this, algorithm, workspace](cudaStream_t, void* const* at) {
      const float zero = 0.0f;
      return cudnnConvolutionForward(handle_, &alpha, x_, at[0], w_, at[1], conv_, algorithm, at[2], workspace, &zero,
                                     y_, at[3]) == CUDNN_STATUS_SUCCESS;
    };
    return true;
  }

  // Tries the algorithms on memory that the library allocates, which no capture allows.
  bool Search() const {
    cudnnConvolutionFwdAlgoPerf_t found[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
    int count = 0;
    return cudnnFindConvolutionForwardAlgorithm(handle_, x_, w_, conv_, y_, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count,
                                                found) == CUDNN_STATUS_SUCCESS;
  }

  float alpha = 1.0f;  // on the host, as a call finds it

 private:
  const ConvolutionShape shape_;
  cudnnHandle_t handle_ = nullptr;
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t conv_ = nullptr;
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_GRAPH_LIBRARIES_TEST_H_
