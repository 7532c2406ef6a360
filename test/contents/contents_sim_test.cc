// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reading graphs, finding pointers and taking stand-ins, with each CUDA call and each allocation failing in turn.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "gcap/graph_contents.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/base/heap_failure.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/kernels/moving_kernels.h"

extern "C" {
#include "lib/contents/relocation.h"
}

namespace gcap {
namespace testing {
namespace {

constexpr size_t kBytes = 256;
// Of the two captures.
constexpr uint64_t kAddends[] = {1, 0x1234567890};
constexpr int kFills[] = {0, 0x41};

class ContentsSim : public ::testing::Test {
 protected:
  void SetUp() override {
    for (float*& memory : memory_) GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), kBytes));
    for (int i = 0; i < 2; ++i) graphs_[i] = Capture(memory_[i], kAddends[i], kFills[i]);
  }
  void TearDown() override {
    for (cudaGraph_t graph : graphs_) GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    for (float* memory : memory_) GCAP_EXPECT_CUDA(cudaFree(memory));
  }

  // A kernel, a copy, a fill, a host function, an allocation, and a child graph of the kernel.
  static cudaGraph_t Capture(float* memory, uint64_t addend, int fill) {
    const RawStream stream;
    cudaGraph_t graph = nullptr, child = nullptr;
    const auto add = [&] {
      float* x = memory;
      float* y = memory + 16;
      uint32_t count = 16;
      void* args[] = {&x, &y, &addend, &count};
      GCAP_EXPECT_CUDA(cudaLaunchKernel(reinterpret_cast<const void*>(gcap_kernel_add_scalar), dim3(1), dim3(32), args,
                                        0, stream.get()));
    };
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    add();
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream.get(), &child));
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    add();
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(memory + 32, memory, 32, cudaMemcpyDeviceToDevice, stream.get()));
    GCAP_EXPECT_CUDA(cudaMemsetAsync(memory + 8, fill, 32, stream.get()));
    GCAP_EXPECT_CUDA(cudaLaunchHostFunc(
        stream.get(), [](void*) {}, nullptr));
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
    cudaGraphNode_t nodes[4] = {}, node = nullptr;
    size_t count = 4;
    GCAP_EXPECT_CUDA(cudaGraphGetNodes(graph, nodes, &count));
    GCAP_EXPECT_CUDA(cudaGraphAddChildGraphNode(&node, graph, &nodes[3], 1, child));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(child));
    return graph;
  }
  std::vector<gcap_moving_buffer_t> Buffers() const {
    return {
        {"memory", reinterpret_cast<uintptr_t>(memory_[0]), kBytes, 256, {reinterpret_cast<uintptr_t>(memory_[1])}}};
  }

  static gcap_changing_value_t Value(const char* name, size_t bytes, uint64_t now, uint64_t stand_in) {
    gcap_changing_value_t value = {};
    value.name = name;
    value.bytes = bytes;
    value.now = BytesOf(now);
    value.stand_ins[0] = BytesOf(stand_in);
    return value;
  }
  static gcap_value_bytes_t BytesOf(uint64_t number) {
    gcap_value_bytes_t bytes = {};
    std::memcpy(bytes.at, &number, sizeof(number));
    return bytes;
  }
  // Of both kernels, and of the fill.
  static std::vector<gcap_changing_value_t> Values() {
    return {Value("addend", 8, kAddends[0], kAddends[1]), Value("fill", 4, kFills[0], kFills[1])};
  }

  // An executable of the first graph, and what moves it.
  struct Movable {
    explicit Movable(const ContentsSim& of)
        : buffers(of.Buffers()), address(buffers[0].stand_ins[0]), values{BytesOf(kAddends[0]), BytesOf(kFills[0])} {
      GCAP_EXPECT_OK(gcap_contents_read(of.graphs_[0], true, &real));
      GCAP_EXPECT_OK(gcap_contents_read(of.graphs_[1], true, &stand_in));
      const gcap_relocation_rehearsals_t rehearsals = {&stand_in, 1};
      const std::vector<gcap_changing_value_t> changing = Values();
      const gcap_relocation_changes_t changes = {buffers.data(), 1, changing.data(), changing.size()};
      GCAP_EXPECT_OK(gcap_relocation_create(&real, &rehearsals, &changes, &relocation));
      GCAP_EXPECT_CUDA(cudaGraphInstantiate(&exec, of.graphs_[0], 0));
    }
    Movable(const Movable&) = delete;
    Movable& operator=(const Movable&) = delete;
    ~Movable() {
      GCAP_EXPECT_CUDA(cudaGraphExecDestroy(exec));
      gcap_relocation_destroy(relocation);
      gcap_contents_free(&real);
      gcap_contents_free(&stand_in);
    }
    gcap_status_t Move(bool* out_torn) {
      return gcap_relocation_move(relocation, &exec, &address, values.data(), out_torn);
    }
    void SetValues(uint64_t addend, uint64_t fill) { values = {BytesOf(addend), BytesOf(fill)}; }

    std::vector<gcap_moving_buffer_t> buffers;
    uintptr_t address;
    std::vector<gcap_value_bytes_t> values;  // as they are now, at first
    gcap_contents_t real = {}, stand_in = {};
    gcap_relocation_t* relocation = nullptr;
    cudaGraphExec_t exec = nullptr;
  };

  float* memory_[2] = {};
  cudaGraph_t graphs_[2] = {};
};

// What cannot be read of a node is unknown, and no failure, where the nodes themselves can be listed.
TEST_F(ContentsSim, AFailedQuestionLeavesTheAnswerUnknown) {
  const Walked walked = WalkFaults([this](Fault& fault) {
    const Handles before = LiveHandles();
    gcap_contents_t contents = {};
    const Outcome outcome = fault.During([&] { return gcap_contents_read(graphs_[0], true, &contents); });
    if (!outcome.ok()) {
      EXPECT_TRUE(fault.Explains(outcome)) << outcome.message;
      EXPECT_EQ(contents.nodes, nullptr);
    } else {
      size_t unknown = 0, hidden = 0;
      for (size_t i = 0; i < contents.count; ++i) {
        const gcap_contents_node_t& node = contents.nodes[i];
        hidden += node.type == cudaGraphNodeTypeGraph && !node.is_known;  // its one node is not listed
        EXPECT_TRUE(node.type != cudaGraphNodeTypeGraph || node.has_arguments == node.is_known);
        unknown += !node.has_arguments || (node.type == cudaGraphNodeTypeKernel && !node.is_known);
      }
      EXPECT_EQ(contents.count, 6u - hidden);
      // The last parameter is the one of which nothing more is told.
      EXPECT_LE(unknown, fault.hit() ? 1u : 0u) << fault.function();
    }
    gcap_contents_free(&contents);
    fault.ExpectNothingLeft(before);
  });
  EXPECT_EQ(walked.functions.count("cudaGraphGetNodes"), 1u);
  EXPECT_EQ(walked.functions.count("cuGraphKernelNodeGetParams"), 1u);
}

// The parameters of a function are those of each of its nodes, and the edges of a graph come at once.
TEST_F(ContentsSim, WhatNodesHaveInCommonIsAskedOnce) {
  constexpr size_t kNodes = 64, kSplitArguments = 4, kTableArguments = 2;
  const RawStream stream;
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  for (uint32_t i = 0; i < kNodes; ++i) {
    uint32_t low = i, high = ~i, count = 2 * i;
    float* y = memory_[0] + i;
    void* split[] = {&low, &y, &high, &count};
    void* table[] = {&y, &count};
    const bool is_split = i % 2 == 0;
    GCAP_EXPECT_CUDA(cudaLaunchKernel(is_split ? reinterpret_cast<const void*>(gcap_kernel_add_split)
                                               : reinterpret_cast<const void*>(gcap_kernel_add_table),
                                      dim3(1), dim3(32), is_split ? split : table, 0, stream.get()));
  }
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
  const uint64_t params = gcap_sim_calls("cuFuncGetParamInfo"), edges = gcap_sim_calls("cudaGraphGetEdges");
  gcap_contents_t contents = {};
  GCAP_ASSERT_OK(gcap_contents_read(graph, true, &contents));
  // Each function is asked for its parameters, and for the one behind the last.
  EXPECT_EQ(gcap_sim_calls("cuFuncGetParamInfo") - params, kSplitArguments + 1 + kTableArguments + 1);
  EXPECT_EQ(gcap_sim_calls("cudaGraphGetEdges") - edges, 2u);
  ASSERT_EQ(contents.count, kNodes);
  for (uint32_t i = 0; i < kNodes; ++i) {
    const gcap_contents_node_t& node = contents.nodes[i];
    EXPECT_TRUE(node.has_arguments);
    ASSERT_EQ(node.num_parts, i % 2 == 0 ? kSplitArguments : kTableArguments);
    const gcap_contents_part_t& last = contents.parts[node.first_part + node.num_parts - 1];
    ASSERT_EQ(last.bytes, sizeof(uint32_t));
    uint32_t count = 0;
    std::memcpy(&count, contents.bytes + node.begin + last.offset, sizeof(count));
    EXPECT_EQ(count, 2 * i);
    ASSERT_EQ(node.num_dependencies, i == 0 ? 0u : 1u);
    if (i == 0) continue;
    EXPECT_EQ(contents.dependencies[node.first_dependency].node, i - 1);
  }
  gcap_contents_free(&contents);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

// The first call lists the first graph's nodes, a later one the second's.
TEST_F(ContentsSim, ADiffThatFailedHasNoDifferences) {
  const Walked walked = WalkFaults([this](Fault& fault) {
    size_t count = 77;
    const Outcome outcome =
        fault.During([&] { return gcap_graph_diff(graphs_[0], graphs_[1], nullptr, nullptr, &count); });
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    EXPECT_TRUE(outcome.ok() || count == 0) << fault.function();
  });
  EXPECT_EQ(walked.functions.count("cudaGraphGetNodes"), 1u);
}

// A graph that allocates, fills and frees memory of its own.
cudaGraph_t CaptureOfOwnMemory() {
  const RawStream stream;
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_CUDA(cudaMallocAsync(&memory, 4096, stream.get()));
  GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, 0, 16, stream.get()));
  GCAP_EXPECT_CUDA(cudaFreeAsync(memory, stream.get()));
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
  return graph;
}

// Contents may lack what the driver does not tell; notes may not, which would take the graph's memory for nobody's.
TEST_F(ContentsSim, NotesOfAllocationsThatTheDriverDoesNotTellAreRefused) {
  cudaGraph_t graph = CaptureOfOwnMemory();
  const Walked walked = WalkFaults([graph](Fault& fault) {
    gcap_graph_notes_t* notes = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_graph_notes_create(graph, nullptr, nullptr, &notes); });
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    EXPECT_EQ(notes != nullptr, outcome.ok());
    size_t findings = 77;
    if (outcome.ok()) {
      GCAP_EXPECT_OK(gcap_graph_audit(notes, nullptr, nullptr, &findings));
      EXPECT_EQ(findings, 0u) << fault.function();
    }
    gcap_graph_notes_destroy(notes);
  });
  EXPECT_EQ(walked.functions.count("cudaGraphMemAllocNodeGetParams"), 1u);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(ContentsSim, AllocationsThatFindNoHostMemoryAreNotRead) {
  cudaGraph_t graph = CaptureOfOwnMemory();
  for (int failed = 0, hits = 1; hits > 0; ++failed) {
    ASSERT_LT(failed, 100);
    gcap_contents_t contents = {};
    Outcome outcome(nullptr);
    {
      const HeapFailure no_memory(1, failed);
      outcome = Outcome(gcap_contents_read(graph, true, &contents));
      hits = no_memory.hits();
    }
    EXPECT_EQ(outcome.code, hits > 0 ? GCAP_RESOURCE_EXHAUSTED : GCAP_OK) << outcome.message;
    gcap_contents_free(&contents);
  }
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

// It comes and goes with the launches.
TEST_F(ContentsSim, TheMemoryOfTheGraphsOwnNodesIsNotLookedAt) {
  cudaGraph_t graph = CaptureOfOwnMemory();
  const uint64_t looks = gcap_sim_calls("cuPointerGetAttributes");
  gcap_graph_notes_t* notes = nullptr;
  GCAP_ASSERT_OK(gcap_graph_notes_create(graph, nullptr, nullptr, &notes));
  GCAP_EXPECT_OK(gcap_graph_audit(notes, nullptr, nullptr, nullptr));
  EXPECT_EQ(gcap_sim_calls("cuPointerGetAttributes"), looks);
  gcap_graph_notes_destroy(notes);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(ContentsSim, ARelocationOfWhatIsUnknownIsRefused) {
  (void)WalkFaults([this](Fault& fault) {
    const auto buffers = Buffers();
    gcap_contents_t real = {}, stand_in = {};
    GCAP_ASSERT_OK(gcap_contents_read(graphs_[1], true, &stand_in));
    const Outcome read = fault.During([&] { return gcap_contents_read(graphs_[0], true, &real); });
    if (read.ok()) {
      gcap_relocation_t* relocation = nullptr;
      const gcap_relocation_rehearsals_t rehearsals = {&stand_in, 1};
      const std::vector<gcap_changing_value_t> values = Values();
      const gcap_relocation_changes_t changes = {buffers.data(), 1, values.data(), values.size()};
      const Outcome made(gcap_relocation_create(&real, &rehearsals, &changes, &relocation));
      if (made.ok()) {
        EXPECT_EQ(relocation->num_words, 7u) << fault.function() << ": two kernels, a copy and a fill";
        EXPECT_EQ(relocation->num_value_words, 3u) << fault.function() << ": two kernels and a fill";
      } else {
        EXPECT_TRUE(fault.hit());
        EXPECT_STREQ(gcap_code_name(made.code), "FAILED_PRECONDITION") << made.message;
      }
      gcap_relocation_destroy(relocation);
    }
    gcap_contents_free(&real);
    gcap_contents_free(&stand_in);
  });
}

// Every allocation fails once, and then twice in a row.
TEST_F(ContentsSim, WithoutHostMemoryNothingIsLost) {
  for (const int count : {1, 2}) {
    int failed = 0;
    for (bool hit = true; hit; ++failed) {
      const long blocks = LiveBlocks();
      const auto buffers = Buffers();
      const auto values = Values();
      gcap_contents_t real = {}, stand_in = {};
      gcap_relocation_t* relocation = nullptr;
      gcap_graph_notes_t* notes = nullptr;
      gcap_status_t status = nullptr;
      {
        const HeapFailure no_memory(count, failed);
        status = gcap_contents_read(graphs_[0], true, &real);
        if (status == nullptr) status = gcap_contents_read(graphs_[1], true, &stand_in);
        const gcap_relocation_rehearsals_t rehearsals = {&stand_in, 1};
        const gcap_relocation_changes_t changes = {buffers.data(), 1, values.data(), values.size()};
        if (status == nullptr) status = gcap_relocation_create(&real, &rehearsals, &changes, &relocation);
        if (status == nullptr) status = gcap_graph_notes_create(graphs_[0], nullptr, nullptr, &notes);
        hit = no_memory.hits() > 0;
      }
      const Outcome outcome(status);
      if (hit) {
        EXPECT_STREQ(gcap_code_name(outcome.code), "RESOURCE_EXHAUSTED") << outcome.message;
      } else {
        EXPECT_TRUE(outcome.ok()) << outcome.message;
      }
      gcap_graph_notes_destroy(notes);
      gcap_relocation_destroy(relocation);
      gcap_contents_free(&real);
      gcap_contents_free(&stand_in);
      EXPECT_EQ(LiveBlocks(), blocks) << "with allocation " << failed << " failing";
    }
    EXPECT_GT(failed, 10) << "no allocation failed";
  }
}

// The simulator stops a thread without a context that sets a kernel node, as the driver crashes.
TEST_F(ContentsSim, AThreadThatMadeNoCallYetMovesAGraph) {
  Movable graph(*this);
  bool torn = true;
  std::thread([&] { GCAP_EXPECT_OK(graph.Move(&torn)); }).join();
  EXPECT_FALSE(torn);
  EXPECT_EQ(graph.address, graph.buffers[0].address);
}

// What the graph does with memory in which each float is 3: adds in 16 floats behind the first 16, copies the first 8
// behind those, fills 8 from the ninth on, and adds once more.
std::vector<float> Expected(uint64_t addend, int fill) {
  std::vector<float> floats(kBytes / sizeof(float), 3);
  const float added = static_cast<float>(addend & 0xff);
  std::memset(&floats[8], fill, 32);
  for (int i = 0; i < 16; ++i) floats[16 + i] = floats[i] + added;
  return floats;
}

// Each node is set once, whether a pointer, a value or both are other ones, or all are as they were.
TEST_F(ContentsSim, AMoveSetsEachNodeOnceOrNone) {
  constexpr size_t kWords = kBytes / sizeof(float);
  int moved = 0;
  const Walked walked = WalkFaults([&](Fault& fault) {
    Movable graph(*this);
    graph.SetValues(7, 0x40);
    bool torn = true;
    const Outcome outcome = fault.During([&] { return graph.Move(&torn); });
    EXPECT_EQ(outcome.ok(), !fault.hit()) << fault.function();
    EXPECT_FALSE(torn);
    EXPECT_EQ(graph.relocation->buffers[0].address,
              outcome.ok() ? graph.buffers[0].stand_ins[0] : graph.buffers[0].address);
    if (outcome.ok()) {
      EXPECT_EQ(graph.address, graph.buffers[0].address);
      EXPECT_EQ(std::memcmp(graph.values[0].at, BytesOf(kAddends[0]).at, 8), 0);
      EXPECT_EQ(std::memcmp(graph.values[1].at, BytesOf(kFills[0]).at, 8), 0);
    }
    // It works there and nowhere else.
    const std::vector<float> before(kWords, 3);
    std::vector<float> after[2] = {before, before};
    for (float* memory : memory_) GCAP_EXPECT_CUDA(cudaMemcpy(memory, before.data(), kBytes, cudaMemcpyDefault));
    const RawStream stream;
    GCAP_EXPECT_CUDA(cudaGraphLaunch(graph.exec, stream.get()));
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(stream.get()));
    for (int i = 0; i < 2; ++i) {
      GCAP_EXPECT_CUDA(cudaMemcpy(after[i].data(), memory_[i], kBytes, cudaMemcpyDefault));
    }
    EXPECT_EQ(after[outcome.ok() ? 1 : 0], outcome.ok() ? Expected(7, 0x40) : Expected(1, 0));
    EXPECT_EQ(after[outcome.ok() ? 0 : 1], before);
    moved += outcome.ok();
  });
  EXPECT_EQ(moved, 1);
  EXPECT_EQ(walked.calls, 5u) << "for the thread's context, two kernels, a copy and a fill";
}

TEST_F(ContentsSim, OnlyNodesThatReadWhatIsAnotherOneAreSet) {
  Movable graph(*this);
  graph.address = 0;
  const auto calls_of = [&](uint64_t addend, uint64_t fill) {
    graph.SetValues(addend, fill);
    bool torn = true;
    const uint64_t calls = gcap_sim_calls_for_faults();
    GCAP_EXPECT_OK(graph.Move(&torn));
    EXPECT_FALSE(torn);
    return gcap_sim_calls_for_faults() - calls;
  };
  EXPECT_EQ(calls_of(kAddends[0], kFills[0]), 1u) << "for the thread's context";
  EXPECT_EQ(calls_of(7, kFills[0]), 3u) << "two kernels";
  EXPECT_EQ(calls_of(7, 0x40), 2u) << "a fill";
  EXPECT_EQ(calls_of(7, 0x40), 1u);
  EXPECT_EQ(calls_of(9, 0x42), 4u);
}

TEST_F(ContentsSim, ABufferWithoutANewAddressStays) {
  Movable graph(*this);
  graph.address = 0;
  bool torn = true;
  const uint64_t calls = gcap_sim_calls_for_faults();
  GCAP_EXPECT_OK(graph.Move(&torn));
  EXPECT_EQ(gcap_sim_calls_for_faults() - calls, 1u) << "for the thread's context";
  EXPECT_FALSE(torn);
  EXPECT_EQ(graph.relocation->buffers[0].address, graph.buffers[0].address);
}

// A graph that cannot be set back is torn.
TEST_F(ContentsSim, AMoveThatCannotBeUndoneSaysSo) {
  int torn_ones = 0;
  (void)WalkFaults(
      [&](Fault& fault) {
        Movable graph(*this);
        bool torn = false;
        const Outcome outcome = fault.During([&] { return graph.Move(&torn); });
        EXPECT_EQ(outcome.ok(), !fault.hit()) << fault.function();
        EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
        EXPECT_EQ(torn, fault.hit() && !fault.Is("cuCtxGetCurrent")) << fault.function();
        torn_ones += torn;
      },
      Reach::kAllAfter);
  EXPECT_EQ(torn_ones, 4) << "two kernels, a copy and a fill";
}

TEST_F(ContentsSim, AllocationNodesCountWithTheirBytes) {
  const RawStream stream;
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_CUDA(cudaMallocAsync(&memory, 4096, stream.get()));
  GCAP_EXPECT_CUDA(cudaFreeAsync(memory, stream.get()));
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream.get(), &graph));
  cudaGraphNode_t node = nullptr;
  GCAP_EXPECT_CUDA(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, graphs_[0]));
  gcap_contents_t contents = {};
  GCAP_EXPECT_OK(gcap_contents_read(graph, /*with_arguments=*/false, &contents));
  EXPECT_EQ(contents.allocated_bytes, 4096u);
  EXPECT_EQ(contents.num_top, 3u);
  EXPECT_EQ(contents.num_kernels, 2u) << "of the child, and of its child";
  gcap_contents_free(&contents);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(ContentsSim, StandInsAreTakenAndGivenBackOrNamed) {
  for (const bool is_memory : {false, true}) {
    (void)WalkFaults([&](Fault& fault) {
      const Handles before = LiveHandles();
      gcap_moving_buffer_t buffer = {"", 4096, 4096, 256, {}};
      gcap_layout_t layout = {};
      GCAP_ASSERT_OK(gcap_layout_create(&buffer, 1, &layout));
      gcap_stand_ins_t range = {};
      const Outcome outcome = fault.During([&] {
        gcap_status_t status = gcap_stand_ins_create(&buffer, &layout, 0, -1, is_memory, &range);
        EXPECT_EQ(status == nullptr, range.base != 0) << "one failure, and what was taken is kept";
        if (status != nullptr) return status;
        return gcap_stand_ins_destroy(&range);
      });
      EXPECT_EQ(outcome.ok(), !fault.hit()) << fault.function();
      EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
      // What could not be given back can be tried again.
      GCAP_EXPECT_OK(gcap_stand_ins_destroy(&range));
      gcap_layout_free(&layout);
      EXPECT_EQ(LiveHandles(), before);
    });
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
