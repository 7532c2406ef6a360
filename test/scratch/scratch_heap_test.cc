// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch when host memory for its own descriptions runs out: the step fails, and the arena is as before it.

#include <vector>

#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/scratch/scratch_test_support.h"

namespace gcap {
namespace testing {
namespace {

class ScratchHeap : public ScratchTest {
 protected:
  // Allocates with the first `count` heap allocations failing.
  void ExpectAllocFailsWithoutHeap(int count, size_t bytes, const std::string& culprit) {
    void* ptr = this;
    const Outcome outcome = [&] {
      const HeapFailure failure(count);
      const Outcome result(gcap_scratch_alloc(scratch_, bytes, a_, &ptr));
      EXPECT_EQ(failure.hits(), count);
      return result;
    }();
    EXPECT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED);
    EXPECT_TRUE(outcome.Names(culprit)) << outcome.message;
    EXPECT_EQ(ptr, nullptr);
    Validate();
    EXPECT_EQ(Stats().num_allocs, allocs_before_);
  }
  void RememberAllocs() { allocs_before_ = Stats().num_allocs; }

  static constexpr size_t kLargeRegionGranules = 600;
  void MakeLargeRegion() {
    options_.initial_chunk_bytes = kLargeRegionGranules * kGranule;
    Create();
  }
  // Takes granules until cutting off one more would need the heap.
  std::vector<char*> UseUpBlockStructs(gcap_stream_t* stream) {
    std::vector<char*> blocks = {Alloc(kGranule, stream)};
    while (true) {
      void* ptr = nullptr;
      const HeapFailure failure;
      const Outcome outcome(gcap_scratch_alloc(scratch_, kGranule, stream, &ptr));
      if (!outcome.ok()) break;
      blocks.push_back(static_cast<char*>(ptr));
    }
    RememberAllocs();
    return blocks;
  }

 private:
  uint64_t allocs_before_ = 0;
};

TEST_F(ScratchHeap, OfCreate) {
  gcap_scratch_t* scratch = nullptr;
  const HeapFailure failure;
  GCAP_EXPECT_FAILS(gcap_scratch_create(upstream_.get(), nullptr, &scratch), GCAP_RESOURCE_EXHAUSTED, "scratch arena");
  EXPECT_EQ(scratch, nullptr);
}

TEST_F(ScratchHeap, OfANewStream) {
  ExpectAllocFailsWithoutHeap(1, 100, "note a stream");
  Free(Alloc(100, a_));
}

TEST_F(ScratchHeap, OfTheTableOfRegions) {
  Release(Open(a_));  // the stream is known from here on
  ExpectAllocFailsWithoutHeap(1, 100, "table of scratch regions");
  EXPECT_EQ(NumRequests(), 0u);
  Free(Alloc(100, a_));
}

TEST_F(ScratchHeap, OfARegion) {
  Free(Alloc(kChunk, a_));
  Synchronize(a_);
  Trim();
  RememberAllocs();
  // The region and the status for the planned size, and the region again for the size that is needed.
  ExpectAllocFailsWithoutHeap(3, 100, "describe a scratch region of 256 bytes");
  EXPECT_EQ(upstream_.num_regions(), 0u);
  EXPECT_EQ(Stats().total_allocated_bytes, 0u);
  Free(Alloc(100, a_));
}

TEST_F(ScratchHeap, OfASplit) {
  MakeLargeRegion();
  const std::vector<char*> blocks = UseUpBlockStructs(a_);
  EXPECT_GT(blocks.size(), 1u);
  ExpectAllocFailsWithoutHeap(1, 100, "describe a scratch block");
  Free(Alloc(100, a_));
  EXPECT_EQ(NumRequests(), 1u);
  for (char* block : blocks) Free(block);
}

TEST_F(ScratchHeap, OfAGatheredRun) {
  MakeLargeRegion();
  char* lower = Alloc(8 * kGranule, a_);
  char* upper = Alloc(8 * kGranule, b_);
  std::vector<char*> blocks = UseUpBlockStructs(c_);
  blocks.push_back(Alloc((kLargeRegionGranules - 16 - blocks.size()) * kGranule, c_));  // just what is left
  Free(lower);
  Free(upper);
  Wait(a_, b_);
  RememberAllocs();
  ExpectAllocFailsWithoutHeap(1, 9 * kGranule, "describe a scratch block");
  EXPECT_EQ(Alloc(9 * kGranule, a_), lower);
  EXPECT_EQ(NumRequests(), 1u);
  Free(lower);
  for (char* block : blocks) Free(block);
}

// Cutting, joining, and many sizes: once it was done, doing it again asks the heap for nothing.
TEST_F(ScratchHeap, IsNotNeededInTheSteadyState) {
  for (int round = 0; round < 3; ++round) {
    const HeapFailure failure(round == 0 ? 0 : 1);
    std::vector<void*> blocks(50, nullptr);
    for (size_t i = 0; i < blocks.size(); ++i) {
      GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 1 + i * 977 % 9000, a_, &blocks[i]));
      if (i % 3 == 2) {
        GCAP_EXPECT_OK(gcap_scratch_free(scratch_, blocks[i - 1]));
        blocks[i - 1] = nullptr;
      }
    }
    for (void* block : blocks) GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block));
    EXPECT_EQ(failure.hits(), 0);
    EXPECT_EQ(Stats().in_use_bytes, 0u);
  }
  Validate();
}

TEST_F(ScratchHeap, OfAReservation) {
  gcap_scratch_reservation_t* reservation = nullptr;
  {
    const HeapFailure failure;
    GCAP_EXPECT_FAILS(gcap_scratch_reservation_open(scratch_, a_, &reservation), GCAP_RESOURCE_EXHAUSTED,
                      "scratch reservation");
  }
  EXPECT_EQ(reservation, nullptr);
  Validate();
  Release(Open(a_));
}

TEST_F(ScratchHeap, OfKeepingAnEarlierGraphsReservation) {
  Free(Alloc(kChunk, a_));
  gcap_scratch_reservation_t* first = Open(a_);
  char* ptr = Alloc(100, a_);
  Close(first);
  gcap_scratch_reservation_t* second = Open(a_);
  {
    const HeapFailure failure;
    GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, ptr), GCAP_RESOURCE_EXHAUSTED, "another graph's scratch");
  }
  Validate();
  Free(ptr);
  Release(second);
  Release(first);
}

TEST_F(ScratchHeap, OfDebugOptions) {
  options_.recorded_operations = 10;
  for (int skip : {2, 3}) {  // the arena and its view are there; then what the options need, too
    gcap_scratch_t* scratch = nullptr;
    const HeapFailure failure(1, skip);
    GCAP_EXPECT_FAILS(gcap_scratch_create(upstream_.get(), &options_, &scratch), GCAP_RESOURCE_EXHAUSTED,
                      skip == 2 ? "scratch's debug options" : "remember 10 calls");
    EXPECT_EQ(scratch, nullptr);
    EXPECT_EQ(failure.hits(), 1);
  }
  Create();
  Free(Alloc(100, a_));
  void* ptr = this;
  {
    const HeapFailure failure;
    GCAP_EXPECT_FAILS(gcap_scratch_alloc(scratch_, 100, a_, &ptr), GCAP_RESOURCE_EXHAUSTED, "note a scratch block");
    EXPECT_EQ(failure.hits(), 1);
  }
  EXPECT_EQ(ptr, nullptr);
  Validate();
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  Free(Alloc(100, a_));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
