// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Captures of the same work, one after the other: what a rehearsal reserved is kept for the capture that follows, which
// gets its blocks at the same addresses; and who else may have that memory, and when.

#include <random>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "lib/capture/inner.h"
#include "lib/scratch/inner.h"
#include "lib/scratch/script.h"
#include "test/base/heap_failure.h"
#include "test/scratch/scratch_test_support.h"

namespace gcap {
namespace testing {
namespace {

constexpr uint64_t kWork = 3, kOtherWork = 4;  // no numbers that are truth values too

class Rehearsal : public ScratchTest {
 protected:
  void TearDown() override {
    gcap_retained_release(retained_);
    ScratchTest::TearDown();
  }
  // A capture on `stream` that allocates blocks of some granules, and gives every second one back at once.
  std::vector<char*> Capture(gcap_stream_t* stream, uint64_t work, bool is_rehearsal,
                             const std::vector<size_t>& granules) {
    gcap_capture_t* capture = nullptr;
    GCAP_EXPECT_OK(gcap_capture_begin(gcap_stream_handle(stream), nullptr, &capture));
    gcap_capture_set_work(capture, work, is_rehearsal);
    std::vector<char*> blocks;
    for (size_t i = 0; i < granules.size(); ++i) {
      blocks.push_back(Alloc(granules[i] * kGranule, stream));
      if (i % 2 == 1) Free(blocks[i - 1]);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i % 2 == 1 || i + 1 == blocks.size()) Free(blocks[i]);
    }
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    if (is_rehearsal) {
      gcap_retained_release(retained);
    } else {
      gcap_retained_release(retained_);
      retained_ = retained;
    }
    Validate();
    return blocks;
  }
  std::vector<char*> Rehearse(const std::vector<size_t>& granules, uint64_t work = kWork) {
    return Capture(a_, work, /*is_rehearsal=*/true, granules);
  }
  // A rehearsal that leaves a block live.
  char* RehearseAndLeave(size_t bytes) {
    gcap_capture_t* capture = nullptr;
    GCAP_EXPECT_OK(gcap_capture_begin(gcap_stream_handle(a_), nullptr, &capture));
    gcap_capture_set_work(capture, kWork, /*is_rehearsal=*/true);
    char* const left = Alloc(bytes, a_);
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    gcap_retained_release(retained);
    return left;
  }
  // Free memory of `a_` in pieces of several sizes: a search takes the smallest that will do.
  void MakeHoles() {
    std::vector<char*> blocks;
    for (size_t i = 0; i < 12; ++i) blocks.push_back(Alloc((i % 4 + 1) * 3 * kGranule, a_));
    for (size_t i = 0; i < blocks.size(); i += 2) Free(blocks[i]);
    for (size_t i = 1; i < blocks.size(); i += 2) live_.push_back(blocks[i]);
  }
  void FreeLive() {
    for (char* block : live_) Free(block);
    live_.clear();
  }

  const std::vector<size_t> granules_ = {2, 1, 7, 3, 5, 1, 2};
  std::vector<char*> live_;
  gcap_retained_t* retained_ = nullptr;
};

TEST_F(Rehearsal, ACaptureGetsEachBlockWhereTheRehearsalsHadIt) {
  MakeHoles();
  const std::vector<char*> rehearsed = Rehearse(granules_);
  EXPECT_EQ(Rehearse(granules_), rehearsed);
  FreeLive();  // a search would find other holes
  EXPECT_EQ(Capture(a_, kWork, /*is_rehearsal=*/false, granules_), rehearsed);
}

// Whatever the work asks for: blocks of one size, of which a search would find another one first, too.
TEST_F(Rehearsal, RandomBlocksLieWhereTheRehearsalsHadThem) {
  std::mt19937 random(4711);
  for (int trial = 0; trial < 30; ++trial) {
    SCOPED_TRACE(trial);
    std::vector<size_t> granules(2 + random() % 7);
    for (size_t& each : granules) each = 1 + random() % (trial % 2 == 0 ? 2 : 6);
    MakeHoles();
    const std::vector<char*> rehearsed = Rehearse(granules);
    EXPECT_EQ(Rehearse(granules), rehearsed);
    FreeLive();
    EXPECT_EQ(Capture(a_, kWork, /*is_rehearsal=*/false, granules), rehearsed);
    gcap_retained_release(retained_);
    retained_ = nullptr;
  }
}

// The work that asks for something else is followed as far as it asks for the same.
TEST_F(Rehearsal, AnotherSequenceOfBlocksIsFollowedAsFarAsItIsTheSame) {
  MakeHoles();
  const std::vector<char*> rehearsed = Rehearse(granules_);
  std::vector<size_t> other = granules_;
  other[3] = 4;
  const std::vector<char*> again = Rehearse(other);
  EXPECT_EQ(std::vector<char*>(again.begin(), again.begin() + 3),
            std::vector<char*>(rehearsed.begin(), rehearsed.begin() + 3));
  EXPECT_EQ(Capture(a_, kWork, /*is_rehearsal=*/false, other), again);
  FreeLive();
}

// No other stream gets what was rehearsed, though it waited for all that the stream did.
TEST_F(Rehearsal, AnotherStreamGetsOtherMemory) {
  Free(Alloc(kChunk, a_));
  const std::vector<char*> rehearsed = Rehearse({8, 8});
  GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
  std::vector<char*> others;
  for (int i = 0; i < 8; ++i) others.push_back(Alloc(4 * kGranule, b_));
  EXPECT_EQ(Capture(a_, kWork, /*is_rehearsal=*/false, {8, 8}), rehearsed);
  for (char* other : others) Free(other);
}

TEST_F(Rehearsal, AnEagerAllocationOfTheStreamGetsOtherMemory) {
  Free(Alloc(kChunk, a_));
  const std::vector<char*> rehearsed = Rehearse({8, 4});
  char* eager = Alloc(8 * kGranule, a_);
  EXPECT_EQ(Capture(a_, kWork, /*is_rehearsal=*/false, {8, 4}), rehearsed);
  Free(eager);
}

// A preparation between the two asks upstream for nothing: what was rehearsed is there.
TEST_F(Rehearsal, APreparationFindsWhatWasRehearsed) {
  Free(Alloc(kChunk, a_));
  GCAP_EXPECT_OK(gcap_scratch_reservation_prepare(scratch_, a_));
  Rehearse({8, 8});
  const size_t requests = upstream_.requests().size();
  GCAP_EXPECT_OK(gcap_scratch_reservation_prepare(scratch_, a_));
  Capture(a_, kWork, /*is_rehearsal=*/false, {8, 8});
  EXPECT_EQ(upstream_.requests().size(), requests);
}

// The runs needed more than the rehearsal, whose memory is what the capture of that work gets.
TEST_F(Rehearsal, APreparationOfItsWorkAsksForNoMoreThanWasRehearsed) {
  Free(Alloc(kChunk, a_));
  Rehearse({8});
  Synchronize(a_);
  char* const others = Alloc(kChunk - 8 * kGranule, b_);
  const size_t requests = upstream_.requests().size();
  GCAP_EXPECT_OK(gcap_scratch_prepare_for(scratch_, a_, kWork));
  EXPECT_EQ(upstream_.requests().size(), requests);
  GCAP_EXPECT_OK(gcap_scratch_prepare_for(scratch_, a_, kOtherWork));
  EXPECT_EQ(upstream_.requests().size(), requests + 1);
  Free(others);
}

// --- The script alone -----------------------------------------------------------------------------------------------

TEST(Script, ACaptureOfOtherWorkLeavesItAsItIsAndARehearsalDropsIt) {
  char memory[4];
  const gcap_scratch_place_t first = {&memory[0], 1, 1}, second = {&memory[1], 2, 2}, other = {&memory[2], 1, 1};
  gcap_scratch_script_t script = {};
  gcap_scratch_script_open(&script, kWork, /*is_rehearsal=*/true);
  for (const gcap_scratch_place_t* place : {&first, &second}) gcap_scratch_script_note(&script, place);
  gcap_scratch_script_close(&script, /*committed=*/true);
  EXPECT_TRUE(script.is_complete);
  const auto bases = [&script] {
    std::vector<const char*> found;
    for (const size_t bytes : {1, 2}) {
      const gcap_scratch_place_t* place = gcap_scratch_script_find(&script, bytes);
      found.push_back(place != nullptr ? place->base : nullptr);
      if (place != nullptr) gcap_scratch_script_note(&script, place);
    }
    return found;
  };
  for (const uint64_t work : {kOtherWork, uint64_t{0}}) {
    gcap_scratch_script_open(&script, work, /*is_rehearsal=*/false);
    EXPECT_EQ(bases(), (std::vector<const char*>{nullptr, nullptr}));
    gcap_scratch_script_note(&script, &other);
    gcap_scratch_script_close(&script, /*committed=*/true);
    EXPECT_TRUE(script.is_complete);
  }
  gcap_scratch_script_open(&script, kWork, /*is_rehearsal=*/true);
  EXPECT_FALSE(script.is_complete);
  EXPECT_EQ(bases(), (std::vector<const char*>{first.base, second.base}));
  gcap_scratch_script_close(&script, /*committed=*/true);
  gcap_scratch_script_open(&script, kOtherWork, /*is_rehearsal=*/true);
  EXPECT_EQ(bases(), (std::vector<const char*>{nullptr, nullptr}));
  gcap_scratch_script_note(&script, &other);
  gcap_scratch_script_close(&script, /*committed=*/false);
  EXPECT_FALSE(script.is_complete);
  gcap_scratch_script_deinit(&script);
}

// --- Who gives it back ----------------------------------------------------------------------------------------------

TEST_F(Rehearsal, ACaptureOfOtherWorkGetsTheMemory) {
  Free(Alloc(kChunk, a_));
  const std::vector<char*> rehearsed = Rehearse({16});
  EXPECT_EQ(Capture(a_, kOtherWork, /*is_rehearsal=*/false, {16}), rehearsed);
}

TEST_F(Rehearsal, ARunWithoutACaptureGivesItBack) {
  Free(Alloc(kChunk, a_));
  GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, a_));
  const std::vector<char*> rehearsed = Rehearse({16});
  GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, a_));
  GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, a_));
  GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, a_));
  char* block = Alloc(16 * kGranule, a_);
  EXPECT_EQ(block, rehearsed[0]);
  Free(block);
}

TEST_F(Rehearsal, AnAllocationGetsItRatherThanFail) {
  Free(Alloc(kChunk, a_));
  const std::vector<char*> rehearsed = Rehearse({16});
  upstream_.most_bytes = 0;
  GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
  char* block = Alloc(16 * kGranule, b_);
  EXPECT_EQ(block, rehearsed[0]);
  Free(block);
}

// Whatever graph that is: a block of it that the graph's work frees does not tie one to the other.
TEST_F(Rehearsal, AReservationThatIsOpenedAgainGivesItBack) {
  Free(Alloc(2 * kChunk, a_));
  gcap_scratch_reservation_t* const other = Open(a_);
  Free(Alloc(kGranule, a_));
  Close(other);
  char* const left = RehearseAndLeave(kChunk);
  GCAP_EXPECT_OK(gcap_scratch_reservation_reopen(other));
  Free(left);
  Close(other);
  Release(other);
  Release(other);
  EXPECT_EQ(Capture(a_, kWork, /*is_rehearsal=*/false, {1, 2}).size(), 2u);
}

TEST_F(Rehearsal, AForgottenStreamGivesItBack) {
  Free(Alloc(kChunk, a_));
  Rehearse({16});
  GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
  GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, a_));
  GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
  EXPECT_EQ(upstream_.num_regions(), 0u);
}

TEST_F(Rehearsal, ADestroyedStreamGivesItBack) {
  Free(Alloc(kChunk, a_));
  Rehearse({16});
  GCAP_EXPECT_OK(gcap_stream_destroy(a_));
  a_ = nullptr;
  Validate();
  GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
  EXPECT_EQ(upstream_.num_regions(), 0u);
}

// A trim leaves what a capture is about to use. The end of the scratch takes all.
TEST_F(Rehearsal, ATrimLeavesItAndTheEndTakesIt) {
  Free(Alloc(kChunk, a_));
  const std::vector<char*> rehearsed = Rehearse({16});
  GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
  EXPECT_EQ(Capture(a_, kWork, /*is_rehearsal=*/true, {16}), rehearsed);
  Create();
  EXPECT_EQ(upstream_.num_regions(), 0u);
}

// What a rehearsal leaves live may be used and freed after it. Then another stream that waited for the rehearsal alone
// has to wait for that use, too.
TEST_F(Rehearsal, ABlockThatIsFreedLaterIsGivenBackAsOfThen) {
  Free(Alloc(kChunk, a_));
  GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, a_));
  char* const kept = RehearseAndLeave(kChunk);
  GCAP_EXPECT_OK(gcap_scratch_keep(scratch_, kept));
  GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, a_));

  Wait(b_, a_);  // b_ comes after the rehearsal, and not after the run that uses the block
  GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, a_));
  Free(kept);
  GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, a_));
  Validate();
  char* const other = Alloc(kChunk, b_);
  EXPECT_NE(other, kept);
  Free(other);
}

// Without host memory for the addresses the capture gets memory all the same.
TEST_F(Rehearsal, WithoutHostMemoryTheBlocksLieAnywhere) {
  MakeHoles();
  gcap_capture_t* capture = nullptr;
  GCAP_EXPECT_OK(gcap_capture_begin(gcap_stream_handle(a_), nullptr, &capture));
  gcap_capture_set_work(capture, kWork, /*is_rehearsal=*/true);
  Free(Alloc(kGranule, a_));  // opens the reservation
  int hits = 0;
  for (int i = 0; i < 20; ++i) {
    const HeapFailure failure;
    char* block = Alloc(kGranule, a_);
    hits += failure.hits();
    Free(block);
  }
  EXPECT_GT(hits, 0);
  gcap_capture_abort(capture);
  Validate();
  EXPECT_EQ(Capture(a_, kWork, /*is_rehearsal=*/false, {1, 2}).size(), 2u);
  FreeLive();
}

// To cut a block out of what was rehearsed takes host memory.
TEST_F(Rehearsal, WithoutHostMemoryABlockIsNotCutOutOfWhatWasRehearsed) {
  options_.initial_chunk_bytes = 600 * kGranule;
  Create();
  Free(Alloc(kChunk, a_));
  const std::vector<char*> rehearsed = Rehearse({2, 7});
  bool has_room = true;
  while (has_room) {  // of the stream for descriptions
    void* ptr = nullptr;
    const HeapFailure failure;
    has_room = Outcome(gcap_scratch_alloc(scratch_, kGranule, a_, &ptr)).ok();
    if (has_room) live_.push_back(static_cast<char*>(ptr));
  }
  gcap_capture_t* capture = nullptr;
  GCAP_EXPECT_OK(gcap_capture_begin(gcap_stream_handle(a_), nullptr, &capture));
  gcap_capture_set_work(capture, kWork, /*is_rehearsal=*/false);
  {
    void* ptr = nullptr;
    const HeapFailure failure(/*count=*/1, /*skip=*/2);  // the scope's two entries for the reservation
    GCAP_EXPECT_FAILS(gcap_scratch_alloc(scratch_, 2 * kGranule, a_, &ptr), GCAP_RESOURCE_EXHAUSTED,
                      "describe a scratch block");
    EXPECT_EQ(failure.hits(), 1);
  }
  Validate();
  char* const block = Alloc(2 * kGranule, a_);
  EXPECT_EQ(block, rehearsed[0]);
  Free(block);
  gcap_capture_abort(capture);
  Validate();
  FreeLive();
}

// A capture of other work has a reservation of its own, for which there is no host memory.
TEST_F(Rehearsal, WithoutHostMemoryACaptureOfOtherWorkIsRefused) {
  Free(Alloc(kChunk, a_));
  Rehearse({16});
  gcap_scratch_reservation_t* reservation = nullptr;
  {
    const HeapFailure failure;
    GCAP_EXPECT_FAILS(gcap_scratch_reservation_open(scratch_, a_, &reservation), GCAP_RESOURCE_EXHAUSTED,
                      "scratch reservation");
    EXPECT_EQ(failure.hits(), 1);
  }
  EXPECT_EQ(reservation, nullptr);
  Validate();
  Release(Open(a_));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
