// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// matmul.h: one call of cublasLtMatmul with everything it needs. All members are public, so that a test may spoil them.
#ifndef GCAP_TEST_CONFORMANCE_LIBRARIES_MATMUL_H_
#define GCAP_TEST_CONFORMANCE_LIBRARIES_MATMUL_H_

#include <vector>

#include "cublasLt.h"
#include "gtest/gtest.h"
#include "test/conformance/libraries/numbers.h"

namespace conformance {

struct MatmulShape {
  int64_t m = 64;
  int64_t n = 32;
  int64_t k = 512;
  cudaDataType in = CUDA_R_32F;
  cudaDataType out = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

class Matmul {
 public:
  static constexpr size_t kWorkspaceBytes = size_t{4} << 20;

  explicit Matmul(const MatmulShape& shape = MatmulShape())
      : shape(shape),
        values_a(Eighths(1, static_cast<size_t>(shape.m * shape.k))),
        values_b(Eighths(2, static_cast<size_t>(shape.k * shape.n))),
        values_c(Eighths(3, static_cast<size_t>(shape.m * shape.n))),
        values_bias(Eighths(4, static_cast<size_t>(shape.m))),
        data_a(values_a, shape.in),
        data_b(values_b, shape.in),
        data_c(values_c, shape.out),
        data_d(std::vector<double>(values_c.size(), 0.5), shape.out),
        data_bias(values_bias, shape.out),
        data_workspace(kWorkspaceBytes) {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtCreate(&handle));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescCreate(&desc, shape.compute, CUDA_R_32F));
    layouts[0] = MakeLayout(shape.in, shape.m, shape.k);
    layouts[1] = MakeLayout(shape.in, shape.k, shape.n);
    layouts[2] = MakeLayout(shape.out, shape.m, shape.n);
    layouts[3] = MakeLayout(shape.out, shape.m, shape.n);
    a = layouts[0], b = layouts[1], c = layouts[2], d = layouts[3];
    used_handle = handle, used_desc = desc;
    pointer_a = Bytes(data_a), pointer_b = Bytes(data_b), pointer_c = Bytes(data_c), pointer_d = Bytes(data_d);
  }
  ~Matmul() {
    for (const auto layout : layouts) EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutDestroy(layout));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescDestroy(desc));
    if (handle != nullptr) {  // a test may have destroyed it
      EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtDestroy(handle));
    }
  }
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  template <typename T>
  void SetDesc(cublasLtMatmulDescAttributes_t attribute, T value) {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value));
  }
  template <typename T>
  void SetLayout(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, T value) {
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value));
  }
  void SetEpilogue(uint32_t epilogue) { SetDesc(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue); }
  void SetBias(const void* bias) { SetDesc(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }
  // A row-major layout of the same dimensions.
  void SetRowMajor(cublasLtMatrixLayout_t layout, int64_t cols) {
    SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, static_cast<int32_t>(CUBLASLT_ORDER_ROW));
    SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_LD, cols);
  }

  cublasStatus_t Heuristic(uint64_t max_workspace, std::vector<cublasLtMatmulHeuristicResult_t>* results) {
    cublasLtMatmulPreference_t preference = nullptr;
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulPreferenceCreate(&preference));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS,
              cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &max_workspace,
                                                   sizeof max_workspace));
    results->resize(8);
    int count = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(used_handle, used_desc, a, b, c, d, preference, 8, results->data(), &count);
    results->resize(static_cast<size_t>(count));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatmulPreferenceDestroy(preference));
    return status;
  }

  cublasStatus_t Run(cudaStream_t stream) {
    return cublasLtMatmul(used_handle, used_desc, alpha_pointer, pointer_a, a, pointer_b, b, beta_pointer, pointer_c, c,
                          pointer_d, d, algorithm, workspace, workspace_bytes, stream);
  }

  // Element i, j of alpha * A * B + beta * C + bias, from column-major values.
  double Expected(int64_t i, int64_t j, bool with_bias) const {
    double sum = 0;
    for (int64_t l = 0; l < shape.k; ++l) sum += At(values_a, i + l * shape.m) * At(values_b, l + j * shape.k);
    return alpha * sum + beta * At(values_c, i + j * shape.m) + (with_bias ? At(values_bias, i) : 0.0);
  }

  static double At(const std::vector<double>& values, int64_t index) { return values[static_cast<size_t>(index)]; }

  MatmulShape shape;
  std::vector<double> values_a, values_b, values_c, values_bias;
  Numbers data_a, data_b, data_c, data_d, data_bias;
  DeviceMemory data_workspace;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatrixLayout_t layouts[4];
  // What the calls are given.
  cublasLtHandle_t used_handle;
  cublasLtMatmulDesc_t used_desc;
  cublasLtMatrixLayout_t a, b, c, d;
  char *pointer_a, *pointer_b, *pointer_c, *pointer_d;
  float alpha = 1.0f, beta = 0.0f;
  const void* alpha_pointer = &alpha;
  const void* beta_pointer = &beta;
  const cublasLtMatmulAlgo_t* algorithm = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;

 private:
  static char* Bytes(const Numbers& numbers) { return static_cast<char*>(numbers.get()); }
  static cublasLtMatrixLayout_t MakeLayout(cudaDataType type, int64_t rows, int64_t cols) {
    cublasLtMatrixLayout_t layout = nullptr;
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutCreate(&layout, type, static_cast<uint64_t>(rows),
                                                                static_cast<uint64_t>(cols), rows));
    return layout;
  }
};

}  // namespace conformance

#endif  // GCAP_TEST_CONFORMANCE_LIBRARIES_MATMUL_H_
