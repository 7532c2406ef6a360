// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Executables: their nodes' parameters, nodes switched off, what instantiation refuses, launches that hold what they
// started with.
#include <atomic>

#include "test/sim/graph_fixture.h"

namespace gcap::testing {
namespace {

using GraphExec = GraphTest;

// A host function that waits until it is let go.
struct Gate {
  static void Wait(void* p) {
    while (!static_cast<Gate*>(p)->open) {
    }
  }
  std::atomic<bool> open{false};
};

TEST_F(GraphExec, ParametersAreItsOwn) {
  cudaGraphNode_t node = AddStep(graph_, {}, device_, 0, 1);
  cudaGraphExec_t exec = Instantiate(graph_), second = Instantiate(graph_);
  StepArgs args(device2_, 0, 2, &g_other_step_stub);
  EXPECT_EQ(cudaSuccess, cudaGraphExecKernelNodeSetParams(exec, node, &args.params));
  LaunchAndWait(exec);
  EXPECT_EQ(0, First(device_));
  EXPECT_EQ(2, First(device2_));
  cudaKernelNodeParams params;
  EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeGetParams(node, &params));
  EXPECT_EQ(&g_step_stub, params.func);
  LaunchAndWait(second);
  EXPECT_EQ(1, First(device_));
  EXPECT_DEATH(cudaGraphExecKernelNodeSetParams(exec, node, nullptr), "no parameters");
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecKernelNodeSetParams(nullptr, node, &args.params));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecKernelNodeSetParams(exec, nullptr, &args.params));
  cudaGraphNode_t young = AddStep(graph_, {}, device_, 0, 9);  // the executables have none such
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecKernelNodeSetParams(exec, young, &args.params));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(second));
}

size_t FreeBytes() {
  size_t free_bytes = 0, total_bytes = 0;
  EXPECT_EQ(cudaSuccess, cudaMemGetInfo(&free_bytes, &total_bytes));
  return free_bytes;
}

// As measured on an H200 (bench/graph:cost_bench): 112 KiB for an executable and 2.3 KiB for each kernel node, in steps
// of 2 MiB.
TEST_F(GraphExec, TakesDeviceMemoryInStepsWhichStayForOthers) {
  constexpr size_t kNodes = 4000, kStep = size_t{2} << 20;
  cudaGraph_t fills = nullptr;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&fills, 0));
  cudaGraphNode_t node;
  cudaMemsetParams fill = {};
  fill.dst = device_;
  fill.elementSize = 1;
  fill.width = 4;
  fill.height = 1;
  for (size_t i = 0; i < kNodes; ++i) {
    AddStep(graph_, {}, device_, 0, 1);
    ASSERT_EQ(cudaSuccess, cudaGraphAddMemsetNode(&node, fills, nullptr, 0, &fill));
  }
  const size_t before = FreeBytes();
  cudaGraphExec_t other = Instantiate(fills);
  EXPECT_LE(before - FreeBytes(), kStep) << "nodes that fill take none";
  cudaGraphExec_t exec = Instantiate(graph_);
  const size_t went = before - FreeBytes();
  EXPECT_EQ(0u, went % kStep);
  EXPECT_GE(went + kStep, kNodes * 2300);
  EXPECT_LE(went, kNodes * 2500 + kStep);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(before - went, FreeBytes()) << "it stays";
  exec = Instantiate(graph_);
  EXPECT_EQ(before - went, FreeBytes()) << "for the next one";
  // Those of a child graph count, too.
  cudaGraph_t parent = nullptr;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&parent, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, graph_));
  cudaGraphExec_t second = Instantiate(parent);
  EXPECT_GE(before - went - FreeBytes() + kStep, kNodes * 2300);
  for (cudaGraphExec_t each : {exec, other, second}) EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(each));
  for (cudaGraph_t each : {fills, parent}) EXPECT_EQ(cudaSuccess, cudaGraphDestroy(each));
}

TEST_F(GraphExec, NeedsDeviceMemoryForItsKernels) {
  for (int i = 0; i < 20000; ++i) AddStep(graph_, {}, device_, 0, 1);
  size_t free_bytes = 0, total_bytes = 0;
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free_bytes, &total_bytes));
  gcap_sim_set_device_bytes(0, total_bytes - free_bytes + (size_t{1} << 20));
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaGraphInstantiate(&exec, graph_, 0));
  gcap_sim_set_device_bytes(0, 0);
  EXPECT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph_, 0));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphExec, CopiesChangeAddressAndSizeOnly) {
  cudaGraphNode_t node, rows;
  ASSERT_EQ(cudaSuccess,
            cudaGraphAddMemcpyNode1D(&node, graph_, nullptr, 0, device_, pinned_, 4, cudaMemcpyHostToDevice));
  cudaMemcpy3DParms params = {};
  params.dstPtr = {device2_, 16, 8, 2};
  params.srcPtr = {device_, 16, 8, 2};
  params.extent = {8, 2, 1};
  params.kind = cudaMemcpyDeviceToDevice;
  ASSERT_EQ(cudaSuccess, cudaGraphAddMemcpyNode(&rows, graph_, &node, 1, &params));
  cudaGraphExec_t exec = Instantiate(graph_);
  auto set = [&](void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
    return cudaGraphExecMemcpyNodeSetParams1D(exec, node, dst, src, bytes, kind);
  };
  int pageable = 0;
  EXPECT_EQ(cudaSuccess, set(device2_, pinned_ + 1, 8, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaErrorInvalidValue, set(device2_, device_, 8, cudaMemcpyDeviceToDevice));
  EXPECT_EQ(cudaErrorInvalidValue, set(pinned_, device_, 8, cudaMemcpyDeviceToHost));
  EXPECT_EQ(cudaErrorInvalidValue, set(device2_, pinned_, 8, cudaMemcpyDefault));
  EXPECT_EQ(cudaErrorInvalidValue, set(device2_, pinned_, 0, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaSuccess, set(device2_, &pageable, 4, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaSuccess, set(device2_, pinned_ + 1, 8, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecMemcpyNodeSetParams(exec, node, &params));
  EXPECT_EQ(cudaSuccess, cudaGraphExecMemcpyNodeSetParams(exec, rows, &params));  // several rows, as they are
  params.srcPtr.ptr = device_ + 1;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecMemcpyNodeSetParams(exec, rows, &params));
  pinned_[1] = 55;
  LaunchAndWait(exec);
  EXPECT_EQ(0, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphExec, FillsOfOneRowChangeInAllButRows) {
  cudaMemsetParams two_rows = {device2_, 32, 1, 1, 8, 2};
  cudaGraphNode_t row = AddFill(graph_, {}, device_, 1), rows;
  ASSERT_EQ(cudaSuccess, cudaGraphAddMemsetNode(&rows, graph_, nullptr, 0, &two_rows));
  cudaGraphExec_t exec = Instantiate(graph_);
  cudaMemsetParams params = {device2_, 0, 0x0102, 2, 8, 1};
  EXPECT_EQ(cudaSuccess, cudaGraphExecMemsetNodeSetParams(exec, row, &params));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecMemsetNodeSetParams(exec, row, &two_rows));
  cudaMemsetParams pinned = Fill(pinned_, 1);
  EXPECT_EQ(cudaSuccess, cudaGraphExecMemsetNodeSetParams(exec, row, &pinned));
  EXPECT_EQ(cudaSuccess, cudaGraphExecMemsetNodeSetParams(exec, row, &params));
  two_rows.dst = device_;
  two_rows.value = 6;
  EXPECT_EQ(cudaSuccess, cudaGraphExecMemsetNodeSetParams(exec, rows, &two_rows));
  two_rows.width = 4;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecMemsetNodeSetParams(exec, rows, &two_rows));
  LaunchAndWait(exec);
  EXPECT_EQ(0x06060606, First(device_));
  EXPECT_EQ(0x01020102, First(device2_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphExec, HostFunctionsAndEventsChange) {
  auto add_one = [](void* p) { ++*static_cast<int*>(p); };
  int first = 0, second = 0;
  cudaEvent_t event, event2;
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&event));
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&event2));
  cudaHostNodeParams params = {add_one, &first};
  cudaGraphNode_t host, record, wait;
  ASSERT_EQ(cudaSuccess, cudaGraphAddHostNode(&host, graph_, nullptr, 0, &params));
  ASSERT_EQ(cudaSuccess, cudaGraphAddEventRecordNode(&record, graph_, &host, 1, event));
  ASSERT_EQ(cudaSuccess, cudaGraphAddEventWaitNode(&wait, graph_, &record, 1, event));
  cudaGraphExec_t exec = Instantiate(graph_);
  params.userData = &second;
  EXPECT_EQ(cudaSuccess, cudaGraphExecHostNodeSetParams(exec, host, &params));
  EXPECT_EQ(cudaSuccess, cudaGraphExecEventRecordNodeSetEvent(exec, record, event2));
  EXPECT_EQ(cudaSuccess, cudaGraphExecEventWaitNodeSetEvent(exec, wait, event2));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecEventWaitNodeSetEvent(exec, record, event2));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecEventRecordNodeSetEvent(exec, record, nullptr));
  LaunchAndWait(exec);
  EXPECT_EQ(0, first);
  EXPECT_EQ(1, second);
  float ms;
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, event, event2));  // never recorded
  EXPECT_EQ(cudaSuccess, cudaEventElapsedTime(&ms, event2, event2));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(event));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(event2));
}

TEST_F(GraphExec, NodesAreSwitchedOffAndOn) {
  cudaGraphNode_t first = AddStep(graph_, {}, device_, 0, 1);
  cudaGraphNode_t second = AddStep(graph_, {first}, device_, 10, 2);
  cudaGraphNode_t empty = AddEmpty(graph_, {second});
  cudaGraphExec_t exec = Instantiate(graph_);
  unsigned int enabled = 9;
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetEnabled(exec, second, &enabled));
  EXPECT_EQ(1u, enabled);
  EXPECT_EQ(cudaSuccess, cudaGraphNodeSetEnabled(exec, second, 0));
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetEnabled(exec, second, &enabled));
  EXPECT_EQ(0u, enabled);
  LaunchAndWait(exec);
  EXPECT_EQ(1, First(device_));
  // Parameters and updates change what a node will do once it is on again.
  StepArgs args(device_, 10, 3);
  EXPECT_EQ(cudaSuccess, cudaGraphExecKernelNodeSetParams(exec, second, &args.params));
  LaunchAndWait(exec);
  EXPECT_EQ(1, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphNodeSetEnabled(exec, second, 5));
  LaunchAndWait(exec);
  EXPECT_EQ(13, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphNodeSetEnabled(exec, second, 0));
  EXPECT_EQ(cudaSuccess, cudaGraphExecUpdate(exec, graph_, nullptr));
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetEnabled(exec, second, &enabled));
  EXPECT_EQ(0u, enabled);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeSetEnabled(exec, empty, 0));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeGetEnabled(exec, empty, &enabled));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeGetEnabled(exec, second, nullptr));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeSetEnabled(nullptr, second, 0));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

// What a launch started with, it ends with: neither changes nor the end of the executable reach it.
TEST_F(GraphExec, PendingLaunchesKeepTheirProgram) {
  Gate gate;
  cudaGraphNode_t node = AddStep(graph_, {}, device_, 0, 1);
  AddStep(graph_, {node}, device_, 10, 4);
  cudaGraphExec_t exec = Instantiate(graph_);
  ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(stream_, Gate::Wait, &gate));
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(pinned_, device_, 4, cudaMemcpyDeviceToHost, stream_));
  StepArgs args(device_, 0, 2);
  EXPECT_EQ(cudaSuccess, cudaGraphExecKernelNodeSetParams(exec, node, &args.params));
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  ASSERT_EQ(cudaSuccess, cudaMemcpyAsync(pinned_ + 1, device_, 4, cudaMemcpyDeviceToHost, stream_));
  EXPECT_EQ(cudaSuccess, cudaGraphNodeSetEnabled(exec, node, 0));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  gate.open = true;
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(14, pinned_[0]);
  EXPECT_EQ(24, pinned_[1]);
}

TEST_F(GraphExec, LaunchesOfOneExecutableFollowOneAnother) {
  AddStep(graph_, {AddStep(graph_, {}, device_, 1, 1)}, device_, 2, 0);
  cudaGraphExec_t exec = Instantiate(graph_);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    gcap_sim_set_seed(seed);
    ASSERT_EQ(cudaSuccess, cudaMemset(device_, 0, kGraphBytes));
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
    for (cudaStream_t s : {stream_, other_, stream_}) ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, s));
    ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_EQ(14, First(device_)) << "seed " << seed;  // ((0 + 1) * 2 + 1) * 2 + 1) * 2
  }
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphExec, InstantiationTellsWhyItFailed) {
  cudaGraphExec_t exec = nullptr;
  cudaGraphInstantiateParams params = {};
  params.flags = 1u << 10;
  params.errNode_out = AddEmpty(graph_, {});
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphInstantiateWithParams(&exec, graph_, &params));
  EXPECT_EQ(cudaGraphInstantiateError, params.result_out);
  EXPECT_EQ(nullptr, params.errNode_out);
  params.flags = cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagDeviceLaunch;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphInstantiateWithParams(&exec, graph_, &params));
  params.flags = 0;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphInstantiateWithParams(nullptr, graph_, &params));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphInstantiateWithParams(&exec, nullptr, &params));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphInstantiateWithParams(&exec, graph_, nullptr));
  // No device launches a node that does nothing.
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph_, cudaGraphInstantiateFlagDeviceLaunch));
  EXPECT_EQ(nullptr, exec);
  // An upload is given a stream, and a stream that captures cannot be given it.
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
  params.flags = cudaGraphInstantiateFlagUpload;
  params.uploadStream = stream_;
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaGraphInstantiateWithParams(&exec, graph_, &params));
  cudaGraph_t captured;
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream_, &captured));
}

}  // namespace
}  // namespace gcap::testing
