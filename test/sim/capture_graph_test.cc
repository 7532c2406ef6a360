// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Captures and their graphs: into a graph that exists, with dependencies given by hand, with edges that carry data, and
// what need not be joined.
#include "test/sim/graph_fixture.h"
#include "test/sim/with_action.h"

namespace gcap::testing {
namespace {

using Nodes = std::vector<cudaGraphNode_t>;

class CaptureGraph : public GraphTest {
 protected:
  cudaError_t BeginInto(cudaGraph_t graph, const Nodes& deps, const cudaGraphEdgeData* data = nullptr) {
    return cudaStreamBeginCaptureToGraph(stream_, graph, deps.data(), data, deps.size(),
                                         cudaStreamCaptureModeThreadLocal);
  }

  void Begin() { ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal)); }

  cudaGraph_t End() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
    return graph;
  }

  // What the stream's next node will depend on.
  static Nodes DependenciesOf(cudaStream_t stream) {
    cudaStreamCaptureStatus status;
    const cudaGraphNode_t* nodes = nullptr;
    const cudaGraphEdgeData* data = nullptr;
    size_t count = 0;
    EXPECT_EQ(cudaSuccess, cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, &data, &count));
    EXPECT_EQ(cudaStreamCaptureStatusActive, status);
    return Nodes(nodes, nodes + count);
  }

  void Fork(cudaStream_t from, cudaStream_t to) {
    cudaEvent_t event;
    ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    ASSERT_EQ(cudaSuccess, cudaEventRecord(event, from));
    ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(to, event, 0));
    ASSERT_EQ(cudaSuccess, cudaEventDestroy(event));
  }
};

TEST_F(CaptureGraph, GoesIntoAGraphThatExists) {
  cudaGraphNode_t first = AddStep(graph_, {}, device_, 0, 1);
  ASSERT_EQ(cudaSuccess, BeginInto(graph_, {first}));
  cudaGraph_t under_way = nullptr;
  cudaStreamCaptureStatus status;
  EXPECT_EQ(cudaSuccess, cudaStreamGetCaptureInfo(stream_, &status, nullptr, &under_way, nullptr, nullptr, nullptr));
  EXPECT_EQ(graph_, under_way);
  EXPECT_EQ(Nodes({first}), DependenciesOf(stream_));
  EXPECT_EQ(cudaErrorIllegalState, cudaGraphDestroy(graph_));
  EXPECT_EQ(cudaErrorIllegalState, cudaGraphDestroyNode(first));
  ASSERT_EQ(cudaSuccess, Step(device_, 10, 2, stream_));
  EXPECT_EQ(graph_, End());
  EXPECT_EQ(2u, CountNodes(graph_));
  EXPECT_EQ(1u, CountEdges(graph_));
  cudaGraphExec_t exec = Instantiate(graph_);
  LaunchAndWait(exec);
  EXPECT_EQ(12, First(device_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(CaptureGraph, TheCallersGraphGoesWithAFailure) {
  ASSERT_EQ(cudaSuccess, BeginInto(graph_, {}));
  ASSERT_EQ(cudaSuccess, Step(device_, 0, 1, stream_));
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream_));
  cudaGraph_t graph = graph_;
  EXPECT_EQ(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(nullptr, graph);
  EXPECT_DEATH(CountNodes(graph_), "was destroyed");
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&graph_, 0));
}

TEST_F(CaptureGraph, TheCallersGraphNeedsNoPlaceAtTheEnd) {
  ASSERT_EQ(cudaSuccess, BeginInto(graph_, {}));
  ASSERT_EQ(cudaSuccess, Step(device_, 0, 1, stream_));
  EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, nullptr));
  EXPECT_EQ(1u, CountNodes(graph_));
}

TEST_F(CaptureGraph, BadBeginsAreRefused) {
  cudaGraphNode_t node = AddEmpty(graph_, {});
  cudaGraph_t other;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&other, 0));
  auto begin = [&](cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* deps, size_t count, int mode) {
    return cudaStreamBeginCaptureToGraph(stream, graph, deps, nullptr, count, static_cast<cudaStreamCaptureMode>(mode));
  };
  EXPECT_EQ(cudaErrorInvalidValue, begin(stream_, nullptr, nullptr, 0, 0));
  EXPECT_EQ(cudaErrorInvalidValue, begin(stream_, graph_, nullptr, 1, 0));
  EXPECT_EQ(cudaErrorInvalidValue, begin(stream_, other, &node, 1, 0));
  EXPECT_EQ(cudaErrorInvalidValue, begin(stream_, graph_, nullptr, 0, 7));
  EXPECT_EQ(cudaErrorStreamCaptureUnsupported, begin(nullptr, graph_, nullptr, 0, 0));
  ASSERT_EQ(cudaSuccess, BeginInto(graph_, {}));
  EXPECT_EQ(cudaErrorIllegalState, begin(stream_, other, nullptr, 0, 0));
  EXPECT_EQ(cudaErrorIllegalState, begin(other_, graph_, nullptr, 0, 0));  // another capture has it
  EXPECT_EQ(graph_, End());
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(other));
}

TEST_F(CaptureGraph, DependenciesAreAddedAndSet) {
  Begin();
  ASSERT_EQ(cudaSuccess, Step(device_, 0, 1, stream_));
  cudaGraphNode_t a = DependenciesOf(stream_)[0];
  ASSERT_EQ(cudaSuccess, Step(device_, 1, 1, stream_));
  cudaGraphNode_t b = DependenciesOf(stream_)[0];
  auto update = [&](const Nodes& nodes, unsigned int flags) {
    return cudaStreamUpdateCaptureDependencies(stream_, const_cast<cudaGraphNode_t*>(nodes.data()), nullptr,
                                               nodes.size(), flags);
  };
  EXPECT_EQ(cudaSuccess, update({a, b}, cudaStreamAddCaptureDependencies));
  EXPECT_EQ(Nodes({b, a}), DependenciesOf(stream_));
  EXPECT_EQ(cudaSuccess, update({a}, cudaStreamSetCaptureDependencies));
  EXPECT_EQ(Nodes({a}), DependenciesOf(stream_));
  EXPECT_EQ(cudaErrorInvalidValue, update({a}, 2));
  EXPECT_EQ(cudaErrorInvalidValue, update({nullptr}, 0));
  EXPECT_EQ(cudaErrorInvalidValue, update({AddEmpty(graph_, {})}, 0));
  EXPECT_EQ(cudaErrorIllegalState, cudaStreamUpdateCaptureDependencies(other_, nullptr, nullptr, 0, 0));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(End()));
}

TEST_F(CaptureGraph, ManyWaitsForOneEventAreOneDependency) {
  cudaEvent_t event;
  ASSERT_EQ(cudaSuccess, cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  Begin();
  Fork(stream_, other_);
  ASSERT_EQ(cudaSuccess, Step(device_, 0, 1, other_));
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event, other_));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(cudaSuccess, cudaStreamWaitEvent(stream_, event, 0));
  EXPECT_EQ(DependenciesOf(other_), DependenciesOf(stream_));
  ASSERT_EQ(cudaSuccess, Step(device_, 1, 1, stream_));
  cudaGraph_t graph = End();
  EXPECT_EQ(1u, CountEdges(graph));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(event));
}

TEST_F(CaptureGraph, EdgesCarryDataThroughACapture) {
  const cudaGraphEdgeData data = {cudaGraphKernelNodePortProgrammatic, 0, cudaGraphDependencyTypeProgrammatic, {}};
  Begin();
  ASSERT_EQ(cudaSuccess, Step(device_, 0, 1, stream_));
  cudaGraphNode_t node = DependenciesOf(stream_)[0];
  ASSERT_EQ(cudaSuccess, cudaStreamUpdateCaptureDependencies(stream_, &node, &data, 1, 1));
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t* nodes;
  const cudaGraphEdgeData* got = nullptr;
  size_t count = 0;
  EXPECT_EQ(cudaErrorLossyQuery, cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, &nodes, nullptr, &count));
  EXPECT_EQ(cudaErrorInvalidValue, cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, nullptr, &got, &count));
  EXPECT_EQ(cudaSuccess, cudaStreamGetCaptureInfo(stream_, &status, nullptr, nullptr, &nodes, &got, &count));
  ASSERT_EQ(1u, count);
  EXPECT_EQ(cudaGraphDependencyTypeProgrammatic, got[0].type);
  ASSERT_EQ(cudaSuccess, Step(device_, 1, 1, stream_));
  cudaGraph_t graph = End();
  EXPECT_EQ(2u, CountNodes(graph));
  cudaGraphNode_t from, to;
  cudaGraphEdgeData edge = {};
  count = 1;
  EXPECT_EQ(cudaErrorLossyQuery, cudaGraphGetEdges(graph, &from, &to, nullptr, &count));
  EXPECT_EQ(cudaSuccess, cudaGraphGetEdges(graph, &from, &to, &edge, &count));
  EXPECT_EQ(cudaGraphKernelNodePortProgrammatic, edge.from_port);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

// A stream has to be joined for its work, unless somebody took that work out of its hands.
TEST_F(CaptureGraph, WhatIsTakenOutByHandNeedNotBeJoined) {
  Begin();
  Fork(stream_, other_);
  ASSERT_EQ(cudaSuccess, Step(device_, 0, 1, other_));
  ASSERT_EQ(cudaSuccess, cudaStreamUpdateCaptureDependencies(other_, nullptr, nullptr, 0, 1));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(End()));

  Begin();  // joined, but then the edge goes
  Fork(stream_, other_);
  ASSERT_EQ(cudaSuccess, Step(device_, 0, 1, other_));
  Fork(other_, stream_);
  cudaGraphNode_t from = DependenciesOf(other_)[0];
  ASSERT_EQ(cudaSuccess, Step(device2_, 0, 1, stream_));
  cudaGraphNode_t to = DependenciesOf(stream_)[0];
  cudaGraph_t graph;
  cudaStreamCaptureStatus status;
  ASSERT_EQ(cudaSuccess, cudaStreamGetCaptureInfo(stream_, &status, nullptr, &graph, nullptr, nullptr, nullptr));
  ASSERT_EQ(cudaSuccess, cudaGraphRemoveDependencies(graph, &from, &to, nullptr, 1));
  EXPECT_EQ(graph, End());
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));

  Begin();  // and the rule itself still holds
  Fork(stream_, other_);
  ASSERT_EQ(cudaSuccess, Step(device_, 0, 1, other_));
  EXPECT_EQ(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream_, &graph));
}

TEST_F(CaptureGraph, ALargeGraphCostsEachNodeTheSame) {
  gcap_test::WithAction quiet(GCAP_SIM_CHECK_RACE, GCAP_SIM_ACTION_OFF);
  // 20,000 nodes, of which one has 10,000 dependencies: quadratic work would take minutes.
  constexpr int kWide = 10000;
  Begin();
  Nodes nodes;
  for (int i = 0; i < kWide; ++i) {
    ASSERT_EQ(cudaSuccess, cudaStreamUpdateCaptureDependencies(stream_, nullptr, nullptr, 0, 1));
    ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 1, 4, stream_));
    nodes.push_back(DependenciesOf(stream_)[0]);
  }
  ASSERT_EQ(cudaSuccess, cudaStreamUpdateCaptureDependencies(stream_, nodes.data(), nullptr, nodes.size(), 0));
  for (int i = 0; i < kWide; ++i) ASSERT_EQ(cudaSuccess, cudaMemsetAsync(device_, 1, 4, stream_));
  cudaGraph_t graph = End();
  EXPECT_EQ(size_t{2 * kWide}, CountNodes(graph));
  EXPECT_EQ(size_t{2 * kWide - 1}, CountEdges(graph));
  cudaGraphExec_t exec = Instantiate(graph);
  for (int i = 0; i < 10; ++i) ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecUpdate(exec, graph, nullptr));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

}  // namespace
}  // namespace gcap::testing
