// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Nodes of every kind, made by hand: what they do at a launch, what they say of themselves, what they become when their
// parameters or attributes are set.
#include <cstring>

#include "test/sim/graph_fixture.h"

namespace gcap::testing {
namespace {

using GraphNode = GraphTest;

cudaMemcpy3DParms Copy2D(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t height) {
  cudaMemcpy3DParms params = {};
  params.dstPtr = {dst, dst_pitch, width, height};
  params.srcPtr = {const_cast<void*>(src), src_pitch, width, height};
  params.extent = {width, height, 1};
  params.kind = cudaMemcpyDefault;
  return params;
}

TEST_F(GraphNode, KernelsAreSetAnew) {
  cudaGraphNode_t node = AddStep(graph_, {}, device_, 0, 5);
  cudaKernelNodeParams params;
  ASSERT_EQ(cudaSuccess, cudaGraphKernelNodeGetParams(node, &params));
  EXPECT_EQ(&g_step_stub, params.func);
  EXPECT_EQ(5, *static_cast<int*>(params.kernelParams[2]));
  StepArgs other(device2_, 0, 6, &g_other_step_stub);
  other.params.gridDim.x = 3;
  EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeSetParams(node, &other.params));
  other.step = 100;  // copied at the call
  ASSERT_EQ(cudaSuccess, cudaGraphKernelNodeGetParams(node, &params));
  EXPECT_EQ(&g_other_step_stub, params.func);
  EXPECT_EQ(3u, params.gridDim.x);
  cudaGraphExec_t exec = Instantiate(graph_);
  LaunchAndWait(exec);
  EXPECT_EQ(0, First(device_));
  EXPECT_EQ(6, First(device2_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));

  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphKernelNodeSetParams(node, nullptr));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphKernelNodeSetParams(nullptr, &other.params));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphKernelNodeSetParams(AddEmpty(graph_, {}), &other.params));
  int no_kernel;
  other.params.func = &no_kernel;
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaGraphKernelNodeSetParams(node, &other.params));
}

TEST_F(GraphNode, CopiesHaveThreeDimensions) {
  // 2 slices of 2 rows of 3 bytes, out of slices of 3 rows of 5 bytes, packed into slices of 2 rows of 4 bytes.
  char source[30], expected[16];
  for (int i = 0; i < 30; ++i) source[i] = static_cast<char>(i);
  std::memset(expected, 0, sizeof(expected));
  for (int z = 0; z < 2; ++z) {
    for (int y = 0; y < 2; ++y) {
      for (int x = 0; x < 3; ++x) expected[z * 8 + y * 4 + x] = static_cast<char>(z * 15 + (y + 1) * 5 + x + 2);
    }
  }
  cudaMemcpy3DParms params = {};
  params.srcPtr = {source, 5, 5, 3};
  params.srcPos = {2, 1, 0};
  params.dstPtr = {device_, 4, 3, 2};
  params.extent = {3, 2, 2};
  params.kind = cudaMemcpyHostToDevice;
  cudaGraphNode_t node;
  ASSERT_EQ(cudaSuccess, cudaGraphAddMemcpyNode(&node, graph_, nullptr, 0, &params));
  cudaGraphExec_t exec = Instantiate(graph_);
  LaunchAndWait(exec);
  char got[16];
  ASSERT_EQ(cudaSuccess, cudaMemcpy(got, device_, sizeof(got), cudaMemcpyDeviceToHost));
  EXPECT_EQ(0, std::memcmp(expected, got, sizeof(got)));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphNode, BadCopiesAreRefused) {
  cudaGraphNode_t node = nullptr;
  auto add = [&](cudaMemcpy3DParms params) { return cudaGraphAddMemcpyNode(&node, graph_, nullptr, 0, &params); };
  auto good = Copy2D(device2_, 16, device_, 32, 16, 4);
  auto changed = [&](auto change) {
    auto params = good;
    change(params);
    return add(params);
  };
  EXPECT_EQ(cudaErrorInvalidValue, changed([](auto& p) { p.extent.width = 0; }));
  EXPECT_EQ(cudaErrorInvalidValue, changed([](auto& p) { p.extent.height = 0; }));
  EXPECT_EQ(cudaErrorInvalidValue, changed([](auto& p) { p.extent.depth = 0; }));
  EXPECT_EQ(cudaErrorInvalidValue, changed([](auto& p) { p.dstPtr.ptr = nullptr; }));
  EXPECT_EQ(cudaErrorInvalidPitchValue, changed([](auto& p) { p.extent.width = 17; }));
  EXPECT_EQ(cudaErrorInvalidValue, changed([](auto& p) { p.extent.height = 17; }));  // past the end of device2_
  EXPECT_EQ(cudaErrorInvalidValue, changed([](auto& p) { p.extent.depth = 5; }));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddMemcpyNode(&node, graph_, nullptr, 0, nullptr));
  EXPECT_EQ(nullptr, node);
  EXPECT_EQ(cudaSuccess, add(good));
}

TEST_F(GraphNode, CopiesTellTheirParameters) {
  auto params = Copy2D(device2_, 16, device_, 32, 16, 4);
  params.kind = cudaMemcpyDeviceToDevice;
  cudaGraphNode_t node;
  ASSERT_EQ(cudaSuccess, cudaGraphAddMemcpyNode(&node, graph_, nullptr, 0, &params));
  cudaMemcpy3DParms got;
  ASSERT_EQ(cudaSuccess, cudaGraphMemcpyNodeGetParams(node, &got));
  EXPECT_EQ(device2_, got.dstPtr.ptr);
  EXPECT_EQ(device_, got.srcPtr.ptr);
  EXPECT_EQ(16u, got.dstPtr.pitch);
  EXPECT_EQ(32u, got.srcPtr.pitch);
  EXPECT_EQ(4u, got.extent.height);
  EXPECT_EQ(cudaMemcpyDeviceToDevice, got.kind);
  EXPECT_EQ(cudaSuccess, cudaGraphMemcpyNodeSetParams1D(node, device_, pinned_, 8, cudaMemcpyHostToDevice));
  ASSERT_EQ(cudaSuccess, cudaGraphMemcpyNodeGetParams(node, &got));
  EXPECT_EQ(pinned_, got.srcPtr.ptr);
  EXPECT_EQ(8u, got.extent.width);
  EXPECT_EQ(1u, got.extent.height);
  EXPECT_EQ(1u, got.extent.depth);
  EXPECT_EQ(cudaSuccess, cudaGraphMemcpyNodeSetParams(node, &got));  // what it tells, it takes
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphMemcpyNodeSetParams1D(node, device_, pinned_, 0, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphMemcpyNodeGetParams(node, nullptr));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphMemcpyNodeGetParams(AddEmpty(graph_, {}), &got));
}

TEST_F(GraphNode, FillsTellAndTakeParameters) {
  cudaGraphNode_t node = AddFill(graph_, {}, device_, 3);
  cudaMemsetParams params = {};
  ASSERT_EQ(cudaSuccess, cudaGraphMemsetNodeGetParams(node, &params));
  EXPECT_EQ(device_, params.dst);
  EXPECT_EQ(3u, params.value);
  EXPECT_EQ(kGraphBytes, params.width);
  params = {device2_, 32, 0x01020304, 4, 2, 3};
  ASSERT_EQ(cudaSuccess, cudaGraphMemsetNodeSetParams(node, &params));
  cudaGraphExec_t exec = Instantiate(graph_);
  LaunchAndWait(exec);
  int got[kGraphInts];
  ASSERT_EQ(cudaSuccess, cudaMemcpy(got, device2_, kGraphBytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kGraphInts; ++i) {
    EXPECT_EQ(i < 24 && i % 8 < 2 ? 0x01020304 : 0, got[i]) << i;
  }
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));

  const cudaMemsetParams bad[] = {
      {nullptr, 0, 0, 1, 1, 1},     {device_, 0, 0, 3, 1, 1}, {device_, 0, 0, 1, 0, 1},
      {device_, 0, 0, 1, 1, 0},     {device_, 4, 0, 1, 8, 2}, {device_, 0, 0, 1, kGraphBytes + 1, 1},
      {device_, 0, 0, 4, 1, 65536}, {got, 0, 0, 1, 4, 1},     {device_, 0, 0, 4, SIZE_MAX, 1},
  };
  for (const auto& p : bad) EXPECT_EQ(cudaErrorInvalidValue, cudaGraphMemsetNodeSetParams(node, &p)) << &p - bad;
}

TEST_F(GraphNode, HostFunctionsTellAndTakeParameters) {
  auto add_one = [](void* p) { ++*static_cast<int*>(p); };
  int first = 0, second = 0;
  cudaHostNodeParams params = {add_one, &first};
  cudaGraphNode_t node;
  ASSERT_EQ(cudaSuccess, cudaGraphAddHostNode(&node, graph_, nullptr, 0, &params));
  cudaHostNodeParams got = {};
  EXPECT_EQ(cudaSuccess, cudaGraphHostNodeGetParams(node, &got));
  EXPECT_EQ(&first, got.userData);
  params.userData = &second;
  EXPECT_EQ(cudaSuccess, cudaGraphHostNodeSetParams(node, &params));
  cudaGraphExec_t exec = Instantiate(graph_);
  LaunchAndWait(exec);
  EXPECT_EQ(0, first);
  EXPECT_EQ(1, second);
  params.fn = nullptr;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphHostNodeSetParams(node, &params));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphNode, EventNodesRecordAndWait) {
  cudaEvent_t gate, done;
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&gate));
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&done));
  cudaGraphNode_t wait, record;
  ASSERT_EQ(cudaSuccess, cudaGraphAddEventWaitNode(&wait, graph_, nullptr, 0, gate));
  cudaGraphNode_t copy = AddStep(graph_, {wait}, device_, 2, 0);
  ASSERT_EQ(cudaSuccess, cudaGraphAddEventRecordNode(&record, graph_, &copy, 1, done));
  cudaGraphNodeType type;
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetType(record, &type));
  EXPECT_EQ(cudaGraphNodeTypeEventRecord, type);
  cudaEvent_t got = nullptr;
  EXPECT_EQ(cudaSuccess, cudaGraphEventWaitNodeGetEvent(wait, &got));
  EXPECT_EQ(gate, got);
  EXPECT_EQ(cudaSuccess, cudaGraphEventRecordNodeGetEvent(record, &got));
  EXPECT_EQ(done, got);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphEventRecordNodeGetEvent(wait, &got));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddEventWaitNode(&wait, graph_, nullptr, 0, nullptr));
  cudaGraphExec_t exec = Instantiate(graph_);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    gcap_sim_set_seed(seed);
    ASSERT_EQ(cudaSuccess, Step(device_, 0, 21, other_));
    ASSERT_EQ(cudaSuccess, cudaEventRecord(gate, other_));
    ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
    EXPECT_EQ(cudaSuccess, cudaEventSynchronize(done));
    EXPECT_EQ(42, First(device_)) << "seed " << seed;
  }
  EXPECT_EQ(cudaSuccess, cudaGraphEventWaitNodeSetEvent(wait, done));
  EXPECT_EQ(cudaSuccess, cudaGraphEventWaitNodeGetEvent(wait, &got));
  EXPECT_EQ(done, got);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(gate));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(done));
  EXPECT_DEATH(cudaGraphEventWaitNodeGetEvent(wait, &got), "the node's event was destroyed");
}

// Waits look for the record before the launch, so a graph that does both neither waits for itself nor hangs.
TEST_F(GraphNode, AnEventThatTheGraphItselfRecordsIsAwaitedAsOfBefore) {
  cudaEvent_t event;
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&event));
  cudaGraphNode_t wait, record;
  ASSERT_EQ(cudaSuccess, cudaGraphAddEventWaitNode(&wait, graph_, nullptr, 0, event));
  ASSERT_EQ(cudaSuccess, cudaGraphAddEventRecordNode(&record, graph_, &wait, 1, event));
  cudaGraphExec_t exec = Instantiate(graph_);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(cudaSuccess, cudaEventQuery(event));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(event));
}

TEST_F(GraphNode, AttributesStayWithTheNodeAndItsCopies) {
  cudaGraphNode_t a = AddStep(graph_, {}, device_, 1, 1);
  cudaGraphNode_t b = AddStep(graph_, {}, device_, 1, 1);
  cudaLaunchAttributeValue value = {};
  auto priority_of = [&](cudaGraphNode_t node) {
    cudaLaunchAttributeValue got = {};
    EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeGetAttribute(node, cudaKernelNodeAttributePriority, &got));
    return got.priority;
  };
  EXPECT_EQ(0, priority_of(a));
  value.priority = -3;
  EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeSetAttribute(a, cudaKernelNodeAttributePriority, &value));
  EXPECT_EQ(-3, priority_of(a));
  EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeCopyAttributes(b, a));
  EXPECT_EQ(-3, priority_of(b));
  StepArgs args(device_, 2, 2);
  EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeSetParams(a, &args.params));
  EXPECT_EQ(-3, priority_of(a));
  cudaGraph_t clone;
  cudaGraphNode_t a2;
  ASSERT_EQ(cudaSuccess, cudaGraphClone(&clone, graph_));
  ASSERT_EQ(cudaSuccess, cudaGraphNodeFindInClone(&a2, a, clone));
  EXPECT_EQ(-3, priority_of(a2));
  cudaGraphNode_t fill = AddFill(graph_, {}, device_, 1);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphKernelNodeGetAttribute(fill, cudaKernelNodeAttributePriority, &value));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphKernelNodeCopyAttributes(fill, a));
  EXPECT_EQ(cudaErrorInvalidValue,
            cudaGraphKernelNodeSetAttribute(a, cudaLaunchAttributeSynchronizationPolicy, &value));
  EXPECT_DEATH(cudaGraphKernelNodeSetAttribute(a, cudaKernelNodeAttributePriority, nullptr), "the value is NULL");
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(clone));
}

TEST_F(GraphNode, ACapturedKernelHasItsStreamsPriority) {
  cudaStream_t urgent;
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -2));
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(urgent, cudaStreamCaptureModeThreadLocal));
  ASSERT_EQ(cudaSuccess, Step(device_, 1, 1, urgent));
  cudaGraph_t captured;
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(urgent, &captured));
  cudaGraphNode_t node;
  size_t count = 1;
  ASSERT_EQ(cudaSuccess, cudaGraphGetNodes(captured, &node, &count));
  cudaLaunchAttributeValue value = {};
  EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeGetAttribute(node, cudaKernelNodeAttributePriority, &value));
  EXPECT_EQ(-2, value.priority);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(captured));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(urgent));
}

TEST_F(GraphNode, AnyKindIsAddedByItsTag) {
  cudaEvent_t event;
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&event));
  cudaGraph_t child;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&child, 0));
  StepArgs args(device_, 1, 4);
  std::vector<cudaGraphNodeType> types;
  cudaGraphNode_t last = nullptr;
  auto add = [&](cudaGraphNodeType type, auto fill) {
    cudaGraphNodeParams params = Tagged(type);
    fill(params);
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphAddNode(&node, graph_, &last, nullptr, last ? 1 : 0, &params)) << type;
    cudaGraphNodeType got;
    EXPECT_EQ(cudaSuccess, cudaGraphNodeGetType(node, &got));
    EXPECT_EQ(type, got);
    last = node;
    return node;
  };
  cudaGraphNode_t kernel = add(cudaGraphNodeTypeKernel, [&](auto& p) {
    p.kernel.func = args.params.func;
    p.kernel.gridDim = dim3(1);
    p.kernel.blockDim = dim3(1);
    p.kernel.kernelParams = args.pointers;
  });
  add(cudaGraphNodeTypeMemcpy, [&](auto& p) { p.memcpy.copyParams = Copy2D(device2_, 0, device_, 0, 4, 1); });
  add(cudaGraphNodeTypeMemset, [&](auto& p) { p.memset = {device_, 0, 9, 1, kGraphBytes, 1}; });
  add(cudaGraphNodeTypeHost, [&](auto& p) { p.host.fn = [](void*) {}; });
  add(cudaGraphNodeTypeEmpty, [](auto&) {});
  add(cudaGraphNodeTypeWaitEvent, [&](auto& p) { p.eventWait.event = event; });
  add(cudaGraphNodeTypeEventRecord, [&](auto& p) { p.eventRecord.event = event; });
  add(cudaGraphNodeTypeGraph, [&](auto& p) { p.graph.graph = child; });
  cudaGraphExec_t exec = Instantiate(graph_);
  LaunchAndWait(exec);
  EXPECT_EQ(4, First(device2_));
  EXPECT_EQ(0x09090909, First(device_));

  cudaGraphNodeParams params = Tagged(cudaGraphNodeTypeMemset);
  params.memset = {device_, 0, 1, 1, kGraphBytes, 1};
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeSetParams(kernel, &params));  // it is no fill
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecNodeSetParams(exec, kernel, &params));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddNode(&last, graph_, nullptr, nullptr, 0, nullptr));
  params = Tagged(static_cast<cudaGraphNodeType>(99));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddNode(&last, graph_, nullptr, nullptr, 0, &params));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(child));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(event));
}

TEST_F(GraphNode, EdgesCarryDataFromTheStart) {
  cudaGraphNode_t a = AddStep(graph_, {}, device_, 1, 1);
  cudaGraphEdgeData data = {cudaGraphKernelNodePortProgrammatic, 0, cudaGraphDependencyTypeProgrammatic, {}};
  cudaGraphNodeParams params = Tagged(cudaGraphNodeTypeEmpty);
  cudaGraphNode_t node = nullptr;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddNode(&node, graph_, &a, &data, 1, &params));
  EXPECT_EQ(nullptr, node);
  EXPECT_EQ(1u, CountNodes(graph_));
}

TEST_F(GraphNode, ConditionalsAreNotSupportedAndSaySo) {
  cudaGraphConditionalHandle handle = 0;
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphConditionalHandleCreate(&handle, graph_, 1, cudaGraphCondAssignDefault));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphConditionalHandleCreate(nullptr, graph_, 1, 0));
  cudaGraphNodeParams params = Tagged(cudaGraphNodeTypeConditional);
  params.conditional = {handle, cudaGraphCondTypeIf, 1, nullptr};
  cudaGraphNode_t node = nullptr;
  EXPECT_EQ(cudaErrorNotSupported, cudaGraphAddNode(&node, graph_, nullptr, nullptr, 0, &params));
  EXPECT_EQ(nullptr, node);
}

}  // namespace
}  // namespace gcap::testing
