// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks that pass from stream to stream: only to one that has waited for their last use.

#include <string>

#include "gtest/gtest.h"
#include "test/scratch/scratch_test_support.h"

namespace gcap {
namespace testing {
namespace {

// Each test first fills the only region with blocks, so that a request is served from a freed block or not at all: the
// limit leaves no room to grow.
class ScratchStreams : public ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    options_.memory_limit_bytes = kChunk;
    hooks_.fail_at_once = true;  // a wait before it fails would change what is asked next
    Create();
  }

  // Whether the stream gets a block of the size now. It is freed at once, and so tagged with the stream.
  bool CanAlloc(size_t bytes, gcap_stream_t* stream) {
    void* ptr = nullptr;
    const Outcome outcome(gcap_scratch_alloc(scratch_, bytes, stream, &ptr));
    EXPECT_TRUE(outcome.ok() || outcome.code == GCAP_RESOURCE_EXHAUSTED) << outcome.message;
    EXPECT_EQ(outcome.ok(), ptr != nullptr);
    Validate();
    if (outcome.ok()) Free(ptr);
    return outcome.ok();
  }
};

TEST_F(ScratchStreams, UnfinishedBlockStaysWithItsStream) {
  Free(Alloc(kChunk, a_));
  EXPECT_FALSE(CanAlloc(1, b_));
  EXPECT_TRUE(CanAlloc(kChunk, a_));
}

TEST_F(ScratchStreams, WaitingMakesItAvailable) {
  Free(Alloc(kChunk, a_));
  Wait(b_, a_);
  EXPECT_FALSE(CanAlloc(1, c_));
  EXPECT_TRUE(CanAlloc(kChunk, b_));
}

TEST_F(ScratchStreams, WaitingForTheTimeBeforeTheFreeIsNotEnough) {
  char* ptr = Alloc(kChunk, a_);
  Wait(b_, a_);
  Free(ptr);
  EXPECT_FALSE(CanAlloc(1, b_));
  Wait(b_, a_);
  EXPECT_TRUE(CanAlloc(1, b_));
}

TEST_F(ScratchStreams, WaitingTheWrongWayRoundIsNotEnough) {
  Free(Alloc(kChunk, a_));
  Wait(a_, b_);
  EXPECT_FALSE(CanAlloc(1, b_));
}

TEST_F(ScratchStreams, WaitingIsTransitive) {
  Free(Alloc(kChunk, a_));
  Wait(b_, a_);
  Wait(c_, b_);
  EXPECT_TRUE(CanAlloc(kChunk, c_));
}

TEST_F(ScratchStreams, WaitsInTheWrongOrderAreNotTransitive) {
  Free(Alloc(kChunk, a_));
  Wait(c_, b_);  // b knows nothing of a yet
  Wait(b_, a_);
  EXPECT_FALSE(CanAlloc(1, c_));
}

TEST_F(ScratchStreams, SynchronisingMakesItFreeForAll) {
  Free(Alloc(kChunk, a_));
  Synchronize(a_);
  EXPECT_TRUE(CanAlloc(kChunk, c_));
}

TEST_F(ScratchStreams, SynchronisingBeforeTheFreeIsNotEnough) {
  char* ptr = Alloc(kChunk, a_);
  Synchronize(a_);
  Free(ptr);
  EXPECT_FALSE(CanAlloc(1, b_));
}

TEST_F(ScratchStreams, BlockPassedOnBelongsToItsNewStream) {
  Free(Alloc(kChunk, a_));
  Wait(b_, a_);
  Free(Alloc(kChunk, b_));
  EXPECT_FALSE(CanAlloc(1, a_));  // although it was a's before
  Wait(a_, b_);
  EXPECT_TRUE(CanAlloc(kChunk, a_));
}

TEST_F(ScratchStreams, FreedAtDifferentTimesCountsAsTheLater) {
  char* lower = Alloc(kChunk / 2, a_);
  char* upper = Alloc(kChunk / 2, a_);
  Free(lower);
  Wait(b_, a_);
  Free(upper);  // joins its neighbour
  EXPECT_FALSE(CanAlloc(kChunk, b_));
  EXPECT_FALSE(CanAlloc(kChunk / 2 + 1, b_));
  Wait(b_, a_);
  EXPECT_TRUE(CanAlloc(kChunk, b_));
}

TEST_F(ScratchStreams, NeighboursOfTwoStreamsGoTogetherOnlyToOneThatWaitedForBoth) {
  char* lower = Alloc(kChunk / 2, a_);
  char* upper = Alloc(kChunk / 2, b_);
  Free(lower);
  Free(upper);
  Wait(c_, a_);
  EXPECT_FALSE(CanAlloc(kChunk, c_));
  EXPECT_FALSE(CanAlloc(kChunk, a_));
  EXPECT_FALSE(CanAlloc(kChunk, b_));
  EXPECT_TRUE(CanAlloc(kChunk / 2, c_));  // it has a's half, and from here on the half is c's
  Wait(c_, b_);
  EXPECT_TRUE(CanAlloc(kChunk, c_));
  EXPECT_FALSE(CanAlloc(1, a_));
  EXPECT_FALSE(CanAlloc(1, b_));
}

TEST_F(ScratchStreams, GatheredSurplusKeepsItsTag) {
  char* lower = Alloc(kChunk / 2, a_);
  char* upper = Alloc(kChunk / 2, b_);
  Free(lower);
  Free(upper);
  Wait(a_, b_);
  char* gathered = Alloc(kChunk / 2 + kGranule, a_);
  EXPECT_EQ(gathered, lower);
  EXPECT_FALSE(CanAlloc(kGranule, c_));
  EXPECT_TRUE(CanAlloc(kChunk / 2 - kGranule, b_));  // b's own, still
  Free(gathered);
}

TEST_F(ScratchStreams, OwnBlocksComeFirst) {
  char* own = Alloc(kGranule, a_);
  char* other = Alloc(kGranule, b_);
  Free(own);
  Free(other);
  Synchronize(b_);
  // The rest of the region is nobody's, b's block is finished; a takes its own.
  char* ptr = Alloc(kGranule, a_);
  EXPECT_EQ(ptr, own);
  Free(ptr);
}

TEST_F(ScratchStreams, FinishedBlocksOfSeveralStreamsGoTogether) {
  char* lower = Alloc(kChunk / 2, a_);
  char* upper = Alloc(kChunk / 2, b_);
  Free(lower);
  Free(upper);
  Synchronize(a_);
  Synchronize(b_);
  EXPECT_TRUE(CanAlloc(kChunk, c_));
}

TEST_F(ScratchStreams, ForgetMakesBlocksFreeForAll) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  char* ptr = Alloc(kChunk, stream);
  GCAP_EXPECT_FAILS(gcap_scratch_forget_stream(scratch_, stream), GCAP_FAILED_PRECONDITION, "1 blocks handed out");
  Free(ptr);
  GCAP_EXPECT_FAILS(gcap_scratch_forget_stream(scratch_, stream), GCAP_FAILED_PRECONDITION, "not synchronised");
  Synchronize(stream);
  const auto describes = [this](const std::string& part) {
    char text[1024];
    EXPECT_LT(gcap_scratch_describe(scratch_, text, sizeof(text)), static_cast<int>(sizeof(text)));
    return std::string(text).find(part) != std::string::npos;
  };
  const std::string for_all = std::to_string(kChunk) + " are free for all";
  EXPECT_FALSE(describes(for_all));
  GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, stream));
  EXPECT_TRUE(describes(for_all));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  Validate();
  EXPECT_TRUE(CanAlloc(kChunk, a_));
}

TEST_F(ScratchStreams, ForgetRefusesAStreamWithAReservation) {
  gcap_scratch_reservation_t* reservation = Open(a_);
  Close(reservation);
  GCAP_EXPECT_FAILS(gcap_scratch_forget_stream(scratch_, a_), GCAP_FAILED_PRECONDITION, "1 reservations");
  Release(reservation);
  GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, a_));
}

TEST_F(ScratchStreams, ForgetOfAnUnknownStreamIsNothing) {
  GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, a_));
  Validate();
}

// What a thread remembers of a stream is of no use once the stream was forgotten.
TEST_F(ScratchStreams, ANullStreamIsNotOneThatWasForgotten) {
  char* ptr = Alloc(100, a_);
  Free(ptr);
  Synchronize(a_);
  GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, a_));
  ExpectAllocFails(100, nullptr, GCAP_INVALID_ARGUMENT, "stream is NULL");
  Free(Alloc(100, a_));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
