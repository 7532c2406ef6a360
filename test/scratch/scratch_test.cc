// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The arena as one stream sees it: blocks, growth, limits, trimming, its end, and bad input.

#include "gcap/scratch.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "test/scratch/scratch_test_support.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class Scratch : public ScratchTest {
 protected:
  using Sizes = std::vector<size_t>;
};

TEST_F(Scratch, OptionsDefaultToOrtsArena) {
  gcap_scratch_options_t options;
  std::memset(&options, 0xff, sizeof(options));
  gcap_scratch_options_init(&options);
  EXPECT_EQ(options.initial_chunk_bytes, 1048576u);
  EXPECT_EQ(options.initial_growth_chunk_bytes, 2097152u);
  EXPECT_EQ(options.max_extend_bytes, 1073741824u);
  EXPECT_EQ(options.max_dead_bytes_per_chunk, 134217728u);
  EXPECT_EQ(options.memory_limit_bytes, 0u);
  EXPECT_FALSE(options.extend_as_requested);
}

TEST_F(Scratch, NullOptionsAreTheDefaults) {
  gcap_scratch_t* scratch = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(upstream_.get(), nullptr, &scratch));
  void* ptr = nullptr;
  GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, 1, a_, &ptr));
  EXPECT_EQ(upstream_.requests(), Sizes{1048576});
  GCAP_EXPECT_OK(gcap_scratch_free(scratch, ptr));
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
}

TEST_F(Scratch, CreateRejectsBadOptions) {
  gcap_scratch_t* scratch = nullptr;
  GCAP_EXPECT_FAILS(gcap_scratch_create(nullptr, &options_, &scratch), GCAP_INVALID_ARGUMENT, "upstream");
  Upstream coarse(128);
  GCAP_EXPECT_FAILS(gcap_scratch_create(coarse.get(), &options_, &scratch), GCAP_INVALID_ARGUMENT, "128");
  for (size_t bytes : {size_t{0}, SIZE_MAX}) {
    options_.initial_chunk_bytes = bytes;
    GCAP_EXPECT_FAILS(gcap_scratch_create(upstream_.get(), &options_, &scratch), GCAP_INVALID_ARGUMENT,
                      "initial_chunk_bytes is " + std::to_string(bytes));
  }
  options_.initial_chunk_bytes = kChunk;
  for (size_t bytes : {size_t{0}, SIZE_MAX}) {
    options_.initial_growth_chunk_bytes = bytes;
    GCAP_EXPECT_FAILS(gcap_scratch_create(upstream_.get(), &options_, &scratch), GCAP_INVALID_ARGUMENT,
                      "initial_growth_chunk_bytes is " + std::to_string(bytes));
  }
  options_.initial_growth_chunk_bytes = kChunk;
  options_.max_extend_bytes = 0;
  GCAP_EXPECT_FAILS(gcap_scratch_create(upstream_.get(), &options_, &scratch), GCAP_INVALID_ARGUMENT,
                    "max_extend_bytes is 0");
  EXPECT_EQ(scratch, nullptr);
}

TEST_F(Scratch, BlocksAreDisjoint) {
  const Sizes sizes = {1, 255, 256, 257, 1000, 5000, 3, 70000};
  std::vector<char*> blocks;
  for (size_t i = 0; i < sizes.size(); ++i) {
    blocks.push_back(Alloc(sizes[i], a_));
    std::memset(blocks[i], static_cast<int>(i + 1), sizes[i]);
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(std::count(blocks[i], blocks[i] + sizes[i], static_cast<char>(i + 1)),
              static_cast<std::ptrdiff_t>(sizes[i]));
    Free(blocks[i]);
  }
}

TEST_F(Scratch, ZeroBytesAndNullAreNothing) {
  void* ptr = this;
  GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 0, a_, &ptr));
  EXPECT_EQ(ptr, nullptr);
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, nullptr));
  EXPECT_EQ(Stats().num_allocs, 0u);
  GCAP_EXPECT_OK(gcap_scratch_destroy(nullptr));
}

TEST_F(Scratch, RejectsSizesThatOverflowAndNoStream) {
  ExpectAllocFails(SIZE_MAX, a_, GCAP_INVALID_ARGUMENT, std::to_string(SIZE_MAX));
  ExpectAllocFails(SIZE_MAX - 254, a_, GCAP_INVALID_ARGUMENT, "overflows");
  ExpectAllocFails(100, nullptr, GCAP_INVALID_ARGUMENT, "stream");
  upstream_.most_bytes = 1 << 20;
  ExpectAllocFails(SIZE_MAX - 255, a_, GCAP_RESOURCE_EXHAUSTED, std::to_string(SIZE_MAX - 255));
  ExpectAllocFails(SIZE_MAX / 2, a_, GCAP_RESOURCE_EXHAUSTED, "cannot grow");
}

// 4 KiB too much, less than an eighth, in what the stream freed itself.
TEST_F(Scratch, FreeMemoryOfTheStreamIsGivenWholeIfItIsLittleMore) {
  options_.initial_chunk_bytes = 64 * 1024;
  for (const bool cut : {false, true}) {
    options_.max_dead_bytes_per_chunk = cut ? 0 : 4096;
    Create();
    for (char* block : {Alloc(kGranule, a_), Alloc(kGranule, a_)}) Free(block);  // it could be cut at once
    Free(Alloc(64 * 1024, a_));
    char* block = Alloc(60 * 1024, a_);
    EXPECT_EQ(Stats().in_use_bytes, cut ? 60 * 1024u : 64 * 1024u);
    Free(block);
  }
}

TEST_F(Scratch, FreeMemoryOfTheStreamIsNotGivenForASizeThatIsNone) {
  for (char* block : {Alloc(kGranule, a_), Alloc(kGranule, a_)}) Free(block);  // two that become one
  void* ptr = this;
  GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 0, a_, &ptr));
  EXPECT_EQ(ptr, nullptr);
  ExpectAllocFails(SIZE_MAX, a_, GCAP_INVALID_ARGUMENT, "overflows");
  EXPECT_EQ(Stats().num_allocs, 2u);
}

TEST_F(Scratch, RejectsFreeOfWhatIsNoBlock) {
  char* ptr = Alloc(1024, a_);
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, this), GCAP_INVALID_ARGUMENT, "not allocated");
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, ptr + 1), GCAP_INVALID_ARGUMENT, "inside a block");
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, ptr + kGranule), GCAP_INVALID_ARGUMENT, "inside a block");
  Validate();
  EXPECT_EQ(Stats().in_use_bytes, 1024u);
  char* other = Alloc(1024, a_);
  Free(ptr);
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, ptr), GCAP_INVALID_ARGUMENT, "freed already");
  Validate();
  EXPECT_EQ(Stats().in_use_bytes, 1024u);
  Free(other);
}

// Whatever the block has become since: cached, joined with a neighbour, or given back.
TEST_F(Scratch, RejectsFreeOfWhatWasFreed) {
  char* ptr = Alloc(1024, a_);
  char* upper = Alloc(1024, a_);
  Free(upper);
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, upper), GCAP_INVALID_ARGUMENT, "freed already");
  Free(ptr);
  Free(Alloc(kChunk, a_));  // joins all
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, upper), GCAP_INVALID_ARGUMENT, "freed already");
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, ptr), GCAP_INVALID_ARGUMENT, "freed already");
  Synchronize(a_);
  Trim();
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, ptr), GCAP_INVALID_ARGUMENT, "not allocated");
}

TEST_F(Scratch, ServesManyStreams) {
  std::vector<gcap_stream_t*> streams(100);
  std::vector<char*> blocks;
  for (gcap_stream_t*& stream : streams) {
    GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
    blocks.push_back(Alloc(kGranule, stream));
  }
  EXPECT_EQ(Stats().in_use_bytes, 100 * kGranule);
  for (size_t i = 0; i < streams.size(); ++i) {
    Free(blocks[i]);
    EXPECT_EQ(Alloc(kGranule, streams[i]), blocks[i]);
    Free(blocks[i]);
    Synchronize(streams[i]);
    if (i % 3 == 0) GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, streams[i]));
  }
  EXPECT_EQ(Stats().num_allocs, 200u);
  EXPECT_EQ(Stats().max_in_use_bytes, 100 * kGranule);
  for (size_t i = 0; i < streams.size(); ++i) {
    if (i % 3 != 0) GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, streams[i]));
    GCAP_EXPECT_OK(gcap_stream_destroy(streams[i]));
  }
  Validate();
}

TEST_F(Scratch, ReusesABlockOfItsStreamAtOnce) {
  char* first = Alloc(1000, a_);
  char* second = Alloc(1000, a_);
  Free(first);
  EXPECT_EQ(Alloc(900, a_), first);
  Free(second);
  Free(first);
  EXPECT_EQ(NumRequests(), 1u);
}

// Whatever the order of the frees, the parts become the whole again.
TEST_F(Scratch, CoalescesInEveryOrder) {
  std::vector<size_t> order = {0, 1, 2, 3};
  do {
    std::vector<char*> blocks;
    for (size_t i = 0; i < order.size(); ++i) blocks.push_back(Alloc(kChunk / 4, a_));
    for (size_t i : order) Free(blocks[i]);
    Free(Alloc(kChunk, a_));
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(NumRequests(), 1u);
}

TEST_F(Scratch, SplitsTheRestOff) {
  char* whole = Alloc(kChunk, a_);
  Free(whole);
  char* small = Alloc(1, a_);
  EXPECT_EQ(small, whole);
  char* rest = Alloc(kChunk - kGranule, a_);
  EXPECT_EQ(rest, whole + kGranule);
  EXPECT_EQ(NumRequests(), 1u);
  Free(small);
  Free(rest);
}

// Less than an eighth of the request too much, and no more than the option says: not worth cutting off.
TEST_F(Scratch, LeavesDeadBytesInABlock) {
  options_.initial_chunk_bytes = 64 * kGranule;
  for (const size_t max_dead_bytes : {size_t{0}, 6 * kGranule, 7 * kGranule, SIZE_MAX}) {
    options_.max_dead_bytes_per_chunk = max_dead_bytes;
    Create();
    const bool whole = max_dead_bytes >= 7 * kGranule;
    char* block = Alloc(57 * kGranule, a_);  // 7 granules too much, and an eighth of 57 is more than 7
    EXPECT_EQ(Stats().in_use_bytes, (whole ? 64 : 57) * kGranule) << max_dead_bytes;
    EXPECT_EQ(Stats().requested_in_use_bytes, 57 * kGranule);
    Free(block);
    EXPECT_EQ(Stats().in_use_bytes, 0u);
    Free(Alloc(64 * kGranule, a_));            // joins what was cut
    char* smaller = Alloc(56 * kGranule, a_);  // 8 granules too much: cut
    EXPECT_EQ(Stats().in_use_bytes, 56 * kGranule);
    Free(smaller);
  }
}

TEST_F(Scratch, RegionsDoubleUpToTheLimit) {
  options_.max_extend_bytes = 4 * kChunk;
  Create();
  std::vector<char*> blocks;
  // Each of these takes the whole next region.
  for (size_t bytes : {kChunk, 2 * kChunk, 4 * kChunk, 4 * kChunk}) blocks.push_back(Alloc(bytes, a_));
  EXPECT_EQ(upstream_.requests(), (Sizes{kChunk, 2 * kChunk, 4 * kChunk, 4 * kChunk}));
  blocks.push_back(Alloc(5 * kChunk, a_));  // more than regions ever double to
  EXPECT_EQ(upstream_.requests().back(), 5 * kChunk);
  EXPECT_EQ(Stats().num_extensions, 5u);
  EXPECT_EQ(Stats().total_allocated_bytes, 16 * kChunk);
  for (char* block : blocks) Free(block);
}

TEST_F(Scratch, WithoutALimitRegionsAreLargerThanTheirFirstBlockToo) {
  options_.max_extend_bytes = SIZE_MAX;
  Create();
  char* first = Alloc(kChunk, a_);
  char* second = Alloc(kGranule, a_);
  EXPECT_EQ(upstream_.requests(), (Sizes{kChunk, kChunk}));
  for (char* block : {first, second}) Free(block);
}

TEST_F(Scratch, WhatIsHeldDoublesWhileItIsLittle) {
  std::vector<char*> blocks = {Alloc(5 * kChunk, a_)};
  EXPECT_EQ(upstream_.requests(), Sizes{5 * kChunk});
  blocks.push_back(Alloc(kChunk, a_));
  EXPECT_EQ(upstream_.requests().back(), 5 * kChunk);
  blocks.push_back(Alloc(5 * kChunk, a_));
  EXPECT_EQ(upstream_.requests().back(), 10 * kChunk);
  for (char* block : blocks) Free(block);
}

TEST_F(Scratch, TheFirstRegionIsAsLargeAsItsOptionSays) {
  options_.initial_chunk_bytes = 8 * kChunk;
  options_.max_extend_bytes = kChunk;
  Create();
  char* first = Alloc(100, a_);
  char* second = Alloc(8 * kChunk - kGranule, a_);
  char* third = Alloc(100, a_);
  EXPECT_EQ(upstream_.requests(), (Sizes{8 * kChunk, kChunk}));
  for (char* block : {first, second, third}) Free(block);
}

TEST_F(Scratch, AnyLimitOfRegionsKeepsBlocksAligned) {
  options_.max_extend_bytes = 10 * 1000 * 1000;
  Create();
  char* large = Alloc(2 * kMiB, a_);
  char* small = Alloc(1000, a_);
  for (char* block : {large, small}) Free(block);
  options_.max_extend_bytes = SIZE_MAX;
  Create();
  Free(Alloc(2 * kMiB, a_));
}

TEST_F(Scratch, LargeRequestsShareRegionsOfOneSize) {
  std::vector<char*> blocks = {Alloc(3 * kMiB, a_)};
  EXPECT_EQ(upstream_.requests(), Sizes{20 * kMiB});
  for (int i = 0; i < 6; ++i) blocks.push_back(Alloc(3 * kMiB, a_));
  EXPECT_EQ(upstream_.requests(), (Sizes{20 * kMiB, 20 * kMiB}));
  blocks.push_back(Alloc(200 * kMiB, a_));
  blocks.push_back(Alloc(19 * kMiB, a_));
  EXPECT_EQ(upstream_.requests().back(), 30 * kMiB) << "an eighth of the 240 MiB that are held";
  for (char* block : blocks) Free(block);
}

// What is small comes from the other end of a large region than what is not.
TEST_F(Scratch, ASmallBlockThatLivesOnDoesNotDivideALargeRegion) {
  options_.initial_chunk_bytes = 16 * kMiB;
  Create();
  char* large = Alloc(8 * kMiB, a_);
  char* small = Alloc(1000, a_);
  Free(large);
  large = Alloc(14 * kMiB, a_);
  EXPECT_EQ(NumRequests(), 1u);
  Free(large);
  Free(small);
}

TEST_F(Scratch, ExtendsAsRequested) {
  options_.extend_as_requested = true;
  Create();
  char* first = Alloc(1000, a_);
  char* second = Alloc(300, a_);
  EXPECT_EQ(upstream_.requests(), (Sizes{1024, 512}));
  Free(first);
  Free(second);
}

TEST_F(Scratch, KeepsToItsLimit) {
  options_.memory_limit_bytes = 2 * kChunk + 300;
  Create();
  char* first = Alloc(kChunk, a_);
  ExpectAllocFails(2 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, std::to_string(options_.memory_limit_bytes));
  EXPECT_EQ(NumRequests(), 1u);
  char* second = Alloc(kChunk + 256, a_);  // the last whole granule
  EXPECT_EQ(upstream_.requests(), (Sizes{kChunk, kChunk + 256}));
  ExpectAllocFails(1, a_, GCAP_RESOURCE_EXHAUSTED, "256");
  EXPECT_EQ(Stats().limit_bytes, options_.memory_limit_bytes);
  Free(first);
  Free(Alloc(1, a_));
  Free(second);
}

TEST_F(Scratch, AsksForLessWhereUpstreamIsShort) {
  upstream_.most_bytes = 1024;
  char* ptr = Alloc(1000, a_);
  EXPECT_EQ(upstream_.requests(), (Sizes{kChunk, 1024}));
  ExpectAllocFails(1025, a_, GCAP_RESOURCE_EXHAUSTED, "upstream has no 1280 bytes");
  Free(ptr);
}

TEST_F(Scratch, ReturnsMisalignedRegions) {
  upstream_.shift_bytes = 64;
  ExpectAllocFails(100, a_, GCAP_LIBRARY_ERROR, "upstream");
  EXPECT_EQ(upstream_.num_regions(), 0u);
  Free(Alloc(100, a_));
}

TEST_F(Scratch, Counts) {
  char* first = Alloc(100, a_);
  char* second = Alloc(300, b_);
  Free(first);
  gcap_allocator_stats_t stats = Stats();
  EXPECT_EQ(stats.in_use_bytes, 512u);
  EXPECT_EQ(stats.requested_in_use_bytes, 300u);
  EXPECT_EQ(stats.max_in_use_bytes, 768u);
  EXPECT_EQ(stats.total_allocated_bytes, kChunk);
  EXPECT_EQ(stats.max_alloc_bytes, 300u);
  EXPECT_EQ(stats.num_allocs, 2u);
  EXPECT_EQ(stats.num_extensions, 1u);
  EXPECT_EQ(stats.num_shrinkages, 0u);
  Free(second);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  EXPECT_EQ(Stats().requested_in_use_bytes, 0u);
}

TEST_F(Scratch, TrimGivesIdleRegionsBack) {
  char* first = Alloc(kChunk, a_);
  char* second = Alloc(2 * kChunk, a_);
  Free(first);
  Trim();
  EXPECT_EQ(upstream_.num_regions(), 2u);  // work of the stream may still read the first
  Synchronize(a_);
  Trim();
  EXPECT_EQ(upstream_.num_regions(), 1u);
  EXPECT_TRUE(upstream_.Owns(second, 2 * kChunk));
  EXPECT_EQ(Stats().total_allocated_bytes, 2 * kChunk);
  EXPECT_EQ(Stats().num_shrinkages, 1u);
  Free(second);
}

TEST_F(Scratch, TrimRestartsTheDoubling) {
  Free(Alloc(8 * kChunk, a_));
  Synchronize(a_);
  Trim();
  Free(Alloc(1, a_));
  EXPECT_EQ(upstream_.requests(), (Sizes{8 * kChunk, 2 * kChunk}));
}

TEST_F(Scratch, TrimKeepsWhatUpstreamRefuses) {
  Free(Alloc(100, a_));
  Synchronize(a_);
  upstream_.refuses_free = true;
  GCAP_EXPECT_FAILS(gcap_scratch_trim(scratch_), GCAP_UNAVAILABLE, "takes nothing back");
  Validate();
  EXPECT_EQ(Stats().total_allocated_bytes, kChunk);
  Free(Alloc(kChunk, b_));
  EXPECT_EQ(NumRequests(), 1u);
  upstream_.refuses_free = false;
}

TEST_F(Scratch, DestroyRefusesWhileBlocksAreHandedOut) {
  char* ptr = Alloc(100, a_);
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, "1 blocks");
  Validate();
  EXPECT_EQ(upstream_.num_regions(), 1u);
  Free(ptr);
}

TEST_F(Scratch, DestroyKeepsTheArenaWhenUpstreamRefuses) {
  Free(Alloc(100, a_));
  upstream_.refuses_free = true;
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_UNAVAILABLE, "takes nothing back");
  Validate();
  upstream_.refuses_free = false;
  Free(Alloc(100, a_));
}

// An upstream that is foreign code may look at the arena, and even allocate from it.
TEST_F(Scratch, UpstreamMayCallBack) {
  char* inner = nullptr;
  upstream_.on_alloc = [&] {
    upstream_.on_alloc = nullptr;
    EXPECT_EQ(Stats().num_allocs, 0u);
    inner = Alloc(100, b_);
  };
  char* outer = Alloc(100, a_);
  EXPECT_NE(inner, outer);
  EXPECT_EQ(upstream_.num_regions(), 2u);
  Free(inner);
  Free(outer);
}

TEST_F(Scratch, ServesSeveralThreads) {
  std::vector<std::thread> threads;
  for (gcap_stream_t* stream : {a_, b_, c_}) {
    threads.emplace_back([this, stream] {
      const char mark = stream == a_ ? 1 : stream == b_ ? 2 : 3;
      for (size_t round = 0; round < 200; ++round) {
        const size_t bytes = 1 + round * 37 % 3000;
        void* ptr = nullptr;
        void* other = nullptr;
        GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, bytes, stream, &ptr));
        std::memset(ptr, mark, bytes);
        GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 100, stream, &other));
        EXPECT_EQ(std::count(static_cast<char*>(ptr), static_cast<char*>(ptr) + bytes, mark),
                  static_cast<std::ptrdiff_t>(bytes));
        GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
        GCAP_EXPECT_OK(gcap_scratch_free(scratch_, other));
        if (round % 50 == 0) {
          GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
          GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
          GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Validate();
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
