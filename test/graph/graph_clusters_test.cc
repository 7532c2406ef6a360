// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Captures over captures whose kernels have other attributes. The driver answers an update to other clusters with
// success and runs the old ones, so the manager compares, and makes a new executable.

#include <algorithm>
#include <memory>
#include <string>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/kernels/device_kernels.h"

namespace gcap {
namespace testing {
namespace {

const void* const kKernel = reinterpret_cast<const void*>(gcap_kernel_cluster_size);
const void* const kOther = reinterpret_cast<const void*>(gcap_kernel_cluster_size_too);

class GraphClusters : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    int has_clusters = 0;
    ASSERT_EQ(cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, 0), cudaSuccess);
    if (!has_clusters) GTEST_SKIP() << "the device has no clusters";
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&size_), sizeof(*size_)), cudaSuccess);
    Create(0);
  }
  void TearDown() override {
    ManagerTest::TearDown();
    GCAP_EXPECT_CUDA(cudaFree(size_));  // NULL is fine
  }

  // Launches the kernel in clusters of so many blocks, 0 for none.
  cudaError_t Launch(const void* kernel, unsigned blocks, int priority = 0, int domain = 0) {
    cudaLaunchAttribute attributes[3] = {};
    attributes[0].id = cudaLaunchAttributePriority;
    attributes[0].val.priority = priority;
    attributes[1].id = cudaLaunchAttributeMemSyncDomain;
    attributes[1].val.memSyncDomain = static_cast<cudaLaunchMemSyncDomain>(domain);
    attributes[2].id = cudaLaunchAttributeClusterDimension;
    attributes[2].val.clusterDim = {blocks, 1, 1};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(4);
    config.blockDim = dim3(1);
    config.stream = stream_->get();
    config.attrs = attributes;
    config.numAttrs = blocks == 0 ? 2 : 3;
    void* args[] = {&size_};
    return cudaLaunchKernelExC(&config, kernel, args);
  }
  // A captured run, and what its launch wrote.
  unsigned Capture(const void* kernel, unsigned blocks, int priority = 0, int domain = 0) {
    EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(Launch(kernel, blocks, priority, domain));
    const Outcome outcome = End();
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    unsigned size = 0;
    GCAP_EXPECT_CUDA(cudaMemcpy(&size, size_, sizeof(size), cudaMemcpyDeviceToHost));
    return size;
  }
  void Recapture() { GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0)); }

  unsigned* size_ = nullptr;
};

TEST_F(GraphClusters, AreThoseOfTheLastCapture) {
  struct {
    const void* before;
    unsigned blocks_before;
    const void* after;
    unsigned blocks_after;
  } const changes[] = {{kKernel, 0, kKernel, 2}, {kKernel, 2, kKernel, 0}, {kKernel, 2, kKernel, 4},
                       {kKernel, 2, kOther, 4},  {kKernel, 0, kOther, 4},  {kKernel, 4, kOther, 0}};
  for (const auto& change : changes) {
    SCOPED_TRACE(::testing::Message() << change.blocks_before << " to " << change.blocks_after
                                      << (change.after == kOther ? ", another kernel" : ""));
    const auto size_of = [](unsigned blocks) { return std::max(blocks, 1u); };
    EXPECT_EQ(Capture(change.before, change.blocks_before), size_of(change.blocks_before));
    Recapture();
    EXPECT_EQ(Capture(change.after, change.blocks_after), size_of(change.blocks_after));
    EXPECT_EQ(Info(0).reinstantiations, 1u);
    GCAP_EXPECT_FAILS(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_UPDATED), GCAP_CUDA_ERROR,
                      "the attributes of a node changed");
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  }
}

TEST_F(GraphClusters, RefusalNamesKernelAndField) {
  Capture(kKernel, 2);
  Recapture();
  Capture(kKernel, 4);
  const Outcome refusal(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_UPDATED));
  EXPECT_TRUE(refusal.Names("node 0 of 1, kernel")) << refusal.message;
  EXPECT_TRUE(refusal.Names("gcap_kernel_cluster_size")) << refusal.message;
  EXPECT_TRUE(refusal.Names("cluster dimension 2x1x1 -> 4x1x1")) << refusal.message;
  EXPECT_TRUE(refusal.Names("could not be updated in place")) << refusal.message;
}

TEST_F(GraphClusters, PrioritiesAndDomainsMakeANewExecutableToo) {
  int least = 0, greatest = 0;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  Capture(kKernel, 0, least);
  Recapture();
  Capture(kKernel, 0, greatest);
  GCAP_EXPECT_FAILS(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_UPDATED), GCAP_CUDA_ERROR, "priority");
  Recapture();
  Capture(kKernel, 0, greatest, /*domain=*/1);
  GCAP_EXPECT_FAILS(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_UPDATED), GCAP_CUDA_ERROR,
                    "synchronization domain 0 -> 1");
}

// Clusters may also be the function's.
TEST_F(GraphClusters, AnotherFunctionMayRequireOthers) {
  EXPECT_EQ(Capture(kKernel, 0), 1u);
  for (const cudaFuncAttribute side : {cudaFuncAttributeRequiredClusterWidth, cudaFuncAttributeRequiredClusterHeight,
                                       cudaFuncAttributeRequiredClusterDepth}) {
    const int blocks = side == cudaFuncAttributeRequiredClusterWidth ? 2 : 1;
    ASSERT_EQ(cudaFuncSetAttribute(kOther, side, blocks), cudaSuccess);
  }
  Recapture();
  EXPECT_EQ(Capture(kOther, 0), 2u);
  GCAP_EXPECT_FAILS(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_UPDATED), GCAP_CUDA_ERROR,
                    "cluster");  // a GPU tells the function's as the node's
}

TEST_F(GraphClusters, EqualOnesAreUpdatedInPlace) {
  EXPECT_EQ(Capture(kKernel, 2), 2u);
  Recapture();
  EXPECT_EQ(Capture(kKernel, 2), 2u);
  EXPECT_EQ(Info(0).updates, 1u);
  EXPECT_EQ(Info(0).reinstantiations, 0u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
