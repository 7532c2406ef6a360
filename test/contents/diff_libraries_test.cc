// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What gcap_graph_diff tells of kernels of cuBLASLt, of which the runtime tells nothing.
#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <string>
#include <vector>

#include "gcap/graph_contents.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr uint64_t kSide = 64;
constexpr size_t kBytes = kSide * kSide * sizeof(float);

class DiffLibraries : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_EQ(cublasLtCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    for (void*& memory : memory_) {
      ASSERT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);
      ASSERT_EQ(cudaMemset(memory, 0, kBytes), cudaSuccess);
    }
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  void TearDown() override {
    if (IsSkipped()) return;
    for (void* memory : memory_) GCAP_EXPECT_CUDA(cudaFree(memory));
    EXPECT_EQ(cublasLtDestroy(handle_), CUBLAS_STATUS_SUCCESS);
    DeviceTest::TearDown();
  }

  // A graph of D = A * A, times a factor.
  cudaGraph_t Capture(cudaDataType type, void* a, void* d, float factor = 1.0f) {
    const RawStream stream;
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatrixLayout_t layout = nullptr;
    EXPECT_EQ(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&layout, type, kSide, kSide, kSide), CUBLAS_STATUS_SUCCESS);
    cudaGraph_t graph = nullptr;
    const float zero = 0.0f;
    for (const bool is_captured : {false, true}) {  // the first call loads what the second one needs
      if (is_captured) {
        GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
      }
      EXPECT_EQ(cublasLtMatmul(handle_, desc, &factor, a, layout, a, layout, &zero, d, layout, d, layout, nullptr,
                               nullptr, 0, stream.get()),
                CUBLAS_STATUS_SUCCESS);
      if (is_captured) {
        GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
      }
    }
    stream.Synchronize();
    EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescDestroy(desc), CUBLAS_STATUS_SUCCESS);
    return graph;
  }

  // The fields that differ. Destroys both graphs.
  static std::vector<std::string> Fields(cudaGraph_t before, cudaGraph_t after) {
    std::vector<std::string> fields;
    const auto add = [](void* user, const gcap_graph_difference_t* d) {
      static_cast<std::vector<std::string>*>(user)->push_back(d->field);
    };
    size_t count = 0;
    GCAP_EXPECT_OK(gcap_graph_diff(before, after, add, &fields, &count));
    EXPECT_EQ(count, fields.size());
    GCAP_EXPECT_CUDA(cudaGraphDestroy(before));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(after));
    return fields;
  }

  cublasLtHandle_t handle_ = nullptr;
  void* memory_[3] = {};
};

TEST_F(DiffLibraries, TellsArgumentsAlone) {
  for (const cudaDataType type : {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF}) {
    SCOPED_TRACE(static_cast<int>(type));
    const auto same = Fields(Capture(type, memory_[0], memory_[1]), Capture(type, memory_[0], memory_[1]));
    EXPECT_EQ(same, std::vector<std::string>{});
    for (const bool is_moved : {true, false}) {
      const auto fields = Fields(Capture(type, memory_[0], memory_[1]),
                                 Capture(type, memory_[0], memory_[is_moved ? 2 : 1], is_moved ? 1.0f : 2.0f));
      EXPECT_FALSE(fields.empty());
      for (const std::string& field : fields) EXPECT_NE(field.find("argument"), std::string::npos) << field;
    }
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
