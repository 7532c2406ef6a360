// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What gcap_graph_diff tells of graphs whose nodes are others, or elsewhere: numbers, types, dependencies, child
// graphs.
#include <utility>

#include "test/contents/diff_rig.h"

namespace gcap {
namespace testing {
namespace {

TEST_F(Diff, TellsTheNumberOfNodesFirst) {
  const Work two = [&](cudaStream_t stream) {
    Add()(stream);
    Add()(stream);
  };
  EXPECT_EQ(TextsOf(Add(), two), (Texts{"the graph: nodes: 1 -> 2"}));
  EXPECT_EQ(TextsOf(two, Add()), (Texts{"the graph: nodes: 2 -> 1"}));
  // Up to the first node of another type.
  const Work other = [&](cudaStream_t stream) {
    Add({}, 2)(stream);
    GCAP_EXPECT_CUDA(cudaMemsetAsync(memory_[0], 1, 4, stream));
    Add({}, 2)(stream);
  };
  const Texts texts = TextsOf(two, other);
  ASSERT_EQ(texts.size(), 3u) << ::testing::PrintToString(texts);
  EXPECT_EQ(texts[0], "the graph: nodes: 2 -> 3");
  EXPECT_NE(texts[1].find("node 0 of 3, kernel gcap_kernel_add_scalar: argument 2"), std::string::npos);
  EXPECT_EQ(texts[2], "node 1 of 3, memset: type: kernel -> memset");
  const Work three = [&](cudaStream_t stream) {
    two(stream);
    Add()(stream);
  };
  const Work four = [&](cudaStream_t stream) {
    other(stream);
    Add({}, 2)(stream);
  };
  EXPECT_EQ(TextsOf(three, four).size(), 3u) << ::testing::PrintToString(TextsOf(three, four));
}

TEST_F(Diff, ComparesTheNodesBehindOneThatDiffers) {
  const auto work = [&](bool is_fill, uint64_t addend) {
    return [=](cudaStream_t stream) {
      if (is_fill) {
        GCAP_EXPECT_CUDA(cudaMemsetAsync(memory_[0], 1, 4, stream));
      } else {
        Add()(stream);
      }
      Add({}, addend)(stream);
    };
  };
  const Texts texts = TextsOf(work(false, 1), work(true, 2));
  ASSERT_EQ(texts.size(), 2u) << ::testing::PrintToString(texts);
  EXPECT_NE(texts[1].find("node 1 of 2, kernel gcap_kernel_add_scalar: argument 2: 0x1 -> 0x2"), std::string::npos);
}

// Three empty nodes behind one, with these edges among them.
std::unique_ptr<Graph> Edges(const std::vector<std::pair<int, int>>& edges) {
  auto graph = std::make_unique<Graph>();
  std::vector<cudaGraphNode_t> nodes(4);
  for (cudaGraphNode_t& node : nodes) GCAP_EXPECT_CUDA(cudaGraphAddEmptyNode(&node, graph->get(), nullptr, 0));
  for (const auto& [from, to] : edges) {
    GCAP_EXPECT_CUDA(cudaGraphAddDependencies(graph->get(), &nodes[from], &nodes[to], nullptr, 1));
  }
  return graph;
}

TEST_F(Diff, TellsDependenciesOfTheSameNumber) {
  EXPECT_EQ(TextsOf(*Edges({{0, 1}, {0, 2}, {1, 3}}), *Edges({{0, 1}, {0, 2}, {2, 3}})),
            (Texts{"node 3 of 4, empty: dependencies: 1 -> 2"}));
  EXPECT_EQ(TextsOf(*Edges({{0, 3}, {1, 3}}), *Edges({{1, 3}, {0, 3}})), Texts{}) << "in any order";
  EXPECT_EQ(TextsOf(*Edges({{0, 3}, {1, 3}}), *Edges({{0, 3}, {1, 3}, {2, 3}})),
            (Texts{"node 3 of 4, empty: dependencies: 0, 1 -> 0, 1, 2"}));
  EXPECT_EQ(TextsOf(*Edges({}), *Edges({{3, 0}})), (Texts{"node 0 of 4, empty: dependencies: none -> 3"}));
}

TEST_F(Diff, ManyDependenciesAreCompared) {
  constexpr size_t kMany = 100;
  const auto fan_in = [](size_t first) {
    auto graph = std::make_unique<Graph>();
    std::vector<cudaGraphNode_t> nodes(kMany);
    for (cudaGraphNode_t& node : nodes) GCAP_EXPECT_CUDA(cudaGraphAddEmptyNode(&node, graph->get(), nullptr, 0));
    cudaGraphNode_t last = nullptr;
    GCAP_EXPECT_CUDA(cudaGraphAddEmptyNode(&last, graph->get(), &nodes[first], kMany - 1));
    return graph;
  };
  EXPECT_EQ(TextsOf(*fan_in(0), *fan_in(0)), Texts{});
  const Texts texts = TextsOf(*fan_in(0), *fan_in(1));
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_EQ(texts[0].rfind("node 100 of 101, empty: dependencies: 0, 1, 2", 0), 0u) << texts[0];
}

// The driver tells of such an edge only if it is asked for all that the edge has.
TEST_F(Diff, TellsProgrammaticEdges) {
  const auto pair = [&](const cudaGraphEdgeData& edge) {
    auto graph = std::make_unique<Graph>();
    void* out = memory_[0];
    void* args[] = {&out};
    cudaKernelNodeParams params = {};
    params.func = const_cast<void*>(kCluster);
    params.gridDim = params.blockDim = dim3(1);
    params.kernelParams = args;
    cudaGraphNode_t nodes[2] = {};
    for (cudaGraphNode_t& node : nodes) {
      GCAP_EXPECT_CUDA(cudaGraphAddKernelNode(&node, graph->get(), nullptr, 0, &params));
    }
    GCAP_EXPECT_CUDA(cudaGraphAddDependencies(graph->get(), &nodes[0], &nodes[1], &edge, 1));
    return graph;
  };
  cudaGraphEdgeData plain = {}, programmatic = {};
  programmatic.from_port = cudaGraphKernelNodePortProgrammatic;
  programmatic.type = cudaGraphDependencyTypeProgrammatic;
  EXPECT_EQ(TextsOf(*pair(programmatic), *pair(programmatic)), Texts{});
  EXPECT_EQ(TextsOf(*pair(plain), *pair(programmatic)),
            (Texts{"node 1 of 2, kernel gcap_kernel_cluster_size: dependencies: 0 -> 0 (programmatic)"}));
}

TEST_F(Diff, TellsWhatIsInChildGraphs) {
  const auto outer = [&](uint64_t addend, int levels) {
    auto graph = std::make_unique<Graph>(Add({}, addend));
    for (int i = 0; i < levels; ++i) {
      auto around = std::make_unique<Graph>();
      cudaGraphNode_t node = nullptr;
      GCAP_EXPECT_CUDA(cudaGraphAddChildGraphNode(&node, around->get(), nullptr, 0, graph->get()));
      graph = std::move(around);
    }
    return graph;
  };
  EXPECT_EQ(TextsOf(*outer(1, 2), *outer(1, 2)), Texts{});
  EXPECT_EQ(TextsOf(*outer(1, 2), *outer(3, 2)), (Texts{"node 2 of 3, in the child graph of node 1, kernel "
                                                        "gcap_kernel_add_scalar: argument 2: 0x1 -> 0x3"}));
  EXPECT_EQ(TextsOf(*outer(1, 1), *outer(1, 2))[0], "the graph: nodes: 2 -> 3");
  // The same nodes, one of which is in the child and beside it.
  const auto pair = [](bool is_inside) {
    auto graph = std::make_unique<Graph>();
    const Graph child;
    cudaGraphNode_t node = nullptr;
    if (is_inside) {
      GCAP_EXPECT_CUDA(cudaGraphAddEmptyNode(&node, child.get(), nullptr, 0));
    }
    GCAP_EXPECT_CUDA(cudaGraphAddChildGraphNode(&node, graph->get(), nullptr, 0, child.get()));
    if (!is_inside) {
      GCAP_EXPECT_CUDA(cudaGraphAddEmptyNode(&node, graph->get(), nullptr, 0));
    }
    return graph;
  };
  EXPECT_EQ(TextsOf(*pair(true), *pair(false)), (Texts{"node 1 of 2, empty: parent: 0 -> -1"}));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
