// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch when host memory for its own descriptions runs out: the step fails, and the arena is as before it.

#include <vector>

#include "gtest/gtest.h"
#include "lib/internal/memory_source.h"
#include "lib/scratch/inner.h"
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

TEST_F(ScratchHeap, IsGivenBackWithTheArena) {
  const auto whole_life = [this] {
    gcap_scratch_t* scratch = nullptr;
    void* ptr = nullptr;
    GCAP_ASSERT_OK(gcap_scratch_create(upstream_.get(), nullptr, &scratch));
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, 100, a_, &ptr));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, ptr));
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  };
  whole_life();  // what a thread and the simulator keep, they have now
  const long before = LiveBlocks();
  whole_life();
  EXPECT_EQ(LiveBlocks(), before);
}

TEST_F(ScratchHeap, OfTheTableOfWatchedBlocks) {
  char* block = Alloc(kGranule, a_);
  gcap_memory_claim_t claim = {};
  bool found = false;
  {
    const HeapFailure failure;
    GCAP_EXPECT_FAILS(gcap_memory_find_claim(reinterpret_cast<uintptr_t>(block), /*watch=*/true, &claim, &found),
                      GCAP_RESOURCE_EXHAUSTED, "to watch a block");
  }
  GCAP_EXPECT_OK(gcap_memory_find_claim(reinterpret_cast<uintptr_t>(block), /*watch=*/true, &claim, &found));
  EXPECT_TRUE(found);
  const uint64_t hand_out = claim.hand_out;
  Free(block);
  block = Alloc(kGranule, a_);
  GCAP_EXPECT_OK(gcap_memory_find_claim(reinterpret_cast<uintptr_t>(block), /*watch=*/true, &claim, &found));
  EXPECT_NE(claim.hand_out, hand_out) << "another hand-out of a block that was watched";
  Free(block);
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

// A stream's first block of much free memory comes with more, cut off before it.
TEST_F(ScratchHeap, OfTheFirstSplitForAStream) {
  options_.initial_chunk_bytes = 1 << 20;
  Create();
  Release(Open(a_));  // the stream is known from here on
  const std::vector<char*> blocks = UseUpBlockStructs(b_);
  ExpectAllocFailsWithoutHeap(1, 100, "describe a scratch block");
  Free(Alloc(100, a_));
  EXPECT_EQ(NumRequests(), 1u);
  for (char* block : blocks) Free(block);
}

TEST_F(ScratchHeap, OfAClaimForACapture) {
  MakeLargeRegion();
  char* others = Alloc(16 * kGranule, b_);
  char* own = Alloc(4 * kGranule, a_);
  char* live = Alloc(8 * kGranule, a_);
  std::vector<char*> blocks = UseUpBlockStructs(c_);
  blocks.push_back(Alloc((kLargeRegionGranules - 28 - blocks.size()) * kGranule, c_));  // just what is left
  Free(others);
  Free(own);
  Wait(a_, b_);
  {
    const HeapFailure failure;
    GCAP_EXPECT_FAILS(gcap_scratch_reservation_prepare(scratch_, a_), GCAP_RESOURCE_EXHAUSTED,
                      "describe a scratch block");
  }
  Validate();
  GCAP_EXPECT_OK(gcap_scratch_reservation_prepare(scratch_, a_));
  Validate();
  EXPECT_EQ(NumRequests(), 1u);
  Free(live);
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
  Free(Alloc(kChunk, a_));  // the stream is known
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

// --- Any of them ----------------------------------------------------------------------------------------------------

// Every status may be the one that cannot be made, and says RESOURCE_EXHAUSTED then, whatever it is about.
class EachHeapCall : public ScratchHeap {
 protected:
  // Makes one heap call after the other of an operation fail, on an arena of its own each time. The operation gives
  // what it answered, `check` is told, and what is left works.
  void Walk(const std::function<gcap_status_t()>& prepare, const std::function<gcap_status_t()>& operation,
            const std::function<void(const Outcome&)>& check, gcap_code_t code_at_last) {
    bool hit = true;
    for (int skip = 0; hit; ++skip) {
      ASSERT_LT(skip, 200);
      SCOPED_TRACE("heap allocation " + std::to_string(skip + 1) + " fails");
      upstream_.capacity_bytes = SIZE_MAX;
      upstream_.refuses_free = false;
      Create();
      GCAP_ASSERT_OK(prepare());
      const Outcome outcome = [&] {
        const HeapFailure failure(1, skip);
        const Outcome result(operation());
        hit = failure.hits() > 0;
        return result;
      }();
      Validate();
      EXPECT_TRUE(hit || outcome.code == code_at_last) << outcome.message;
      check(outcome);
      Validate();
      upstream_.capacity_bytes = SIZE_MAX;
      upstream_.refuses_free = false;
      Free(Alloc(3 * kChunk, a_));
      Synchronize(a_);
      Trim();
      EXPECT_EQ(Stats().total_allocated_bytes, 0u);
    }
  }
  // An allocation that finds nothing, and whose upstream refuses what it is asked.
  void ExpectAllocKeepsCounts(const Outcome& outcome) {
    EXPECT_EQ(Stats().in_use_bytes > 0, outcome.ok());
    if (outcome.ok()) Free(ptr_);
    ptr_ = nullptr;
  }

  void* ptr_ = nullptr;
};

TEST_F(EachHeapCall, OfAnAllocationThatUpstreamRefuses) {
  Walk(
      [this] {
        Free(Alloc(kChunk, b_));
        Synchronize(b_);
        upstream_.capacity_bytes = 2 * kChunk;
        upstream_.refuses_free = true;
        return nullptr;
      },
      [this] { return gcap_scratch_alloc(scratch_, 4 * kChunk, a_, &ptr_); },
      [this](const Outcome& outcome) { ExpectAllocKeepsCounts(outcome); }, GCAP_RESOURCE_EXHAUSTED);
}

TEST_F(EachHeapCall, OfAnAllocationThatClimbsTheLadder) {
  Walk(
      [this] {
        Free(Alloc(2 * kChunk, b_));
        Synchronize(b_);
        upstream_.capacity_bytes = 4 * kChunk;
        return nullptr;
      },
      [this] { return gcap_scratch_alloc(scratch_, 3 * kChunk, a_, &ptr_); },
      [this](const Outcome& outcome) { ExpectAllocKeepsCounts(outcome); }, GCAP_OK);
}

// What a capture lacked is known, also where nobody could be told.
TEST_F(EachHeapCall, OfAnAllocationThatACaptureLacks) {
  gcap_scratch_reservation_t* reservation = nullptr;
  Walk(
      [&] {
        Free(Alloc(kChunk, a_));
        return gcap_scratch_reservation_open(scratch_, a_, &reservation);
      },
      [this] { return gcap_scratch_alloc(scratch_, 2 * kChunk, a_, &ptr_); },
      [&](const Outcome& outcome) {
        EXPECT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED);
        Release(reservation);
        const size_t num_requests = NumRequests();
        Free(Alloc(1, a_));
        EXPECT_EQ(NumRequests(), num_requests + 1) << "the arena grows by what was lacking";
      },
      GCAP_RESOURCE_EXHAUSTED);
}

TEST_F(EachHeapCall, OfAPreparation) {
  Walk(
      [this] {
        Free(Alloc(2 * kChunk, a_));
        Synchronize(a_);
        Trim();
        return nullptr;
      },
      [this] { return gcap_scratch_reservation_prepare(scratch_, a_); },
      [this](const Outcome& outcome) {
        EXPECT_TRUE(outcome.ok() || outcome.code == GCAP_RESOURCE_EXHAUSTED);
        upstream_.most_bytes = outcome.ok() ? 0 : SIZE_MAX;
        Free(Alloc(2 * kChunk, a_));
        upstream_.most_bytes = SIZE_MAX;
        gcap_scratch_reservation_t* graph = Open(a_);
        Free(Alloc(kChunk, a_));
        Release(graph);  // the capture came: the memory is anybody's again
      },
      GCAP_OK);
}

TEST_F(EachHeapCall, OfTheEndOfARun) {
  Walk([this] { return gcap_scratch_begin_run(scratch_, a_); },
       [this] {
         gcap_status_t status = gcap_scratch_alloc(scratch_, 100, a_, &ptr_);
         return gcap_status_join(status, gcap_scratch_end_run(scratch_, a_));
       },
       [this](const Outcome&) {
         EXPECT_EQ(Stats().in_use_bytes, 0u);
         GCAP_EXPECT_FAILS(gcap_scratch_end_run(scratch_, a_), GCAP_FAILED_PRECONDITION, "no open run");
       },
       GCAP_OK);
}

// A refusal that cannot be told is one all the same.
TEST_F(EachHeapCall, OfADestroyThatIsRefused) {
  Walk([this] { return gcap_scratch_alloc(scratch_, 100, a_, &ptr_); },
       [this] { return gcap_scratch_destroy(scratch_); },
       [this](const Outcome& outcome) {
         EXPECT_FALSE(outcome.ok());
         Free(ptr_);
       },
       GCAP_FAILED_PRECONDITION);
  Walk(
      [this] {
        Free(Alloc(100, a_));
        Synchronize(a_);
        upstream_.refuses_free = true;
        return nullptr;
      },
      [this] { return gcap_scratch_destroy(scratch_); },
      [this](const Outcome& outcome) {
        EXPECT_FALSE(outcome.ok());
        EXPECT_EQ(upstream_.num_regions(), 1u);
      },
      GCAP_UNAVAILABLE);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
