// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs on two devices. Its own binary, since the number of devices is read once.
#include <cstdlib>

#include "test/sim/graph_fixture.h"

namespace gcap::testing {
namespace {

const bool g_environment_set = [] {
  setenv("GCAP_SIM_DEVICES", "2", 1);
  return true;
}();

class GraphDevices : public GraphTest {
 protected:
  void SetUp() override {
    GraphTest::SetUp();
    ASSERT_EQ(cudaSuccess, cudaSetDevice(1));
    ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&far_), kGraphBytes));
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&far_stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaSetDevice(0));
  }

  void TearDown() override {
    EXPECT_EQ(cudaSuccess, cudaFree(far_));
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(far_stream_));
    GraphTest::TearDown();
  }

  int* far_ = nullptr;  // memory and a stream of device 1
  cudaStream_t far_stream_ = nullptr;
};

// The answer of the record, multi.begin_on_other_device: the capture takes it, the instantiation does not.
TEST_F(GraphDevices, AFillMustReachItsMemory) {
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(device_, 1, kGraphBytes, stream_));
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(far_, 1, kGraphBytes, stream_));
  cudaGraph_t graph;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
  cudaGraphExec_t exec = nullptr;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_EQ(nullptr, exec);
  ASSERT_EQ(cudaSuccess, cudaDeviceEnablePeerAccess(1, 0));
  exec = Instantiate(graph);
  LaunchAndWait(exec);
  EXPECT_EQ(0x01010101, First(far_));
  EXPECT_EQ(cudaSuccess, cudaDeviceDisablePeerAccess(1));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

// A variable has memory on each device, with first contents of its own.
TEST_F(GraphDevices, EachDeviceHasItsOwnVariable) {
  static char variable;
  static const int initial = 7;
  const gcap_sim_symbol_t symbol = {&variable, "variable", sizeof(initial), &initial};
  gcap_sim_register_symbol(&symbol);
  const int changed = 9;
  int read = 0;
  void *near = nullptr, *far = nullptr;
  EXPECT_EQ(cudaSuccess, cudaGetSymbolAddress(&near, &variable));
  EXPECT_EQ(cudaSuccess, cudaMemcpyToSymbol(&variable, &changed, sizeof(changed)));
  ASSERT_EQ(cudaSuccess, cudaSetDevice(1));
  EXPECT_EQ(cudaSuccess, cudaGetSymbolAddress(&far, &variable));
  EXPECT_EQ(cudaSuccess, cudaMemcpyFromSymbol(&read, &variable, sizeof(read)));
  ASSERT_EQ(cudaSuccess, cudaSetDevice(0));
  EXPECT_NE(near, far);
  EXPECT_EQ(initial, read);
}

// multi.join_across_devices: each node runs on the device of its stream.
TEST_F(GraphDevices, ACaptureSpansDevices) {
  cudaEvent_t fork, join;
  ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  ASSERT_EQ(cudaSuccess, cudaSetDevice(1));
  ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  ASSERT_EQ(cudaSuccess, cudaSetDevice(0));
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 2, kGraphBytes, stream_));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(fork, stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(far_stream_, fork, 0));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(far_, 2, kGraphBytes, far_stream_));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(join, far_stream_));
  ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(stream_, join, 0));
  cudaGraph_t graph;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(1u, CountEdges(graph));
  cudaGraphExec_t exec = Instantiate(graph);
  LaunchAndWait(exec);
  EXPECT_EQ(0x02020202, First(far_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(fork));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(join));
}

TEST_F(GraphDevices, AnUpdateStaysOnTheDevice) {
  AddStep(graph_, {}, device_, 0, 1);
  cudaGraphExec_t exec = Instantiate(graph_);
  cudaGraph_t other;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&other, 0));
  ASSERT_EQ(cudaSuccess, cudaSetDevice(1));
  cudaGraphNode_t node = AddStep(other, {}, far_, 0, 1);
  ASSERT_EQ(cudaSuccess, cudaSetDevice(0));
  cudaGraphExecUpdateResultInfo info = {};
  EXPECT_EQ(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, other, &info));
  EXPECT_EQ(cudaGraphExecUpdateErrorUnsupportedFunctionChange, info.result);
  EXPECT_EQ(node, info.errorNode);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(other));
}

}  // namespace
}  // namespace gcap::testing
