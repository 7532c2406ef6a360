// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch as ONNX Runtime's CUDA arena. Each test here is the counterpart of the one of that name in ONNX Runtime's
// cuda_plugin_arena_test.cc: over device memory, over pinned memory, and the pool allocator in place of its memory pool
// arena. ExternalAllocator_IsSessionScoped of that file is in //test/allocator.

#include <cuda_runtime_api.h>

#include <set>
#include <string>
#include <vector>

#include "gcap/allocator.h"
#include "gcap/options.h"
#include "gcap/scratch.h"
#include "gtest/gtest.h"
#include "test/support/allocator_stats.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// An allocator under test: requests without a stream, as ONNX Runtime's tests make them.
class AllocatorTest : public DeviceTest {
 protected:
  void* Alloc(size_t bytes) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_alloc(allocator_, bytes, &ptr));
    EXPECT_EQ(ptr == nullptr, bytes == 0);
    return ptr;
  }
  void* Reserve(size_t bytes) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_reserve(allocator_, bytes, &ptr));
    EXPECT_NE(ptr, nullptr);
    return ptr;
  }
  void Free(void* ptr) { GCAP_EXPECT_OK(gcap_allocator_free(allocator_, ptr)); }
  gcap_allocator_stats_t Stats() const {
    gcap_allocator_stats_t stats;
    gcap_allocator_get_stats(allocator_, &stats);
    return stats;
  }
  void ExpectHoldsData(void* ptr, size_t bytes) {
    std::vector<unsigned char> actual(bytes);
    EXPECT_EQ(cudaMemset(ptr, 0xAB, bytes), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(actual.data(), ptr, bytes, cudaMemcpyDefault), cudaSuccess);
    EXPECT_EQ(actual, std::vector<unsigned char>(bytes, 0xAB));
  }
  void ExpectServesManyBlocks() {
    std::set<void*> blocks;
    for (size_t i = 1; i <= 20; ++i) blocks.insert(Alloc(i * 1000));
    EXPECT_EQ(blocks.size(), 20u);
    for (void* block : blocks) Free(block);
    EXPECT_EQ(Stats().in_use_bytes, 0u);
  }

  gcap_allocator_t* allocator_ = nullptr;
};

class Arena : public AllocatorTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gcap_scratch_options_init(&options_);
    GCAP_ASSERT_OK(CreateUpstream());
    Create();
  }
  void TearDown() override {
    if (scratch_ != nullptr) GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    gcap_allocator_destroy(upstream_);
  }
  virtual gcap_status_t CreateUpstream() = 0;
  // Replaces the arena by one with the options of now.
  void Create() {
    GCAP_ASSERT_OK(gcap_scratch_destroy(scratch_));
    GCAP_ASSERT_OK(gcap_scratch_create(upstream_, &options_, &scratch_));
    allocator_ = gcap_scratch_allocator(scratch_);
  }
  void ExpectExhausted(gcap_status_t status, const void* ptr) {
    GCAP_EXPECT_FAILS(status, GCAP_RESOURCE_EXHAUSTED, std::to_string(options_.memory_limit_bytes));
    EXPECT_EQ(ptr, nullptr);
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
  }

  gcap_scratch_options_t options_;
  gcap_allocator_t* upstream_ = nullptr;
  gcap_scratch_t* scratch_ = nullptr;
};

class DeviceAllocator : public Arena {
 protected:
  gcap_status_t CreateUpstream() override { return gcap_device_allocator_create(0, &upstream_); }
};

TEST_F(DeviceAllocator, IsArena) {
  Free(Alloc(1));
  EXPECT_EQ(Stats().num_extensions, 1u);
  EXPECT_EQ(Stats().total_allocated_bytes, kMiB);
  EXPECT_EQ(StatsOf(allocator_).device_id, 0);
}

TEST_F(DeviceAllocator, CudaMemoryIsValid) {
  void* ptr = Alloc(1024);
  ExpectHoldsData(ptr, 1024);
  cudaPointerAttributes attributes;
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, ptr), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  Free(ptr);
}

TEST_F(DeviceAllocator, ArenaReusesMemory) {
  Free(Alloc(4096));
  const uint64_t extensions = Stats().num_extensions;
  Free(Alloc(4096));
  EXPECT_EQ(Stats().num_extensions, extensions);
  EXPECT_EQ(Stats().num_allocs, 2u);
}

TEST_F(DeviceAllocator, MultipleAllocations) { ExpectServesManyBlocks(); }

TEST_F(DeviceAllocator, ZeroSizeAlloc) {
  Free(Alloc(0));
  EXPECT_EQ(Stats().num_allocs, 0u);
}

TEST_F(DeviceAllocator, LargeAllocation) {
  void* ptr = Alloc(32 * kMiB);
  ExpectHoldsData(static_cast<char*>(ptr) + 31 * kMiB, 4096);
  Free(ptr);
}

TEST_F(DeviceAllocator, StatsTrackBytesInUse) {
  void* ptr = Alloc(1000);
  EXPECT_EQ(Stats().in_use_bytes, 1024u);
  EXPECT_EQ(Stats().max_in_use_bytes, 1024u);
  Free(ptr);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  EXPECT_EQ(Stats().max_in_use_bytes, 1024u);
}

TEST_F(DeviceAllocator, StatsTrackBytesRequestedInUse) {
  void* ptr = Alloc(100);
  EXPECT_EQ(Stats().requested_in_use_bytes, 100u);
  Free(ptr);
  EXPECT_EQ(Stats().requested_in_use_bytes, 0u);
}

TEST_F(DeviceAllocator, ReplaceWithCustomConfig) {
  options_.initial_chunk_bytes = 25600;
  Create();
  Free(Alloc(1));
  EXPECT_EQ(Stats().total_allocated_bytes, 25600u);
}

TEST_F(DeviceAllocator, FreeNullptrIsSafe) { Free(nullptr); }

// What a session's options may say; `named` is in the message.
void ExpectRejected(const char* key, const char* value) {
  gcap_options_t options;
  gcap_options_init(&options);
  GCAP_EXPECT_FAILS(gcap_options_parse(&options, &key, &value, 1), GCAP_INVALID_ARGUMENT,
                    "option " + std::string(key) + " is '" + value + "'");
}

const char* const kSizes[] = {"arena.initial_chunk_size_bytes",        "arena.max_dead_bytes_per_chunk",
                              "arena.initial_growth_chunk_size_bytes", "arena.max_power_of_two_extend_bytes",
                              "arena.cuda_mempool_release_threshold",  "arena.cuda_mempool_bytes_to_keep_on_shrink"};

TEST_F(DeviceAllocator, InvalidConfigIsRejected) {
  for (const char* key : kSizes) ExpectRejected(key, "not_a_number");
  ExpectRejected("arena.extend_strategy", "2");
}

TEST_F(DeviceAllocator, NegativeConfigIsRejected) {
  for (const char* key : kSizes) ExpectRejected(key, "-5");
  ExpectRejected("arena.extend_strategy", "-1");
}

TEST_F(DeviceAllocator, InvalidMaxMemIsRejected) {
  for (const char* value : {"abc", "-1", "18446744073709551616", "1.5"}) ExpectRejected("arena.max_mem", value);
}

TEST_F(DeviceAllocator, MaxMemZeroTreatedAsUnlimited) {
  options_.memory_limit_bytes = 0;
  Create();
  Free(Alloc(8 * kMiB));
  EXPECT_EQ(Stats().limit_bytes, 0u);
}

TEST_F(DeviceAllocator, ReserveRespectsBudget) {
  options_.memory_limit_bytes = kMiB;
  Create();
  void* ptr = this;
  gcap_status_t status = gcap_allocator_reserve(allocator_, 2 * kMiB, &ptr);
  ExpectExhausted(status, ptr);
}

TEST_F(DeviceAllocator, ReserveWithinBudget) {
  options_.memory_limit_bytes = 4 * kMiB;
  Create();
  void* ptr = Reserve(kMiB);
  EXPECT_EQ(Stats().num_reserves, 1u);
  EXPECT_EQ(Stats().in_use_bytes, kMiB);
  Free(ptr);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

TEST_F(DeviceAllocator, SameAsRequestedStrategy) {
  options_.extend_as_requested = true;
  Create();
  Free(Alloc(10000));
  EXPECT_EQ(Stats().total_allocated_bytes, 10240u);
}

TEST_F(DeviceAllocator, MaxDeadBytesConfig) {
  options_.initial_chunk_bytes = 64 * 1024;
  for (const bool cut : {false, true}) {
    options_.max_dead_bytes_per_chunk = cut ? 0 : 4096;
    Create();
    void* ptr = Alloc(60 * 1024);  // 4 KiB too much, less than an eighth
    EXPECT_EQ(Stats().in_use_bytes, cut ? 60 * 1024u : 64 * 1024u);
    Free(ptr);
  }
}

TEST_F(DeviceAllocator, InitialGrowthChunkSizeConfig) {
  options_.initial_growth_chunk_bytes = 3 * kMiB;
  Create();
  Free(Alloc(1));
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_EQ(Stats().total_allocated_bytes, 0u);
  Free(Alloc(1));
  EXPECT_EQ(Stats().total_allocated_bytes, 3 * kMiB);
}

TEST_F(DeviceAllocator, MaxPowerOfTwoExtendConfig) {
  options_.max_extend_bytes = 2 * kMiB;
  Create();
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(Alloc(kMiB));
  EXPECT_EQ(Stats().total_allocated_bytes, 6 * kMiB) << "regions of 1, 1, 2 and 2 MiB, no larger ones";
  for (void* block : blocks) Free(block);
}

TEST_F(DeviceAllocator, CombinedConfig) {
  options_.extend_as_requested = true;
  options_.initial_chunk_bytes = 4096;
  options_.initial_growth_chunk_bytes = 8192;
  options_.max_dead_bytes_per_chunk = 256;
  options_.max_extend_bytes = 65536;
  options_.memory_limit_bytes = 16384;
  Create();
  void* ptr = Alloc(10000);
  EXPECT_EQ(Stats().total_allocated_bytes, 10240u);
  EXPECT_EQ(Stats().limit_bytes, 16384u);
  void* too_much = this;
  gcap_status_t status = gcap_allocator_alloc(allocator_, 10000, &too_much);
  ExpectExhausted(status, too_much);
  Free(ptr);
}

TEST_F(DeviceAllocator, ChunkSplitting) {
  Free(Alloc(kMiB));
  void* first = Alloc(1024);
  void* second = Alloc(2048);
  EXPECT_EQ(Stats().num_extensions, 1u);
  Free(first);
  Free(second);
}

TEST_F(DeviceAllocator, ChunkCoalescing) {
  std::vector<void*> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(Alloc(kMiB / 4));
  for (void* part : parts) Free(part);
  Free(Alloc(kMiB));
  EXPECT_EQ(Stats().num_extensions, 1u);
}

TEST_F(DeviceAllocator, MaxMemExhaustion) {
  options_.memory_limit_bytes = 2 * kMiB;
  Create();
  std::vector<void*> blocks;
  gcap_status_t status = nullptr;
  void* ptr = nullptr;
  while ((status = gcap_allocator_alloc(allocator_, kMiB / 2, &ptr)) == nullptr) blocks.push_back(ptr);
  ExpectExhausted(status, ptr);
  EXPECT_EQ(blocks.size(), 4u);
  for (void* block : blocks) Free(block);
  Free(Alloc(kMiB));
}

TEST_F(DeviceAllocator, AllStatsKeysPresent) {
  options_.memory_limit_bytes = 8 * kMiB;
  Create();
  void* reserved = Reserve(512);
  Free(Alloc(1000));
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  void* ptr = Alloc(2000);
  const gcap_allocator_stats_t stats = Stats();
  EXPECT_EQ(stats.limit_bytes, 8 * kMiB);
  EXPECT_EQ(stats.in_use_bytes, 512u + 2048u);
  EXPECT_EQ(stats.requested_in_use_bytes, 512u + 2000u);
  EXPECT_EQ(stats.max_in_use_bytes, 512u + 2048u);
  EXPECT_EQ(stats.total_allocated_bytes, 512u + 2 * kMiB);
  EXPECT_EQ(stats.max_alloc_bytes, 2000u);
  EXPECT_EQ(stats.num_allocs, 3u);
  EXPECT_EQ(stats.num_reserves, 1u);
  EXPECT_EQ(stats.num_extensions, 2u);
  EXPECT_EQ(stats.num_shrinkages, 1u);
  Free(ptr);
  Free(reserved);
}

TEST_F(DeviceAllocator, ShrinkFreesUnusedRegions) {
  Free(Alloc(4 * kMiB));
  const uint64_t before = Stats().total_allocated_bytes;
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_LT(Stats().total_allocated_bytes, before);
  EXPECT_GE(Stats().num_shrinkages, 1u);
}

TEST_F(DeviceAllocator, ShrinkKeepsLiveRegions) {
  void* live = Alloc(kMiB);
  void* idle = Alloc(kMiB);
  ExpectHoldsData(live, 4096);
  Free(idle);
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_EQ(Stats().total_allocated_bytes, kMiB);
  ExpectHoldsData(live, 4096);
  Free(live);
}

class PinnedAllocator : public Arena {
 protected:
  gcap_status_t CreateUpstream() override { return gcap_pinned_allocator_create(&upstream_); }
};

TEST_F(PinnedAllocator, IsArena) {
  void* ptr = Alloc(100);
  EXPECT_EQ(StatsOf(allocator_).device_id, -1);
  static_cast<char*>(ptr)[99] = 1;
  EXPECT_EQ(Stats().total_allocated_bytes, kMiB);
  Free(ptr);
}

TEST_F(PinnedAllocator, CustomConfig) {
  options_.initial_chunk_bytes = 16384;
  Create();
  Free(Alloc(1));
  EXPECT_EQ(Stats().total_allocated_bytes, 16384u);
}

TEST_F(PinnedAllocator, Reuse) {
  Free(Alloc(4096));
  Free(Alloc(4096));
  EXPECT_EQ(Stats().num_extensions, 1u);
}

TEST_F(PinnedAllocator, ShrinkFreesUnusedRegions) {
  Free(Alloc(2 * kMiB));
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_EQ(Stats().total_allocated_bytes, 0u);
  EXPECT_EQ(Stats().num_shrinkages, 1u);
}

class Mempool : public AllocatorTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gcap_pool_allocator_options_init(&options_);
    Create();
  }
  void TearDown() override { gcap_allocator_destroy(allocator_); }
  void Create() {
    gcap_allocator_destroy(allocator_);
    GCAP_ASSERT_OK(gcap_pool_allocator_create(&options_, &allocator_));
  }

  gcap_pool_allocator_options_t options_;
};

TEST_F(Mempool, BasicAllocFree) {
  void* ptr = Alloc(4096);
  ExpectHoldsData(ptr, 4096);
  Free(ptr);
}

TEST_F(Mempool, MultipleAllocations) { ExpectServesManyBlocks(); }

TEST_F(Mempool, StatsAreReported) {
  void* ptr = Alloc(4096);
  EXPECT_EQ(Stats().num_allocs, 1u);
  EXPECT_GE(Stats().in_use_bytes, 4096u);
  EXPECT_GE(Stats().total_allocated_bytes, 4096u);
  Free(ptr);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

TEST_F(Mempool, ZeroSizeAllocReturnsNull) { EXPECT_EQ(Alloc(0), nullptr); }

TEST_F(Mempool, LargeAllocation) {
  void* ptr = Alloc(32 * kMiB);
  ExpectHoldsData(static_cast<char*>(ptr) + 31 * kMiB, 4096);
  Free(ptr);
}

TEST_F(Mempool, CustomReleaseThreshold) {
  options_.release_threshold_bytes = kMiB;
  Create();
  Free(Alloc(4096));
}

TEST_F(Mempool, FreeNullptrIsSafe) { Free(nullptr); }

TEST_F(Mempool, BytesToKeepOnShrinkConfig) {
  options_.bytes_kept_on_trim = 4096;
  Create();
  Free(Alloc(4096));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_GE(Stats().total_allocated_bytes, 4096u);
}

TEST_F(Mempool, AllStatsKeysPresent) {
  void* ptr = Alloc(1000);
  void* reserved = Reserve(3000);
  const gcap_allocator_stats_t stats = Stats();
  EXPECT_EQ(stats.limit_bytes, 0u);
  EXPECT_EQ(stats.requested_in_use_bytes, 4000u);
  EXPECT_GE(stats.in_use_bytes, 4000u);
  EXPECT_GE(stats.max_in_use_bytes, 4000u);
  EXPECT_GE(stats.total_allocated_bytes, 4000u);
  EXPECT_EQ(stats.max_alloc_bytes, 3000u);
  EXPECT_EQ(stats.num_allocs, 2u);
  EXPECT_EQ(stats.num_reserves, 1u);
  EXPECT_EQ(stats.num_shrinkages, 0u);
  Free(ptr);
  Free(reserved);
}

TEST_F(Mempool, ShrinkTrimsPool) {
  Free(Alloc(4096));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_EQ(Stats().total_allocated_bytes, 0u);
  EXPECT_EQ(Stats().num_shrinkages, 1u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
