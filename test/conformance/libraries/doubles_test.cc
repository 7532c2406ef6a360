// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Which types go with doubles in the libraries, and which algorithms there are for them, as statuses: one test a call,
// whose answer lists what the call was asked in the order of the code below. Answers stand in recorded.inc.
#include <sstream>
#include <string>
#include <vector>

#include "cublas_v2.h"
#include "gtest/gtest.h"
#include "test/conformance/libraries/answer.h"
#include "test/conformance/libraries/convolution.h"
#include "test/conformance/libraries/matmul.h"

namespace conformance {
namespace {

using gcap_test::DeviceArray;

// Statuses with spaces between.
class Answers {
 public:
  void Add(int status) { text_ << (text_.str().empty() ? "" : " ") << status; }
  std::string Get() const { return text_.str(); }

 private:
  std::ostringstream text_;
};

const cudaDataType kTypes[] = {CUDA_R_64F, CUDA_R_32F, CUDA_R_16F};

// The heuristic, for each type of A, of B, and of C and D.
class CublasLtDoubles : public testing::TestWithParam<cublasComputeType_t> {};

TEST_P(CublasLtDoubles, GoAsRecorded) {
  Answers answers;
  for (const cudaDataType scale : {CUDA_R_64F, CUDA_R_32F}) {
    for (const cudaDataType a : kTypes) {
      for (const cudaDataType b : kTypes) {
        for (const cudaDataType d : kTypes) {
          MatmulShape shape;
          shape.m = shape.n = shape.k = 64;
          shape.compute = GetParam();
          Matmul matmul(shape);
          matmul.SetDesc(CUBLASLT_MATMUL_DESC_SCALE_TYPE, static_cast<int32_t>(scale));
          matmul.SetLayout(matmul.a, CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint32_t>(a));
          matmul.SetLayout(matmul.b, CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint32_t>(b));
          matmul.SetLayout(matmul.c, CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint32_t>(d));
          matmul.SetLayout(matmul.d, CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint32_t>(d));
          std::vector<cublasLtMatmulHeuristicResult_t> results;
          answers.Add(matmul.Heuristic(0, &results));
        }
      }
    }
  }
  CompareWithRecord("cublasLt_doubles_compute_" + std::to_string(GetParam()), answers.Get());
}

INSTANTIATE_TEST_SUITE_P(ComputeTypes, CublasLtDoubles,
                         testing::Values(CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F_PEDANTIC, CUBLAS_COMPUTE_32F,
                                         CUBLAS_COMPUTE_32F_FAST_16F));

// The heuristic, for each epilogue.
TEST(CublasLtDoubles, EpiloguesAreAsRecorded) {
  Answers answers;
  for (const auto epilogue :
       {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS,
        CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_RELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX}) {
    MatmulShape shape;
    shape.compute = CUBLAS_COMPUTE_64F;
    Matmul matmul(shape);
    matmul.SetDesc(CUBLASLT_MATMUL_DESC_SCALE_TYPE, static_cast<int32_t>(CUDA_R_64F));
    for (const auto layout : matmul.layouts) {
      matmul.SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, static_cast<uint32_t>(CUDA_R_64F));
    }
    matmul.SetEpilogue(epilogue);
    matmul.SetBias((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 ? matmul.data_workspace.get() : nullptr);
    if (epilogue >= CUBLASLT_EPILOGUE_RELU_AUX) {
      matmul.SetDesc(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, static_cast<void*>(matmul.data_workspace.get()));
      matmul.SetDesc(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, int64_t{128});
    }
    std::vector<cublasLtMatmulHeuristicResult_t> results;
    answers.Add(matmul.Heuristic(0, &results));
  }
  CompareWithRecord("cublasLt_doubles_epilogues", answers.Get());
}

// For each compute type, type of A and B, and type of C.
TEST(CublasDoubles, GoAsRecorded) {
  cublasHandle_t handle = nullptr;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasCreate(&handle));
  const DeviceArray<double> in(std::vector<double>(64 * 64)), out(std::vector<double>(64 * 64));
  const double zero = 0;  // as a float too
  Answers answers;
  for (const auto compute : {CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F_PEDANTIC, CUBLAS_COMPUTE_32F}) {
    for (const cudaDataType a : kTypes) {
      for (const cudaDataType c : kTypes) {
        answers.Add(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, 64, &zero, in.get(), a, 64, in.get(), a, 64,
                                 &zero, out.get(), c, 64, compute, CUBLAS_GEMM_DEFAULT));
      }
    }
  }
  EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasDestroy(handle));
  CompareWithRecord("cublas_doubles", answers.Get());
}

// The workspace's status, for each compute type and algorithm.
TEST(CudnnDoubles, AlgorithmsAreAsRecorded) {
  gcap_test::Stream stream;
  const Convolution convolution(stream.get());
  const TensorDesc x(CUDNN_DATA_DOUBLE, 2, 16, 8, 8), y(CUDNN_DATA_DOUBLE, 2, 32, 8, 8);
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t conv = nullptr;
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateFilterDescriptor(&filter));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreateConvolutionDescriptor(&conv));
  ASSERT_EQ(CUDNN_STATUS_SUCCESS,
            cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_DOUBLE, CUDNN_TENSOR_NCHW, 32, 16, 3, 3));
  Answers answers;
  for (const auto compute : {CUDNN_DATA_DOUBLE, CUDNN_DATA_FLOAT}) {
    ASSERT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, compute));
    for (int algorithm = 0; algorithm < CUDNN_CONVOLUTION_FWD_ALGO_COUNT; ++algorithm) {
      size_t bytes = 0;
      answers.Add(cudnnGetConvolutionForwardWorkspaceSize(convolution.handle, x.get(), filter, conv, y.get(),
                                                          static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), &bytes));
    }
  }
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyConvolutionDescriptor(conv));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnDestroyFilterDescriptor(filter));
  CompareWithRecord("cudnn_doubles_algorithms", answers.Get());
}

}  // namespace
}  // namespace conformance
