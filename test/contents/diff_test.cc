// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What gcap_graph_diff tells of two nodes: nothing of equal ones, and each field that differs, once, by name.
#include <cstdio>

#include "test/contents/diff_rig.h"
#include "test/contents/made_contents.h"

extern "C" {
#include "lib/contents/compare.h"
}

namespace gcap {
namespace testing {
namespace {

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
    GCAP_EXPECT_CUDA(cudaMemsetAsync(memory_[0], 1, kDiffBytes, side.get()));
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
  const std::string end = texts[0].substr(texts[0].rfind(" -> 0x"));
  EXPECT_NE(end.find(" gcap_kernel_relu_f32"), std::string::npos)
      << "only the kernel that is there has its name: " << end;
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

// No two launches of one kernel that are captured here have arguments of two shapes.
TEST(DiffOfMadeContents, TellsArgumentsOfAnotherShapeByTheirBytes) {
  std::string told;
  const auto tell = [](void* user, const gcap_graph_difference_t* d) {
    *static_cast<std::string*>(user) += std::string(d->field) + ": " + d->before + " -> " + d->after;
  };
  Contents before({{{Pack(uint64_t{1})}}}), after({{{Pack(uint64_t{1}), Pack(uint32_t{2})}}});
  EXPECT_EQ(gcap_contents_diff(before.get(), after.get(), tell, &told), 1u);
  EXPECT_EQ(told, "arguments: 8 bytes -> 12 bytes");
}

// Another type, or another number of nodes, the driver refuses by itself.
TEST(DiffOfMadeContents, AnUpdateThatChangesAnAttributeIsRefusedByItsName) {
  Contents before({{{Pack(uint64_t{1})}}}), after({{{Pack(uint64_t{2})}}});
  GCAP_EXPECT_OK(gcap_contents_check_update(before.get(), after.get()));
  after.get()->nodes[0].sync_domain = 1;
  GCAP_EXPECT_FAILS(gcap_contents_check_update(before.get(), after.get()), GCAP_CUDA_ERROR,
                    "memory synchronization domain 0 -> 1");
  Contents more({{{Pack(uint64_t{2})}}, {{Pack(uint64_t{2})}}});
  more.get()->nodes[0].sync_domain = 1;
  GCAP_EXPECT_OK(gcap_contents_check_update(before.get(), more.get()));
  after.get()->nodes[0].type = cudaGraphNodeTypeEmpty;
  GCAP_EXPECT_OK(gcap_contents_check_update(before.get(), after.get()));
}

TEST(DiffOfMadeContents, TellsWhatTheDriverDoesNotTell) {
  std::string told;
  const auto tell = [](void* user, const gcap_graph_difference_t* d) {
    *static_cast<std::string*>(user) += std::string(d->field) + ": " + d->before + " -> " + d->after;
  };
  Contents before({{{Pack(uint64_t{1})}}}), after({{{Pack(uint64_t{1})}}});
  after.get()->nodes[0].is_known = false;
  EXPECT_EQ(gcap_contents_diff(before.get(), after.get(), tell, &told), 1u);
  EXPECT_EQ(told, "attributes: told -> not told by the driver");
  told.clear();
  EXPECT_EQ(gcap_contents_diff(after.get(), before.get(), tell, &told), 1u);
  EXPECT_EQ(told, "attributes: not told by the driver -> told");
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

}  // namespace
}  // namespace testing
}  // namespace gcap
