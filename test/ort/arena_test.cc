// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The arena behind ONNX Runtime's allocators, as an application configures and sees it: the counterpart of ONNX
// Runtime's tests of its CUDA plugin's arena (cuda_plugin_arena_test.cc).

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"
#include "gtest/gtest.h"
#include "test/ort/onnx_model.h"
#include "test/ort/runtime.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB;

class ArenaTest : public OrtTest {
 protected:
  void TearDown() override {
    if (made_) Ok(api().ReleaseSharedAllocator(env(), device(), GCAP_ORT_MEMORY_DEFAULT));
    OrtTest::TearDown();
  }
  // Makes the environment's allocator of the device's memory anew, with these options. Gives the message of a refusal.
  std::string Make(const Options& options, gcap_ort_device_memory_t memory = GCAP_ORT_MEMORY_DEFAULT) {
    gcap_ort_key_values_t* pairs = nullptr;
    api().CreateKeyValuePairs(&pairs);
    for (const auto& option : options) api().AddKeyValuePair(pairs, option.first.c_str(), option.second.c_str());
    allocator_ = nullptr;
    const std::string error =
        ort_->Take(api().CreateSharedAllocator(env(), device(), memory, GCAP_ORT_DEVICE_ALLOCATOR, pairs, &allocator_));
    api().ReleaseKeyValuePairs(pairs);
    made_ = error.empty();
    return error;
  }
  void* Alloc(size_t bytes) { return allocator_->Alloc(allocator_, bytes); }
  void* Reserve(size_t bytes) { return allocator_->Reserve(allocator_, bytes); }
  void Free(void* ptr) { allocator_->Free(allocator_, ptr); }
  long long Counter(const char* key) const { return OrtTest::Counter(allocator_, key); }

  gcap_ort_allocator_t* allocator_ = nullptr;

 private:
  bool made_ = false;
};

// --- What is handed out ---------------------------------------------------------------------------------------------

TEST_F(ArenaTest, MemoryIsTheDevices) {
  ASSERT_EQ(Make({}), "");
  const auto set = Find<cudaError_t (*)(void*, int, size_t)>("cudaMemset");
  const auto copy = Find<cudaError_t (*)(void*, const void*, size_t, cudaMemcpyKind)>("cudaMemcpy");
  void* block = Alloc(1000);
  ASSERT_NE(block, nullptr);
  ASSERT_EQ(set(block, 0xAB, 1000), cudaSuccess);
  std::vector<unsigned char> host(1000);
  ASSERT_EQ(copy(host.data(), block, host.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host, std::vector<unsigned char>(1000, 0xAB));
  Free(block);
}

TEST_F(ArenaTest, BlocksAreReusedSplitAndMerged) {
  ASSERT_EQ(Make({}), "");
  Free(Alloc(512 * kKiB));
  const long long extensions = Counter("NumArenaExtensions");
  EXPECT_GE(extensions, 1);
  void* whole = Alloc(512 * kKiB);
  Free(whole);
  void* parts[] = {Alloc(128 * kKiB), Alloc(128 * kKiB), Alloc(128 * kKiB)};  // of the freed block
  EXPECT_NE(parts[0], parts[1]);
  EXPECT_NE(parts[1], parts[2]);
  for (void* part : parts) Free(part);
  Free(Alloc(512 * kKiB));  // of the parts
  EXPECT_EQ(Counter("NumArenaExtensions"), extensions);
  EXPECT_EQ(Counter("InUse"), 0);
}

TEST_F(ArenaTest, LargeBlocksAndNoBytes) {
  ASSERT_EQ(Make({}), "");
  EXPECT_EQ(Alloc(0), nullptr);
  Free(nullptr);
  void* block = Alloc(32 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_GE(Counter("InUse"), static_cast<long long>(32 * kMiB));
  EXPECT_GE(Counter("MaxAllocSize"), static_cast<long long>(32 * kMiB));
  Free(block);
}

// --- How it is configured -------------------------------------------------------------------------------------------

TEST_F(ArenaTest, FirstRegionIsAsConfigured) {
  ASSERT_EQ(Make({{"arena.initial_chunk_size_bytes", "25600"}}), "");
  void* block = Alloc(8 * kKiB);
  EXPECT_EQ(Counter("TotalAllocated"), 25600);
  Free(block);
}

TEST_F(ArenaTest, GrowsAsRequestedIfConfigured) {
  ASSERT_EQ(Make({{"arena.extend_strategy", "1"}}), "");
  void* small = Alloc(32 * kKiB);
  EXPECT_EQ(Counter("TotalAllocated"), static_cast<long long>(32 * kKiB));
  void* large = Alloc(512 * kKiB);
  EXPECT_EQ(Counter("TotalAllocated"), static_cast<long long>(32 * kKiB + 512 * kKiB));
  Free(small);
  Free(large);
}

TEST_F(ArenaTest, RegionsStopDoublingWhereConfigured) {
  ASSERT_EQ(Make({{"arena.initial_chunk_size_bytes", "65536"}, {"arena.max_power_of_two_extend_bytes", "65536"}}), "");
  void* blocks[4];
  for (void*& block : blocks) block = Alloc(48 * kKiB);
  EXPECT_EQ(Counter("TotalAllocated"), static_cast<long long>(4 * 64 * kKiB));
  for (void* block : blocks) Free(block);
}

TEST_F(ArenaTest, BlockIsHandedOutWholeUpToTheDeadBytes) {
  ASSERT_EQ(Make({{"arena.initial_chunk_size_bytes", "1048576"}, {"arena.max_dead_bytes_per_chunk", "1024"}}), "");
  void* block = Alloc(kMiB - 4096);  // 4096 bytes over: more than may be dead, so they are split off
  const long long regions = Counter("NumArenaExtensions");
  void* rest = Alloc(4096);
  ASSERT_NE(rest, nullptr);
  EXPECT_EQ(Counter("NumArenaExtensions"), regions);
  Free(block);
  Free(rest);
}

TEST_F(ArenaTest, BadConfigurationIsRefusedByName) {
  for (const Options::value_type& option : {Options::value_type("arena.initial_chunk_size_bytes", "many"),
                                            {"arena.initial_chunk_size_bytes", "-1"},
                                            {"arena.max_mem", "1e9x"},
                                            {"arena.extend_strategy", "7"},
                                            {"arena.max_memory", "1"}}) {
    const std::string error = Make({option});
    EXPECT_NE(error.find(option.first), std::string::npos) << option.first << ": " << error;
  }
}

TEST_F(ArenaTest, PinnedMemoryHasNoArena) {
  const std::string error = Make({{"arena.max_mem", "16384"}}, GCAP_ORT_MEMORY_HOST_ACCESSIBLE);
  EXPECT_NE(error.find("pinned"), std::string::npos) << error;
}

// --- Its limit ------------------------------------------------------------------------------------------------------

TEST_F(ArenaTest, LimitOfZeroIsNone) {
  ASSERT_EQ(Make({{"arena.max_mem", "0"}}), "");
  void* block = Alloc(4 * kMiB);
  EXPECT_NE(block, nullptr);
  Free(block);
}

TEST_F(ArenaTest, LimitIsKept) {
  ASSERT_EQ(Make({{"arena.max_mem", "1048576"}}), "");
  EXPECT_EQ(Alloc(2 * kMiB), nullptr);
  EXPECT_EQ(Reserve(2 * kMiB), nullptr);
  std::vector<void*> blocks;
  for (void* block = Alloc(256 * kKiB); block != nullptr; block = Alloc(256 * kKiB)) blocks.push_back(block);
  EXPECT_EQ(blocks.size(), 4u);
  for (void* block : blocks) Free(block);
  void* again = Alloc(256 * kKiB);
  EXPECT_NE(again, nullptr);
  Free(again);
}

TEST_F(ArenaTest, ReserveCounts) {
  ASSERT_EQ(Make({{"arena.max_mem", "8388608"}}), "");
  void* reserved = Reserve(kMiB);
  ASSERT_NE(reserved, nullptr);
  EXPECT_GE(Counter("NumReserves"), 1);
  EXPECT_GE(Counter("InUse"), static_cast<long long>(kMiB));
  Free(reserved);
  EXPECT_EQ(Counter("InUse"), 0);
}

// --- Giving memory back ---------------------------------------------------------------------------------------------

// The runtime shrinks the arena of a session's allocator at the end of a run that asks for it.
TEST_F(ArenaTest, RunThatShrinksGivesBackWhatIsUnused) {
  const std::string model = OnnxModel().Node("Relu", "relu", {"a"}, {"c"}).Input("a", {4}).Output("c", {4}).Bytes();
  OrtSession session(ort_, env(), device(), model, {{"arena.extend_strategy", "1"}});
  ASSERT_EQ(session.error(), "");
  const gcap_ort_memory_info_t* info = api().EpDevice_MemoryInfo(device(), GCAP_ORT_MEMORY_DEFAULT);
  Ok(api().CreateAllocator(session.get(), info, &allocator_));
  void* kept = Alloc(4 * kMiB);
  Free(Alloc(16 * kMiB));
  const long long before = Counter("TotalAllocated");
  DeviceTensor a(ort_, env(), device(), {4}, {-1, 2, -3, 4}), c(ort_, env(), device(), {4}, {});
  session.BindInput("a", a);
  session.BindOutput("c", c);
  EXPECT_EQ(session.Run({{"memory.enable_memory_arena_shrinkage", "gpu:0"}}), "");
  EXPECT_LE(Counter("TotalAllocated"), before - static_cast<long long>(16 * kMiB));
  EXPECT_GE(Counter("TotalAllocated"), static_cast<long long>(4 * kMiB)) << "a block is in use";
  EXPECT_GE(Counter("NumArenaShrinkages"), 1);
  Free(kept);
  api().ReleaseAllocator(allocator_);
}

// --- A memory pool of CUDA's below it -------------------------------------------------------------------------------

TEST_F(ArenaTest, MempoolBelow) {
  ASSERT_EQ(Make({{"arena.use_cuda_mempool", "1"},
                  {"arena.cuda_mempool_release_threshold", "1048576"},
                  {"arena.cuda_mempool_bytes_to_keep_on_shrink", "65536"}}),
            "");
  EXPECT_EQ(Alloc(0), nullptr);
  Free(nullptr);
  void* blocks[] = {Alloc(1000), Alloc(64 * kKiB), Alloc(8 * kMiB)};
  for (void* block : blocks) ASSERT_NE(block, nullptr);
  EXPECT_GE(Counter("NumAllocs"), 3);
  for (void* block : blocks) Free(block);
  EXPECT_EQ(Counter("InUse"), 0);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
