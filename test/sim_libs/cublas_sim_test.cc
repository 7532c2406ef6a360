// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the simulated cuBLAS does with workspaces: a product with a long inner dimension is split, and its partial sums
// are in the caller's workspace, wherever that begins, or in memory that the product takes in the order of its stream.
#include <algorithm>
#include <vector>

#include "cublas_v2.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/sim_libs/device.h"

namespace {

using gcap_test::DeviceArray;
using gcap_test::Eighths;
using gcap_test::Stream;

// The product of two matrices of 64 x 2048 and 2048 x 64, and a handle that makes it on a stream.
class SimCublas : public testing::Test {
 protected:
  static constexpr int kRows = 64, kDepth = 2048;
  static constexpr size_t kWorkspaceBytes = size_t{1} << 20;

  void SetUp() override {
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasCreate(&handle_));
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetStream(handle_, stream_.get()));
  }
  void TearDown() override {
    stream_.Synchronize();
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, cublasDestroy(handle_));
  }

  cublasStatus_t Multiply() {
    const float one = 1.0f, zero = 0.0f;
    return cublasSgemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, kRows, kRows, kDepth, &one, a_.get(), kRows, b_.get(), kDepth,
                       &zero, c_.get(), kRows);
  }
  // Captures the product; nullptr where that fails.
  cudaGraph_t Captured() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal));
    EXPECT_EQ(CUBLAS_STATUS_SUCCESS, Multiply());
    EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(stream_.get(), &graph));
    return graph;
  }
  static size_t NodesOf(cudaGraph_t graph) {
    size_t nodes = 0;
    EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph, nullptr, &nodes));
    return nodes;
  }
  void ExpectProduct() {
    stream_.Synchronize();
    std::vector<float> expected(kRows * kRows);
    for (int j = 0; j < kRows; ++j) {
      for (int i = 0; i < kRows; ++i) {
        float sum = 0;
        for (int l = 0; l < kDepth; ++l) sum += left_[i + l * kRows] * right_[l + j * kDepth];
        expected[i + j * kRows] = sum;
      }
    }
    EXPECT_EQ(expected, c_.Download());
    c_.Upload(std::vector<float>(kRows * kRows));
  }
  // Eagerly, and by a graph of so many nodes that is launched twice.
  void ExpectProducts(size_t nodes) {
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, Multiply());
    ExpectProduct();
    cudaGraph_t graph = Captured();
    ASSERT_NE(nullptr, graph);
    EXPECT_EQ(nodes, NodesOf(graph));
    cudaGraphExec_t exec = nullptr;
    ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_.get()));
      ExpectProduct();
    }
    EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  }

  Stream stream_;
  Eighths random_{7};
  const std::vector<float> left_ = random_.Take(kRows * kDepth), right_ = random_.Take(kDepth * kRows);
  const DeviceArray<float> a_{left_}, b_{right_};
  DeviceArray<float> c_{std::vector<float>(kRows * kRows)};
  const DeviceArray<uint8_t> workspace_{std::vector<uint8_t>(kWorkspaceBytes)};
  cublasHandle_t handle_ = nullptr;
};

TEST_F(SimCublas, WithAWorkspaceAProductIsTwoKernels) {
  for (const size_t offset : {0, 1, 100}) {
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetWorkspace(handle_, workspace_.get() + offset, kWorkspaceBytes - offset));
    ExpectProducts(2);
  }
}

TEST_F(SimCublas, WithAWorkspaceTooSmallToBeOfUseAProductIsOneKernel) {
  for (const size_t bytes : {size_t{1}, size_t{255}, 2 * kRows * kRows * sizeof(float)}) {
    ASSERT_EQ(CUBLAS_STATUS_SUCCESS, cublasSetWorkspace(handle_, workspace_.get() + 1, bytes));
    ExpectProducts(1);
  }
}

TEST_F(SimCublas, WithoutAWorkspaceAProductTakesMemoryOfItsStreamAndGivesItBack) {
  ExpectProducts(4);
  cudaMemPool_t pool = nullptr;
  uint64_t used = 1;
  ASSERT_EQ(cudaSuccess, cudaDeviceGetDefaultMemPool(&pool, 0));
  EXPECT_EQ(cudaSuccess, cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  EXPECT_EQ(0u, used);
}

// cudaMallocAsync there would break the capture.
TEST_F(SimCublas, WithoutAWorkspaceAnEagerProductDisturbsNoCapture) {
  const Stream capturing;
  const auto end = gcap_test::Capture(capturing.get(), cudaStreamCaptureModeGlobal,
                                      [this] { EXPECT_EQ(CUBLAS_STATUS_SUCCESS, Multiply()); });
  EXPECT_EQ(cudaSuccess, end.code);
  ExpectProduct();
}

TEST_F(SimCublas, WithoutMemoryForAWorkspaceAProductFails) {
  size_t free_bytes = 0, total_bytes = 0;
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free_bytes, &total_bytes));
  gcap_sim_set_device_bytes(0, total_bytes - free_bytes + 1);
  EXPECT_EQ(CUBLAS_STATUS_ALLOC_FAILED, Multiply());
  EXPECT_EQ(cudaSuccess, cudaGetLastError()) << "the library keeps its errors to itself";
  gcap_sim_set_device_bytes(0, total_bytes);
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, Multiply());
  ExpectProduct();
}

}  // namespace
