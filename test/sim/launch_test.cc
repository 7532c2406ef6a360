// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Launches with attributes, cooperative ones, and occupancy.
#include <gtest/gtest.h>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

void Count() {}
const void* const kCount = reinterpret_cast<const void*>(Count);

void RunCount(const gcap_sim_launch_t* launch, void* const* args) {
  **static_cast<int* const*>(args[0]) += static_cast<int>(launch->grid.x);
}

const bool g_registered = [] {
  static const size_t kSizes[] = {sizeof(int*)};
  gcap_sim_kernel_t kernel = {};
  kernel.function = kCount;
  kernel.name = "Count";
  kernel.arg_bytes = kSizes;
  kernel.num_args = 1;
  kernel.run = RunCount;
  gcap_sim_register_kernel(&kernel);
  return true;
}();

class Launch : public testing::Test {
 protected:
  void SetUp() override {
    gcap_sim_set_seed(0);
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&config_.stream, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&counter_), sizeof(int)));
    *counter_ = 0;
    config_.gridDim = 4;
    config_.blockDim = 32;
  }

  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaFreeHost(counter_));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(config_.stream));
    EXPECT_EQ(0u, gcap_sim_live(nullptr));
    cudaGetLastError();
  }

  cudaError_t Go() {
    void* args[] = {&counter_};
    return cudaLaunchKernelExC(&config_, kCount, args);
  }

  cudaError_t Go(const cudaLaunchAttribute& attribute) {
    cudaLaunchAttribute attributes[] = {attribute};
    config_.attrs = attributes;
    config_.numAttrs = 1;
    cudaError_t code = Go();
    config_.attrs = nullptr;
    config_.numAttrs = 0;
    return code;
  }

  static cudaLaunchAttribute Attribute(cudaLaunchAttributeID id) {
    cudaLaunchAttribute attribute = {};
    attribute.id = id;
    return attribute;
  }

  static cudaLaunchAttribute Cluster(unsigned int x, unsigned int y, unsigned int z) {
    cudaLaunchAttribute attribute = Attribute(cudaLaunchAttributeClusterDimension);
    attribute.val.clusterDim = {x, y, z};
    return attribute;
  }

  static cudaLaunchAttribute Flag(cudaLaunchAttributeID id) {
    cudaLaunchAttribute attribute = Attribute(id);
    attribute.val.cooperative = 1;  // all members are ints at the same place
    return attribute;
  }

  void Begin() { ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(config_.stream, cudaStreamCaptureModeGlobal)); }

  cudaGraph_t End(cudaError_t code = cudaSuccess) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(code, cudaStreamEndCapture(config_.stream, &graph));
    return graph;
  }

  cudaLaunchConfig_t config_ = {};
  int* counter_;
};

TEST_F(Launch, RunsWithAndWithoutAttributes) {
  EXPECT_EQ(cudaSuccess, Go());
  for (auto id : {cudaLaunchAttributeIgnore, cudaLaunchAttributePriority, cudaLaunchAttributeCooperative,
                  cudaLaunchAttributeProgrammaticStreamSerialization}) {
    EXPECT_EQ(cudaSuccess, Go(Flag(id))) << id;
  }
  EXPECT_EQ(cudaSuccess, Go(Cluster(2, 1, 1)));
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(config_.stream));
  EXPECT_EQ(6 * 4, *counter_);
}

TEST_F(Launch, RefusesWhatNoDeviceRuns) {
  EXPECT_EQ(cudaErrorInvalidClusterSize, Go(Cluster(16, 1, 1)));
  EXPECT_EQ(cudaErrorInvalidClusterSize, Go(Cluster(3, 1, 1)));
  EXPECT_EQ(cudaErrorInvalidClusterSize, Go(Cluster(1, 0, 1)));
  EXPECT_EQ(cudaErrorInvalidValue, Go(Attribute(static_cast<cudaLaunchAttributeID>(30))));
  config_.gridDim = 1u << 30;
  EXPECT_EQ(cudaErrorCooperativeLaunchTooLarge, Go(Flag(cudaLaunchAttributeCooperative)));
  config_.gridDim = 4;
  config_.numAttrs = 1;
  EXPECT_EQ(cudaErrorInvalidValue, Go());
  EXPECT_DEATH(cudaLaunchKernelExC(nullptr, kCount, nullptr), "no configuration");
  config_.numAttrs = 0;
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaLaunchKernelExC(&config_, &config_, nullptr));
  EXPECT_DEATH(Go(Attribute(cudaLaunchAttributeDeviceUpdatableKernelNode)), "launch attribute 13 is not modelled");
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(config_.stream));
  EXPECT_EQ(0, *counter_);
}

TEST_F(Launch, CooperativeGridsMustFitTheDevice) {
  int blocks = 0, multiprocessors = 0;
  void* args[] = {&counter_};
  ASSERT_EQ(cudaSuccess, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kCount, 256, 0));
  ASSERT_EQ(cudaSuccess, cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  const auto most = static_cast<unsigned int>(blocks * multiprocessors);
  EXPECT_EQ(cudaSuccess, cudaLaunchCooperativeKernel(kCount, most, 256, args, 0, config_.stream));
  EXPECT_EQ(cudaErrorCooperativeLaunchTooLarge,
            cudaLaunchCooperativeKernel(kCount, most + 1, 256, args, 0, config_.stream));
  EXPECT_EQ(cudaErrorInvalidValue, cudaLaunchCooperativeKernel(kCount, 1, 2048, args, 0, config_.stream));
}

TEST_F(Launch, AttributesBecomeTheNodes) {
  Begin();
  EXPECT_EQ(cudaSuccess, Go(Flag(cudaLaunchAttributeCooperative)));
  cudaGraph_t graph = End();
  cudaGraphNode_t node;
  size_t count = 1;
  ASSERT_EQ(cudaSuccess, cudaGraphGetNodes(graph, &node, &count));
  ASSERT_EQ(1u, count);
  cudaLaunchAttributeValue value;
  EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeCooperative, &value));
  EXPECT_EQ(1, value.cooperative);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

TEST_F(Launch, ProgrammaticSerializationIsAnEdgeThatSaysSo) {
  Begin();
  EXPECT_EQ(cudaSuccess, Go());
  EXPECT_EQ(cudaSuccess, Go(Flag(cudaLaunchAttributeProgrammaticStreamSerialization)));
  cudaGraph_t graph = End();
  cudaGraphNode_t from, to;
  cudaGraphEdgeData data = {};
  size_t count = 1;
  ASSERT_EQ(cudaSuccess, cudaGraphGetEdges(graph, &from, &to, &data, &count));
  ASSERT_EQ(1u, count);
  EXPECT_EQ(cudaGraphDependencyTypeProgrammatic, data.type);
  EXPECT_EQ(cudaGraphKernelNodePortProgrammatic, data.from_port);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

TEST_F(Launch, ABadConfigurationBreaksACapture) {
  Begin();
  EXPECT_EQ(cudaErrorInvalidClusterSize, Go(Cluster(3, 1, 1)));
  End(cudaErrorStreamCaptureInvalidated);
}

TEST_F(Launch, OccupancyIsTheLeastOfItsLimits) {
  const struct {
    int threads;
    size_t shared_bytes;
    int blocks;
  } cases[] = {
      {1024, 0, 2},        // 2048 threads; registers allow two as well
      {256, 0, 8},         // 2048 threads
      {32, 0, 32},         // 32 blocks
      {1, 0, 32},          // a warp at least
      {64, 100 << 10, 2},  // 228 KiB of shared memory, 1 KiB of each block reserved
      {64, 227 << 10, 1},  // all of it
      {64, 228 << 10, 0},  // more than a block may have
      {2048, 0, 0},        // more than a block may have
  };
  size_t bytes = 0;
  EXPECT_EQ(cudaSuccess, cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, kCount, 2, 256));
  EXPECT_EQ(size_t{48} << 10, bytes) << "without asking for more";
  const auto most = cudaFuncAttributeMaxDynamicSharedMemorySize;
  ASSERT_EQ(cudaSuccess, cudaFuncSetAttribute(kCount, most, 227 << 10));
  for (const auto& c : cases) {
    int blocks = -1;
    EXPECT_EQ(cudaSuccess, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kCount, c.threads, c.shared_bytes));
    EXPECT_EQ(c.blocks, blocks) << c.threads << " threads, " << c.shared_bytes << " bytes";
    EXPECT_EQ(cudaSuccess, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                               &blocks, kCount, c.threads, c.shared_bytes, cudaOccupancyDisableCachingOverride));
    EXPECT_EQ(c.blocks, blocks);
  }
  int blocks;
  EXPECT_EQ(cudaErrorInvalidValue, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kCount, 0, 0));
  EXPECT_EQ(cudaErrorInvalidValue, cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, kCount, 1, 0));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &blocks, 1, 0));
  EXPECT_EQ(cudaErrorInvalidValue, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, kCount, 1, 0, 2));
  EXPECT_EQ(cudaSuccess, cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, kCount, 2, 256));
  EXPECT_EQ(size_t{113} << 10, bytes);
  EXPECT_EQ(cudaErrorInvalidValue, cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, kCount, 9, 256));
  ASSERT_EQ(cudaSuccess, cudaFuncSetAttribute(kCount, most, 48 << 10));
}

TEST_F(Launch, OccupancyInClustersWantsTheAttributesThatAreCounted) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(8);
  config.blockDim = dim3(256);
  int clusters = -1;
  config.numAttrs = 1;
  EXPECT_EQ(cudaErrorInvalidValue, cudaOccupancyMaxActiveClusters(&clusters, kCount, &config));
  EXPECT_EQ(-1, clusters);
  config.numAttrs = 0;
  EXPECT_EQ(cudaSuccess, cudaOccupancyMaxActiveClusters(&clusters, kCount, &config));
  EXPECT_GT(clusters, 0);
}

TEST_F(Launch, FunctionsHaveNames) {
  const char* name = nullptr;
  EXPECT_EQ(cudaSuccess, cudaFuncGetName(&name, kCount));
  EXPECT_STREQ("Count", name);
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaFuncGetName(&name, &name));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFuncGetName(nullptr, kCount));
  EXPECT_EQ(cudaSuccess, cudaFuncSetCacheConfig(kCount, cudaFuncCachePreferL1));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFuncSetCacheConfig(kCount, static_cast<cudaFuncCache>(9)));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaFuncSetCacheConfig(&name, cudaFuncCachePreferL1));
}

}  // namespace
