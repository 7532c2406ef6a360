// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Several graphs over one scratch: what is made ready before a capture, and what graphs of one stream share. First
// placement alone, then real graphs whose replays alternate.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "lib/scratch/inner.h"
#include "test/scratch/chain_graph.h"
#include "test/scratch/scratch_test_support.h"
#include "test/support/held_thread.h"

namespace gcap {
namespace testing {
namespace {

// A capture scope of one stream, and nothing in it.
class Scope {
 public:
  explicit Scope(gcap_stream_t* stream) {
    GCAP_EXPECT_OK(gcap_capture_begin(gcap_stream_handle(stream), nullptr, &capture_));
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { gcap_capture_abort(capture_); }

 private:
  gcap_capture_t* capture_ = nullptr;
};

class Graphs : public ScratchTest {
 protected:
  // Regions are exactly as large as needed: what is wanting is not there by chance.
  void CreateTight() {
    options_.extend_as_requested = true;
    Create();
  }
  // A run as the tests' models make it: each block on top of the one before, and then all are freed.
  void Run(gcap_stream_t* stream, const std::vector<size_t>& granules) {
    std::vector<void*> blocks;
    for (size_t n : granules) blocks.push_back(Alloc(n * kGranule, stream));
    for (void* block : blocks) Free(block);
  }
  void Prepare(gcap_stream_t* stream) {
    GCAP_EXPECT_OK(gcap_scratch_reservation_prepare(scratch_, stream));
    Validate();
  }
  void Reopen(gcap_scratch_reservation_t* reservation) {
    GCAP_EXPECT_OK(gcap_scratch_reservation_reopen(reservation));
    Validate();
  }
  // What the capture of such a run keeps.
  gcap_scratch_reservation_t* Capture(gcap_stream_t* stream, const std::vector<size_t>& granules) {
    const Scope scope(stream);
    gcap_scratch_reservation_t* reservation = Open(stream);
    Run(stream, granules);
    Close(reservation);
    return reservation;
  }
};

// --- Before a capture -----------------------------------------------------------------------------------------------

TEST_F(Graphs, WithoutPreparationTheSecondGraphLacksWhatTheFirstOneKept) {
  CreateTight();
  Run(a_, {10});  // of one id, then of the other
  Run(a_, {10});
  gcap_scratch_reservation_t* first = Capture(a_, {10});
  {
    const Scope scope(a_);
    gcap_scratch_reservation_t* second = Open(a_);
    ExpectAllocFails(10 * kGranule, a_, GCAP_RESOURCE_EXHAUSTED, "lacks 2560 more");
    Release(second);
  }
  Release(first);
}

TEST_F(Graphs, PreparedCapturesFindWhatTheirWarmUpHadAtTheFirstTry) {
  const std::vector<std::vector<size_t>> needs[] = {
      {{10}, {10}},            // alike
      {{10}, {3, 3}, {8, 8}},  // of different size
      {{2}, {16}, {16}},       // the second one needs all in one piece
      {{5, 5, 6}, {5, 5, 6}},  // several regions
      {{1, 2, 3, 4}, {9, 1}},
  };
  for (const auto& graphs : needs) {
    CreateTight();
    for (const auto& need : graphs) Run(a_, need);
    for (const auto& need : graphs) Run(a_, need);
    std::vector<gcap_scratch_reservation_t*> reservations;
    for (const auto& need : graphs) {
      Prepare(a_);
      const size_t requests = NumRequests();
      reservations.push_back(Capture(a_, need));
      EXPECT_EQ(NumRequests(), requests) << "a capture reached upstream";
    }
    for (gcap_scratch_reservation_t* reservation : reservations) Release(reservation);
  }
}

// And not for the largest one of the stream.
TEST_F(Graphs, PreparationIsForTheWorkThatItNames) {
  CreateTight();
  for (const uint64_t work : {4, 10, 2}) {
    GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, a_));
    Run(a_, {work});  // as many granules as its name says
    GCAP_EXPECT_OK(gcap_scratch_end_run_of(scratch_, a_, work, /*has_failed=*/false));
  }
  for (const uint64_t work : {2, 4, 10}) {
    Synchronize(a_);
    Trim();
    GCAP_EXPECT_OK(gcap_scratch_prepare_for(scratch_, a_, work));
    Validate();
    EXPECT_EQ(upstream_.requests().back(), work * kGranule);
  }
}

TEST_F(Graphs, PreparationOfAWorkWithoutARunIsForTheLargestRun) {
  CreateTight();
  for (const uint64_t work : {10, 4}) {
    GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, a_));
    Run(a_, {work});
    GCAP_EXPECT_OK(gcap_scratch_end_run_of(scratch_, a_, work, /*has_failed=*/false));
  }
  Run(a_, {40});  // beside the runs
  Synchronize(a_);
  Trim();
  GCAP_EXPECT_OK(gcap_scratch_prepare_for(scratch_, a_, /*work=*/99));
  EXPECT_EQ(upstream_.requests().back(), 10 * kGranule);
}

// What the first run of a work keeps is a cache, and not what the captured run will need.
TEST_F(Graphs, PreparationIsNotForWhatTheFirstRunKept) {
  CreateTight();
  GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, a_));
  char* const kept = Alloc(6 * kGranule, a_);
  GCAP_EXPECT_OK(gcap_scratch_keep(scratch_, kept));
  Run(a_, {4});
  GCAP_EXPECT_OK(gcap_scratch_end_run_of(scratch_, a_, /*work=*/5, /*has_failed=*/false));
  Synchronize(a_);
  Trim();
  GCAP_EXPECT_OK(gcap_scratch_prepare_for(scratch_, a_, /*work=*/5));
  EXPECT_EQ(Stats().total_allocated_bytes, (6 + 4) * kGranule);
  Free(kept);
}

// Of what two other streams had side by side. The first one takes its surplus, and the piece stays one.
TEST_F(Graphs, PreparationClaimsOnePieceBesideItsSurplus) {
  CreateTight();
  Run(a_, {12});
  Synchronize(a_);
  Trim();
  char* whole = Alloc(16 * kGranule, b_);  // a region
  Free(whole);
  char *first = Alloc(8 * kGranule, b_), *second = Alloc(8 * kGranule, b_);
  ASSERT_EQ(first + 8 * kGranule, second);
  Free(second);
  Synchronize(b_);
  second = Alloc(8 * kGranule, c_);
  Free(first);
  Free(second);
  for (gcap_stream_t* stream : {b_, c_}) Synchronize(stream);
  const size_t requests = NumRequests();
  Prepare(a_);
  EXPECT_EQ(NumRequests(), requests);
  char* surplus = Alloc(4 * kGranule, b_);
  EXPECT_EQ(NumRequests(), requests);
  gcap_scratch_reservation_t* graph = Capture(a_, {12});
  EXPECT_EQ(gcap_scratch_reservation_bytes(graph), 12 * kGranule);
  Free(surplus);
  Release(graph);
}

TEST_F(Graphs, PreparationGrowsOnceAndOnlyWhenSomethingLacks) {
  CreateTight();
  Run(a_, {10});
  const size_t warm = NumRequests();
  Prepare(a_);
  EXPECT_EQ(NumRequests(), warm);
  gcap_scratch_reservation_t* graph = Capture(a_, {4, 4});
  Prepare(a_);
  EXPECT_EQ(upstream_.requests().back(), 10 * kGranule) << "what the graph left has no room for a block of ten";
  EXPECT_EQ(NumRequests(), warm + 1);
  Prepare(a_);
  EXPECT_EQ(NumRequests(), warm + 1);
  Release(graph);
}

TEST_F(Graphs, PreparationOfAStreamThatUsedNothingAsksForNothing) {
  Prepare(a_);
  EXPECT_EQ(NumRequests(), 0u);
}

TEST_F(Graphs, PreparationRemembersThePeakThatStatisticsFolded) {
  CreateTight();
  Run(a_, {10});
  gcap_scratch_reservation_t* graph = Capture(a_, {10});
  EXPECT_EQ(Stats().max_in_use_bytes, 10 * kGranule);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  Prepare(a_);
  EXPECT_EQ(upstream_.requests().back(), 10 * kGranule);
  Release(graph);
}

TEST_F(Graphs, PreparationTakesWhatNobodyUsesBeforeItGrows) {
  CreateTight();
  Run(a_, {6});
  Run(b_, {8});
  Synchronize(a_);
  Synchronize(b_);
  const size_t warm = NumRequests();
  gcap_scratch_reservation_t* graph = Capture(a_, {6});
  Prepare(a_);
  EXPECT_EQ(NumRequests(), warm);
  Run(a_, {6});
  EXPECT_EQ(NumRequests(), warm);
  EXPECT_EQ(GranulesLeftFor(b_), 2u) << "six of b's are a's now, and b did not wait for it";
  Release(graph);
}

TEST_F(Graphs, PreparationLeavesAloneWhatAnotherStreamMayStillUse) {
  CreateTight();
  Run(a_, {6});
  Run(b_, {8});
  gcap_scratch_reservation_t* graph = Capture(a_, {6});
  Prepare(a_);
  EXPECT_EQ(upstream_.requests().back(), 6 * kGranule);
  EXPECT_EQ(GranulesLeftFor(b_), 8u);
  Release(graph);
}

TEST_F(Graphs, PreparationSeesToTheLargestBlock) {
  CreateTight();
  Run(a_, {9});
  Synchronize(a_);
  Trim();
  Run(a_, {6, 6});  // the peak, in two regions
  Prepare(a_);
  EXPECT_EQ(upstream_.requests().back(), 12 * kGranule) << "twelve are free, but nowhere nine in a row";
  gcap_scratch_reservation_t* graph = Capture(a_, {9});
  Release(graph);
}

// --- What is prepared is there for the capture ----------------------------------------------------------------------

// Two pieces of memory that no stream uses, and between them a block that is live.
class Pieces : public Graphs {
 protected:
  void SetUp() override {
    Graphs::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    CreateTight();
    Run(a_, {6, 6});
    Synchronize(a_);
    Trim();
    ASSERT_EQ(upstream_.num_regions(), 0u);
    char* whole = Alloc(14 * kGranule, c_);
    Free(whole);
    char* lower = Alloc(6 * kGranule, c_);
    between_ = Alloc(2 * kGranule, c_);
    char* upper = Alloc(6 * kGranule, c_);
    Free(lower);
    Free(upper);
    Synchronize(c_);
    Trim();
    EXPECT_EQ(upstream_.num_regions(), 1u);
  }
  void TearDown() override {
    Free(between_);
    Graphs::TearDown();
  }
  void* between_ = nullptr;
};

// The pieces were counted as what the capture would find, and left to whoever came first.
TEST_F(Pieces, ThatWereCountedAreNotLeftToOthers) {
  Prepare(a_);
  Run(b_, {6, 6});  // between the preparation and the capture
  const size_t requests = NumRequests();
  gcap_scratch_reservation_t* graph = Capture(a_, {6, 6});
  EXPECT_EQ(NumRequests(), requests);
  Release(graph);
}

// The same from another thread, whose blocks are live while the capture is made.
TEST_F(Pieces, ThatWereCountedAreNotLeftToOtherThreads) {
  Prepare(a_);
  std::vector<char*> taken;
  HeldThread other([&] {
    for (int i = 0; i < 2; ++i) taken.push_back(Alloc(6 * kGranule, b_));
  });
  gcap_scratch_reservation_t* graph = Capture(a_, {6, 6});
  other.Release();
  Release(graph);
  for (char* block : taken) Free(block);
}

// A capture cannot grow, so it took what another capture counted on.
TEST_F(Graphs, WhatIsPreparedIsNotTakenByACaptureThatWasNot) {
  CreateTight();
  Run(a_, {10});
  Wait(b_, a_);
  Prepare(a_);
  {
    const Scope scope(b_);
    gcap_scratch_reservation_t* unprepared = Open(b_);
    ExpectAllocFails(10 * kGranule, b_, GCAP_RESOURCE_EXHAUSTED, "lacks");
    Release(unprepared);
  }
  const size_t requests = NumRequests();
  const Scope scope(a_);
  gcap_scratch_reservation_t* graph = Open(a_);
  {
    gcap_scratch_reservation_t* unprepared = Open(b_);  // while the other one is open
    ExpectAllocFails(10 * kGranule, b_, GCAP_RESOURCE_EXHAUSTED, "lacks");
    Release(unprepared);
  }
  Run(a_, {10});
  Close(graph);
  EXPECT_EQ(NumRequests(), requests);
  Release(graph);
}

// Nobody is held up by a capture that never came.
TEST_F(Graphs, WhatIsPreparedIsFreeAgainAfterTheCaptureOrTheRun) {
  CreateTight();
  Run(a_, {10});
  Synchronize(a_);
  Prepare(a_);
  Release(Capture(a_, {10}));
  Synchronize(a_);
  const size_t requests = NumRequests();
  Run(b_, {10});
  EXPECT_EQ(NumRequests(), requests);
  Run(a_, {10});
  Synchronize(a_);
  Synchronize(b_);
  Prepare(a_);
  GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, a_));
  GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, a_));
  Wait(b_, a_);
  const size_t before = NumRequests();
  Run(b_, {10});
  EXPECT_EQ(NumRequests(), before);
}

// What an earlier graph left over adds up to the three blocks that were at work at a time, and has room for two: "the
// scratch reservation holds 2048 bytes and lacks 1024 more".
TEST_F(Graphs, WhatAGraphLeftOverInPiecesIsNotEnough) {
  CreateTight();
  Run(a_, {6, 6});
  Run(a_, {4, 4, 4});  // the last one in a region of its own
  ASSERT_EQ(upstream_.requests(), (std::vector<size_t>{6 * kGranule, 6 * kGranule, 4 * kGranule}));
  Prepare(a_);
  gcap_scratch_reservation_t* first = Capture(a_, {4});
  Prepare(a_);
  const size_t requests = NumRequests();
  gcap_scratch_reservation_t* second = Capture(a_, {4, 4, 4});
  EXPECT_EQ(NumRequests(), requests);
  Release(first);
  Release(second);
}

// The pieces add up to the warm-up's peak. They were taken to be enough for the first capture, which put a small block
// where a large one had to go: "holds 120320 bytes and lacks 65536 more".
TEST_F(Graphs, WhatTheWarmUpHadInPiecesIsNotEnough) {
  CreateTight();
  Run(a_, {4, 4, 2});  // in three regions
  ASSERT_EQ(NumRequests(), 3u);
  Prepare(a_);
  EXPECT_EQ(upstream_.requests().back(), 8 * kGranule) << "four and one count of the first two, and five of these";
  const size_t requests = NumRequests();
  Prepare(a_);
  gcap_scratch_reservation_t* graph = Capture(a_, {3, 3, 4});
  EXPECT_EQ(NumRequests(), requests);
  Release(graph);
}

// The same of what graphs share: their reservation, which is open, was not taken for one that keeps memory.
TEST_F(Graphs, WhatGraphsThatShareLeftInPiecesIsNotEnough) {
  CreateTight();
  Run(a_, {4, 4, 2});
  gcap_scratch_reservation_t* shared = Capture(a_, {4, 4, 2});
  Reopen(shared);
  Prepare(a_);
  Close(shared);
  const size_t requests = NumRequests();
  {
    const Scope scope(a_);
    Reopen(shared);
    Run(a_, {3, 3, 4});
    Close(shared);
  }
  EXPECT_EQ(NumRequests(), requests);
  for (int graph = 0; graph < 3; ++graph) Release(shared);
}

// What the stream had when its need was counted, others took while the arena grew by the rest.
TEST_F(Graphs, WhatWasCountedIsNotTakenWhileTheArenaGrows) {
  CreateTight();
  Run(a_, {6, 6, 6});
  Synchronize(a_);
  std::vector<char*> taken;
  upstream_.on_alloc = [&] {
    upstream_.on_alloc = nullptr;
    for (int i = 0; i < 3; ++i) taken.push_back(Alloc(6 * kGranule, b_));
  };
  Prepare(a_);
  ASSERT_EQ(taken.size(), 3u);
  const size_t requests = NumRequests();
  gcap_scratch_reservation_t* graph = Capture(a_, {6, 6, 6});
  EXPECT_EQ(NumRequests(), requests);
  Release(graph);
  for (char* block : taken) Free(block);
}

// The first of the graphs that are to share opens its reservation twice; with the first close, others got what was
// prepared.
TEST_F(Graphs, WhatIsPreparedStaysSoWhenAReservationIsOpenedTwice) {
  CreateTight();
  Run(a_, {10});
  Synchronize(a_);
  Prepare(a_);
  const Scope scope(a_);
  gcap_scratch_reservation_t* graph = Open(a_);
  Close(graph);
  HeldThread([&] { Free(Alloc(10 * kGranule, b_)); }).Release();
  EXPECT_EQ(NumRequests(), 2u) << "b has its own";
  Reopen(graph);
  Run(a_, {10});
  Close(graph);
  EXPECT_EQ(NumRequests(), 2u);
  Release(graph);
  Release(graph);
}

TEST_F(Graphs, WhatAStreamUsedIsNobodyElsesWhileItsReservationIsOpen) {
  CreateTight();
  Run(a_, {10});
  Synchronize(a_);
  gcap_scratch_reservation_t* graph = Open(a_);
  Run(b_, {8});
  EXPECT_EQ(NumRequests(), 2u) << "b has its own";
  Run(a_, {10});
  Close(graph);
  EXPECT_EQ(NumRequests(), 2u);
  Release(graph);
  Synchronize(a_);
  Run(b_, {10});
  EXPECT_EQ(NumRequests(), 2u) << "a captures no more";
}

TEST_F(Graphs, PreparationTakesNothingThatAnotherCaptureCountsOn) {
  CreateTight();
  Run(a_, {10});
  Run(b_, {10});
  Synchronize(a_);
  Synchronize(b_);
  gcap_scratch_reservation_t* first_of_b = Capture(b_, {10});
  const size_t requests = NumRequests();
  gcap_scratch_reservation_t* graph = Open(a_);
  Reopen(first_of_b);
  Free(Alloc(10 * kGranule, b_));
  char* held = Alloc(10 * kGranule, b_);
  Prepare(b_);
  EXPECT_EQ(NumRequests(), requests + 1) << "a's ten are free, but not for b";
  Free(held);
  Close(first_of_b);
  Run(a_, {10});
  Close(graph);
  EXPECT_EQ(NumRequests(), requests + 1);
  Release(first_of_b);
  Release(first_of_b);
  Release(graph);
}

TEST_F(Graphs, WhatAStreamUsedIsFreeForAllRatherThanMemoryIsOut) {
  options_.memory_limit_bytes = kChunk;
  Create();
  Run(a_, {16});
  Synchronize(a_);
  gcap_scratch_reservation_t* graph = Open(a_);
  Run(b_, {8});
  Close(graph);
  Release(graph);
}

// Also what the stream has finished with, which else would be free for all.
TEST_F(Graphs, WhatIsPreparedWaitsForTheCapture) {
  CreateTight();
  Run(a_, {16});
  Synchronize(a_);
  Prepare(a_);
  void* untagged = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(gcap_scratch_allocator(scratch_), 16 * kGranule, &untagged));
  char* other = Alloc(16 * kGranule, b_);
  Trim();
  const size_t requests = NumRequests();
  gcap_scratch_reservation_t* graph = Capture(a_, {16});
  EXPECT_EQ(NumRequests(), requests);
  Release(graph);
  for (void* ptr : {untagged, static_cast<void*>(other)}) Free(ptr);
}

// A reservation that graphs share is open while its capture is prepared, and is closed and opened again in between.
TEST_F(Graphs, WhatIsPreparedBesideAnOpenReservationWaitsForTheCapture) {
  CreateTight();
  Run(a_, {16});
  Synchronize(a_);
  gcap_scratch_reservation_t* graph = Open(a_);
  Prepare(a_);
  Close(graph);
  char* other = Alloc(16 * kGranule, b_);
  Trim();
  const size_t requests = NumRequests();
  Reopen(graph);
  Free(Alloc(16 * kGranule, a_));
  EXPECT_EQ(NumRequests(), requests);
  Close(graph);
  Release(graph);
  Release(graph);
  Free(other);
}

TEST_F(Graphs, PreparationMakesUpTheDeficitOfACapture) {
  Run(a_, {kChunk / kGranule});
  gcap_scratch_reservation_t* failed = Open(a_);
  ExpectAllocFails(3 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, "lacks");
  Release(failed);
  Prepare(a_);
  const size_t requests = NumRequests();
  gcap_scratch_reservation_t* graph = Capture(a_, {3 * kChunk / kGranule});
  EXPECT_EQ(NumRequests(), requests);
  Release(graph);
}

TEST_F(Graphs, PreparationThatCannotGrowSaysSoAndHarmsNothing) {
  options_.memory_limit_bytes = kChunk;
  Create();
  Run(a_, {10});
  gcap_scratch_reservation_t* graph = Capture(a_, {10});
  GCAP_EXPECT_FAILS(gcap_scratch_reservation_prepare(scratch_, a_), GCAP_RESOURCE_EXHAUSTED, "ready for a capture");
  Validate();
  EXPECT_EQ(GranulesLeftFor(a_), 6u);
  Release(graph);
  Prepare(a_);
}

TEST_F(Graphs, PreparationIsRefusedInACaptureAndWithoutAStream) {
  GCAP_EXPECT_FAILS(gcap_scratch_reservation_prepare(scratch_, nullptr), GCAP_INVALID_ARGUMENT, "stream");
  const Scope scope(a_);
  GCAP_EXPECT_FAILS(gcap_scratch_reservation_prepare(scratch_, b_), GCAP_FAILED_PRECONDITION, "capturing");
}

// --- Graphs that share a reservation --------------------------------------------------------------------------------

TEST_F(Graphs, ReopenedReservationGivesItsMemoryToTheNextGraph) {
  CreateTight();
  Run(a_, {4, 4});
  gcap_scratch_reservation_t* shared = Capture(a_, {4, 4});
  const size_t requests = NumRequests();
  for (int graph = 0; graph < 3; ++graph) {
    const Scope scope(a_);
    Reopen(shared);
    Run(a_, {4, 4});
    Run(a_, {2, 2, 4});
    Close(shared);
  }
  EXPECT_EQ(NumRequests(), requests);
  EXPECT_EQ(gcap_scratch_reservation_bytes(shared), 8 * kGranule);
  for (int graph = 0; graph < 4; ++graph) Release(shared);
}

TEST_F(Graphs, SharedMemoryIsThatOfTheLargestGraphInWhateverOrder) {
  constexpr size_t kMost = 8;
  std::mt19937 random(20260101);
  for (size_t n = 1; n <= kMost; ++n) {
    std::vector<size_t> needs(n);
    std::iota(needs.begin(), needs.end(), 1);
    for (int order = 0; order < 3; ++order) {  // ascending, descending, any
      if (order == 1) std::reverse(needs.begin(), needs.end());
      if (order == 2) std::shuffle(needs.begin(), needs.end(), random);
      SCOPED_TRACE(std::to_string(n) + " graphs, order " + std::to_string(order));
      options_.initial_chunk_bytes = 3 * kMost * kGranule;
      Create();
      Run(a_, {kMost, 2 * kMost});
      gcap_scratch_reservation_t* shared = nullptr;
      for (size_t need : needs) {
        const Scope scope(a_);
        if (shared == nullptr) {
          shared = Open(a_);
        } else {
          Reopen(shared);
        }
        Run(a_, {need, 2 * need});
        Close(shared);
      }
      EXPECT_EQ(gcap_scratch_reservation_bytes(shared), 3 * n * kGranule);
      for (size_t i = 0; i < n; ++i) Release(shared);
    }
  }
}

// Of regions that double, the smaller ones are full when the largest graph comes.
TEST_F(Graphs, ReopenedReservationBeginsWhereThereIsRoomForAll) {
  const std::vector<size_t> needs = {4, 12, 20, 40};
  for (size_t need : needs) Run(a_, {need});
  ASSERT_EQ(NumRequests(), 3u);  // of 16, 32 and 64 granules
  gcap_scratch_reservation_t* shared = Open(a_);
  Close(shared);
  for (size_t need : needs) {
    const Scope scope(a_);
    Reopen(shared);
    Run(a_, {need});
    Close(shared);
    EXPECT_EQ(gcap_scratch_reservation_bytes(shared), need * kGranule);
  }
  for (size_t i = 0; i <= needs.size(); ++i) Release(shared);
}

TEST_F(Graphs, ReopenIsRefusedWhileTheStreamHasAnOpenReservation) {
  gcap_scratch_reservation_t* first = Open(a_);
  GCAP_EXPECT_FAILS(gcap_scratch_reservation_reopen(first), GCAP_ALREADY_EXISTS, "open");
  Close(first);
  gcap_scratch_reservation_t* second = Open(a_);
  GCAP_EXPECT_FAILS(gcap_scratch_reservation_reopen(first), GCAP_ALREADY_EXISTS, "open");
  Release(second);
  Validate();
  Release(first);  // the refusals owe nothing
  GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, a_));
}

TEST_F(Graphs, SharedMemoryGoesBackWithTheLastGraph) {
  Run(a_, {16});
  gcap_scratch_reservation_t* shared = Capture(a_, {10});
  Reopen(shared);
  Run(a_, {12});
  Close(shared);
  Synchronize(a_);
  for (int left = 2; left > 0; --left) {
    EXPECT_EQ(GranulesLeftFor(a_), 4u);
    EXPECT_EQ(GranulesLeftFor(b_), 0u) << "a did so and was not synchronised since";
    Trim();
    EXPECT_EQ(upstream_.num_regions(), 1u);
    GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, "1 reservations");
    Release(shared);
  }
  EXPECT_EQ(GranulesLeftFor(a_), 16u);
  Synchronize(a_);
  Trim();
  EXPECT_EQ(upstream_.num_regions(), 0u);
}

TEST_F(Graphs, ReleaseOfOneGraphDoesNotDisturbTheCaptureOfAnother) {
  Run(a_, {16});
  gcap_scratch_reservation_t* shared = Capture(a_, {4});
  const Scope scope(a_);
  Reopen(shared);
  Release(shared);
  Run(a_, {6});
  EXPECT_EQ(gcap_scratch_reservation_bytes(shared), 6 * kGranule) << "still open";
  Close(shared);
  Release(shared);
}

TEST_F(Graphs, SharedCaptureThatFailsLosesNothingOfTheOthers) {
  Run(a_, {16});
  gcap_scratch_reservation_t* shared = Capture(a_, {10});
  {
    const Scope scope(a_);
    Reopen(shared);
    char* block = Alloc(4 * kGranule, a_);
    ExpectAllocFails(2 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, "lacks 8192 more");
    Free(block);
    Close(shared);
    Release(shared);
  }
  EXPECT_EQ(gcap_scratch_reservation_bytes(shared), 10 * kGranule);
  Release(shared);
}

TEST_F(Graphs, SharedCaptureThatFailedSucceedsAtTheNextTry) {
  Run(a_, {16});
  gcap_scratch_reservation_t* shared = Capture(a_, {10});
  for (int attempt = 0; attempt < 2; ++attempt) {
    Prepare(a_);
    const Scope scope(a_);
    Reopen(shared);
    if (attempt == 0) {
      ExpectAllocFails(4 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, "lacks 16384 more");
    } else {
      Free(Alloc(4 * kChunk, a_));
    }
    Close(shared);
    Release(shared);
  }
  EXPECT_GE(gcap_scratch_reservation_bytes(shared), 10 * kGranule);
  Release(shared);
}

TEST_F(Graphs, BlockThatIsStillHandedOutIsNotShared) {
  Run(a_, {16});
  gcap_scratch_reservation_t* shared = Open(a_);
  char* output = Alloc(4 * kGranule, a_);
  Close(shared);
  Reopen(shared);
  char* other = Alloc(4 * kGranule, a_);
  EXPECT_NE(other, output);
  Free(other);
  Close(shared);
  Free(output);
  Reopen(shared);
  Run(a_, {8});
  EXPECT_EQ(gcap_scratch_reservation_bytes(shared), 8 * kGranule) << "both, since they are neighbours";
  Close(shared);
  for (int graph = 0; graph < 3; ++graph) Release(shared);
}

TEST_F(Graphs, PreparationCountsWhatAnOpenReservationHasFree) {
  CreateTight();
  Run(a_, {10});
  gcap_scratch_reservation_t* shared = Capture(a_, {10});
  const size_t requests = NumRequests();
  Reopen(shared);
  Prepare(a_);
  EXPECT_EQ(NumRequests(), requests);
  Close(shared);
  Release(shared);
  Release(shared);
}

TEST_F(Graphs, NamesOfGraphsAreListedOnceAndAsFarAsThereIsRoom) {
  Run(a_, {16});
  gcap_scratch_reservation_t* reservation = Open(a_);
  const auto expect_named = [&](const std::string& names) {
    ExpectAllocFails(2 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, "reservation of " + names + "stream ");
  };
  expect_named("");
  gcap_scratch_reservation_set_label(reservation, "");
  expect_named("");
  gcap_scratch_reservation_set_label(reservation, "graph 12");
  expect_named("graph 12 on ");
  gcap_scratch_reservation_set_label(reservation, "graph 1");
  gcap_scratch_reservation_set_label(reservation, "graph 12");
  expect_named("graph 12, graph 1 on ");
  gcap_scratch_reservation_set_label(reservation, "0123456789012345678901234567890123456789");
  expect_named("graph 12, graph 1, 0123456789012345678901234567890 on ");
  for (int i = 100; i < 200; ++i) gcap_scratch_reservation_set_label(reservation, std::to_string(i).c_str());
  ExpectAllocFails(2 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, "100, 101");
  ExpectAllocFails(2 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, ", ... on stream ");
  Release(reservation);
}

// --- Real graphs ----------------------------------------------------------------------------------------------------

// Scratch of device memory, with all its regions there before the captures begin.
class RealGraphs : public Graphs {
 protected:
  void SetUp() override {
    Graphs::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device_));
    GCAP_ASSERT_OK(gcap_scratch_create(device_, nullptr, &on_device_));
  }
  void TearDown() override {
    GCAP_EXPECT_OK(gcap_scratch_destroy(on_device_));
    gcap_allocator_destroy(device_);
    Graphs::TearDown();
  }

  gcap_allocator_t* device_ = nullptr;
  gcap_scratch_t* on_device_ = nullptr;
};

TEST_F(RealGraphs, ReplaysOfGraphsThatShareMemoryAlternate) {
  constexpr size_t kFloats = 4096;
  for (size_t n = 1; n <= 8; ++n) {
    SCOPED_TRACE(std::to_string(n) + " graphs");
    void* warm = nullptr;
    GCAP_ASSERT_OK(gcap_scratch_alloc(on_device_, 2 * n * kFloats * sizeof(float), a_, &warm));
    GCAP_ASSERT_OK(gcap_scratch_free(on_device_, warm));
    std::vector<std::unique_ptr<ChainGraph>> graphs;
    gcap_scratch_reservation_t* shared = nullptr;
    for (size_t i = 0; i < n; ++i) {
      graphs.push_back(std::make_unique<ChainGraph>(on_device_, a_, (i + 1) * kFloats, shared));
      shared = graphs[0]->reservation();
    }
    EXPECT_EQ(gcap_scratch_reservation_bytes(shared), 2 * n * kFloats * sizeof(float));
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < n; ++i) graphs[i]->Launch(static_cast<float>(100 * round) + static_cast<float>(i));
      GCAP_ASSERT_OK(gcap_stream_synchronize(a_));
      for (size_t i = 0; i < n; ++i) EXPECT_TRUE(graphs[i]->OutputIsInput()) << "graph " << i;
    }
    GCAP_EXPECT_OK(gcap_scratch_validate(on_device_));
    // The last one still replays when the others are gone.
    std::rotate(graphs.begin(), graphs.begin() + static_cast<std::ptrdiff_t>(n / 2), graphs.end());
    graphs.resize(1);
    graphs[0]->Launch(7.0f);
    GCAP_ASSERT_OK(gcap_stream_synchronize(a_));
    EXPECT_TRUE(graphs[0]->OutputIsInput());
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
