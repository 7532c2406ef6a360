// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Updates of whole executables: each result with its error nodes, what pairing follows, and that a failed update
// changes nothing. The results of the record, update.by_hand and update.by_capture, among them.
#include "test/sim/graph_fixture.h"

namespace gcap::testing {
namespace {

class GraphUpdate : public GraphTest {
 protected:
  void TearDown() override {
    for (cudaGraph_t graph : graphs_) EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
    GraphTest::TearDown();
  }

  cudaGraph_t NewGraph() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphCreate(&graph, 0));
    graphs_.push_back(graph);
    return graph;
  }

  void Expect(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResult result, cudaGraphNode_t node = nullptr,
              cudaGraphNode_t from = nullptr) {
    cudaGraphExecUpdateResultInfo info = {};
    EXPECT_EQ(result == cudaGraphExecUpdateSuccess ? cudaSuccess : cudaErrorGraphExecUpdateFailure,
              cudaGraphExecUpdate(exec, graph, &info));
    EXPECT_EQ(result, info.result);
    EXPECT_EQ(node, info.errorNode);
    EXPECT_EQ(from, info.errorFromNode);
  }

  cudaGraphNode_t AddCopy(cudaGraph_t graph, const std::vector<cudaGraphNode_t>& deps, void* dst, const void* src,
                          size_t bytes, cudaMemcpyKind kind) {
    cudaGraphNode_t node = nullptr;
    EXPECT_EQ(cudaSuccess, cudaGraphAddMemcpyNode1D(&node, graph, deps.data(), deps.size(), dst, src, bytes, kind));
    return node;
  }

  std::vector<cudaGraph_t> graphs_;
};

TEST_F(GraphUpdate, TakesWhatMayChange) {
  cudaGraphNode_t fill = AddFill(graph_, {}, device_, 1);
  AddStep(graph_, {AddCopy(graph_, {fill}, device2_, device_, kGraphBytes, cudaMemcpyDeviceToDevice)}, device2_, 1, 0);
  cudaGraphExec_t exec = Instantiate(graph_);
  cudaGraph_t other = NewGraph();
  cudaMemsetParams params = {device_, 0, 0x0203, 2, 8, 1};
  ASSERT_EQ(cudaSuccess, cudaGraphAddMemsetNode(&fill, other, nullptr, 0, &params));
  cudaGraphNode_t copy = AddCopy(other, {fill}, device2_ + 4, device_, 16, cudaMemcpyDeviceToDevice);
  StepArgs args(device2_, 1, 1, &g_other_step_stub);
  args.params.gridDim.x = 7;
  cudaGraphNode_t node;
  ASSERT_EQ(cudaSuccess, cudaGraphAddKernelNode(&node, other, &copy, 1, &args.params));
  Expect(exec, other, cudaGraphExecUpdateSuccess);
  LaunchAndWait(exec);
  EXPECT_EQ(1, First(device2_));
  EXPECT_EQ(0x02030203 + 1, First(device2_ + 4));
  EXPECT_EQ(cudaSuccess, cudaGraphExecUpdate(exec, graph_, nullptr));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphUpdate, RefusesOtherKindsOfMemory) {
  AddCopy(graph_, {}, device2_, device_, 16, cudaMemcpyDeviceToDevice);
  cudaGraphExec_t exec = Instantiate(graph_);
  int pageable[4] = {};
  struct {
    void* dst;
    const void* src;
    cudaMemcpyKind kind;
  } cases[] = {{device2_, pinned_, cudaMemcpyHostToDevice},
               {device2_, pageable, cudaMemcpyHostToDevice},
               {pinned_, device_, cudaMemcpyDeviceToHost},
               {device2_, device_, cudaMemcpyDefault}};
  for (const auto& c : cases) {
    cudaGraph_t other = NewGraph();
    Expect(exec, other, cudaGraphExecUpdateErrorTopologyChanged);  // still empty
    cudaGraphNode_t node = AddCopy(other, {}, c.dst, c.src, 16, c.kind);
    Expect(exec, other, cudaGraphExecUpdateErrorParametersChanged, node);
  }
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

// A fresh graph comes with fresh buffers, when those of the first are gone.
TEST_F(GraphUpdate, MemoryOfTheFirstGraphMayBeGone) {
  int *first, *second;
  ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&first), 16));
  ASSERT_EQ(cudaSuccess, cudaMalloc(reinterpret_cast<void**>(&second), 16));
  AddCopy(graph_, {}, first, device_, 16, cudaMemcpyDeviceToDevice);
  cudaGraphExec_t exec = Instantiate(graph_);
  ASSERT_EQ(cudaSuccess, cudaFree(first));
  cudaGraph_t other = NewGraph();
  AddCopy(other, {}, second, device_, 16, cudaMemcpyDeviceToDevice);
  Expect(exec, other, cudaGraphExecUpdateSuccess);
  EXPECT_EQ(cudaSuccess, cudaFree(second));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphUpdate, RefusesFillsWithMoreRows) {
  AddFill(graph_, {}, device_, 1);
  cudaGraphExec_t exec = Instantiate(graph_);
  cudaGraph_t other = NewGraph();
  cudaMemsetParams params = {device_, 16, 1, 1, 16, 2};
  cudaGraphNode_t node;
  ASSERT_EQ(cudaSuccess, cudaGraphAddMemsetNode(&node, other, nullptr, 0, &params));
  Expect(exec, other, cudaGraphExecUpdateErrorParametersChanged, node);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphUpdate, RefusesAnotherTopology) {
  AddCopy(graph_, {AddFill(graph_, {}, device_, 1)}, device2_, device_, 16, cudaMemcpyDeviceToDevice);
  cudaGraphExec_t exec = Instantiate(graph_);
  auto copy_into = [&](cudaGraph_t graph, const std::vector<cudaGraphNode_t>& deps) {
    return AddCopy(graph, deps, device2_, device_, 16, cudaMemcpyDeviceToDevice);
  };

  cudaGraph_t fewer = NewGraph(), more = NewGraph(), reversed = NewGraph(), loose = NewGraph(), another = NewGraph();
  AddFill(fewer, {}, device_, 1);
  Expect(exec, fewer, cudaGraphExecUpdateErrorTopologyChanged);
  AddEmpty(more, {copy_into(more, {AddFill(more, {}, device_, 1)})});
  Expect(exec, more, cudaGraphExecUpdateErrorTopologyChanged);
  cudaGraphNode_t last = AddFill(reversed, {copy_into(reversed, {})}, device_, 1);
  Expect(exec, reversed, cudaGraphExecUpdateErrorNodeTypeChanged, last);
  cudaGraphNode_t first = AddFill(loose, {}, device_, 1);
  Expect(exec, loose, cudaGraphExecUpdateErrorTopologyChanged);
  copy_into(loose, {});
  Expect(exec, loose, cudaGraphExecUpdateErrorTopologyChanged, first);  // an exit more; they are paired last first
  last = AddEmpty(another, {AddFill(another, {}, device_, 1)});
  Expect(exec, another, cudaGraphExecUpdateErrorNodeTypeChanged, last);

  LaunchAndWait(exec);  // as it was
  EXPECT_EQ(0x01010101, First(device2_));
  cudaGraphExecUpdateResultInfo info = {cudaGraphExecUpdateErrorNotSupported, last, last};
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecUpdate(exec, nullptr, &info));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecUpdate(nullptr, graph_, &info));
  EXPECT_EQ(cudaGraphExecUpdateErrorNotSupported, info.result);
  EXPECT_EQ(last, info.errorNode);
  EXPECT_EQ(last, info.errorFromNode);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphUpdate, NamesTheEdgeThatDoesNotMatch) {
  // Two nodes between a first and a last: a diamond, against a chain with a bypass of the same counts.
  auto build = [&](cudaGraph_t graph, bool diamond) {
    cudaGraphNode_t a = AddEmpty(graph, {});
    cudaGraphNode_t b = AddEmpty(graph, {a});
    cudaGraphNode_t c = AddEmpty(graph, {diamond ? a : b});
    return std::vector<cudaGraphNode_t>{a, b, c, AddEmpty(graph, {b, c})};
  };
  build(graph_, true);
  cudaGraphExec_t exec = Instantiate(graph_);
  cudaGraph_t other = NewGraph();
  auto nodes = build(other, false);
  cudaGraphExecUpdateResultInfo info = {};
  EXPECT_EQ(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, other, &info));
  EXPECT_EQ(cudaGraphExecUpdateErrorTopologyChanged, info.result);
  // Only the node c has an edge that cannot be paired: it comes from b where a was expected.
  EXPECT_EQ(nodes[2], info.errorNode);
  EXPECT_EQ(nodes[1], info.errorFromNode);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphUpdate, RefusesACycle) {
  cudaGraphNode_t a = AddEmpty(graph_, {});
  cudaGraphNode_t b = AddEmpty(graph_, {a});
  AddEmpty(graph_, {});
  cudaGraphExec_t exec = Instantiate(graph_);
  ASSERT_EQ(cudaSuccess, cudaGraphAddDependencies(graph_, &b, &a, nullptr, 1));
  EXPECT_EQ(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, graph_, nullptr));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphUpdate, OtherDataOnAnEdgeIsAnotherTopology) {
  cudaGraphNode_t a = AddStep(graph_, {}, device_, 1, 1);
  cudaGraphNode_t b = AddStep(graph_, {a}, device_, 1, 1);
  cudaGraphExec_t exec = Instantiate(graph_);
  cudaGraphEdgeData data = {cudaGraphKernelNodePortProgrammatic, 0, cudaGraphDependencyTypeProgrammatic, {}};
  ASSERT_EQ(cudaSuccess, cudaGraphRemoveDependencies(graph_, &a, &b, nullptr, 1));
  ASSERT_EQ(cudaSuccess, cudaGraphAddDependencies(graph_, &a, &b, &data, 1));
  Expect(exec, graph_, cudaGraphExecUpdateErrorTopologyChanged, b, a);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphUpdate, CooperativenessAndUsedPrioritiesStay) {
  auto build = [&](cudaGraph_t graph, cudaLaunchAttributeID id, int v) {
    cudaGraphNode_t node = AddStep(graph, {}, device_, 1, 1);
    cudaLaunchAttributeValue value = {};
    (id == cudaKernelNodeAttributePriority ? value.priority : value.cooperative) = v;
    EXPECT_EQ(cudaSuccess, cudaGraphKernelNodeSetAttribute(node, id, &value));
    return node;
  };
  build(graph_, cudaKernelNodeAttributePriority, 0);
  cudaGraphExec_t plain = Instantiate(graph_);
  cudaGraphExec_t strict = Instantiate(graph_, cudaGraphInstantiateFlagUseNodePriority);
  cudaGraph_t urgent = NewGraph(), cooperative = NewGraph();
  cudaGraphNode_t node = build(urgent, cudaKernelNodeAttributePriority, -1);
  Expect(plain, urgent, cudaGraphExecUpdateSuccess);
  Expect(strict, urgent, cudaGraphExecUpdateErrorAttributesChanged, node);
  node = build(cooperative, cudaKernelNodeAttributeCooperative, 1);
  Expect(plain, cooperative, cudaGraphExecUpdateErrorAttributesChanged, node);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(plain));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(strict));
}

// What counts is the order within each stream, not that of the streams' calls among one another.
TEST_F(GraphUpdate, CallsOfOtherStreamsMayComeInAnotherOrder) {
  cudaEvent_t fork, join;
  ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  auto capture = [&](bool kernel_first, bool one_more) {
    EXPECT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    EXPECT_EQ(cudaSuccess, Step(device_, 0, 1, stream_));
    EXPECT_EQ(cudaSuccess, cudaEventRecord(fork, stream_));
    EXPECT_EQ(cudaSuccess, cudaStreamWaitEvent(other_, fork, 0));
    int before = kernel_first ? 1 : 0, after = 1 - before + (one_more ? 1 : 0);
    for (int i = 0; i < before; ++i) EXPECT_EQ(cudaSuccess, Step(device_, 1, 1, stream_));
    EXPECT_EQ(cudaSuccess, cudaMemsetAsync(device2_, 1, kGraphBytes, other_));  // another type of node
    for (int i = 0; i < after; ++i) EXPECT_EQ(cudaSuccess, Step(device_, 1, 1, stream_));
    EXPECT_EQ(cudaSuccess, cudaEventRecord(join, other_));
    EXPECT_EQ(cudaSuccess, cudaStreamWaitEvent(stream_, join, 0));
    EXPECT_EQ(cudaSuccess, Step(device2_, 1, 0, stream_));
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
    graphs_.push_back(graph);
    return graph;
  };
  cudaGraphExec_t exec = Instantiate(capture(true, false));
  Expect(exec, capture(true, false), cudaGraphExecUpdateSuccess);
  Expect(exec, capture(false, false), cudaGraphExecUpdateSuccess);
  Expect(exec, capture(true, true), cudaGraphExecUpdateErrorTopologyChanged);
  LaunchAndWait(exec);
  EXPECT_EQ(2, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(fork));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(join));
}

// After an update callers still name the nodes of the first graph.
TEST_F(GraphUpdate, NodesOfTheFirstGraphStillLead) {
  cudaGraphNode_t node = AddStep(graph_, {}, device_, 0, 1);
  cudaGraphExec_t exec = Instantiate(graph_);
  cudaGraph_t other = NewGraph();
  cudaGraphNode_t stranger = AddStep(other, {}, device_, 0, 2);
  Expect(exec, other, cudaGraphExecUpdateSuccess);
  StepArgs args(device_, 0, 3);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphExecKernelNodeSetParams(exec, stranger, &args.params));
  EXPECT_EQ(cudaSuccess, cudaGraphExecKernelNodeSetParams(exec, node, &args.params));
  LaunchAndWait(exec);
  EXPECT_EQ(3, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphUpdate, ObjectsOfTheNewGraphReplaceThoseOfTheOld) {
  int destroyed[2] = {};
  auto retain = [&](cudaGraph_t graph, int* count) {
    cudaUserObject_t object;
    EXPECT_EQ(cudaSuccess,
              cudaUserObjectCreate(
                  &object, count, [](void* p) { ++*static_cast<int*>(p); }, 1, cudaUserObjectNoDestructorSync));
    EXPECT_EQ(cudaSuccess, cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  };
  cudaGraph_t first = NewGraph(), second = NewGraph();
  retain(first, &destroyed[0]);
  retain(second, &destroyed[1]);
  cudaGraphExec_t exec = Instantiate(first);
  Expect(exec, second, cudaGraphExecUpdateSuccess);
  for (cudaGraph_t graph : {first, second}) EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  graphs_.clear();
  EXPECT_EQ(1, destroyed[0]);
  EXPECT_EQ(0, destroyed[1]);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(1, destroyed[1]);
}

}  // namespace
}  // namespace gcap::testing
