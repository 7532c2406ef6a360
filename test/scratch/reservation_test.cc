// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Reservations: the memory of captured graphs. Placement first, then two real captures whose replays must not meet.

#include <cuda_runtime_api.h>
#include <pthread.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "lib/internal/memory_source.h"
#include "lib/scratch/inner.h"
#include "test/scratch/scratch_test_support.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class Reservation : public ScratchTest {
 protected:
  // A warm-up: the arena gets its first region, all of it the stream's or nobody's.
  void WarmUp(gcap_stream_t* stream) { Free(Alloc(kChunk, stream)); }
};

TEST_F(Reservation, TakesFreeMemoryAndNeverUpstreams) {
  WarmUp(a_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), 0u);
  char* first = Alloc(300, a_);
  char* second = Alloc(kChunk - 512, a_);
  EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), kChunk);
  ExpectAllocFails(1, a_, GCAP_RESOURCE_EXHAUSTED, "lacks 256 more");
  EXPECT_EQ(NumRequests(), 1u);
  Free(first);
  Free(second);
  EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), kChunk);
  Release(reservation);
}

// Two blocks of one bin: the graph takes the smaller one, and leaves the larger one whole.
TEST_F(Reservation, TakesTheSmallestBlockOfItsBinThatWillDo) {
  constexpr size_t kSmall = 100 * kGranule, kLarge = 102 * kGranule;  // a bin has those from 96 to 103
  options_.initial_chunk_bytes = 1000 * kGranule;
  for (const bool small_is_first : {true, false}) {
    for (const size_t bytes : {kSmall - kGranule, kSmall, kSmall + kGranule}) {
      Create();
      char *const small = Alloc(kSmall, a_), *const between = Alloc(kGranule, a_), *const large = Alloc(kLarge, a_);
      char* const above = Alloc(kGranule, a_);
      for (char* block : {small_is_first ? small : large, small_is_first ? large : small}) Free(block);
      gcap_scratch_reservation_t* reservation = Open(a_);
      char* const of_graph = Alloc(bytes, a_);
      EXPECT_EQ(of_graph, bytes <= kSmall ? small : large);
      for (char* block : {of_graph, between, above}) Free(block);
      Release(reservation);
    }
  }
}

// Neighbours of two tags, which the stream may both have, become one block, and all of it is the graph's.
TEST_F(Reservation, OwnsEachPartOfWhatItGathers) {
  char *const low = Alloc(kChunk / 2, a_), *const high = Alloc(kChunk / 2, b_);
  ASSERT_EQ(high, low + kChunk / 2);
  Free(low);
  Free(high);
  Wait(a_, b_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  gcap_scratch_reservation_set_label(reservation, "g");
  EXPECT_EQ(Alloc(kChunk, a_), low);
  EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), kChunk);
  char text[1024];
  gcap_scratch_describe(scratch_, text, sizeof(text));
  EXPECT_NE(std::string(text).find(std::to_string(kChunk) + " are kept by g of stream"), std::string::npos) << text;
  Free(low);
  Close(reservation);
  EXPECT_EQ(GranulesLeftFor(a_), 0u) << "a replay uses it";
  Release(reservation);
  EXPECT_EQ(GranulesLeftFor(a_), kChunk / kGranule);
}

// Which an audit of a graph tells.
TEST_F(Reservation, AClaimOnItsMemoryHasItsLabel) {
  WarmUp(a_);
  char* of_nobody = Alloc(100, b_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  for (const char* label : {"graph %d", "7", "7"}) gcap_scratch_reservation_set_label(reservation, label);
  char* of_graph = Alloc(100, a_);
  for (char* block : {of_nobody, of_graph}) {
    gcap_memory_claim_t claim = {};
    bool found = false;
    GCAP_EXPECT_OK(gcap_memory_find_claim(reinterpret_cast<uintptr_t>(block), /*watch=*/false, &claim, &found));
    EXPECT_TRUE(found);
    EXPECT_STREQ(claim.name, block == of_graph ? "graph %d, 7" : "");
    EXPECT_EQ(claim.keeper != 0, block == of_graph);
  }
  Free(of_graph);
  Release(reservation);
  Free(of_nobody);
}

// The scope opens one for its own streams (scope_test.cc); a capture that is not the scope's has no one who would.
TEST_F(Reservation, IsNeededOnAStreamThatCapturesOutsideOfTheScope) {
  WarmUp(a_);
  char* held = Alloc(kGranule, a_);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(c_), nullptr, &capture));
  ASSERT_EQ(cudaStreamBeginCapture(gcap_stream_handle(a_), cudaStreamCaptureModeRelaxed), cudaSuccess);
  ExpectAllocFails(kGranule, a_, GCAP_FAILED_PRECONDITION, "no open reservation");
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, held), GCAP_FAILED_PRECONDITION, "no open reservation");
  Free(Alloc(kGranule, b_));  // a stream that does not capture is not concerned
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(gcap_stream_handle(a_), &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "gcap_scratch_alloc");
  Free(held);
}

TEST_F(Reservation, ReusesItsOwnFreedBlocks) {
  WarmUp(a_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  char* first = Alloc(2 * kGranule, a_);
  Free(first);
  EXPECT_EQ(Alloc(kGranule, a_), first);
  EXPECT_EQ(Alloc(kGranule, a_), first + kGranule);
  EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), 2 * kGranule);
  Free(first);
  Free(first + kGranule);
  Release(reservation);
}

TEST_F(Reservation, GathersItsOwnAndTheArenasMemory) {
  WarmUp(a_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  Free(Alloc(kChunk / 2, a_));
  char* whole = Alloc(kChunk, a_);
  EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), kChunk);
  Free(whole);
  Release(reservation);
}

TEST_F(Reservation, KeepsItsMemoryFromEverybodyElse) {
  WarmUp(a_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  char* kept = Alloc(6 * kGranule, a_);
  Free(kept);
  char* live = Alloc(kGranule, a_);
  EXPECT_EQ(live, kept);
  Close(reservation);
  Synchronize(a_);
  EXPECT_EQ(GranulesLeftFor(a_), 10u);
  Synchronize(a_);
  EXPECT_EQ(GranulesLeftFor(b_), 10u);
  Free(live);  // after the close: it stays with the graph
  Synchronize(a_);
  Synchronize(b_);
  EXPECT_EQ(GranulesLeftFor(b_), 10u);
  Synchronize(b_);
  Trim();
  EXPECT_EQ(upstream_.num_regions(), 1u);
  EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), 6 * kGranule);
  Release(reservation);
  Synchronize(a_);
  Trim();
  EXPECT_EQ(upstream_.num_regions(), 0u);
}

TEST_F(Reservation, KeepsItsMemoryFromOtherGraphs) {
  WarmUp(a_);
  gcap_scratch_reservation_t* first = Open(a_);
  Free(Alloc(10 * kGranule, a_));
  Close(first);
  Synchronize(a_);
  for (gcap_stream_t* stream : {a_, b_}) {
    gcap_scratch_reservation_t* second = Open(stream);
    ExpectAllocFails(7 * kGranule, stream, GCAP_RESOURCE_EXHAUSTED, "lacks 1792 more");
    Free(Alloc(6 * kGranule, stream));
    Release(second);
    Synchronize(stream);
  }
  Release(first);
}

TEST_F(Reservation, ReleaseTagsItsMemoryWithTheStream) {
  WarmUp(a_);
  Synchronize(a_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  char* ptr = Alloc(kChunk, a_);
  Free(ptr);
  Close(reservation);
  Release(reservation);
  EXPECT_EQ(GranulesLeftFor(b_), 0u);
  EXPECT_EQ(Alloc(kChunk, a_), ptr);
  Free(ptr);
  Wait(b_, a_);
  EXPECT_EQ(GranulesLeftFor(b_), 16u);
}

TEST_F(Reservation, ReleaseLeavesLiveBlocksToTheirOwner) {
  WarmUp(a_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  char* ptr = Alloc(kChunk, a_);
  Release(reservation);
  Free(ptr);
  EXPECT_EQ(GranulesLeftFor(b_), 0u);
  EXPECT_EQ(GranulesLeftFor(a_), 16u);
}

TEST_F(Reservation, DivertsItsStreamAlone) {
  WarmUp(a_);
  Synchronize(a_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  char* ptr = Alloc(kGranule, b_);
  EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), 0u);
  Free(ptr);
  char* grown = Alloc(4 * kChunk, b_);  // b may still grow
  Free(grown);
  EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), 0u);
  Release(reservation);
}

TEST_F(Reservation, DoesNotTakeWhatAnotherStreamMayStillUse) {
  WarmUp(b_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  ExpectAllocFails(kGranule, a_, GCAP_RESOURCE_EXHAUSTED, "lacks 256 more");
  Wait(a_, b_);
  char* ptr = Alloc(kGranule, a_);
  Free(ptr);
  Release(reservation);
}

TEST_F(Reservation, IsOneAtATimePerStream) {
  WarmUp(a_);
  gcap_scratch_reservation_t* first = Open(a_);
  gcap_scratch_reservation_t* second = first;
  GCAP_EXPECT_FAILS(gcap_scratch_reservation_open(scratch_, a_, &second), GCAP_ALREADY_EXISTS, "open");
  EXPECT_EQ(second, nullptr);
  GCAP_EXPECT_FAILS(gcap_scratch_reservation_open(scratch_, nullptr, &second), GCAP_INVALID_ARGUMENT, "stream");
  char* of_first = Alloc(kGranule, a_);
  Free(of_first);
  Close(first);
  second = Open(a_);
  Close(first);  // again: it is not the open one
  char* of_second = Alloc(kGranule, a_);
  EXPECT_NE(of_second, of_first);
  EXPECT_EQ(gcap_scratch_reservation_bytes(first), kGranule);
  EXPECT_EQ(gcap_scratch_reservation_bytes(second), kGranule);
  Free(of_second);
  Release(second);
  Release(first);
}

// The arena cannot know that captured kernels did not use it before the free.
TEST_F(Reservation, KeepsAnOlderBlockThatIsFreedInside) {
  char* older = Alloc(kChunk, a_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  Free(older);
  EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), kChunk);
  Close(reservation);
  Synchronize(a_);
  EXPECT_EQ(GranulesLeftFor(a_), 0u);
  Release(reservation);
  EXPECT_EQ(GranulesLeftFor(a_), 16u);
}

TEST_F(Reservation, DestroyRefusesWhileItLives) {
  gcap_scratch_reservation_t* reservation = Open(a_);
  Close(reservation);
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, "1 reservations");
  Validate();
  Release(reservation);
}

TEST_F(Reservation, WhatItLackedIsThereTheNextTime) {
  WarmUp(a_);
  const size_t needed = 3 * kChunk + 100;
  for (int attempt = 0; attempt < 2; ++attempt) {
    gcap_scratch_reservation_t* reservation = Open(a_);
    char* first = Alloc(kChunk / 2, a_);
    if (attempt == 0) {
      ExpectAllocFails(needed, a_, GCAP_RESOURCE_EXHAUSTED, "lacks " + std::to_string(3 * kChunk + kGranule));
    } else {
      Free(Alloc(needed, a_));
    }
    Free(first);
    Close(reservation);
    Release(reservation);
    EXPECT_EQ(NumRequests(), attempt + 1u);
    Free(Alloc(1, a_));  // an eager run
    EXPECT_EQ(NumRequests(), 2u);
  }
}

TEST_F(Reservation, DeficitThatCannotBeMadeUpHarmsNobodyElse) {
  options_.memory_limit_bytes = kChunk;
  Create();
  WarmUp(a_);
  gcap_scratch_reservation_t* reservation = Open(a_);
  ExpectAllocFails(2 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, "lacks");
  Release(reservation);
  const LogCatcher log;
  char* ptr = Alloc(kChunk, a_);
  EXPECT_NE(log.text().find("8192 bytes that a capture lacked"), std::string::npos) << log.text();
  const std::string once = log.text();
  Free(ptr);
  Free(Alloc(1, a_));
  EXPECT_EQ(log.text(), once);
}

TEST_F(Reservation, DeficitIsNotMadeUpInsideACapture) {
  WarmUp(a_);
  Synchronize(a_);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(a_), nullptr, &capture));
  gcap_scratch_reservation_t* reservation = Open(a_);
  ExpectAllocFails(2 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, "lacks");
  Free(Alloc(kGranule, b_));  // another stream of the thread that captures
  EXPECT_EQ(NumRequests(), 1u);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "lacks");
  Release(reservation);
  Free(Alloc(kGranule, b_));
  EXPECT_EQ(NumRequests(), 2u);
}

// A stream without a reservation cannot make the arena grow while its thread captures: the device allocator refuses.
TEST_F(Reservation, GrowthOfAnotherStreamInsideACaptureIsUpstreamsToRefuse) {
  gcap_allocator_t* device = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device));
  gcap_scratch_t* scratch = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(device, nullptr, &scratch));
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(a_), nullptr, &capture));
  void* ptr = nullptr;
  GCAP_EXPECT_FAILS(gcap_scratch_alloc(scratch, 1, b_, &ptr), GCAP_FAILED_PRECONDITION, "no open reservation");
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "gcap_allocator_alloc of ");
  EXPECT_EQ(graph, nullptr) << "what was to use the memory is missing";
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  gcap_allocator_destroy(device);
}

// --- Real graphs ----------------------------------------------------------------------------------------------------

// A graph that copies its input through two blocks of scratch to its output.
class TwoStepGraph {
 public:
  TwoStepGraph(gcap_scratch_t* scratch, gcap_stream_t* stream) : stream_(stream) {
    EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&host_), 2 * kBytes), cudaSuccess);
    const cudaStream_t handle = gcap_stream_handle(stream);
    gcap_capture_t* capture = nullptr;
    GCAP_EXPECT_OK(gcap_capture_begin(handle, nullptr, &capture));
    GCAP_EXPECT_OK(gcap_scratch_reservation_open(scratch, stream, &reservation_));
    void* first = nullptr;
    void* second = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, kBytes, stream, &first));
    EXPECT_EQ(cudaMemcpyAsync(first, host_, kBytes, cudaMemcpyHostToDevice, handle), cudaSuccess);
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, kBytes, stream, &second));
    EXPECT_EQ(cudaMemcpyAsync(second, first, kBytes, cudaMemcpyDeviceToDevice, handle), cudaSuccess);
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, first));
    EXPECT_EQ(cudaMemcpyAsync(host_ + kBytes, second, kBytes, cudaMemcpyDeviceToHost, handle), cudaSuccess);
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, second));
    gcap_scratch_reservation_close(reservation_);
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_OK(gcap_capture_end(capture, &graph_, &retained));
    EXPECT_EQ(cudaGraphInstantiate(&exec_, graph_, 0), cudaSuccess);
  }
  TwoStepGraph(const TwoStepGraph&) = delete;
  TwoStepGraph& operator=(const TwoStepGraph&) = delete;
  ~TwoStepGraph() {
    EXPECT_EQ(cudaGraphExecDestroy(exec_), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(host_), cudaSuccess);
    gcap_scratch_reservation_release(reservation_);
  }

  void Launch(char input) {
    for (size_t i = 0; i < kBytes; ++i) host_[i] = static_cast<char>(input + i % 7);
    EXPECT_EQ(cudaGraphLaunch(exec_, gcap_stream_handle(stream_)), cudaSuccess);
  }
  // After a synchronisation.
  bool OutputIsInput() const { return std::equal(host_, host_ + kBytes, host_ + kBytes); }

  static constexpr size_t kBytes = 4096;

 private:
  gcap_stream_t* stream_;
  gcap_scratch_reservation_t* reservation_ = nullptr;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  char* host_ = nullptr;  // input, then output
};

TEST_F(Reservation, ReplaysMeetNeitherOneAnotherNorEagerWork) {
  gcap_allocator_t* device = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device));
  gcap_scratch_t* scratch = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(device, nullptr, &scratch));
  void* warm = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, 4 * TwoStepGraph::kBytes, a_, &warm));
  GCAP_ASSERT_OK(gcap_scratch_free(scratch, warm));
  GCAP_ASSERT_OK(gcap_stream_synchronize(a_));
  {
    TwoStepGraph first(scratch, a_);
    TwoStepGraph second(scratch, b_);
    for (char round = 1; round <= 5; ++round) {
      first.Launch(round);
      second.Launch(static_cast<char>(round + 50));
      // Eager traffic over all that is free, while both replays may be running.
      std::vector<void*> blocks(64, nullptr);
      for (void*& block : blocks) {
        GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, TwoStepGraph::kBytes, c_, &block));
        EXPECT_EQ(cudaMemsetAsync(block, 0x5a, TwoStepGraph::kBytes, gcap_stream_handle(c_)), cudaSuccess);
      }
      for (void* block : blocks) GCAP_EXPECT_OK(gcap_scratch_free(scratch, block));
      for (gcap_stream_t* stream : {c_, b_, a_}) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
      EXPECT_TRUE(first.OutputIsInput()) << "round " << int{round};
      EXPECT_TRUE(second.OutputIsInput()) << "round " << int{round};
      GCAP_EXPECT_OK(gcap_scratch_trim(scratch));
      GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
    }
  }
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  gcap_allocator_destroy(device);
}

// What was captured before the free uses the block at each replay, also when the block is an earlier graph's.
TEST_F(Reservation, ABlockOfAnEarlierGraphThatIsFreedInsideIsKeptByBoth) {
  Free(Alloc(kChunk, a_));
  gcap_scratch_reservation_t* first = Open(a_);
  char* ptr = Alloc(kGranule, a_);
  Close(first);
  gcap_scratch_reservation_t* second = Open(a_);
  Free(ptr);
  char* own = Alloc(kGranule, a_);
  Free(own);
  Close(second);
  Release(first);
  std::vector<char*> eager;
  for (int i = 0; i < 14; ++i) eager.push_back(Alloc(kGranule, a_));
  EXPECT_EQ(NumRequests(), 1u);
  for (char* block : eager) EXPECT_NE(block, ptr);
  for (char* block : eager) Free(block);
  Release(second);
  char* all = Alloc(kChunk, a_);
  EXPECT_EQ(NumRequests(), 1u);
  Free(all);
}

// Each would wait for the other's end.
TEST_F(Reservation, TwoGraphsDoNotKeepOneAnother) {
  Free(Alloc(kChunk, a_));
  gcap_scratch_reservation_t* first = Open(a_);
  char* of_first = Alloc(kGranule, a_);
  Close(first);
  gcap_scratch_reservation_t* second = Open(a_);
  char* of_second = Alloc(kGranule, a_);
  Free(of_first);
  Close(second);
  GCAP_EXPECT_OK(gcap_scratch_reservation_reopen(first));
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, of_second), GCAP_FAILED_PRECONDITION, "outside of a capture");
  Close(first);
  Free(of_second);
  Release(first);
  Release(second);
  Release(first);
}

// --- Many graphs that keep one another ------------------------------------------------------------------------------

// Graphs of one stream, each of which has a block and frees blocks of earlier ones.
class Family {
 public:
  Family(gcap_scratch_t* scratch, gcap_stream_t* stream) : scratch_(scratch), stream_(stream) {}

  // The next graph, whose capture frees the blocks of these graphs.
  void Capture(const std::vector<size_t>& freed) {
    Graph graph;
    GCAP_EXPECT_OK(gcap_scratch_reservation_open(scratch_, stream_, &graph.reservation));
    for (void*& block : graph.blocks) GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, kGranule, stream_, &block));
    for (size_t other : freed) FreeOneOf(other);
    gcap_scratch_reservation_close(graph.reservation);
    graphs_.push_back(graph);
  }
  void FreeOneOf(size_t graph) {
    void*& block = graphs_[graph].blocks[graphs_[graph].blocks[0] == nullptr ? 1 : 0];
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block));
    block = nullptr;
  }
  gcap_scratch_reservation_t* reservation(size_t graph) const { return graphs_[graph].reservation; }
  void* block(size_t graph) const { return graphs_[graph].blocks[1]; }
  void ReleaseAll() {
    for (Graph& graph : graphs_) {
      for (void* block : graph.blocks) GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block));
      gcap_scratch_reservation_release(graph.reservation);
    }
  }

 private:
  struct Graph {
    gcap_scratch_reservation_t* reservation = nullptr;
    void* blocks[2] = {};
  };
  gcap_scratch_t* scratch_;
  gcap_stream_t* stream_;
  std::vector<Graph> graphs_;
};

// Each graph keeps the two before it, so there are as many ways from the last to the first as the 90th Fibonacci number
// says. A walk that took them all, as it did, would take a thousand years.
TEST_F(Reservation, WhoKeepsWhomIsFoundInOneLookAtEachGraph) {
  constexpr size_t kGraphs = 90;
  options_.initial_chunk_bytes = 2 * kGraphs * kGranule;
  Create();
  WarmUp(a_);
  Family family(scratch_, a_);
  family.Capture({});
  family.Capture({0});
  for (size_t i = 2; i < kGraphs; ++i) family.Capture({i - 2, i - 1});
  Validate();
  GCAP_EXPECT_OK(gcap_scratch_reservation_reopen(family.reservation(0)));
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, family.block(kGraphs - 1)), GCAP_FAILED_PRECONDITION,
                    "outside of a capture");
  Release(family.reservation(0));
  family.ReleaseAll();
  Validate();
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

// Runs on a thread with a stack on which a call for each graph of a chain has no room.
void RunOnSmallStack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, size_t{256} << 10), 0);
  pthread_t thread;
  const auto body = [](void* user) -> void* {
    (*static_cast<std::function<void()>*>(user))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &work), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_EQ(pthread_attr_destroy(&attributes), 0);
}

// Each graph keeps the one before. Both the walk and the release used to call themselves once for each graph.
TEST_F(Reservation, ALongChainOfGraphsNeedsNoStack) {
  constexpr size_t kGraphs = 20000;
  options_.initial_chunk_bytes = 2 * kGraphs * kGranule;
  Create();
  WarmUp(a_);
  RunOnSmallStack([this] {
    Family family(scratch_, a_);
    family.Capture({});
    for (size_t i = 1; i < kGraphs; ++i) family.Capture({i - 1});
    GCAP_EXPECT_OK(gcap_scratch_reservation_reopen(family.reservation(0)));
    GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, family.block(kGraphs - 1)), GCAP_FAILED_PRECONDITION,
                      "outside of a capture");
    gcap_scratch_reservation_release(family.reservation(0));
    family.ReleaseAll();
  });
  Validate();
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
