// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch when host memory for its own descriptions runs out: the step fails, and the arena is as before it.

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
  // Three pieces and the status for the planned size, and the three again for the size that is needed.
  ExpectAllocFailsWithoutHeap(7, 100, "describe a scratch region of 256 bytes");
  EXPECT_EQ(upstream_.num_regions(), 0u);
  EXPECT_EQ(Stats().total_allocated_bytes, 0u);
  Free(Alloc(100, a_));
}

TEST_F(ScratchHeap, OfASplit) {
  Free(Alloc(kChunk, a_));
  RememberAllocs();
  ExpectAllocFailsWithoutHeap(1, 100, "describe a scratch block");
  Free(Alloc(100, a_));
  EXPECT_EQ(NumRequests(), 1u);
}

TEST_F(ScratchHeap, OfAGatheredRun) {
  char* lower = Alloc(kChunk / 2, a_);
  char* upper = Alloc(kChunk / 2, b_);
  Free(lower);
  Free(upper);
  Wait(a_, b_);
  RememberAllocs();
  ExpectAllocFailsWithoutHeap(1, kChunk / 2 + 1, "describe a scratch block");
  EXPECT_EQ(Alloc(kChunk / 2 + 1, a_), lower);
  Free(lower);
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

}  // namespace
}  // namespace testing
}  // namespace gcap
