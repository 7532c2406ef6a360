// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What RMM tests of its pool and arena resources (its tests pool_mr_tests, arena_mr_tests and the suites of mr_ref_test
// over both, as of 2026), asked of scratch. Names without a suite are tests of this file.
//
// Pool
//   ThrowOnNullUpstream            Scratch.CreateRejectsBadOptions
//   ThrowMaxLessThanInitial        LimitBelowTheFirstRegionCutsIt: legal here
//   AllocateNinetyPercent          NinetyPercentOfTheDevice
//   TwoLargeBuffers                TwoQuartersOfTheDevice
//   ForceGrowth                    GrowthEndsAtUpstreamsLimit, and with regions ahead
//   DeletedStream                  MemoryOutlivesItsStream
//   InitialAndMaxPoolSizeEqual     FirstRegionMayBeTheLimit
//   NonAlignedPoolSize             SizesOfRegionsNeedNotBeMultiples: legal here
//   UpstreamDoesntSupportMemInfo   OneOverAnother: upstream is never asked how much it has
//   MultidevicePool                OneOnEachDevice
//
// Arena: its parts
//   AlignToSizeClass               NoSizeClassesAboveAGranule
//   ByteSpan                       none: no such type
//   BlockFits, SuperblockFits, SuperblockMaxFreeSize, SuperblockMaxFreeSizeWhenFull
//                                  LargestFreeRunFitsAndNothingMore
//   BlockSplit, SuperblockFirstFit Scratch.SplitsTheRestOff
//   BlockIsContiguousBefore, BlockMerge, SuperblockCoalesceMergeNext, ~MergePrevious, ~MergePreviousAndNext,
//   ArenaDeallocateMergePrevious, ~MergeNext, ~MergePreviousAndNext, GlobalArenaReleaseMergeNext, ~MergePrevious,
//   ~MergePreviousAndNext, ~Multiple
//                                  Scratch.CoalescesInEveryOrder
//   SuperblockEmpty, SuperblockContains, SuperblockIsContiguousBefore, SuperblockSplit, SuperblockMerge
//                                  none: what upstream gave is one region until upstream gets it back
//   SuperblockCoalesceAfterFull    HalfOfAFullRegionComesBack
//   GlobalArenaAcquire             WholeRegionsUntilTheLimit
//   GlobalArenaAllocate, GlobalArenaDeallocate, ArenaAllocate, ArenaDeallocate
//                                  Scratch.ReusesABlockOfItsStreamAtOnce
//   GlobalArenaDeallocateAlignUp   OddSizesBecomeTheWholeAgain
//   GlobalArenaAllocateExtraLarge  AnySize
//   GlobalArenaDeallocateFromOtherArena, PerThreadToStreamDealloc
//                                  BlockIsFreedAmongOthersMemory
//   ArenaDefragment, Defragment    MemoryOfManyStreamsIsOneAgain: nobody need ask for it
//
// Arena: as a whole
//   SizeSmallerThanSuperblockSize  SizesOfRegionsNeedNotBeMultiples: legal here
//   AllocateNinetyPercent          NinetyPercentOfTheDevice
//   SmallMediumLarge               SmallMediumAndLarge
//   DumpLogOnFailure               Scratch.KeepsToItsLimit: the message has the breakdown, no file is written
//
// Both (mr_ref_test, mr_ref_allocation_test, mr_ref_test_mt)
//   SetCurrentDeviceResourceRef, ~_mt, ~PerThread_mt, SelfEquality
//                                  none: there is no current scratch, and a scratch is a pointer
//   AllocationsAreDifferent, AsyncAllocationsAreDifferent, ~DefaultStream
//                                  Scratch.BlocksAreDisjoint, and every stream of RandomSizes
//   AllocateDefault, ~DefaultStream, AllocateOnStream
//                                  AnySize, on a stream of its own and on the default stream
//   RandomAllocations, ~DefaultStream, ~Stream
//                                  RandomSizes
//   MixedRandomAllocationFree, ~DefaultStream, ~Stream
//                                  RandomSizesAndFrees
//   Allocate, RandomAllocations, MixedRandomAllocationFree and their streams, with threads
//                                  ThreadsAtOnce: each thread with a stream, since a stream is used by one at a time
//   AllocFreeDifferentThreadsSameStream, ~DefaultStream
//                                  ScratchThreads.FreesFromOtherThreads
//   AllocFreeDifferentThreadsDifferentStream
//                                  ScratchThreads.FreesFromOtherThreads: a free names no stream; who used the block on
//                                  another one has made its stream wait for that before
//   AllocFreeDifferentThreadsPerThreadDefaultStream
//                                  none: that handle is another stream on each thread, and a wrapper is one stream

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gcap/scratch.h"
#include "gtest/gtest.h"
#include "test/scratch/scratch_test_support.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB, kPiB = 1024 * 1024 * kGiB;

// --- Sizes, over host memory ----------------------------------------------------------------------------------------

class PoolCases : public ScratchTest {
 protected:
  using Sizes = std::vector<size_t>;
};

TEST_F(PoolCases, LimitBelowTheFirstRegionCutsIt) {
  options_.initial_chunk_bytes = 1024;
  options_.memory_limit_bytes = 256;
  Create();
  char* ptr = Alloc(256, a_);
  EXPECT_EQ(upstream_.requests(), Sizes{256});
  ExpectAllocFails(1, a_, GCAP_RESOURCE_EXHAUSTED, "256");
  Free(ptr);
}

TEST_F(PoolCases, FirstRegionMayBeTheLimit) {
  options_.initial_chunk_bytes = options_.memory_limit_bytes = 1000192;
  Create();
  Free(Alloc(1000, a_));
  Free(Alloc(1000192, a_));
  EXPECT_EQ(upstream_.requests(), Sizes{1000192});
}

TEST_F(PoolCases, SizesOfRegionsNeedNotBeMultiples) {
  options_.initial_chunk_bytes = 1000031;
  Create();
  Free(Alloc(1000, a_));
  EXPECT_EQ(upstream_.requests(), Sizes{1000192});  // 3907 granules
  Synchronize(a_);
  options_.memory_limit_bytes = 1000100;
  Create();
  Free(Alloc(1000, a_));
  EXPECT_EQ(upstream_.requests().back(), 999936u);  // 3906
  Synchronize(a_);
  options_.initial_chunk_bytes = 1;
  Create();
  Free(Alloc(1, a_));
  EXPECT_EQ(upstream_.requests().back(), 256u);
}

// Over an upstream that gives 6,000 bytes at most.
class PoolOverLittle : public PoolCases {
 protected:
  void SetUp() override {
    PoolCases::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    upstream_.capacity_bytes = 6000;
  }
};

TEST_F(PoolOverLittle, GrowthEndsAtUpstreamsLimit) {
  options_.extend_as_requested = true;
  Create();
  std::vector<char*> blocks;
  for (size_t bytes : {1000, 4000, 500}) blocks.push_back(Alloc(bytes, a_));  // 1024 + 4096 + 512
  ExpectAllocFails(2000, a_, GCAP_RESOURCE_EXHAUSTED, "upstream has no");
  for (char* block : blocks) Free(block);
}

TEST_F(PoolOverLittle, GrowthAheadEndsAtUpstreamsLimit) {
  options_.initial_chunk_bytes = 4096;
  Create();
  std::vector<char*> blocks = {Alloc(1000, a_)};
  ExpectAllocFails(4000, a_, GCAP_RESOURCE_EXHAUSTED, "upstream has no");
  for (size_t bytes : {500, 2000}) blocks.push_back(Alloc(bytes, a_));  // in the first region
  for (char* block : blocks) Free(block);
}

TEST_F(PoolCases, NoSizeClassesAboveAGranule) {
  options_.max_dead_bytes_per_chunk = 0;
  options_.initial_chunk_bytes = 16 * kMiB;
  Create();
  const struct {
    size_t requested, in_use;
  } cases[] = {{8, 256}, {256, 256}, {264, 512}, {512, 512}, {17 * kKiB, 17 * kKiB}, {13 * kMiB, 13 * kMiB}};
  for (const auto& each : cases) {
    char* ptr = Alloc(each.requested, a_);
    EXPECT_EQ(Stats().in_use_bytes, each.in_use);
    Free(ptr);
  }
}

TEST_F(PoolCases, LargestFreeRunFitsAndNothingMore) {
  options_.memory_limit_bytes = kChunk;
  Create();
  char* lower = Alloc(kChunk / 4, a_);
  char* middle = Alloc(kChunk / 4, a_);
  Free(lower);
  ExpectAllocFails(kChunk / 2 + 1, a_, GCAP_RESOURCE_EXHAUSTED, std::to_string(kChunk / 2 + kGranule));
  Free(Alloc(kChunk / 2, a_));  // above
  Free(middle);
  char* whole = Alloc(kChunk, a_);
  ExpectAllocFails(1, a_, GCAP_RESOURCE_EXHAUSTED, std::to_string(kGranule));
  Free(whole);
}

TEST_F(PoolCases, HalfOfAFullRegionComesBack) {
  options_.memory_limit_bytes = kChunk;
  Create();
  char* lower = Alloc(kChunk / 2, a_);
  char* upper = Alloc(kChunk / 2, a_);
  Free(lower);
  EXPECT_EQ(Alloc(kChunk / 2, a_), lower);
  Free(upper);
  Free(lower);
}

TEST_F(PoolCases, WholeRegionsUntilTheLimit) {
  options_.max_extend_bytes = kChunk;
  options_.memory_limit_bytes = 4 * kChunk;
  Create();
  std::vector<char*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(Alloc(kChunk, a_));
  EXPECT_EQ(upstream_.requests(), (Sizes{kChunk, kChunk, kChunk, kChunk}));
  ExpectAllocFails(512, a_, GCAP_RESOURCE_EXHAUSTED, std::to_string(4 * kChunk));
  for (char* block : blocks) Free(block);
}

TEST_F(PoolCases, OddSizesBecomeTheWholeAgain) {
  options_.memory_limit_bytes = kChunk;
  Create();
  char* first = Alloc(kChunk / 4 + 1, a_);
  char* second = Alloc(kChunk / 2 + 255, a_);
  Free(first);
  Free(second);
  EXPECT_EQ(Alloc(kChunk, a_), first);
  Free(first);
}

// The block was cut from its stream's memory, all of which was another stream's when it was freed.
TEST_F(PoolCases, BlockIsFreedAmongOthersMemory) {
  options_.memory_limit_bytes = kChunk;
  Create();
  char* early = Alloc(kGranule, a_);
  char* rest = Alloc(kChunk - kGranule, a_);
  Free(rest);
  Wait(b_, a_);
  EXPECT_EQ(Alloc(kChunk - kGranule, b_), rest);
  std::thread([this, early] { GCAP_EXPECT_OK(gcap_scratch_free(scratch_, early)); }).join();
  Validate();
  EXPECT_EQ(Alloc(kGranule, a_), early);
  Free(early);
  Free(rest);
  Wait(a_, b_);
  Free(Alloc(kChunk, a_));
}

TEST_F(PoolCases, MemoryOfManyStreamsIsOneAgain) {
  options_.initial_chunk_bytes = options_.memory_limit_bytes = 4 * kChunk;
  Create();
  Free(Alloc(1, b_));
  Synchronize(b_);
  gcap_stream_t* streams[] = {a_, b_, c_};
  std::vector<std::vector<char*>> blocks(3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this, i, &streams, &blocks] {
      for (int j = 0; j < 20; ++j) {
        void* ptr = nullptr;
        GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, kGranule, streams[i], &ptr));
        blocks[i].push_back(static_cast<char*>(ptr));
      }
      for (char* block : blocks[i]) GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block));
      GCAP_EXPECT_OK(gcap_stream_synchronize(streams[i]));
    });
  }
  for (std::thread& thread : threads) thread.join();
  Free(Alloc(4 * kChunk, b_));
  EXPECT_EQ(NumRequests(), 1u);
}

TEST_F(PoolCases, OneOverAnother) {
  gcap_scratch_t* upper = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(gcap_scratch_allocator(scratch_), &options_, &upper));
  void* ptr = nullptr;
  GCAP_EXPECT_OK(gcap_scratch_alloc(upper, 1024, a_, &ptr));
  EXPECT_TRUE(upstream_.Owns(ptr, 1024));
  GCAP_EXPECT_OK(gcap_scratch_free(upper, ptr));
  Synchronize(a_);
  GCAP_EXPECT_OK(gcap_scratch_destroy(upper));
  Validate();
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

TEST_F(PoolCases, MemoryOutlivesItsStream) {
  options_.memory_limit_bytes = kChunk;
  Create();
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  Free(Alloc(kChunk, stream));
  Synchronize(stream);
  GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, stream));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  Free(Alloc(kChunk, a_));
}

// --- Over device memory ---------------------------------------------------------------------------------------------

class PoolOnDevice : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device_));
    GCAP_ASSERT_OK(gcap_stream_create(0, &stream_));
  }
  void TearDown() override {
    if (stream_ != nullptr) GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    GCAP_EXPECT_OK(gcap_stream_destroy(stream_));
    gcap_allocator_destroy(device_);
  }
  void CreateScratch(size_t initial_chunk_bytes) {
    gcap_scratch_options_t options;
    gcap_scratch_options_init(&options);
    options.initial_chunk_bytes = initial_chunk_bytes;
    GCAP_ASSERT_OK(gcap_scratch_create(device_, &options, &scratch_));
  }
  static size_t FreeBytes() {
    size_t free_bytes = 0, total_bytes = 0;
    EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
    return free_bytes;
  }
  static void* AllocFrom(gcap_scratch_t* scratch, size_t bytes, gcap_stream_t* stream) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, bytes, stream, &ptr));
    cudaPointerAttributes attributes = {};
    EXPECT_EQ(cudaPointerGetAttributes(&attributes, ptr), cudaSuccess);
    EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
    EXPECT_EQ(attributes.device, gcap_stream_device(stream));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(ptr) % kGranule, 0u);
    return ptr;
  }
  void* Alloc(size_t bytes) { return AllocFrom(scratch_, bytes, stream_); }
  void Free(void* ptr) { GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr)); }
  gcap_allocator_stats_t Stats() {
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(scratch_, &stats);
    return stats;
  }

  gcap_allocator_t* device_ = nullptr;
  gcap_stream_t* stream_ = nullptr;
  gcap_scratch_t* scratch_ = nullptr;
};

TEST_F(PoolOnDevice, NinetyPercentOfTheDevice) {
  const size_t bytes = FreeBytes() / 10 * 9 / kGranule * kGranule;
  CreateScratch(bytes);
  Free(Alloc(1));
  EXPECT_EQ(Stats().total_allocated_bytes, bytes);
  Free(Alloc(bytes));
  EXPECT_EQ(Stats().num_extensions, 1u);
}

TEST_F(PoolOnDevice, TwoQuartersOfTheDevice) {
  const size_t quarter = FreeBytes() / 4 / kGranule * kGranule;
  CreateScratch(2 * quarter);
  void* first = Alloc(quarter);
  void* second = Alloc(quarter);
  EXPECT_EQ(Stats().num_extensions, 1u);
  Free(first);
  Free(second);
}

TEST_F(PoolOnDevice, SmallMediumAndLarge) {
  CreateScratch(kMiB);
  void* small = Alloc(256);
  void* medium = Alloc(64 * kMiB);
  void* large = Alloc(FreeBytes() / 3);
  for (void* ptr : {small, medium, large}) Free(ptr);
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
}

TEST_F(PoolOnDevice, OneOnEachDevice) {
  int num_devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&num_devices), cudaSuccess);
  for (int device = 0; device < std::min(num_devices, 2); ++device) {
    gcap_allocator_t* upstream = nullptr;
    gcap_stream_t* stream = nullptr;
    gcap_scratch_t* scratch = nullptr;
    GCAP_ASSERT_OK(gcap_device_allocator_create(device, &upstream));
    GCAP_ASSERT_OK(gcap_stream_create(device, &stream));
    GCAP_ASSERT_OK(gcap_scratch_create(upstream, nullptr, &scratch));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, AllocFrom(scratch, 16, stream)));
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 0);
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    gcap_allocator_destroy(upstream);
  }
}

// What RMM asks of every resource, on a stream of ours and on the default stream.
class PoolOnStream : public PoolOnDevice, public ::testing::WithParamInterface<bool> {
 protected:
  static constexpr int kBlocks = 100;
  static constexpr size_t kMostBytes = kMiB;

  void SetUp() override {
    PoolOnDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    CreateScratch(kMiB);
    if (!GetParam()) return;
    GCAP_ASSERT_OK(gcap_stream_destroy(stream_));
    GCAP_ASSERT_OK(gcap_stream_wrap(nullptr, GCAP_STREAM_USER, GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM, 0, &stream_));
  }
  struct Block {
    char* ptr;
    size_t bytes;
  };
  static Block RandomBlock(gcap_scratch_t* scratch, gcap_stream_t* stream, std::mt19937* random) {
    const size_t bytes = 1 + (*random)() % kMostBytes;
    return {static_cast<char*>(AllocFrom(scratch, bytes, stream)), bytes};
  }
  static void ExpectDisjoint(std::vector<Block> blocks) {
    std::sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.ptr < b.ptr; });
    for (size_t i = 1; i < blocks.size(); ++i) EXPECT_LE(blocks[i - 1].ptr + blocks[i - 1].bytes, blocks[i].ptr);
  }
  // More are asked for than freed, and in the end all are freed.
  static void AllocAndFreeAtRandom(gcap_scratch_t* scratch, gcap_stream_t* stream, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Block> blocks;
    int num_allocs = 0;
    while (num_allocs < kBlocks || !blocks.empty()) {
      if (blocks.empty() || (num_allocs < kBlocks && random() % 100 < 53)) {
        blocks.push_back(RandomBlock(scratch, stream, &random));
        ++num_allocs;
      } else {
        std::swap(blocks[random() % blocks.size()], blocks.back());
        GCAP_EXPECT_OK(gcap_scratch_free(scratch, blocks.back().ptr));
        blocks.pop_back();
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Of, PoolOnStream, ::testing::Values(false, true),
                         [](const auto& info) { return info.param ? "DefaultStream" : "OwnStream"; });

TEST_P(PoolOnStream, AnySize) {
  void* ptr = this;
  GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 0, stream_, &ptr));
  EXPECT_EQ(ptr, nullptr);
  for (size_t bytes : {size_t{4}, kKiB, kMiB, kGiB / 8}) Free(Alloc(bytes));
  for (int i = 0; i < 2; ++i) {  // the first refusal leaves nothing that the second would meet
    GCAP_EXPECT_FAILS(gcap_scratch_alloc(scratch_, kPiB, stream_, &ptr), GCAP_RESOURCE_EXHAUSTED, std::to_string(kPiB));
    EXPECT_EQ(ptr, nullptr);
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
  }
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  Free(Alloc(kMiB));
}

TEST_P(PoolOnStream, RandomSizes) {
  std::mt19937 random(1);
  std::vector<Block> blocks;
  for (int i = 0; i < kBlocks; ++i) blocks.push_back(RandomBlock(scratch_, stream_, &random));
  ExpectDisjoint(blocks);
  for (const Block& block : blocks) Free(block.ptr);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
}

TEST_P(PoolOnStream, RandomSizesAndFrees) {
  AllocAndFreeAtRandom(scratch_, stream_, 2);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
}

TEST_P(PoolOnStream, ThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([this, i] {
      gcap_stream_t* stream = nullptr;
      GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
      AllocAndFreeAtRandom(scratch_, stream, i);
      GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
      GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, stream));
      GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    });
  }
  AllocAndFreeAtRandom(scratch_, stream_, 3);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  EXPECT_EQ(Stats().num_allocs, 4u * kBlocks);
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
