// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Edges and nodes of graphs, by hand: what is listed, added, removed, refused, and found again in a clone.
#include <algorithm>

#include "test/sim/graph_fixture.h"

namespace gcap::testing {
namespace {

using GraphEdge = GraphTest;
using Nodes = std::vector<cudaGraphNode_t>;

constexpr cudaGraphEdgeData kProgrammatic = {
    cudaGraphKernelNodePortProgrammatic, 0, cudaGraphDependencyTypeProgrammatic, {}};

Nodes DependenciesOf(cudaGraphNode_t node) {
  size_t count = 0;
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetDependencies(node, nullptr, nullptr, &count));
  Nodes nodes(count);
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetDependencies(node, nodes.data(), nullptr, &count));
  return nodes;
}

Nodes DependentsOf(cudaGraphNode_t node) {
  size_t count = 0;
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetDependentNodes(node, nullptr, nullptr, &count));
  Nodes nodes(count);
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetDependentNodes(node, nodes.data(), nullptr, &count));
  return nodes;
}

TEST_F(GraphEdge, BothEndsKnowAnEdge) {
  cudaGraphNode_t a = AddEmpty(graph_, {});
  cudaGraphNode_t b = AddEmpty(graph_, {a});
  cudaGraphNode_t c = AddEmpty(graph_, {b, a});
  EXPECT_EQ(Nodes({b, a}), DependenciesOf(c));
  EXPECT_EQ(Nodes({b, c}), DependentsOf(a));
  EXPECT_EQ(Nodes(), DependenciesOf(a));
  EXPECT_EQ(3u, CountEdges(graph_));
}

TEST_F(GraphEdge, ListsStopAtTheRoomAndClearTheRest) {
  cudaGraphNode_t a = AddEmpty(graph_, {});
  cudaGraphNode_t b = AddEmpty(graph_, {});
  cudaGraphNode_t c = AddEmpty(graph_, {a, b});
  cudaGraphNode_t nodes[4] = {c, c, c, c};
  size_t count = 1;
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetDependencies(c, nodes, nullptr, &count));
  EXPECT_EQ(1u, count);
  EXPECT_EQ(a, nodes[0]);
  EXPECT_EQ(c, nodes[1]);
  count = 4;
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetDependencies(c, nodes, nullptr, &count));
  EXPECT_EQ(2u, count);
  EXPECT_EQ(b, nodes[1]);
  EXPECT_EQ(nullptr, nodes[2]);
  EXPECT_EQ(nullptr, nodes[3]);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeGetDependencies(nullptr, nodes, nullptr, &count));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeGetDependencies(c, nodes, nullptr, nullptr));
  cudaGraphEdgeData data[4];
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeGetDependencies(c, nullptr, data, &count));
}

// The answers of the record, graph.build.
TEST_F(GraphEdge, AddAndRemoveAsMeasured) {
  cudaGraphNode_t a = AddEmpty(graph_, {});
  cudaGraphNode_t b = AddEmpty(graph_, {a});
  cudaGraphNode_t c = AddEmpty(graph_, {b});
  cudaGraph_t strange;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&strange, 0));
  cudaGraphNode_t foreign = AddEmpty(strange, {});
  auto add = [&](cudaGraphNode_t from, cudaGraphNode_t to) {
    return cudaGraphAddDependencies(graph_, &from, &to, nullptr, 1);
  };
  auto remove = [&](cudaGraphNode_t from, cudaGraphNode_t to) {
    return cudaGraphRemoveDependencies(graph_, &from, &to, nullptr, 1);
  };
  EXPECT_EQ(cudaErrorInvalidValue, add(a, b));  // is there already
  EXPECT_EQ(cudaSuccess, add(a, c));
  EXPECT_EQ(3u, CountEdges(graph_));
  EXPECT_EQ(cudaErrorInvalidValue, add(a, a));
  EXPECT_EQ(cudaErrorInvalidValue, add(foreign, c));
  EXPECT_EQ(cudaErrorInvalidValue, add(a, foreign));
  EXPECT_EQ(cudaErrorInvalidValue, add(nullptr, c));
  EXPECT_EQ(cudaSuccess, cudaGraphAddDependencies(graph_, nullptr, nullptr, nullptr, 0));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddDependencies(graph_, nullptr, nullptr, nullptr, 1));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddDependencies(nullptr, &a, &c, nullptr, 1));
  EXPECT_EQ(cudaSuccess, remove(a, c));
  EXPECT_EQ(cudaErrorInvalidValue, remove(a, c));
  EXPECT_EQ(2u, CountEdges(graph_));
  cudaGraphNode_t twice[] = {a, a};
  cudaGraphNode_t node = nullptr;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&node, graph_, twice, 2));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddEmptyNode(&node, graph_, &foreign, 1));
  EXPECT_EQ(nullptr, node);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(strange));
}

TEST_F(GraphEdge, SeveralEdgesComeAllOrNotAtAll) {
  cudaGraphNode_t a = AddEmpty(graph_, {});
  cudaGraphNode_t b = AddEmpty(graph_, {});
  cudaGraphNode_t c = AddEmpty(graph_, {});
  cudaGraphNode_t from[] = {a, b, c}, to[] = {b, c, c};  // the last is an edge to itself
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphAddDependencies(graph_, from, to, nullptr, 3));
  EXPECT_EQ(0u, CountEdges(graph_));
  EXPECT_EQ(Nodes(), DependentsOf(a));
  EXPECT_EQ(cudaSuccess, cudaGraphAddDependencies(graph_, from, to, nullptr, 2));
  cudaGraphNode_t from2[] = {a, a}, to2[] = {b, c};  // the last is not there
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphRemoveDependencies(graph_, from2, to2, nullptr, 2));
  EXPECT_EQ(2u, CountEdges(graph_));
}

TEST_F(GraphEdge, ACycleIsFoundByInstantiation) {
  cudaGraphNode_t before = AddEmpty(graph_, {});
  cudaGraphNode_t a = AddEmpty(graph_, {before});
  cudaGraphNode_t b = AddEmpty(graph_, {a});
  cudaGraphNode_t after = AddEmpty(graph_, {b});
  ASSERT_EQ(cudaSuccess, cudaGraphAddDependencies(graph_, &b, &a, nullptr, 1));
  auto untouched = reinterpret_cast<cudaGraphExec_t>(&graph_);
  cudaGraphExec_t exec = untouched;
  cudaGraphInstantiateParams params = {};
  params.errNode_out = after;
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphInstantiateWithParams(&exec, graph_, &params));
  EXPECT_EQ(cudaGraphInstantiateInvalidStructure, params.result_out);
  EXPECT_TRUE(params.errNode_out == a || params.errNode_out == b);
  EXPECT_EQ(untouched, exec);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphInstantiate(&exec, graph_, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphRemoveDependencies(graph_, &b, &a, nullptr, 1));
  EXPECT_EQ(cudaSuccess, cudaGraphInstantiateWithParams(&exec, graph_, &params));
  EXPECT_EQ(cudaGraphInstantiateSuccess, params.result_out);
  EXPECT_EQ(nullptr, params.errNode_out);
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphEdge, ACycleInAHeldGraphIsFoundToo) {
  cudaGraph_t child;
  ASSERT_EQ(cudaSuccess, cudaGraphCreate(&child, 0));
  cudaGraphNode_t a = AddEmpty(child, {});
  cudaGraphNode_t b = AddEmpty(child, {a});
  ASSERT_EQ(cudaSuccess, cudaGraphAddDependencies(child, &b, &a, nullptr, 1));
  cudaGraphNode_t holder;
  ASSERT_EQ(cudaSuccess, cudaGraphAddChildGraphNode(&holder, graph_, nullptr, 0, child));
  cudaGraphExec_t exec;
  cudaGraphInstantiateParams params = {};
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphInstantiateWithParams(&exec, graph_, &params));
  EXPECT_EQ(cudaGraphInstantiateInvalidStructure, params.result_out);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(child));
}

// Edges may lead from younger nodes to older ones; the order of launches is that of the edges.
TEST_F(GraphEdge, OrderIsThatOfEdgesNotOfCreation) {
  cudaGraphNode_t last = AddStep(graph_, {}, device_, 10, 3);
  cudaGraphNode_t first = AddStep(graph_, {}, device_, 0, 7);
  ASSERT_EQ(cudaSuccess, cudaGraphAddDependencies(graph_, &first, &last, nullptr, 1));
  cudaGraphExec_t exec = Instantiate(graph_);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    gcap_sim_set_seed(seed);
    LaunchAndWait(exec);
    EXPECT_EQ(73, First(device_)) << "seed " << seed;
  }
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
}

TEST_F(GraphEdge, ANodeTakesItsEdgesAlong) {
  cudaGraphNode_t a = AddFill(graph_, {}, device_, 1);
  cudaGraphNode_t b = AddFill(graph_, {a}, device_, 2);
  cudaGraphNode_t c = AddFill(graph_, {a, b}, device_, 3);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroyNode(b));
  EXPECT_EQ(2u, CountNodes(graph_));
  EXPECT_EQ(1u, CountEdges(graph_));
  EXPECT_EQ(Nodes({a}), DependenciesOf(c));
  EXPECT_EQ(Nodes({c}), DependentsOf(a));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphDestroyNode(nullptr));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroyNode(a));
  cudaGraphNode_t left;
  size_t count = 1;
  EXPECT_EQ(cudaSuccess, cudaGraphGetRootNodes(graph_, &left, &count));
  EXPECT_EQ(1u, count);
  EXPECT_EQ(c, left);
}

TEST_F(GraphEdge, DataIsAskedForOrTheQueryIsLossy) {
  cudaGraphNode_t a = AddStep(graph_, {}, device_, 1, 1);
  cudaGraphNode_t b = AddStep(graph_, {}, device_, 1, 1);
  ASSERT_EQ(cudaSuccess, cudaGraphAddDependencies(graph_, &a, &b, &kProgrammatic, 1));
  cudaGraphNode_t from = nullptr, to = nullptr;
  cudaGraphEdgeData data = {};
  size_t count = 1;
  EXPECT_EQ(cudaErrorLossyQuery, cudaGraphGetEdges(graph_, &from, &to, nullptr, &count));
  EXPECT_EQ(cudaSuccess, cudaGraphGetEdges(graph_, &from, &to, &data, &count));
  EXPECT_EQ(a, from);
  EXPECT_EQ(b, to);
  EXPECT_EQ(cudaGraphKernelNodePortProgrammatic, data.from_port);
  EXPECT_EQ(cudaGraphDependencyTypeProgrammatic, data.type);
  EXPECT_EQ(cudaErrorLossyQuery, cudaGraphNodeGetDependencies(b, &from, nullptr, &count));
  EXPECT_EQ(cudaErrorLossyQuery, cudaGraphNodeGetDependentNodes(a, &to, nullptr, &count));
  EXPECT_EQ(cudaSuccess, cudaGraphNodeGetDependentNodes(a, &to, &data, &count));
  EXPECT_EQ(b, to);
  // Measured: an edge is known by its ends alone.
  EXPECT_EQ(cudaSuccess, cudaGraphRemoveDependencies(graph_, &a, &b, nullptr, 1));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphRemoveDependencies(graph_, &a, &b, &kProgrammatic, 1));
  EXPECT_EQ(0u, CountEdges(graph_));
}

TEST_F(GraphEdge, OnlyKernelsHavePorts) {
  cudaGraphNode_t kernel = AddStep(graph_, {}, device_, 1, 1);
  cudaGraphNode_t kernel2 = AddStep(graph_, {}, device_, 1, 1);
  cudaGraphNode_t fill = AddFill(graph_, {}, device_, 1);
  const unsigned char launched = cudaGraphKernelNodePortLaunchCompletion, programmatic = 1;
  struct {
    cudaGraphNode_t from, to;
    cudaGraphEdgeData data;
    cudaError_t code;
  } cases[] = {
      {kernel, kernel2, kProgrammatic, cudaSuccess},
      {kernel, kernel2, {launched, 0, programmatic, {}}, cudaSuccess},
      {kernel, fill, {launched, 0, 0, {}}, cudaSuccess},
      {kernel, fill, kProgrammatic, cudaErrorInvalidValue},                  // a fill cannot wait by itself
      {fill, kernel, kProgrammatic, cudaErrorInvalidValue},                  // nor start others early
      {fill, kernel, {launched, 0, 0, {}}, cudaErrorInvalidValue},           //
      {kernel, kernel2, {0, 0, programmatic, {}}, cudaErrorInvalidValue},    // such an edge needs a port
      {kernel, kernel2, {1, 0, 0, {}}, cudaErrorInvalidValue},               // and that port such an edge
      {kernel, kernel2, {3, 0, 0, {}}, cudaErrorInvalidValue},               //
      {kernel, kernel2, {0, 1, 0, {}}, cudaErrorInvalidValue},               // no node has ports to enter by
      {kernel, kernel2, {0, 0, 7, {}}, cudaErrorInvalidValue},               //
      {kernel, kernel2, {0, 0, 0, {0, 0, 0, 0, 1}}, cudaErrorInvalidValue},  //
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    auto& c = cases[i];
    ASSERT_EQ(c.code, cudaGraphAddDependencies(graph_, &c.from, &c.to, &c.data, 1)) << i;
    if (c.code == cudaSuccess) {
      ASSERT_EQ(cudaSuccess, cudaGraphRemoveDependencies(graph_, &c.from, &c.to, &c.data, 1)) << i;
    }
  }
}

TEST_F(GraphEdge, ACloneLeadsBackToItsNodes) {
  cudaGraphNode_t a = AddFill(graph_, {}, device_, 1);
  cudaGraphNode_t b = AddFill(graph_, {a}, device_, 2);
  cudaGraphNode_t gone = AddEmpty(graph_, {b});
  cudaGraph_t clone;
  ASSERT_EQ(cudaSuccess, cudaGraphClone(&clone, graph_));
  cudaGraphNode_t young = AddEmpty(graph_, {});
  cudaGraphNode_t a2 = nullptr, b2 = nullptr, found = nullptr;
  EXPECT_EQ(cudaSuccess, cudaGraphNodeFindInClone(&a2, a, clone));
  EXPECT_EQ(cudaSuccess, cudaGraphNodeFindInClone(&b2, b, clone));
  EXPECT_NE(a, a2);
  EXPECT_EQ(Nodes({a2}), DependenciesOf(b2));
  EXPECT_EQ(cudaSuccess, cudaGraphNodeFindInClone(&found, gone, clone));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroyNode(found));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeFindInClone(&found, gone, clone));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeFindInClone(&found, young, clone));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeFindInClone(&found, a2, graph_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeFindInClone(&found, a, graph_));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGraphNodeFindInClone(nullptr, a, clone));
  EXPECT_EQ(cudaSuccess, cudaGraphNodeFindInClone(&found, b, clone));
  EXPECT_EQ(b2, found);
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(clone));
}

}  // namespace
}  // namespace gcap::testing
