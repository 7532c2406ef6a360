// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Why a graph does something else than a fresh capture of its work: what a node has otherwise, which nodes share memory
// without an order, and which memory a node is the first to use.

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "test/contents/diff_rig.h"

extern "C" {
#include "lib/contents/inner.h"
}

namespace gcap {
namespace testing {
namespace {

constexpr uint32_t kCount = kDiffBytes / sizeof(float);

// y = x + addend
void AddUp(cudaStream_t stream, const float* x, float* y, uint64_t addend = 1, unsigned grid = 1) {
  uint32_t count = kCount;
  void* args[] = {&x, &y, &addend, &count};
  GCAP_EXPECT_CUDA(cudaLaunchKernel(kAdd, dim3(grid), dim3(32), args, 0, stream));
}

void CopyTo(cudaStream_t stream, const float* x, float* y, size_t bytes = kDiffBytes) {
  GCAP_EXPECT_CUDA(cudaMemcpyAsync(y, x, bytes, cudaMemcpyDeviceToDevice, stream));
}

struct ReadGraph {
  explicit ReadGraph(const Graph& graph) {
    GCAP_EXPECT_OK(gcap_contents_read(graph.get(), /*with_arguments=*/true, &contents));
  }
  ReadGraph(const ReadGraph&) = delete;
  ReadGraph& operator=(const ReadGraph&) = delete;
  ~ReadGraph() { gcap_contents_free(&contents); }
  gcap_contents_t contents = {};
};

class Touches : public Diff {
 protected:
  float* X(int i) const { return memory_[i]; }

  static gcap_node_change_t ChangeOf(const Graph& now, const Graph& fresh, size_t node = 0) {
    const ReadGraph before(now), after(fresh);
    const gcap_block_finder_t finder = {};
    gcap_node_change_t change;
    GCAP_EXPECT_OK(gcap_contents_find_change(&before.contents, node, &after.contents, node, &finder, &change));
    return change;
  }

  // Two streams between a fork and a join.
  static Graph Forked(const std::function<void(cudaStream_t, cudaStream_t)>& work) {
    return Graph([&](cudaStream_t stream) {
      const RawStream other;
      Wait(other.get(), stream);
      work(stream, other.get());
      Wait(stream, other.get());
    });
  }
  static void Wait(cudaStream_t later, cudaStream_t earlier) {
    cudaEvent_t event = nullptr;
    GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    GCAP_EXPECT_CUDA(cudaEventRecord(event, earlier));
    GCAP_EXPECT_CUDA(cudaStreamWaitEvent(later, event, 0));
    GCAP_EXPECT_CUDA(cudaEventDestroy(event));
  }

  gcap_touches_subject_t Subject(const ReadGraph& read) {
    for (int i = 0; i < 3; ++i) {
      names_[i] = std::string(1, static_cast<char>('a' + i));
      named_[i] = {names_[i].c_str(), reinterpret_cast<uintptr_t>(X(i)), kDiffBytes};
    }
    gcap_touches_subject_t subject = {};
    subject.contents = &read.contents;
    subject.named = named_;
    subject.num_named = num_named_;
    subject.writes = [](void* user, size_t node, size_t index) {
      return static_cast<Touches*>(user)->written_.count({node, index}) != 0;
    };
    subject.user = this;
    return subject;
  }
  // "0 -> 1: buffer 'a'"; "" if all are in order.
  std::string UnorderedOf(const Graph& graph, size_t later = GCAP_CONTENTS_TOP) {
    const ReadGraph read(graph);
    const gcap_touches_subject_t subject = Subject(read);
    gcap_unordered_nodes_t nodes;
    bool found = false;
    GCAP_EXPECT_OK(gcap_contents_find_unordered(&subject, later, &nodes, &found));
    if (!found) return "";
    return std::to_string(nodes.earlier) + " -> " + std::to_string(nodes.later) + ": " + nodes.memory;
  }
  // "argument 1", or "".
  std::string FirstUseOf(const Graph& graph, size_t node) {
    const ReadGraph read(graph);
    const gcap_touches_subject_t subject = Subject(read);
    char place[64], memory[400];
    bool found = false;
    GCAP_EXPECT_OK(gcap_contents_find_first_use(&subject, node, place, memory, &found));
    return found ? place : "";
  }

  std::string names_[3];
  gcap_named_memory_t named_[3];
  size_t num_named_ = 3;
  std::set<std::pair<size_t, size_t>> written_;  // by a kernel: node, buffer
};

// --- Changes --------------------------------------------------------------------------------------------------------

TEST_F(Touches, OfTwoCapturesThatAreAlikeNothingChanged) {
  const auto work = [&](cudaStream_t stream) { AddUp(stream, X(0), X(1)); };
  EXPECT_EQ(ChangeOf(Graph(work), Graph(work)).kind, GCAP_CHANGE_NONE);
}

TEST_F(Touches, APointerThatIsAnotherOneIsTold) {
  const Graph now([&](cudaStream_t stream) { AddUp(stream, X(0), X(1), 1); });
  const Graph fresh([&](cudaStream_t stream) { AddUp(stream, X(0), X(2), 2); });
  const gcap_node_change_t change = ChangeOf(now, fresh);
  EXPECT_EQ(change.kind, GCAP_CHANGE_POINTER) << "before the value that differs too";
  EXPECT_STREQ(change.place, "argument 1");
  EXPECT_NE(std::string(change.now).find("buffer id"), std::string::npos) << change.now;
  EXPECT_STRNE(change.now, change.fresh);
}

TEST_F(Touches, AValueThatIsAnotherOneIsTold) {
  const Graph now([&](cudaStream_t stream) { AddUp(stream, X(0), X(1), 5); });
  const Graph fresh([&](cudaStream_t stream) { AddUp(stream, X(0), X(1), 7); });
  const gcap_node_change_t change = ChangeOf(now, fresh);
  EXPECT_EQ(change.kind, GCAP_CHANGE_VALUE);
  EXPECT_STREQ(change.place, "argument 2");
  EXPECT_STREQ(change.now, "0x5");
  EXPECT_STREQ(change.fresh, "0x7");
}

TEST_F(Touches, AGridIsAValue) {
  const Graph now([&](cudaStream_t stream) { AddUp(stream, X(0), X(1), 1, 1); });
  const Graph fresh([&](cudaStream_t stream) { AddUp(stream, X(0), X(1), 1, 2); });
  const gcap_node_change_t change = ChangeOf(now, fresh);
  EXPECT_EQ(change.kind, GCAP_CHANGE_VALUE);
  EXPECT_STREQ(change.place, "grid");
}

TEST_F(Touches, OfACopyTheSideIsTold) {
  const Graph now([&](cudaStream_t stream) { CopyTo(stream, X(0), X(1)); });
  const Graph fresh([&](cudaStream_t stream) { CopyTo(stream, X(2), X(1)); });
  const gcap_node_change_t change = ChangeOf(now, fresh);
  EXPECT_EQ(change.kind, GCAP_CHANGE_POINTER);
  EXPECT_STREQ(change.place, "the source");
}

// Of a kernel's word nobody knows that it was a pointer, once nothing is behind it.
TEST_F(Touches, MemoryOfACopyThatNobodyHasIsAChangeWithoutAFreshCapture) {
  float* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), kDiffBytes));
  const Graph graph([&](cudaStream_t stream) { CopyTo(stream, memory, X(1)); });
  const ReadGraph read(graph);
  const gcap_block_finder_t finder = {};
  gcap_node_change_t change;
  GCAP_EXPECT_OK(gcap_contents_find_change(&read.contents, 0, nullptr, 0, &finder, &change));
  EXPECT_EQ(change.kind, GCAP_CHANGE_NONE);
  GCAP_EXPECT_CUDA(cudaFree(memory));
  GCAP_EXPECT_OK(gcap_contents_find_change(&read.contents, 0, nullptr, 0, &finder, &change));
  EXPECT_EQ(change.kind, GCAP_CHANGE_POINTER);
  EXPECT_STREQ(change.place, "the source");
  EXPECT_STREQ(change.fresh, "");
}

// A copy from pageable memory is right, although the driver knows nothing of its source.
TEST_F(Touches, PageableMemoryOfTheHostIsNoChange) {
  static float source[64];
  const Graph graph([&](cudaStream_t stream) {
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(X(1), source, sizeof(source), cudaMemcpyHostToDevice, stream));
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(source, X(1), sizeof(source), cudaMemcpyDeviceToHost, stream));
  });
  const ReadGraph read(graph);
  const gcap_block_finder_t finder = {};
  for (size_t node = 0; node < 2; ++node) {
    gcap_node_change_t change;
    GCAP_EXPECT_OK(gcap_contents_find_change(&read.contents, node, nullptr, 0, &finder, &change));
    EXPECT_EQ(change.kind, GCAP_CHANGE_NONE) << change.place << ": " << change.now;
  }
}

// --- Order ----------------------------------------------------------------------------------------------------------

TEST_F(Touches, NodesOfOneStreamAreInOrder) {
  written_ = {{0, 1}, {1, 2}};
  const Graph graph([&](cudaStream_t stream) {
    AddUp(stream, X(0), X(1));
    AddUp(stream, X(1), X(2));
  });
  EXPECT_EQ(UnorderedOf(graph), "");
}

TEST_F(Touches, ReadOfWhatANodeBesideWritesHasNoOrder) {
  written_ = {{0, 1}, {1, 2}};
  const Graph graph = Forked([&](cudaStream_t stream, cudaStream_t other) {
    AddUp(other, X(0), X(1));
    AddUp(stream, X(1), X(2));
  });
  EXPECT_EQ(UnorderedOf(graph), "0 -> 1: buffer 'b'");
  EXPECT_EQ(UnorderedOf(graph, 1), "0 -> 1: buffer 'b'");
  EXPECT_EQ(UnorderedOf(graph, 0), "");
}

TEST_F(Touches, APathOverOthersIsAnOrder) {
  written_ = {{0, 1}, {2, 2}};
  const Graph graph = Forked([&](cudaStream_t stream, cudaStream_t other) {
    AddUp(other, X(0), X(1));
    Wait(stream, other);
    CopyTo(stream, X(0), X(2));
    AddUp(stream, X(1), X(2));
  });
  EXPECT_EQ(UnorderedOf(graph), "");
}

TEST_F(Touches, TwoReadersNeedNoOrder) {
  written_ = {{0, 1}, {1, 2}};
  const Graph graph = Forked([&](cudaStream_t stream, cudaStream_t other) {
    AddUp(other, X(0), X(1));
    AddUp(stream, X(0), X(2));
  });
  EXPECT_EQ(UnorderedOf(graph), "");
}

// A copy says what it reads and what it writes, and how much.
TEST_F(Touches, CopiesAreKnownByTheirRanges) {
  const size_t half = kDiffBytes / 2;
  const Graph apart = Forked([&](cudaStream_t stream, cudaStream_t other) {
    CopyTo(other, X(0), X(1), half);
    CopyTo(stream, X(0), X(1) + kCount / 2, half);
  });
  EXPECT_EQ(UnorderedOf(apart), "");
  const Graph across = Forked([&](cudaStream_t stream, cudaStream_t other) {
    CopyTo(other, X(0), X(1), half + 4);
    CopyTo(stream, X(0), X(1) + kCount / 2, half);
  });
  EXPECT_EQ(UnorderedOf(across), "0 -> 1: buffer 'b'");
  const Graph fill = Forked([&](cudaStream_t stream, cudaStream_t other) {
    GCAP_EXPECT_CUDA(cudaMemsetAsync(X(2), 0, kDiffBytes, other));
    CopyTo(stream, X(2), X(1));
  });
  EXPECT_EQ(UnorderedOf(fill), "0 -> 1: buffer 'c'");
}

// Of several earlier nodes the last is the one to wait for.
TEST_F(Touches, TheLastOfSeveralIsNamed) {
  written_ = {{0, 1}, {1, 1}, {2, 2}};
  const Graph graph = Forked([&](cudaStream_t stream, cudaStream_t other) {
    AddUp(other, X(0), X(1));
    AddUp(other, X(1), X(1));
    AddUp(stream, X(1), X(2));
  });
  EXPECT_EQ(UnorderedOf(graph), "1 -> 2: buffer 'b'");
}

// Two kernels may both read what has no name.
TEST_F(Touches, MemoryWithoutANameIsNoReason) {
  num_named_ = 1;
  const auto both = [&](cudaStream_t stream, cudaStream_t other) {
    AddUp(other, X(0), X(1));
    AddUp(stream, X(1), X(2));
  };
  EXPECT_EQ(UnorderedOf(Forked(both)), "");
}

TEST_F(Touches, SegmentsAreInOrder) {
  written_ = {{0, 1}, {1, 2}};
  const Graph first([&](cudaStream_t stream) { AddUp(stream, X(0), X(1)); });
  const Graph second([&](cudaStream_t stream) { AddUp(stream, X(1), X(2)); });
  const cudaGraph_t graphs[] = {first.get(), second.get()};
  const Graph nothing;
  ReadGraph read(nothing);
  gcap_contents_free(&read.contents);
  GCAP_ASSERT_OK(gcap_contents_read_all(graphs, 2, /*with_arguments=*/true, &read.contents));
  const gcap_touches_subject_t subject = Subject(read);
  gcap_unordered_nodes_t nodes;
  bool found = true;
  GCAP_EXPECT_OK(gcap_contents_find_unordered(&subject, GCAP_CONTENTS_TOP, &nodes, &found));
  EXPECT_FALSE(found);
}

// A node of a child graph is behind what its child is behind.
TEST_F(Touches, ChildGraphsAreWhereTheirNodesAre) {
  written_ = {{0, 1}, {2, 2}, {1, 2}};
  const Graph inner([&](cudaStream_t stream) { AddUp(stream, X(1), X(2)); });
  for (const bool is_behind : {true, false}) {
    const Graph graph([&](cudaStream_t stream) { AddUp(stream, X(0), X(1)); });
    cudaGraphNode_t first = nullptr, child = nullptr;
    size_t count = 1;
    GCAP_EXPECT_CUDA(cudaGraphGetNodes(graph.get(), &first, &count));
    GCAP_EXPECT_CUDA(
        cudaGraphAddChildGraphNode(&child, graph.get(), is_behind ? &first : nullptr, is_behind ? 1 : 0, inner.get()));
    EXPECT_EQ(UnorderedOf(graph), is_behind ? "" : "0 -> 2: buffer 'b'");
  }
}

// --- First uses -----------------------------------------------------------------------------------------------------

TEST_F(Touches, TheFirstUseOfMemoryWithoutANameIsTold) {
  num_named_ = 1;
  const Graph graph([&](cudaStream_t stream) {
    CopyTo(stream, X(0), X(1));
    AddUp(stream, X(2), X(1));
    AddUp(stream, X(2), X(0));
  });
  EXPECT_EQ(FirstUseOf(graph, 0), "") << "it has a name, or is only written";
  EXPECT_EQ(FirstUseOf(graph, 1), "argument 0");
  EXPECT_EQ(FirstUseOf(graph, 2), "");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
