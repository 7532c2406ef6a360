// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Kernel nodes as the driver's functions read and set them.
#include <cstring>
#include <thread>

#include "test/sim/driver_abi.h"
#include "test/sim/graph_fixture.h"
#include "test/sim/with_action.h"

namespace gcap::testing {
namespace {

class DriverNodes : public GraphTest {
 protected:
  DriverNode Told(cudaGraphNode_t node) const {
    DriverNode told;
    std::memset(&told, 0x55, sizeof(told));
    EXPECT_EQ(0, get_(node, &told));
    return told;
  }

  // Sets the memory that the step works on, in the executable; the rest stays as the node tells it.
  int Rebind(cudaGraphExec_t exec, cudaGraphNode_t node, int* value) const {
    DriverNode told = Told(node);
    void* params[] = {&value, told.params[1], told.params[2]};
    told.params = params;
    return set_(exec, node, &told);
  }

  const GetNode get_ = DriverEntry<GetNode>("cuGraphKernelNodeGetParams");
  const SetExecNode set_ = DriverEntry<SetExecNode>("cuGraphExecKernelNodeSetParams");
};

TEST_F(DriverNodes, ANodeTellsItsFunctionItsShapeAndItsArguments) {
  StepArgs args(device_, 3, 4);
  args.params.gridDim = dim3(2, 3, 4);
  args.params.blockDim = dim3(5, 6, 7);
  args.params.sharedMemBytes = 8;
  cudaGraphNode_t node;
  ASSERT_EQ(cudaSuccess, cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &args.params));
  const DriverNode told = Told(node);
  EXPECT_EQ(&g_step_stub, told.func);
  EXPECT_NE(nullptr, told.kern);
  EXPECT_NE(nullptr, told.ctx);
  EXPECT_EQ(nullptr, told.extra);
  const unsigned shape[] = {told.grid_x,  told.grid_y,  told.grid_z,      told.block_x,
                            told.block_y, told.block_z, told.shared_bytes};
  for (unsigned i = 0; i < 7; ++i) EXPECT_EQ(i + 2, shape[i]);
  EXPECT_EQ(device_, *static_cast<int**>(told.params[0]));
  EXPECT_EQ(3, *static_cast<int*>(told.params[1]));
  EXPECT_EQ(4, *static_cast<int*>(told.params[2]));
  const char* name = nullptr;
  EXPECT_EQ(0, DriverEntry<GetName>("cuFuncGetName")(&name, told.func));
  EXPECT_STREQ("step", name);
  size_t offset = 77, bytes = 77;
  EXPECT_EQ(0, DriverEntry<GetParam>("cuKernelGetParamInfo")(told.kern, 2, &offset, &bytes));
  EXPECT_EQ(12u, offset);
  EXPECT_EQ(4u, bytes);
}

TEST_F(DriverNodes, WhatIsNoKernelNodeIsRefused) {
  DriverNode told;
  EXPECT_EQ(1, get_(nullptr, &told));
  EXPECT_EQ(1, get_(AddFill(graph_, {}, device2_, 1), &told));
  cudaGraphNode_t node = AddStep(graph_, {}, device_, 0, 1);
  EXPECT_EQ(1, get_(node, nullptr));
  cudaGraphExec_t exec = Instantiate(graph_);
  told = Told(node);
  EXPECT_EQ(1, set_(nullptr, node, &told));
  EXPECT_EQ(1, set_(exec, nullptr, &told));
  told.grid_x = 0;
  EXPECT_EQ(1, set_(exec, node, &told));
  told.func = told.kern = nullptr;
  EXPECT_EQ(1, set_(exec, node, &told));
  told.func = pinned_;
  EXPECT_EQ(400, set_(exec, node, &told));
  EXPECT_EQ(cudaSuccess, cudaGetLastError());
  LaunchAndWait(exec);
  EXPECT_EQ(1, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

// Measured: a thread has a current context once it made a call of the runtime that needs one.
TEST_F(DriverNodes, AThreadWithoutAContextCrashes) {
  cudaGraphNode_t node = AddStep(graph_, {}, device_, 1, 5);
  cudaGraphExec_t exec = Instantiate(graph_);
  const DriverNode told = Told(node);
  EXPECT_DEATH(std::thread([&] {
                 int device = -1;
                 cudaGetDevice(&device);
                 set_(exec, node, &told);
               }).join(),
               "no current context");
  std::thread([&] {
    void* context = &context;
    using Current = int (*)(void**);
    EXPECT_EQ(0, DriverEntry<Current>("cuCtxGetCurrent")(&context));
    EXPECT_EQ(nullptr, context);
    unsigned long long flags = 0;
    EXPECT_EQ(cudaSuccess, cudaGraphExecGetFlags(exec, &flags));
    EXPECT_EQ(0, DriverEntry<Current>("cuCtxGetCurrent")(&context));
    EXPECT_NE(nullptr, context);
    EXPECT_EQ(0, set_(exec, node, &told));
  }).join();
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(DriverNodes, AnExecutableWorksOnWhatItWasSetTo) {
  cudaGraphNode_t node = AddStep(graph_, {}, device_, 1, 5);
  cudaGraphExec_t exec = Instantiate(graph_);
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(0, Rebind(exec, node, device2_));  // the launch on its way keeps what it had
  EXPECT_EQ(5, First(device_));
  EXPECT_EQ(0, First(device2_));
  LaunchAndWait(exec);
  EXPECT_EQ(5, First(device_));
  EXPECT_EQ(5, First(device2_));
  EXPECT_EQ(device_, *static_cast<int**>(Told(node).params[0]));  // the graph's own stay
  DriverNode by_kernel = Told(node);
  by_kernel.func = by_kernel.ctx = nullptr;
  EXPECT_EQ(0, set_(exec, node, &by_kernel));
  LaunchAndWait(exec);
  EXPECT_EQ(10, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(DriverNodes, NodesOfChildGraphsAreSetToo) {
  cudaGraph_t inner, middle;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&inner, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&middle, 0));
  AddStep(inner, {}, device_, 1, 5);
  cudaGraphNode_t holder, outer;
  ASSERT_EQ(cudaSuccess, cudaGraphAddChildGraphNode(&holder, middle, nullptr, 0, inner));
  ASSERT_EQ(cudaSuccess, cudaGraphAddChildGraphNode(&outer, graph_, nullptr, 0, middle));
  cudaGraph_t child, grandchild;
  ASSERT_EQ(cudaSuccess, cudaGraphChildGraphNodeGetGraph(outer, &child));
  size_t one = 1;
  cudaGraphNode_t node;
  ASSERT_EQ(cudaSuccess, cudaGraphGetNodes(child, &node, &one));
  ASSERT_EQ(cudaSuccess, cudaGraphChildGraphNodeGetGraph(node, &grandchild));
  ASSERT_EQ(cudaSuccess, cudaGraphGetNodes(grandchild, &node, &one));
  cudaGraphExec_t exec = Instantiate(graph_);
  EXPECT_EQ(0, Rebind(exec, node, device2_));
  LaunchAndWait(exec);
  EXPECT_EQ(0, First(device_));
  EXPECT_EQ(5, First(device2_));
  for (cudaGraph_t graph : {inner, middle}) EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(DriverNodes, AfterAnUpdateTheFirstGraphsNodesNameTheExecutables) {
  cudaGraphNode_t first = AddStep(graph_, {}, device_, 1, 5);
  cudaGraph_t other;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&other, 0));
  cudaGraphNode_t second = AddStep(other, {}, device_, 1, 7);
  cudaGraphExec_t exec = Instantiate(graph_);
  cudaGraphExecUpdateResultInfo info;
  ASSERT_EQ(cudaSuccess, cudaGraphExecUpdate(exec, other, &info));
  EXPECT_EQ(0, Rebind(exec, first, device2_));
  EXPECT_EQ(1, Rebind(exec, second, device2_));
  LaunchAndWait(exec);
  EXPECT_EQ(0, First(device_));
  EXPECT_EQ(5, First(device2_));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(other));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(DriverNodes, ClustersStayAndACaptureOfTheThreadGoesOn) {
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {2, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(4);
  config.blockDim = dim3(32);
  config.stream = stream_;
  config.attrs = &cluster;
  config.numAttrs = 1;
  StepArgs args(device_, 1, 5);
  cudaGraph_t captured;
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  ASSERT_EQ(cudaSuccess, cudaLaunchKernelExC(&config, &g_step_stub, args.pointers));
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &captured));
  size_t one = 1;
  cudaGraphNode_t node;
  ASSERT_EQ(cudaSuccess, cudaGraphGetNodes(captured, &node, &one));
  cudaGraphExec_t exec = Instantiate(captured);
  cudaGraph_t empty;
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(0, Rebind(exec, node, device2_));
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &empty));
  cudaLaunchAttributeValue value;
  ASSERT_EQ(cudaSuccess, cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeClusterDimension, &value));
  EXPECT_EQ(2u, value.clusterDim.x);
  LaunchAndWait(exec);
  EXPECT_EQ(5, First(device2_));
  for (cudaGraph_t graph : {captured, empty}) EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(DriverNodes, FaultsHitThemByName) {
  cudaGraphNode_t node = AddStep(graph_, {}, device_, 1, 5);
  cudaGraphExec_t exec = Instantiate(graph_);
  DriverNode told = Told(node);
  const char* name = nullptr;
  size_t offset = 0;
  gcap_sim_fail_nth("cuGraphKernelNodeGetParams", 1, cudaErrorUnknown);
  EXPECT_EQ(999, get_(node, &told));
  gcap_sim_fail_nth("cuGraphExecKernelNodeSetParams", 1, cudaErrorUnknown);
  EXPECT_EQ(999, set_(exec, node, &told));
  for (const char* entry : {"cuFuncGetParamInfo", "cuKernelGetParamInfo"}) {
    gcap_sim_fail_nth(entry, 1, cudaErrorUnknown);
    EXPECT_EQ(999, DriverEntry<GetParam>(entry)(told.func, 0, &offset, nullptr)) << entry;
  }
  for (const char* entry : {"cuFuncGetName", "cuKernelGetName"}) {
    gcap_sim_fail_nth(entry, 1, cudaErrorUnknown);
    EXPECT_EQ(999, DriverEntry<GetName>(entry)(&name, told.func)) << entry;
  }
  gcap_sim_clear_faults();
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

// --- Arguments in one buffer ----------------------------------------------------------------------------------------

// The arguments of the step, as the compiler lays them out.
struct StepBuffer {
  int* value;
  int factor, step;
};

// Names a buffer, in either order of the keys.
class Extra {
 public:
  Extra(const void* buffer, size_t bytes, bool bytes_first = false) : bytes_(bytes) {
    words_[bytes_first ? 2 : 0] = kExtraBuffer;
    words_[bytes_first ? 3 : 1] = const_cast<void*>(buffer);
    words_[bytes_first ? 0 : 2] = kExtraBytes;
    words_[bytes_first ? 1 : 3] = &bytes_;
  }
  Extra(const Extra&) = delete;
  void** words() { return words_; }

 private:
  size_t bytes_;
  void* words_[5] = {};
};

class ExtraNodes : public DriverNodes {
 protected:
  static cudaKernelNodeParams Params(void** extra) {
    cudaKernelNodeParams params = {};
    params.func = &g_step_stub;
    params.gridDim = dim3(1);
    params.blockDim = dim3(32);
    params.extra = extra;
    return params;
  }

  // What both ways of asking tell of the node's buffer.
  StepBuffer TellBuffer(cudaGraphNode_t node) const {
    StepBuffer buffer = {};
    cudaKernelNodeParams params;
    EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeGetParams(node, &params));
    EXPECT_EQ(nullptr, params.kernelParams);
    const DriverNode told = Told(node);
    EXPECT_EQ(nullptr, told.params);
    for (void** extra : {params.extra, told.extra}) {
      const bool is_pairs = extra[0] == kExtraBytes && extra[2] == kExtraBuffer && extra[4] == kExtraEnd;
      EXPECT_TRUE(is_pairs);
      EXPECT_EQ(sizeof(buffer), *static_cast<size_t*>(extra[1]));
      std::memcpy(&buffer, extra[3], sizeof(buffer));
    }
    return buffer;
  }
};

TEST_F(ExtraNodes, ABufferIsCopiedAndToldBack) {
  for (bool bytes_first : {false, true}) {
    StepBuffer buffer = {device_, 0, 5};
    Extra extra(&buffer, sizeof(buffer), bytes_first);
    const cudaKernelNodeParams params = Params(extra.words());
    cudaGraph_t graph;
    cudaGraphNode_t node;
    ASSERT_EQ(cudaSuccess, cudaGraphCreate(&graph, 0));
    ASSERT_EQ(cudaSuccess, cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
    buffer = {};
    EXPECT_EQ(device_, TellBuffer(node).value);
    EXPECT_EQ(0, TellBuffer(node).factor);
    EXPECT_EQ(5, TellBuffer(node).step);
    cudaGraphExec_t exec = Instantiate(graph);
    LaunchAndWait(exec);
    EXPECT_EQ(5, First(device_));

    buffer = {device_, 0, 7};
    EXPECT_EQ(cudaSuccess, cudaGraphExecKernelNodeSetParams(exec, node, &params));
    LaunchAndWait(exec);
    EXPECT_EQ(7, First(device_));
    EXPECT_EQ(5, TellBuffer(node).step);
    DriverNode told = Told(node);
    buffer = {device2_, 0, 8};
    told.extra = extra.words();
    EXPECT_EQ(0, set_(exec, node, &told));
    LaunchAndWait(exec);
    EXPECT_EQ(7, First(device_));
    EXPECT_EQ(8, First(device2_));

    EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeSetParams(node, &params));
    EXPECT_EQ(8, TellBuffer(node).step);
    EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
    EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  }
}

TEST_F(ExtraNodes, ANodeKeepsItsBufferWhereItIsCopied) {
  const StepBuffer buffer = {device_, 0, 5};
  Extra extra(&buffer, sizeof(buffer));
  cudaKernelNodeParams params = Params(extra.words());
  params.gridDim = dim3(4);
  cudaGraphNode_t node, cloned;
  ASSERT_EQ(cudaSuccess, cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &params));
  cudaLaunchAttributeValue cluster = {};
  cluster.clusterDim = {2, 1, 1};
  ASSERT_EQ(cudaSuccess, cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeClusterDimension, &cluster));
  EXPECT_EQ(5, TellBuffer(node).step);
  cudaGraph_t clone;
  ASSERT_EQ(cudaSuccess, cudaGraphClone(&clone, graph_));
  ASSERT_EQ(cudaSuccess, cudaGraphNodeFindInClone(&cloned, node, clone));
  EXPECT_EQ(device_, TellBuffer(cloned).value);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(clone));
}

TEST_F(ExtraNodes, WhatNamesNoBufferIsRefused) {
  const StepBuffer buffer = {device_, 0, 5};
  Extra good(&buffer, sizeof(buffer)), none(nullptr, sizeof(buffer));
  void* unknown[] = {reinterpret_cast<void*>(3), nullptr, kExtraEnd};
  void* no_bytes[] = {kExtraBuffer, const_cast<StepBuffer*>(&buffer), kExtraEnd};
  cudaGraphNode_t node = nullptr;
  for (void** extra : {unknown, no_bytes, none.words()}) {
    const cudaKernelNodeParams params = Params(extra);
    EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &params));
  }
  StepArgs args(device_, 0, 5);
  args.params.extra = good.words();  // both ways at once
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &args.params));
  cudaKernelNodeParams no_kernel = Params(good.words());
  no_kernel.func = pinned_;
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &no_kernel));
  (void)cudaGetLastError();
}

using ExtraNodesDeathTest = ExtraNodes;

TEST_F(ExtraNodesDeathTest, ABufferThatIsTooSmallStopsTheProgram) {
  const StepBuffer buffer = {device_, 0, 5};
  Extra small(&buffer, 12);
  const cudaKernelNodeParams params = Params(small.words());
  cudaGraphNode_t node;
  EXPECT_DEATH(cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &params),
               "extra has a buffer of 12 bytes, and argument 2 of step ends at 16");
}

// --- Reserved addresses ---------------------------------------------------------------------------------------------

constexpr size_t kUnit = size_t{2} << 20;

class ReservedNodes : public DriverNodes {
 protected:
  void SetUp() override {
    DriverNodes::SetUp();
    ASSERT_EQ(0, DriverEntry<Reserve>("cuMemAddressReserve")(&range_, kUnit, 0, 0, 0));
    nowhere_ = reinterpret_cast<int*>(range_);
  }
  void TearDown() override {
    EXPECT_EQ(0, DriverEntry<Unreserve>("cuMemAddressFree")(range_, kUnit));
    DriverNodes::TearDown();
  }

  uintptr_t range_ = 0;
  int* nowhere_ = nullptr;
};

TEST_F(ReservedNodes, AKernelIsSetFromAReservedAddressToMemory) {
  cudaGraphNode_t node = AddStep(graph_, {}, nowhere_, 1, 5);
  EXPECT_EQ(nowhere_, *static_cast<int**>(Told(node).params[0]));
  cudaGraphExec_t exec = Instantiate(graph_);
  EXPECT_EQ(0, Rebind(exec, node, device_));
  LaunchAndWait(exec);
  EXPECT_EQ(5, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(ReservedNodes, ACopyAndAFillAreNotSetThere) {
  cudaGraphNode_t fill = AddFill(graph_, {}, device_, 1), copy;
  ASSERT_EQ(cudaSuccess,
            cudaGraphAddMemcpyNode1D(&copy, graph_, &fill, 1, device2_, device_, 64, cudaMemcpyDeviceToDevice));
  cudaGraphExec_t exec = Instantiate(graph_);
  cudaMemcpy3DParms params;
  ASSERT_EQ(cudaSuccess, cudaGraphMemcpyNodeGetParams(copy, &params));
  params.dstPtr.ptr = nowhere_;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecMemcpyNodeSetParams(exec, copy, &params));
  const cudaMemsetParams there = Fill(nowhere_, 1);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecMemsetNodeSetParams(exec, fill, &there));
  (void)cudaGetLastError();
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(ReservedNodes, AKernelThatTouchesOneIsReported) {
  const gcap_test::WithAction recorded(GCAP_SIM_CHECK_OUT_OF_BOUNDS, GCAP_SIM_ACTION_ERROR);
  const gcap_test::WithAction alone(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);
  ASSERT_EQ(cudaSuccess, Step(nowhere_, 1, 5, stream_));
  EXPECT_EQ(cudaErrorIllegalAddress, cudaStreamSynchronize(stream_));
  gcap_sim_clear_faults();
  (void)cudaGetLastError();
  EXPECT_EQ(1u, gcap_sim_check());
  EXPECT_NE(std::string::npos, std::string(gcap_sim_report(0)).find("which no allocation holds"));
}

}  // namespace
}  // namespace gcap::testing
