// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Matrix products of doubles by cuBLAS and cuBLASLt, against plain loops: results, scalars, epilogues, and which types
// go together. Inputs are multiples of 2^-20 in [-1, 1], so that sums of thousands of products are exact in doubles in
// whatever order, and wrong in floats: results must be equal.
#include <cstdint>
#include <functional>
#include <vector>

#include "cublasLt.h"
#include "cublas_v2.h"
#include "gtest/gtest.h"
#include "test/sim_libs/device.h"

namespace {

using gcap_test::Capture;
using gcap_test::CaptureEnd;
using gcap_test::DeviceArray;
using gcap_test::Stream;

constexpr size_t kWorkspaceBytes = size_t{4} << 20;

std::vector<double> Values(size_t count, uint32_t seed) {
  std::vector<double> values(count);
  for (double& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = (static_cast<int>(seed >> 11) - (1 << 20)) / 1048576.0;
  }
  return values;
}

struct Shape {
  size_t m = 17, n = 9, k = 33, batch = 1;
  bool trans_a = false, trans_b = false;
  double alpha = 1, beta = 0;
  bool bias = false, relu = false;
};

// Packed, column-major operands and the result.
struct Product {
  explicit Product(const Shape& shape)
      : shape(shape),
        a(Values(shape.m * shape.k * shape.batch, 1)),
        b(Values(shape.k * shape.n * shape.batch, 2)),
        c(Values(shape.m * shape.n * shape.batch, 3)),
        bias(Values(shape.m, 4)) {}

  std::vector<double> Expected() const {
    std::vector<double> out(c.size());
    for (size_t at = 0; at < out.size(); ++at) {
      const size_t i = at % shape.m, j = at / shape.m % shape.n, batch = at / shape.m / shape.n;
      double sum = 0;
      for (size_t l = 0; l < shape.k; ++l) {
        const size_t in_a = shape.trans_a ? l + i * shape.k : i + l * shape.m;
        const size_t in_b = shape.trans_b ? j + l * shape.n : l + j * shape.k;
        sum += a[batch * shape.m * shape.k + in_a] * b[batch * shape.k * shape.n + in_b];
      }
      const double value = shape.alpha * sum + shape.beta * c[at] + (shape.bias ? bias[i] : 0);
      out[at] = shape.relu && value < 0 ? 0 : value;
    }
    return out;
  }
  int lda() const { return static_cast<int>(shape.trans_a ? shape.k : shape.m); }
  int ldb() const { return static_cast<int>(shape.trans_b ? shape.n : shape.k); }

  Shape shape;
  std::vector<double> a, b, c, bias;
};

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      for (const size_t k : {1, 33, 512}) {
        for (const double beta : {0.0, -2.0}) {
          Shape shape;
          shape.k = k, shape.trans_a = trans_a, shape.trans_b = trans_b, shape.alpha = 0.5, shape.beta = beta;
          shapes.push_back(shape);
        }
      }
    }
  }
  return shapes;
}

// --- cuBLAS ---------------------------------------------------------------------------------------------------------

class BlasDoubles : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasCreate(&handle_));
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetStream(handle_, stream_.get()));
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetWorkspace(handle_, workspace_.get(), workspace_.Bytes()));
  }
  void TearDown() override { EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasDestroy(handle_)); }

  // Scalars may be in either memory.
  cublasStatus_t Dgemm(const Product& p, const double* alpha, const double* beta, const double* a, const double* b,
                       double* c) {
    return cublasDgemm(handle_, p.shape.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                       p.shape.trans_b ? CUBLAS_OP_C : CUBLAS_OP_N, static_cast<int>(p.shape.m),
                       static_cast<int>(p.shape.n), static_cast<int>(p.shape.k), alpha, a, p.lda(), b, p.ldb(), beta, c,
                       static_cast<int>(p.shape.m));
  }

  Stream stream_;
  DeviceArray<uint8_t> workspace_{std::vector<uint8_t>(kWorkspaceBytes)};
  cublasHandle_t handle_ = nullptr;
};

TEST_F(BlasDoubles, DgemmEqualsTheLoop) {
  for (const Shape& shape : Shapes()) {
    const Product p(shape);
    const DeviceArray<double> a(p.a), b(p.b), c(p.c);
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, Dgemm(p, &shape.alpha, &shape.beta, a.get(), b.get(), c.get()));
    stream_.Synchronize();
    EXPECT_EQ(p.Expected(), c.Download());
  }
}

TEST_F(BlasDoubles, ScalarsInDeviceMemoryAreDoubles) {
  Shape shape;
  shape.alpha = 1.0 / 3, shape.beta = -1.0 / 7;
  shape.k = 1;
  const Product p(shape);
  const DeviceArray<double> a(p.a), b(p.b), on_device(p.c), on_host(p.c), scalars({shape.alpha, shape.beta});
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, Dgemm(p, &shape.alpha, &shape.beta, a.get(), b.get(), on_host.get()));
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE));
  ASSERT_EQ(CUBLAS_STATUS_SUCCESS, Dgemm(p, scalars.get(), scalars.get() + 1, a.get(), b.get(), on_device.get()));
  stream_.Synchronize();
  const std::vector<double> expected = p.Expected(), got = on_device.Download();
  EXPECT_EQ(on_host.Download(), got);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(expected[i], got[i], 1e-15);  // may be fused
}

TEST_F(BlasDoubles, GemmExTakesThemInBatchesAndWithDoublesAlone) {
  Shape shape;
  shape.batch = 3;
  const Product p(shape);
  const DeviceArray<double> a(p.a), b(p.b);
  DeviceArray<double> c(p.c);
  const auto run = [&](cudaDataType in, cudaDataType out, cublasComputeType_t compute) {
    return cublasGemmStridedBatchedEx(handle_, CUBLAS_OP_N, CUBLAS_OP_N, 17, 9, 33, &shape.alpha, a.get(), in, 17,
                                      17 * 33, b.get(), in, 33, 33 * 9, &shape.beta, c.get(), out, 17, 17 * 9, 3,
                                      compute, CUBLAS_GEMM_DEFAULT);
  };
  for (const auto compute : {CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F_PEDANTIC}) {
    c.Upload(p.c);
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, run(CUDA_R_64F, CUDA_R_64F, compute));
    stream_.Synchronize();
    EXPECT_EQ(p.Expected(), c.Download());
    EXPECT_EQ(CUBLAS_STATUS_NOT_SUPPORTED, run(CUDA_R_32F, CUDA_R_32F, compute));
    EXPECT_EQ(CUBLAS_STATUS_NOT_SUPPORTED, run(CUDA_R_64F, CUDA_R_32F, compute));
  }
  EXPECT_EQ(CUBLAS_STATUS_NOT_SUPPORTED, run(CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_32F));
  EXPECT_EQ(CUBLAS_STATUS_NOT_SUPPORTED, run(CUDA_R_32F, CUDA_R_64F, CUBLAS_COMPUTE_32F));
}

TEST_F(BlasDoubles, AreCaptured) {
  const Product p{Shape()};
  const DeviceArray<double> a(p.a), b(p.b), c(p.c);
  const auto multiply = [&] {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, Dgemm(p, &p.shape.alpha, &p.shape.beta, a.get(), b.get(), c.get()));
  };
  multiply();  // what is loaded on first use
  stream_.Synchronize();
  const CaptureEnd end = Capture(stream_.get(), cudaStreamCaptureModeThreadLocal, multiply);
  EXPECT_EQ(cudaSuccess, end.code);
  EXPECT_GE(end.nodes, 1u);
}

// --- cuBLASLt -------------------------------------------------------------------------------------------------------

class LtDoubles {
 public:
  explicit LtDoubles(const Shape& shape, cublasComputeType_t compute = CUBLAS_COMPUTE_64F,
                     cudaDataType scale = CUDA_R_64F)
      : product(shape), a(product.a), b(product.b), c(product.c), bias(product.bias) {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtCreate(&handle));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescCreate(&desc, compute, scale));
    SetDesc(CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(shape.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N));
    SetDesc(CUBLASLT_MATMUL_DESC_TRANSB, static_cast<int32_t>(shape.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N));
    const uint32_t relu = shape.relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
    const uint32_t relu_bias = shape.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    SetDesc(CUBLASLT_MATMUL_DESC_EPILOGUE, shape.bias ? relu_bias : relu);
    if (shape.bias) SetDesc(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias.get()));
    layouts[0] = MakeLayout(shape.trans_a ? shape.k : shape.m, shape.trans_a ? shape.m : shape.k);
    layouts[1] = MakeLayout(shape.trans_b ? shape.n : shape.k, shape.trans_b ? shape.k : shape.n);
    layouts[2] = MakeLayout(shape.m, shape.n);
  }
  ~LtDoubles() {
    for (const auto layout : layouts) EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutDestroy(layout));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescDestroy(desc));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtDestroy(handle));
  }
  LtDoubles(const LtDoubles&) = delete;
  LtDoubles& operator=(const LtDoubles&) = delete;

  template <typename T>
  void SetDesc(cublasLtMatmulDescAttributes_t attribute, T value) {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value));
  }
  void SetType(size_t layout, cudaDataType type) {
    const auto value = static_cast<uint32_t>(type);
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS,
              cublasLtMatrixLayoutSetAttribute(layouts[layout], CUBLASLT_MATRIX_LAYOUT_TYPE, &value, sizeof value));
  }

  cublasStatus_t Heuristic(uint64_t limit, cublasLtMatmulHeuristicResult_t* result) {
    cublasLtMatmulPreference_t preference = nullptr;
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulPreferenceCreate(&preference));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulPreferenceSetAttribute(
                                         preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof limit));
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, desc, layouts[0], layouts[1], layouts[2],
                                                                 layouts[2], preference, 1, result, &count);
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulPreferenceDestroy(preference));
    return status;
  }
  cublasStatus_t Run(const cublasLtMatmulHeuristicResult_t& how, void* workspace, cudaStream_t stream) {
    return cublasLtMatmul(handle, desc, &product.shape.alpha, a.get(), layouts[0], b.get(), layouts[1],
                          &product.shape.beta, c.get(), layouts[2], c.get(), layouts[2], &how.algo, workspace,
                          how.workspaceSize, stream);
  }

  Product product;
  DeviceArray<double> a, b, c, bias;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t layouts[3];

 private:
  static cublasLtMatrixLayout_t MakeLayout(size_t rows, size_t cols) {
    cublasLtMatrixLayout_t layout = nullptr;
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS,
              cublasLtMatrixLayoutCreate(&layout, CUDA_R_64F, rows, cols, static_cast<int64_t>(rows)));
    return layout;
  }
};

void ExpectProduct(const Shape& shape, cublasComputeType_t compute) {
  const DeviceArray<uint8_t> workspace{std::vector<uint8_t>(kWorkspaceBytes)};
  for (const uint64_t limit : {uint64_t{0}, uint64_t{kWorkspaceBytes}}) {
    LtDoubles matmul(shape, compute);
    Stream stream;
    cublasLtMatmulHeuristicResult_t how;
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Heuristic(limit, &how));
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, matmul.Run(how, workspace.get(), stream.get()));
    stream.Synchronize();
    EXPECT_EQ(matmul.product.Expected(), matmul.c.Download());
  }
}

TEST(LtDoubles, ProductsEqualTheLoop) {
  for (const auto compute : {CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F_PEDANTIC}) {
    for (const Shape& shape : Shapes()) ExpectProduct(shape, compute);
  }
}

TEST(LtDoubles, EpiloguesAddABiasAndRectify) {
  for (const int epilogue : {1, 2, 3}) {
    for (const size_t k : {33, 512}) {
      Shape shape;
      shape.k = k, shape.bias = (epilogue & 1) != 0, shape.relu = (epilogue & 2) != 0;
      ExpectProduct(shape, CUBLAS_COMPUTE_64F);
    }
  }
}

// Which code a wrong one gets, test/conformance asks, and of floats that may be rounded: an H200 lets these give
// doubles.
TEST(LtDoubles, GoWithDoublesAlone) {
  const auto status = [](cublasComputeType_t compute, cudaDataType scale, const std::vector<cudaDataType>& types) {
    LtDoubles matmul(Shape(), compute, scale);
    for (size_t i = 0; i < 3; ++i) matmul.SetType(i, types[i]);
    cublasLtMatmulHeuristicResult_t how;
    return matmul.Heuristic(0, &how);
  };
  const auto f64 = CUDA_R_64F, f32 = CUDA_R_32F;
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, status(CUBLAS_COMPUTE_64F, f64, {f64, f64, f64}));
  EXPECT_NE(CUBLAS_STATUS_SUCCESS, status(CUBLAS_COMPUTE_64F, f32, {f64, f64, f64}));
  EXPECT_NE(CUBLAS_STATUS_SUCCESS, status(CUBLAS_COMPUTE_64F, f64, {f32, f32, f32}));
  EXPECT_NE(CUBLAS_STATUS_SUCCESS, status(CUBLAS_COMPUTE_64F, f64, {f64, f64, f32}));
  EXPECT_NE(CUBLAS_STATUS_SUCCESS, status(CUBLAS_COMPUTE_64F, f64, {f64, f32, f64}));
  EXPECT_NE(CUBLAS_STATUS_SUCCESS, status(CUBLAS_COMPUTE_32F, f32, {f64, f64, f64}));
  EXPECT_NE(CUBLAS_STATUS_SUCCESS, status(CUBLAS_COMPUTE_32F, f32, {f32, f32, f64}));
}

}  // namespace
