// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What gcap_graph_diff tells of two graphs: nothing of equal ones, and each field that differs, once, by name.
#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gcap/graph_contents.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/kernels/device_kernels.h"
#include "test/support/kernels/moving_kernels.h"

namespace gcap {
namespace testing {
namespace {

const void* const kAdd = reinterpret_cast<const void*>(gcap_kernel_add_scalar);
const void* const kRelu = reinterpret_cast<const void*>(gcap_kernel_relu_f32);
const void* const kCluster = reinterpret_cast<const void*>(gcap_kernel_cluster_size);
constexpr size_t kBytes = 256;

// A graph that was captured.
class Graph {
 public:
  explicit Graph(const std::function<void(cudaStream_t)>& work) {
    const RawStream stream;
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    work(stream.get());
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(stream.get(), &graph_));
  }
  Graph() { GCAP_EXPECT_CUDA(cudaGraphCreate(&graph_, 0)); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { GCAP_EXPECT_CUDA(cudaGraphDestroy(graph_)); }
  cudaGraph_t get() const { return graph_; }

 private:
  cudaGraph_t graph_ = nullptr;
};

struct Launch {
  const void* kernel = kAdd;
  dim3 grid = dim3(1), block = dim3(32);
  size_t shared_bytes = 0;
  std::vector<cudaLaunchAttribute> attributes;
};

class Diff : public DeviceTest {
 protected:
  using Work = std::function<void(cudaStream_t)>;
  using Texts = std::vector<std::string>;

  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (float*& memory : memory_) GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), kBytes));
  }
  void TearDown() override {
    for (float* memory : memory_) GCAP_EXPECT_CUDA(cudaFree(memory));
    DeviceTest::TearDown();
  }

  // "node 0 of 1, kernel x: grid: 1x1x1 -> 2x1x1" for each difference.
  static Texts TextsOf(const Graph& before, const Graph& after) {
    Texts texts;
    size_t count = 77;
    const auto add = [](void* user, const gcap_graph_difference_t* d) {
      EXPECT_EQ(d->struct_size, sizeof(*d));
      const std::string where = d->node_text;
      if (where != "the graph") {
        EXPECT_EQ(where.rfind("node " + std::to_string(d->node) + " of ", 0), 0u) << where;
      }
      static_cast<Texts*>(user)->push_back(where + ": " + d->field + ": " + d->before + " -> " + d->after);
    };
    GCAP_EXPECT_OK(gcap_graph_diff(before.get(), after.get(), add, &texts, &count));
    EXPECT_EQ(count, texts.size());
    size_t silent = 77;
    GCAP_EXPECT_OK(gcap_graph_diff(before.get(), after.get(), nullptr, nullptr, &silent));
    EXPECT_EQ(silent, count);
    return texts;
  }
  static Texts TextsOf(const Work& before, const Work& after) { return TextsOf(Graph(before), Graph(after)); }

  // Expects one difference, whose text ends like this.
  static void ExpectOne(const Work& before, const Work& after, const std::string& end) {
    const Texts texts = TextsOf(before, after);
    ASSERT_EQ(texts.size(), 1u) << ::testing::PrintToString(texts);
    EXPECT_TRUE(texts[0].size() >= end.size() && texts[0].compare(texts[0].size() - end.size(), end.size(), end) == 0)
        << texts[0];
  }

  template <typename... Args>
  static void LaunchWith(cudaStream_t stream, const Launch& launch, Args... args) {
    void* pointers[] = {&args...};
    cudaLaunchConfig_t config = {};
    config.gridDim = launch.grid;
    config.blockDim = launch.block;
    config.dynamicSmemBytes = launch.shared_bytes;
    config.stream = stream;
    std::vector<cudaLaunchAttribute> attributes = launch.attributes;
    config.attrs = attributes.data();
    config.numAttrs = static_cast<unsigned>(attributes.size());
    GCAP_EXPECT_CUDA(cudaLaunchKernelExC(&config, launch.kernel, pointers));
  }
  Work Add(const Launch& launch = {}, uint64_t addend = 1) const {
    return [=](cudaStream_t stream) { LaunchWith(stream, launch, memory_[0], memory_[1], addend, uint32_t{8}); };
  }

  float* memory_[2] = {};
};

// --- Equal graphs ---------------------------------------------------------------------------------------------------

void Nothing(void*) {}

TEST_F(Diff, EqualGraphsHaveNone) {
  const RawStream side;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  const Work all = [&](cudaStream_t stream) {
    Add()(stream);
    GCAP_EXPECT_CUDA(cudaEventRecord(event, stream));
    GCAP_EXPECT_CUDA(cudaStreamWaitEvent(side.get(), event, 0));
    GCAP_EXPECT_CUDA(cudaMemsetAsync(memory_[0], 1, kBytes, side.get()));
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(memory_[1], memory_[0], 16, cudaMemcpyDeviceToDevice, stream));
    GCAP_EXPECT_CUDA(cudaEventRecord(event, side.get()));
    GCAP_EXPECT_CUDA(cudaStreamWaitEvent(stream, event, 0));
    GCAP_EXPECT_CUDA(cudaLaunchHostFunc(stream, Nothing, nullptr));
    GCAP_EXPECT_CUDA(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
  };
  EXPECT_EQ(TextsOf(all, all), Texts{});
  EXPECT_EQ(TextsOf(Graph(), Graph()), Texts{});
  const Graph one(all);
  EXPECT_EQ(TextsOf(one, one), Texts{});
  GCAP_EXPECT_CUDA(cudaEventDestroy(event));
}

TEST_F(Diff, WithoutAGraphThereIsNone) {
  const Graph graph;
  size_t count = 77;
  GCAP_EXPECT_FAILS(gcap_graph_diff(nullptr, graph.get(), nullptr, nullptr, &count), GCAP_INVALID_ARGUMENT, "before");
  EXPECT_EQ(count, 0u);
  GCAP_EXPECT_FAILS(gcap_graph_diff(graph.get(), nullptr, nullptr, nullptr, nullptr), GCAP_INVALID_ARGUMENT, "after");
}

// --- Launches -------------------------------------------------------------------------------------------------------

TEST_F(Diff, TellsTheDimensionsOfALaunch) {
  Launch launch;
  launch.grid = dim3(2, 3, 4);
  ExpectOne(Add(), Add(launch), "gcap_kernel_add_scalar: grid: 1x1x1 -> 2x3x4");
  launch = {};
  launch.block = dim3(64);
  ExpectOne(Add(), Add(launch), ": block: 32x1x1 -> 64x1x1");
  launch = {};
  launch.shared_bytes = 1024;
  ExpectOne(Add(), Add(launch), ": dynamic shared memory: 0 -> 1024");
}

TEST_F(Diff, TellsAttributes) {
  cudaLaunchAttribute attribute = {};
  const auto with = [&](const void* kernel) {
    Launch launch;
    launch.kernel = kernel;
    launch.grid = dim3(4);
    launch.block = dim3(1);
    if (attribute.id != cudaLaunchAttributeIgnore) launch.attributes = {attribute};
    return [=](cudaStream_t stream) { LaunchWith(stream, launch, memory_[0]); };
  };
  const Work plain = with(kCluster);
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  ExpectOne(plain, with(kCluster), ": cooperative: 0 -> 1");
  attribute = {};
  attribute.id = cudaLaunchAttributeMemSyncDomain;
  attribute.val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
  ExpectOne(plain, with(kCluster), ": memory synchronization domain: 0 -> 1");
  int least = 0, greatest = 0;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  attribute = {};
  attribute.id = cudaLaunchAttributePriority;
  attribute.val.priority = greatest;
  ExpectOne(plain, with(kCluster), ": priority: 0 -> " + std::to_string(greatest));
  int has_clusters = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&has_clusters, cudaDevAttrClusterLaunch, 0), cudaSuccess);
  if (!has_clusters) return;
  attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {2, 1, 1};
  const Work pairs = with(kCluster);
  ExpectOne(plain, pairs, ": cluster dimension: none -> 2x1x1");
  attribute.val.clusterDim = {4, 1, 1};
  ExpectOne(pairs, with(kCluster), ": cluster dimension: 2x1x1 -> 4x1x1");
}

TEST_F(Diff, TellsTheKernel) {
  const Work relu = [&](cudaStream_t stream) {
    Launch launch;
    launch.kernel = kRelu;
    LaunchWith(stream, launch, memory_[0], memory_[1], int64_t{8});
  };
  const Texts texts = TextsOf(Add(), relu);
  ASSERT_EQ(texts.size(), 1u) << "arguments of another kernel are not compared: " << ::testing::PrintToString(texts);
  EXPECT_NE(texts[0].find("node 0 of 1, kernel gcap_kernel_relu_f32: function: 0x"), std::string::npos) << texts[0];
}

TEST_F(Diff, TellsEachArgument) {
  ExpectOne(Add({}, 5), Add({}, 0x123456789a), "kernel gcap_kernel_add_scalar: argument 2: 0x5 -> 0x123456789a");
  const auto work = [&](const float* x, float* y, uint32_t count) {
    return [=](cudaStream_t stream) { LaunchWith(stream, {}, x, y, uint64_t{1}, count); };
  };
  const Texts texts = TextsOf(work(memory_[0], memory_[1], 8), work(memory_[1], memory_[0], 9));
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_NE(texts[0].find(": argument 0: 0x"), std::string::npos);
  EXPECT_NE(texts[1].find(": argument 1: 0x"), std::string::npos);
  EXPECT_NE(texts[2].find(": argument 3: 0x8 -> 0x9"), std::string::npos);
}

TEST_F(Diff, TellsEachWordOfAStruct) {
  const auto work = [&](gcap_test_packed_t args) {
    Launch launch;
    launch.kernel = reinterpret_cast<const void*>(gcap_kernel_add_packed);
    return [=](cudaStream_t stream) { LaunchWith(stream, launch, args); };
  };
  ExpectOne(
      work({1, memory_[0], memory_[1], 8}), work({1, memory_[0], memory_[1], 0x909}),
      ": argument 0, byte 16: 0x" + [&] {
        // The last word begins with the high byte of y.
        char text[64];
        const auto high = static_cast<unsigned>(reinterpret_cast<uint64_t>(memory_[1]) >> 56);
        std::snprintf(text, sizeof(text), "%x -> 0x%x", 8u << 8 | high, 0x909u << 8 | high);
        return std::string(text);
      }());
}

// --- Other nodes ----------------------------------------------------------------------------------------------------

TEST_F(Diff, TellsCopies) {
  const auto copy = [&](void* to, const void* from, size_t bytes, cudaMemcpyKind kind = cudaMemcpyDeviceToDevice) {
    return [=](cudaStream_t stream) { GCAP_EXPECT_CUDA(cudaMemcpyAsync(to, from, bytes, kind, stream)); };
  };
  // A GPU tells a copy's bytes as the width of its memory, too.
  const auto all = [](const Texts& texts) {
    std::string joined;
    for (const std::string& text : texts) joined += text + "\n";
    return joined;
  };
  std::string texts = all(TextsOf(copy(memory_[0], memory_[1], 16), copy(memory_[0], memory_[1], 24)));
  EXPECT_NE(texts.find("node 0 of 1, memcpy: the width: 0x10 -> 0x18"), std::string::npos) << texts;
  texts = all(TextsOf(copy(memory_[0], memory_[1], 16), copy(memory_[0] + 4, memory_[1] + 8, 16)));
  EXPECT_NE(texts.find("node 0 of 1, memcpy: the source: 0x"), std::string::npos) << texts;
  EXPECT_NE(texts.find("node 0 of 1, memcpy: the destination: 0x"), std::string::npos) << texts;
}

TEST_F(Diff, TellsFills) {
  const auto fill = [&](void* to, int value, size_t bytes) {
    return [=](cudaStream_t stream) { GCAP_EXPECT_CUDA(cudaMemsetAsync(to, value, bytes, stream)); };
  };
  ExpectOne(fill(memory_[0], 7, 16), fill(memory_[0], 9, 16), "memset: the value: 0x7 -> 0x9");
  const auto node = [&](unsigned element_bytes) {
    auto graph = std::make_unique<Graph>();
    struct cudaMemsetParams params = {};
    params.dst = memory_[0];
    params.elementSize = element_bytes;
    params.width = 4;
    params.height = 1;
    cudaGraphNode_t made = nullptr;
    GCAP_EXPECT_CUDA(cudaGraphAddMemsetNode(&made, graph->get(), nullptr, 0, &params));
    return graph;
  };
  EXPECT_EQ(TextsOf(*node(1), *node(4)), (Texts{"node 0 of 1, memset: the size of an element: 0x1 -> 0x4"}));
  const Texts texts = TextsOf(fill(memory_[0], 7, 16), fill(memory_[1], 7, 16));
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("memset: the destination: 0x"), std::string::npos);
}

TEST_F(Diff, TellsHostFunctions) {
  const auto call = [](cudaHostFn_t function, void* data) {
    return [=](cudaStream_t stream) { GCAP_EXPECT_CUDA(cudaLaunchHostFunc(stream, function, data)); };
  };
  ExpectOne(call(Nothing, reinterpret_cast<void*>(1)), call(Nothing, reinterpret_cast<void*>(2)),
            "host: the user's data: 0x1 -> 0x2");
  const Texts texts = TextsOf(call(Nothing, nullptr), call([](void*) {}, nullptr));
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("host: the function: 0x"), std::string::npos);
}

TEST_F(Diff, TellsEvents) {
  cudaEvent_t events[2] = {};
  for (cudaEvent_t& event : events) ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  const auto record = [&](int i) {
    return [&, i](cudaStream_t stream) {
      GCAP_EXPECT_CUDA(cudaEventRecordWithFlags(events[i], stream, cudaEventRecordExternal));
    };
  };
  const auto wait = [&](int i) {
    return [&, i](cudaStream_t stream) {
      GCAP_EXPECT_CUDA(cudaStreamWaitEvent(stream, events[i], cudaEventWaitExternal));
    };
  };
  Texts texts = TextsOf(record(0), record(1));
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("event record: the event: 0x"), std::string::npos) << texts[0];
  texts = TextsOf(wait(0), wait(1));
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("event wait: the event: 0x"), std::string::npos) << texts[0];
  ExpectOne(record(0), wait(0), "event wait: type: event record -> event wait");
  for (cudaEvent_t event : events) GCAP_EXPECT_CUDA(cudaEventDestroy(event));
}

TEST_F(Diff, TellsAllocations) {
  const auto allocate = [](cudaStream_t stream) {
    void* memory = nullptr;
    GCAP_EXPECT_CUDA(cudaMallocAsync(&memory, 4096, stream));
    GCAP_EXPECT_CUDA(cudaFreeAsync(memory, stream));
  };
  const Graph before(allocate), after(allocate);
  const Texts texts = TextsOf(before, after);
  ASSERT_EQ(texts.size(), 2u) << "two graphs that live have two addresses: " << ::testing::PrintToString(texts);
  EXPECT_NE(texts[0].find("node 0 of 2, memory allocation: the address: 0x"), std::string::npos) << texts[0];
  EXPECT_NE(texts[1].find("node 1 of 2, memory free: the address: 0x"), std::string::npos) << texts[1];
  EXPECT_EQ(TextsOf(before, before), Texts{});
}

// --- Graphs ---------------------------------------------------------------------------------------------------------

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
