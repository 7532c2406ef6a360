// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs with memory nodes: what they own, who may free it and when, and what is no longer possible with them.
#include "test/sim/graph_fixture.h"

namespace gcap::testing {
namespace {

class GraphMemory : public GraphTest {
 protected:
  static cudaMemAllocNodeParams AllocParams(size_t bytes = kGraphBytes) {
    cudaMemAllocNodeParams params = {};
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location = {cudaMemLocationTypeDevice, 0};
    params.bytesize = bytes;
    return params;
  }

  cudaGraphNode_t AddAlloc(cudaGraph_t graph, int** out) {
    cudaMemAllocNodeParams params = AllocParams();
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
    *out = static_cast<int*>(params.dptr);
    return node;
  }

  cudaError_t AddFree(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& deps, void* address,
                      cudaGraphNode_t* out = nullptr) {
    cudaGraphNode_t node = nullptr;
    cudaError_t code = cudaGraphAddMemFreeNode(&node, graph, deps.data(), deps.size(), address);
    if (out) *out = node;
    return code;
  }
};

TEST_F(GraphMemory, NodesTellWhatTheyOwn) {
  cudaMemAllocNodeParams params = AllocParams(1000), got = {};
  cudaGraphNode_t alloc, free;
  ASSERT_EQ(cudaSuccess, cudaGraphAddMemAllocNode(&alloc, graph_, nullptr, 0, &params));
  ASSERT_NE(nullptr, params.dptr);
  ASSERT_EQ(cudaSuccess, AddFree(graph_, {alloc}, params.dptr, &free));
  EXPECT_EQ(cudaSuccess, cudaGraphMemAllocNodeGetParams(alloc, &got));
  EXPECT_EQ(params.dptr, got.dptr);
  EXPECT_EQ(1000u, got.bytesize);
  EXPECT_EQ(cudaMemLocationTypeDevice, got.poolProps.location.type);
  void* address = nullptr;
  EXPECT_EQ(cudaSuccess, cudaGraphMemFreeNodeGetParams(free, &address));
  EXPECT_EQ(params.dptr, address);
  cudaGraphNodeType type;
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetType(alloc, &type));
  EXPECT_EQ(cudaGraphNodeTypeMemAlloc, type);
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetType(free, &type));
  EXPECT_EQ(cudaGraphNodeTypeMemFree, type);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphMemAllocNodeGetParams(free, &got));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphMemFreeNodeGetParams(alloc, &address));
}

TEST_F(GraphMemory, BadAllocationsAreRefused) {
  cudaGraphNode_t node = nullptr;
  auto refused = [&](auto change) {
    cudaMemAllocNodeParams params = AllocParams();
    change(params);
    params.dptr = &params;
    cudaError_t code = cudaGraphAddMemAllocNode(&node, graph_, nullptr, 0, &params);
    EXPECT_EQ(nullptr, params.dptr);
    return code;
  };
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto& p) { p.bytesize = 0; }));
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto& p) { p.poolProps.location.id = 9; }));
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto& p) { p.poolProps.location.type = cudaMemLocationTypeHost; }));
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto& p) { p.poolProps.allocType = cudaMemAllocationTypeInvalid; }));
  EXPECT_EQ(cudaErrorInvalidValue, refused([](auto& p) { p.accessDescCount = 1; }));
  EXPECT_EQ(cudaErrorMemoryAllocation, refused([](auto& p) { p.bytesize = SIZE_MAX / 2; }));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddMemAllocNode(&node, graph_, nullptr, 0, nullptr));
  EXPECT_EQ(nullptr, node);
}

TEST_F(GraphMemory, AFreeNeedsAnAllocationOfAGraph) {
  int* memory;
  cudaGraphNode_t alloc = AddAlloc(graph_, &memory);
  EXPECT_EQ(cudaErrorInvalidValue, AddFree(graph_, {alloc}, nullptr));
  EXPECT_EQ(cudaErrorInvalidValue, AddFree(graph_, {alloc}, device_));
  EXPECT_EQ(cudaErrorInvalidValue, AddFree(graph_, {alloc}, memory + 1));
  EXPECT_EQ(cudaSuccess, AddFree(graph_, {alloc}, memory));
  EXPECT_EQ(cudaErrorInvalidValue, AddFree(graph_, {alloc}, memory));  // a second time
  cudaGraph_t other;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&other, 0));
  EXPECT_EQ(cudaErrorInvalidValue, AddFree(other, {}, memory));  // its own graph frees it
  int* memory2;
  alloc = AddAlloc(graph_, &memory2);
  EXPECT_EQ(cudaSuccess, AddFree(other, {}, memory2));
  EXPECT_EQ(cudaErrorInvalidValue, AddFree(graph_, {alloc}, memory2));  // another graph does
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(other));
}

TEST_F(GraphMemory, WhatOneGraphAllocatesAnotherFrees) {
  int* memory;
  cudaGraphNode_t alloc = AddAlloc(graph_, &memory);
  AddFill(graph_, {alloc}, memory, 3);
  cudaGraph_t second;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&second, 0));
  cudaGraphNode_t copy;
  ASSERT_EQ(cudaSuccess,
            cudaGraphAddMemcpyNode1D(&copy, second, nullptr, 0, device_, memory, 4, cudaMemcpyDeviceToDevice));
  ASSERT_EQ(cudaSuccess, AddFree(second, {copy}, memory));
  cudaGraphExec_t exec = Instantiate(graph_), exec2 = Instantiate(second);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphLaunch(exec2, stream_));  // nothing is allocated yet
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
    EXPECT_EQ(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream_));  // still allocated
    ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec2, stream_));
    EXPECT_EQ(cudaErrorInvalidValue, cudaGraphLaunch(exec2, stream_));
  }
  EXPECT_EQ(0x03030303, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec2));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(second));
}

TEST_F(GraphMemory, WhatAGraphLeavesTheCallerFrees) {
  int* memory;
  AddAlloc(graph_, &memory);
  cudaGraphExec_t exec = Instantiate(graph_);
  EXPECT_EQ(cudaErrorInvalidValue, cudaFreeAsync(memory, stream_));
  LaunchAndWait(exec);
  EXPECT_EQ(cudaSuccess, cudaFreeAsync(memory, stream_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFreeAsync(memory, stream_));
  LaunchAndWait(exec);
  EXPECT_EQ(cudaSuccess, cudaFree(memory));
  EXPECT_EQ(cudaErrorInvalidValue, cudaFree(memory));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));

  exec = Instantiate(graph_, cudaGraphInstantiateFlagAutoFreeOnLaunch);
  for (int i = 0; i < 3; ++i) LaunchAndWait(exec);
  EXPECT_EQ(cudaSuccess, cudaFree(memory));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

// The answers of the record, memnode.*.
TEST_F(GraphMemory, TheGraphIsOneAndStaysWhole) {
  int* memory;
  cudaGraphNode_t alloc = AddAlloc(graph_, &memory);
  cudaGraphNode_t fill = AddFill(graph_, {alloc}, memory, 1);
  ASSERT_EQ(cudaSuccess, AddFree(graph_, {fill}, memory));
  cudaGraphExec_t exec = Instantiate(graph_), second;
  cudaGraph_t clone, outer;
  cudaGraphNode_t node;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&outer, 0));
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphInstantiate(&second, graph_, 0));
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphClone(&clone, graph_));
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphAddChildGraphNode(&node, outer, nullptr, 0, graph_));
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphDestroyNode(alloc));
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphDestroyNode(fill));
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphRemoveDependencies(graph_, &alloc, &fill, nullptr, 1));
  cudaGraphNodeParams params = Tagged(cudaGraphNodeTypeMemAlloc);
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphNodeSetParams(alloc, &params));
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphExecNodeSetParams(exec, alloc, &params));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  exec = Instantiate(graph_);  // the first is gone
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(outer));
}

// An executable may take over the memory of a graph that no other executable has.
TEST_F(GraphMemory, UpdatesByAnotherGraphAreRefused) {
  int *memory, *memory2;
  auto build = [&](cudaGraph_t graph, int** out, unsigned int value) {
    cudaGraphNode_t alloc = AddAlloc(graph, out), copy;
    cudaGraphNode_t node = AddFill(graph, {alloc}, *out, value);
    EXPECT_EQ(cudaSuccess,
              cudaGraphAddMemcpyNode1D(&copy, graph, &node, 1, device_, *out, 4, cudaMemcpyDeviceToDevice));
    EXPECT_EQ(cudaSuccess, AddFree(graph, {copy}, *out));
  };
  build(graph_, &memory, 1);
  cudaGraph_t other;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&other, 0));
  build(other, &memory2, 2);
  cudaGraphExec_t exec = Instantiate(graph_), exec2 = Instantiate(other);
  cudaGraphExecUpdateResultInfo info = {};
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphExecUpdate(exec, other, &info)) << "it has an executable";
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec2));
  EXPECT_EQ(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, other, &info));
  EXPECT_EQ(cudaGraphExecUpdateError, info.result);
  EXPECT_NE(nullptr, info.errorNode);
  exec2 = Instantiate(other);
  LaunchAndWait(exec);
  EXPECT_EQ(0x01010101, First(device_));
  LaunchAndWait(exec2);
  EXPECT_EQ(0x02020202, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecUpdate(exec, graph_, &info)) << "by its own graph";
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(other));
  LaunchAndWait(exec2);
  EXPECT_EQ(0x02020202, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec2));
}

}  // namespace
}  // namespace gcap::testing
