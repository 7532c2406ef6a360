// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cuBLAS as gcap uses it: products against plain loops in double, wrong arguments, and capture. The same expectations
// hold for the simulated library and, where a GPU is there, for the real one. Inputs are small multiples of 1/8, so
// sums are exact in whatever order, and TF32 and the 16-bit types hold them: results must be equal.
#include "cublas_v2.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "test/sim_libs/device.h"

namespace {

using gcap_test::Capture;
using gcap_test::CaptureEnd;
using gcap_test::DeviceArray;
using gcap_test::Eighths;
using gcap_test::Stream;

// A handle on a stream, with a workspace.
class Blas : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasCreate(&handle_));
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetStream(handle_, stream_.get()));
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetWorkspace(handle_, workspace_.get(), workspace_.Bytes()));
  }
  void TearDown() override { EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasDestroy(handle_)); }

  Stream stream_;
  DeviceArray<uint8_t> workspace_{std::vector<uint8_t>(size_t{4} << 20)};
  cublasHandle_t handle_ = nullptr;
};

struct Product {
  int m, n, k, batch;
  cublasOperation_t trans_a, trans_b;
  float alpha, beta;
  std::vector<float> a, b, c;  // packed, column-major

  Product(int m, int n, int k, int batch, cublasOperation_t trans_a, cublasOperation_t trans_b, float alpha, float beta)
      : m(m), n(n), k(k), batch(batch), trans_a(trans_a), trans_b(trans_b), alpha(alpha), beta(beta) {
    Eighths random(23);
    a = random.Take(static_cast<size_t>(batch) * m * k);
    b = random.Take(static_cast<size_t>(batch) * k * n);
    c = random.Take(static_cast<size_t>(batch) * m * n);
  }
  int lda() const { return trans_a == CUBLAS_OP_N ? m : k; }
  int ldb() const { return trans_b == CUBLAS_OP_N ? k : n; }

  std::vector<float> Expected() const {
    std::vector<float> expected = c;
    for (int i = 0; i < batch * m * n; ++i) {
      const int row = i % m, col = i / m % n, at = i / m / n;
      double sum = 0;
      for (int l = 0; l < k; ++l) {
        const int in_a = trans_a == CUBLAS_OP_N ? row + l * m : l + row * k;
        const int in_b = trans_b == CUBLAS_OP_N ? l + col * k : col + l * n;
        sum += static_cast<double>(a[at * m * k + in_a]) * b[at * k * n + in_b];
      }
      expected[i] = static_cast<float>(alpha * sum + beta * c[i]);
    }
    return expected;
  }
};

TEST_F(Blas, SgemmEqualsTheLoop) {
  for (const auto trans_a : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    for (const auto trans_b : {CUBLAS_OP_N, CUBLAS_OP_C}) {
      for (const float beta : {0.0f, -2.0f}) {
        const Product p(17, 9, 33, 1, trans_a, trans_b, 0.5f, beta);
        const DeviceArray<float> a(p.a), b(p.b), c(p.c);
        ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSgemm(handle_, trans_a, trans_b, p.m, p.n, p.k, &p.alpha, a.get(),
                                                     p.lda(), b.get(), p.ldb(), &p.beta, c.get(), p.m));
        stream_.Synchronize();
        EXPECT_EQ(p.Expected(), c.Download());
      }
    }
  }
}

TEST_F(Blas, ProductsWithoutADepthScaleTheOutput) {
  const Product p(3, 2, 0, 1, CUBLAS_OP_N, CUBLAS_OP_N, 1.0f, 2.0f);
  const DeviceArray<float> c(p.c);
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 3, 2, 0, &p.alpha, c.get(), 3,
                                               c.get(), 1, &p.beta, c.get(), 3));
  stream_.Synchronize();
  EXPECT_EQ(p.Expected(), c.Download());
}

TEST_F(Blas, ProductsWithoutADepthClearTheOutputAndNotTheGapsInIt) {
  const float one = 1.0f, zero = 0.0f;
  const DeviceArray<float> c(std::vector<float>(10, 5.0f));
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS,
            cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 3, 2, 0, &one, c.get(), 3, c.get(), 1, &zero, c.get(), 5));
  stream_.Synchronize();
  EXPECT_EQ(std::vector<float>({0, 0, 0, 5, 5, 0, 0, 0, 5, 5}), c.Download());
}

TEST_F(Blas, BatchesWithStridesAndOneMatrixForAll) {
  Product p(8, 5, 16, 3, CUBLAS_OP_N, CUBLAS_OP_N, 1.0f, 1.0f);
  for (int batch = 1; batch < p.batch; ++batch) std::copy(p.b.begin(), p.b.begin() + 80, p.b.begin() + batch * 80);
  const DeviceArray<float> a(p.a), b(p.b), c(p.c);
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS,
            cublasGemmStridedBatchedEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 8, 5, 16, &p.alpha, a.get(), CUDA_R_32F, 8,
                                       128, b.get(), CUDA_R_32F, 16, 0, &p.beta, c.get(), CUDA_R_32F, 8, 40, 3,
                                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  stream_.Synchronize();
  EXPECT_EQ(p.Expected(), c.Download());
}

TEST_F(Blas, SixteenBitInputsGiveFloats) {
  const Product p(8, 8, 8, 1, CUBLAS_OP_N, CUBLAS_OP_N, 1.0f, 0.0f);
  const auto to_bfloat = [](const std::vector<float>& values) {
    std::vector<uint16_t> bits;
    for (float value : values) {
      uint32_t word;
      std::memcpy(&word, &value, sizeof word);
      bits.push_back(static_cast<uint16_t>(word >> 16));
    }
    return bits;
  };
  const DeviceArray<uint16_t> a(to_bfloat(p.a)), b(to_bfloat(p.b));
  const DeviceArray<float> c(p.c);
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS,
            cublasGemmEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 8, 8, 8, &p.alpha, a.get(), CUDA_R_16BF, 8, b.get(),
                         CUDA_R_16BF, 8, &p.beta, c.get(), CUDA_R_32F, 8, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  stream_.Synchronize();
  EXPECT_EQ(p.Expected(), c.Download());
}

TEST_F(Blas, DevicePointerModeReadsTheScalarsWhenTheWorkRuns) {
  const Product p(4, 4, 4, 1, CUBLAS_OP_N, CUBLAS_OP_N, 2.0f, -1.0f);
  const DeviceArray<float> a(p.a), b(p.b), c(p.c), scalars({2.0f, -1.0f});
  cublasPointerMode_t mode = CUBLAS_POINTER_MODE_HOST;
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE));
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasGetPointerMode(handle_, &mode));
  EXPECT_EQ(CUBLAS_POINTER_MODE_DEVICE, mode);
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, scalars.get(), a.get(), 4,
                                               b.get(), 4, scalars.get() + 1, c.get(), 4));
  stream_.Synchronize();
  EXPECT_EQ(p.Expected(), c.Download());
}

// TF32 keeps 10 bits behind the point: 1 + 2^-12 is 1 there, however it is rounded.
TEST_F(Blas, MathModeLetsFloatsBeRounded) {
  const float value = 1.0f + 1.0f / 4096, one = 1.0f, zero = 0.0f;
  const DeviceArray<float> a(std::vector<float>(64 * 64, value)), b(std::vector<float>(64 * 64, 1.0f));
  const DeviceArray<float> c(std::vector<float>(64 * 64));
  for (const auto mode : {CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH}) {
    cublasMath_t read = CUBLAS_PEDANTIC_MATH;
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetMathMode(handle_, mode));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasGetMathMode(handle_, &read));
    EXPECT_EQ(mode, read);
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, 64, &one, a.get(), 64,
                                                 b.get(), 64, &zero, c.get(), 64));
    stream_.Synchronize();
    if (mode == CUBLAS_DEFAULT_MATH) {
      EXPECT_EQ(64 * value, c.Download()[0]);  // exact: 64 + 2^-6
    } else {
      EXPECT_NEAR(64.0f, c.Download()[0], 64.0f / 4096);  // TF32 is allowed, not promised
    }
  }
}

TEST_F(Blas, WrongArgumentsAreRefused) {
  const float one = 1.0f;
  const DeviceArray<float> x(std::vector<float>(64));
  const auto gemm = [&](cublasHandle_t handle, cublasOperation_t trans, int m, int lda, int ldc, const float* alpha) {
    return cublasSgemm(handle, trans, CUBLAS_OP_N, m, 4, 4, alpha, x.get(), lda, x.get() + 16, 4, &one, x.get() + 32,
                       ldc);
  };
  EXPECT_EQ(CUBLAS_STATUS_NOT_INITIALIZED, gemm(nullptr, CUBLAS_OP_N, 4, 4, 4, &one));
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, gemm(handle_, CUBLAS_OP_N, -1, 4, 4, &one));
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, gemm(handle_, CUBLAS_OP_N, 4, 3, 4, &one));
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, gemm(handle_, CUBLAS_OP_N, 4, 4, 3, &one));
  EXPECT_EQ(CUBLAS_STATUS_INVALID_VALUE, gemm(handle_, static_cast<cublasOperation_t>(9), 4, 4, 4, &one));
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, gemm(handle_, CUBLAS_OP_N, 0, 4, 4, &one));  // nothing to do
  // The documentation wants 256 bytes of alignment; an H200 takes any.
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetWorkspace(handle_, workspace_.get() + 1, 4096));
  EXPECT_EQ(CUBLAS_STATUS_NOT_INITIALIZED, cublasDestroy(nullptr));
  stream_.Synchronize();
}

TEST_F(Blas, TellsItsStreamVersionAndStatuses) {
  cudaStream_t stream = nullptr;
  int version = 0;
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasGetStream(handle_, &stream));
  EXPECT_EQ(stream_.get(), stream);
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasGetVersion(handle_, &version));
  EXPECT_GE(version, 120000);
  EXPECT_STREQ("CUBLAS_STATUS_INVALID_VALUE", cublasGetStatusName(CUBLAS_STATUS_INVALID_VALUE));
  EXPECT_NE(nullptr, cublasGetStatusString(CUBLAS_STATUS_INVALID_VALUE));
}

// With a workspace of the caller's no memory node comes of it.
TEST_F(Blas, ProductsAreCaptured) {
  const Product p(64, 64, 64, 1, CUBLAS_OP_N, CUBLAS_OP_N, 1.0f, 0.0f);
  const DeviceArray<float> a(p.a), b(p.b), c(p.c);
  const auto multiply = [&] {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, p.m, p.n, p.k, &p.alpha, a.get(),
                                                 p.m, b.get(), p.k, &p.beta, c.get(), p.m));
  };
  multiply();  // what is loaded on first use
  stream_.Synchronize();
  for (const auto mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    const CaptureEnd end = Capture(stream_.get(), mode, multiply);
    EXPECT_EQ(cudaSuccess, end.code);
    EXPECT_GE(end.nodes, 1u);
  }
}

}  // namespace
