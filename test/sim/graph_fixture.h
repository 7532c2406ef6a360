// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the tests of graphs share: two streams, some memory, a kernel with a twin, and short names for common steps.
#ifndef GCAP_TEST_SIM_GRAPH_FIXTURE_H_
#define GCAP_TEST_SIM_GRAPH_FIXTURE_H_

#include <gtest/gtest.h>

#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace gcap::testing {

constexpr size_t kGraphBytes = 256;
constexpr int kGraphInts = kGraphBytes / sizeof(int);

// A kernel with a twin: value[i] = value[i] * factor + step.
inline char g_step_stub;
// The same, to be told apart from it.
inline char g_other_step_stub;

inline void RunStep(const gcap_sim_launch_t*, void* const* args) {
  auto* value = *static_cast<int* const*>(args[0]);
  int factor = *static_cast<const int*>(args[1]);
  int step = *static_cast<const int*>(args[2]);
  for (int i = 0; i < kGraphInts; ++i) value[i] = value[i] * factor + step;
}

inline size_t StepAccesses(const gcap_sim_launch_t*, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  if (capacity < 2) return 0;
  out[0] = {*static_cast<void* const*>(args[0]), kGraphBytes, 0};
  out[1] = {*static_cast<void* const*>(args[0]), kGraphBytes, 1};
  return 2;
}

inline constexpr size_t kStepArgs[] = {sizeof(int*), sizeof(int), sizeof(int)};

inline const bool g_step_registered = [] {
  for (const void* stub : {&g_step_stub, &g_other_step_stub}) {
    gcap_sim_kernel_t kernel = {stub, "step", kStepArgs, 3, RunStep, StepAccesses};
    gcap_sim_register_kernel(&kernel);
  }
  return true;
}();

// The arguments of one launch, where a node's parameters can point to them.
struct StepArgs {
  StepArgs(int* value, int factor, int step, const void* function = &g_step_stub)
      : value(value), factor(factor), step(step) {
    params.func = const_cast<void*>(function);
    params.gridDim = dim3(1);
    params.blockDim = dim3(32);
    params.kernelParams = pointers;
  }
  StepArgs(const StepArgs&) = delete;

  int* value;
  int factor, step;
  void* pointers[3] = {&value, &factor, &step};
  cudaKernelNodeParams params = {};
};

// Tagged parameters with all else zero.
inline cudaGraphNodeParams Tagged(cudaGraphNodeType type) {
  cudaGraphNodeParams params = {};
  params.type = type;
  return params;
}

class GraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    gcap_sim_set_seed(0);
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&device_), kGraphBytes));
    ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&device2_), kGraphBytes));
    ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned_), kGraphBytes));
    ASSERT_EQ(cudaSuccess, cudaMemset(device_, 0, kGraphBytes));
    ASSERT_EQ(cudaSuccess, cudaMemset(device2_, 0, kGraphBytes));
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());  // the streams do not wait for the legacy one
    ASSERT_EQ(cudaSuccess, cudaGraphCreate(&graph_, 0));
  }

  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    if (graph_) {
      EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph_));
    }
    for (int* p : {device_, device2_}) EXPECT_EQ(cudaSuccess, cudaFree(p));
    EXPECT_EQ(cudaSuccess, cudaFreeHost(pinned_));
    for (cudaStream_t s : {stream_, other_}) EXPECT_EQ(cudaSuccess, cudaStreamDestroy(s));
    EXPECT_EQ(0u, gcap_sim_live(nullptr));
    cudaGetLastError();
  }

  // Parameters of a fill of the first `bytes` bytes.
  static cudaMemsetParams Fill(void* dst, unsigned int value, size_t bytes = kGraphBytes) {
    cudaMemsetParams params = {};
    params.dst = dst;
    params.value = value;
    params.elementSize = 1;
    params.width = bytes;
    params.height = 1;
    return params;
  }

  cudaGraphNode_t AddFill(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& deps, void* dst, unsigned int value) {
    cudaMemsetParams params = Fill(dst, value);
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphAddMemsetNode(&node, graph, deps.data(), deps.size(), &params));
    return node;
  }

  cudaGraphNode_t AddEmpty(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& deps) {
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphAddEmptyNode(&node, graph, deps.data(), deps.size()));
    return node;
  }

  cudaGraphNode_t AddStep(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& deps, int* value, int factor,
                          int step) {
    StepArgs args(value, factor, step);
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphAddKernelNode(&node, graph, deps.data(), deps.size(), &args.params));
    return node;
  }

  cudaError_t Step(int* value, int factor, int step, cudaStream_t stream) {
    StepArgs args(value, factor, step);
    return cudaLaunchKernel(&g_step_stub, dim3(1), dim3(32), args.pointers, 0, stream);
  }

  cudaGraphExec_t Instantiate(cudaGraph_t graph, unsigned long long flags = 0) {
    cudaGraphExec_t exec = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, flags));
    return exec;
  }

  static size_t CountEdges(cudaGraph_t graph) {
    size_t count = 0;
    EXPECT_EQ(cudaSuccess, cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
    return count;
  }

  static size_t CountNodes(cudaGraph_t graph) {
    size_t count = 0;
    EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph, nullptr, &count));
    return count;
  }

  void LaunchAndWait(cudaGraphExec_t exec) {
    ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
    ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  }

  // The first int of device memory, once the stream is done.
  int First(const int* device) {
    int value = 0;
    EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
    EXPECT_EQ(cudaSuccess, cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
    return value;
  }

  cudaStream_t stream_ = nullptr, other_ = nullptr;
  int *device_ = nullptr, *device2_ = nullptr, *pinned_ = nullptr;
  cudaGraph_t graph_ = nullptr;  // empty, for nodes by hand
};

}  // namespace gcap::testing

#endif  // GCAP_TEST_SIM_GRAPH_FIXTURE_H_
