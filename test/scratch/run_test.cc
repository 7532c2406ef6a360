// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runs: what a run leaves is freed at its end, and named with its node. First what belongs to a run, then the messages,
// then captures and the debug options, which see each of these frees.

#include <cuda_runtime_api.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "lib/capture/inner.h"
#include "lib/scratch/inner.h"
#include "test/base/heap_failure.h"
#include "test/scratch/scratch_test_support.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class Run : public ScratchTest {
 protected:
  void Begin(gcap_stream_t* stream) {
    GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, stream));
    Validate();
  }
  // Gives what was logged.
  std::string End(gcap_stream_t* stream) {
    const LogCatcher log;
    GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, stream));
    Validate();
    return log.text();
  }
  void Node(gcap_stream_t* stream, const char* name) {
    gcap_scratch_set_node(scratch_, stream, name);
    Validate();
  }
  void Keep(void* ptr) {
    GCAP_EXPECT_OK(gcap_scratch_keep(scratch_, ptr));
    Validate();
  }
  void ExpectIsFree(void* ptr) {
    GCAP_EXPECT_FAILS(gcap_scratch_keep(scratch_, ptr), GCAP_INVALID_ARGUMENT, "address");
  }
  std::string Describe() {
    char text[4096];
    gcap_scratch_describe(scratch_, text, sizeof(text));
    return text;
  }
  // For a callback: at the first free begins a run, which leaves a block.
  static void BeginNextRun(void* user, const gcap_allocator_event_t* event) {
    auto* test = static_cast<Run*>(user);
    if (event->kind != GCAP_ALLOCATOR_EVENT_FREE || test->of_next_ != nullptr) return;
    GCAP_EXPECT_OK(gcap_scratch_begin_run(test->scratch_, test->a_));
    GCAP_EXPECT_OK(gcap_scratch_alloc(test->scratch_, kGranule, test->a_, &test->of_next_));
  }

  void* of_next_ = nullptr;

  static std::string Warning(const std::string& who, int num_blocks, size_t bytes) {
    return who + " left " + std::to_string(num_blocks) + " blocks of scratch (" + std::to_string(bytes) +
           " bytes) to the end of its run, where they were freed; free them, or keep them with gcap_scratch_keep";
  }
};

// --- What belongs to a run ------------------------------------------------------------------------------------------

TEST_F(Run, FreesWhatItLeft) {
  Begin(a_);
  char* first = Alloc(3 * kGranule, a_);
  char* second = Alloc(100, a_);
  Free(Alloc(kGranule, a_));
  EXPECT_EQ(End(a_), Warning("work without a node's name", 2, 3 * kGranule + 100));
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  ExpectIsFree(first);
  ExpectIsFree(second);
  EXPECT_EQ(GranulesLeftFor(a_), 16u);
  EXPECT_EQ(GranulesLeftFor(b_), 0u) << "freed in the order of the stream";
}

TEST_F(Run, ThatLeftNothingSaysNothing) {
  for (int i = 0; i < 3; ++i) {
    Begin(a_);
    Free(Alloc(kGranule, a_));
    EXPECT_EQ(End(a_), "");
  }
}

TEST_F(Run, ThatAllocatesNothingCountsNoAllocation) {
  Begin(a_);
  EXPECT_EQ(End(a_), "");
  EXPECT_EQ(Stats().max_alloc_bytes, 0u);
}

TEST_F(Run, TouchesNeitherWhatWasBeforeNorWhatComesAfter) {
  char* before = Alloc(kGranule, a_);
  Begin(a_);
  Alloc(kGranule, a_);
  EXPECT_EQ(End(a_), Warning("work without a node's name", 1, kGranule));
  char* between = Alloc(kGranule, a_);
  Begin(a_);
  EXPECT_EQ(End(a_), "");
  Free(before);
  Free(between);
}

// The number of live blocks of the run must not go wrong by those of others that are freed meanwhile.
TEST_F(Run, FreesWhatItLeftAlsoWhenOlderBlocksWereFreedMeanwhile) {
  std::vector<char*> older;
  for (int i = 0; i < 5; ++i) older.push_back(Alloc(kGranule, a_));
  Begin(a_);
  char* left = Alloc(kGranule, a_);
  for (char* block : older) Free(block);
  EXPECT_EQ(End(a_), Warning("work without a node's name", 1, kGranule));
  ExpectIsFree(left);
}

TEST_F(Run, LeavesWhatIsKept) {
  Begin(a_);
  char* kept = Alloc(kGranule, a_);
  char* left = Alloc(kGranule, a_);
  Keep(kept);
  Keep(kept);  // again
  EXPECT_EQ(End(a_), Warning("work without a node's name", 1, kGranule));
  ExpectIsFree(left);
  Begin(a_);
  EXPECT_EQ(End(a_), "") << "nor is it of the next run";
  Free(kept);
}

TEST_F(Run, KeepTakesLiveBlocksAlone) {
  Keep(nullptr);
  char* block = Alloc(2 * kGranule, a_);
  Keep(block);  // of no run
  GCAP_EXPECT_FAILS(gcap_scratch_keep(scratch_, block + kGranule), GCAP_INVALID_ARGUMENT, "inside a block");
  GCAP_EXPECT_FAILS(gcap_scratch_keep(scratch_, this), GCAP_INVALID_ARGUMENT, "not allocated from this scratch");
  Free(block);
  GCAP_EXPECT_FAILS(gcap_scratch_keep(scratch_, block), GCAP_INVALID_ARGUMENT, "freed already");
}

TEST_F(Run, IsOfItsStreamAlone) {
  Begin(a_);
  Begin(b_);
  char* of_a = Alloc(kGranule, a_);
  char* of_b = Alloc(2 * kGranule, b_);
  char* of_c = Alloc(kGranule, c_);
  EXPECT_EQ(End(a_), Warning("work without a node's name", 1, kGranule));
  ExpectIsFree(of_a);
  EXPECT_EQ(End(b_), Warning("work without a node's name", 1, 2 * kGranule));
  ExpectIsFree(of_b);
  Free(of_c);
}

TEST_F(Run, IsNotOfMemoryWithoutAStream) {
  Begin(a_);
  void* untagged = nullptr;
  void* reserved = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_alloc(gcap_scratch_allocator(scratch_), kGranule, &untagged));
  GCAP_EXPECT_OK(gcap_allocator_reserve(gcap_scratch_allocator(scratch_), kGranule, &reserved));
  EXPECT_EQ(End(a_), "");
  Free(untagged);
  Free(reserved);
}

TEST_F(Run, AReserveThatUpstreamDoesNotTakeBackIsOfNoRun) {
  Begin(a_);
  void* reserved = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_reserve(gcap_scratch_allocator(scratch_), kGranule, &reserved));
  upstream_.refuses_free = true;
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, reserved), GCAP_UNAVAILABLE, "takes nothing back");
  upstream_.refuses_free = false;
  Validate();
  EXPECT_EQ(Describe().find("node"), std::string::npos);
  EXPECT_EQ(End(a_), "");
  Free(reserved);
}

TEST_F(Run, IsBegunAndEndedInTurns) {
  GCAP_EXPECT_FAILS(gcap_scratch_end_run(scratch_, a_), GCAP_FAILED_PRECONDITION, "no open run");
  Begin(a_);
  GCAP_EXPECT_FAILS(gcap_scratch_begin_run(scratch_, a_), GCAP_ALREADY_EXISTS, "open run");
  EXPECT_EQ(End(a_), "");
  GCAP_EXPECT_FAILS(gcap_scratch_end_run(scratch_, a_), GCAP_FAILED_PRECONDITION, "no open run");
}

TEST_F(Run, ASecondBeginChangesNothing) {
  Begin(a_);
  Alloc(kGranule, a_);
  GCAP_EXPECT_FAILS(gcap_scratch_begin_run(scratch_, a_), GCAP_ALREADY_EXISTS, "1 live blocks");
  EXPECT_EQ(End(a_), Warning("work without a node's name", 1, kGranule));
}

TEST_F(Run, ItsBlocksMayBeFreedByAnotherThread) {
  Begin(a_);
  std::vector<char*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(Alloc(kGranule, a_));
  std::thread([&] {
    for (int i = 0; i < 3; ++i) Free(blocks[i]);
  }).join();
  EXPECT_EQ(End(a_), Warning("work without a node's name", 1, kGranule));
  ExpectIsFree(blocks[3]);
}

TEST_F(Run, FindsNoMemoryToBeNoted) {
  {
    const HeapFailure failure;
    GCAP_EXPECT_FAILS(gcap_scratch_begin_run(scratch_, a_), GCAP_RESOURCE_EXHAUSTED, "note a stream");
  }
  Validate();
  Begin(a_);
  EXPECT_EQ(End(a_), "");
}

// A begin and an end without leaks, and what is between, need no host memory.
TEST_F(Run, NeedsNoHostMemoryInTheSteadyState) {
  for (int round = 0; round < 3; ++round) {
    const HeapFailure failure(round == 0 ? 0 : 1);
    GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, a_));
    gcap_scratch_set_node(scratch_, a_, "conv1");
    void* block = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, kGranule, a_, &block));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block));
    GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, a_));
    EXPECT_EQ(failure.hits(), 0);
  }
}

TEST_F(Run, EndsWithItsStream) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  Begin(stream);
  std::string name = "conv1";
  Node(stream, name.c_str());
  char* block = Alloc(kGranule, stream);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  name = "gone!";
  Validate();
  EXPECT_NE(Describe().find("node 'conv1' has 1 live blocks"), std::string::npos) << Describe();
  Free(block);
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  Begin(stream);
  Synchronize(stream);
  GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, stream));
  GCAP_EXPECT_FAILS(gcap_scratch_end_run(scratch_, stream), GCAP_FAILED_PRECONDITION, "no open run");
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

// A state that is used for another stream has no run.
TEST_F(Run, IsNotInheritedByTheNextStream) {
  Begin(a_);
  Node(a_, "conv1");
  GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, a_));
  char* block = Alloc(kGranule, b_);
  EXPECT_EQ(Describe().find("conv1"), std::string::npos);
  GCAP_EXPECT_FAILS(gcap_scratch_end_run(scratch_, b_), GCAP_FAILED_PRECONDITION, "no open run");
  Begin(b_);
  Free(block);
  char* left = Alloc(kGranule, b_);
  EXPECT_EQ(End(b_), Warning("work without a node's name", 1, kGranule));
  ExpectIsFree(left);
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

TEST_F(Run, NamesTheNodesThatLeftBlocks) {
  Begin(a_);
  Node(a_, "conv1");
  Alloc(kGranule, a_);
  Node(a_, "relu1");
  Alloc(100, a_);
  Free(Alloc(kGranule, a_));
  Node(a_, nullptr);
  Alloc(7, a_);
  const std::string again = "conv1";  // the same name at another address
  Node(a_, again.c_str());
  Alloc(5 * kGranule, a_);
  const std::string log = End(a_);
  EXPECT_EQ(log.size(), (Warning("node 'conv1'", 2, 1536) + Warning("node 'relu1'", 1, 100) +
                         Warning("work without a node's name", 1, 7))
                            .size());
  EXPECT_NE(log.find(Warning("node 'conv1'", 2, 1536)), std::string::npos) << log;
  EXPECT_NE(log.find(Warning("node 'relu1'", 1, 100)), std::string::npos) << log;
  EXPECT_NE(log.find(Warning("work without a node's name", 1, 7)), std::string::npos) << log;
}

TEST_F(Run, ANodeIsOfOneRun) {
  Node(a_, "too early");
  Begin(a_);
  Alloc(1, a_);
  Node(a_, "conv1");
  EXPECT_EQ(End(a_), Warning("work without a node's name", 1, 1));
  Begin(a_);
  Alloc(1, a_);
  EXPECT_EQ(End(a_), Warning("work without a node's name", 1, 1));
}

TEST_F(Run, RefusalsNameTheNodesOfLiveBlocks) {
  std::vector<char*> kept;
  Begin(a_);
  {
    std::string name = "conv1";  // ends with the run
    Node(a_, name.c_str());
    for (size_t bytes : {kGranule, size_t{100}}) {
      kept.push_back(Alloc(bytes, a_));
      Keep(kept.back());
    }
    EXPECT_EQ(End(a_), "");
    name = "gone!";
  }
  Begin(b_);
  Node(b_, "softmax");
  char* of_b = Alloc(kGranule, b_);
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, "3 blocks are handed out");
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION,
                    "; node 'conv1' has 2 live blocks (356 bytes)");
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION,
                    "; node 'softmax' has 1 live blocks (256 bytes)");
  const Outcome of_a(gcap_scratch_forget_stream(scratch_, a_));
  EXPECT_EQ(of_a.code, GCAP_FAILED_PRECONDITION);
  EXPECT_TRUE(of_a.Names("; node 'conv1' has 2 live blocks (356 bytes)")) << of_a.message;
  EXPECT_FALSE(of_a.Names("softmax")) << of_a.message;
  EXPECT_NE(Describe().find("\nnode 'conv1' has 2 live blocks (356 bytes)\n"), std::string::npos) << Describe();
  EXPECT_NE(Describe().find("\nnode 'softmax' has 1 live blocks (256 bytes)"), std::string::npos) << Describe();
  Free(of_b);
  EXPECT_EQ(End(b_), "");
  EXPECT_EQ(Describe().find("softmax"), std::string::npos);
  Begin(a_);
  Node(a_, "conv1");  // of the next run, and not where the name of the first one is kept
  char* of_next = Alloc(kGranule, a_);
  EXPECT_NE(Describe().find("\nnode 'conv1' has 3 live blocks (612 bytes)"), std::string::npos) << Describe();
  Free(of_next);
  EXPECT_EQ(End(a_), "");
  for (char* block : kept) Free(block);
}

// Eight nodes are told apart.
TEST_F(Run, NodesBeyondTheEighthAreCountedTogether) {
  const auto counts_others = [this](const std::string& counted) {
    const Outcome refusal(gcap_scratch_forget_stream(scratch_, a_));
    EXPECT_EQ(refusal.Names("; other nodes have " + counted), !counted.empty()) << refusal.message;
    EXPECT_EQ(Describe().find("\nother nodes have " + counted) != std::string::npos, !counted.empty()) << Describe();
  };
  std::vector<std::string> names;
  for (int i = 0; i < 11; ++i) names.push_back("node" + std::to_string(i));
  std::vector<char*> blocks;
  Begin(a_);
  for (int i = 0; i < 11; ++i) {
    if (i == 8) counts_others("");
    Node(a_, names[i].c_str());
    blocks.push_back(Alloc(100, a_));
  }
  counts_others("3 live blocks (300 bytes)");
  for (char* block : blocks) Free(block);
  EXPECT_EQ(End(a_), "");
}

TEST_F(Run, ADescriptionEndsAtItsRoom) {
  Begin(a_);
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i) names.push_back(std::string(100, static_cast<char>('a' + i)));
  for (const std::string& name : names) {
    Node(a_, name.c_str());
    Alloc(1, a_);
  }
  EXPECT_NE(Describe().find(names[7]), std::string::npos);
  EXPECT_NE(Describe().find("other nodes have 4 live blocks (4 bytes)"), std::string::npos) << Describe();
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, names[0]);
  const std::string log = End(a_);
  for (const std::string& name : names) EXPECT_NE(log.find(Warning("node '" + name + "'", 1, 1)), std::string::npos);
}

// The name of a kept block is copied; without memory the block has none.
TEST_F(Run, AKeptBlockForgetsItsNodeWithoutHostMemory) {
  Begin(a_);
  Node(a_, "conv1");
  char* block = Alloc(kGranule, a_);
  {
    const HeapFailure failure;
    GCAP_EXPECT_OK(gcap_scratch_keep(scratch_, block));
    EXPECT_EQ(failure.hits(), 1);
  }
  Validate();
  EXPECT_EQ(Describe().find("conv1"), std::string::npos);
  EXPECT_EQ(End(a_), "");
  Free(block);
}

TEST_F(Run, MemoryThatIsOutNamesTheNodesThatHaveIt) {
  options_.memory_limit_bytes = kChunk;
  Create();
  Begin(a_);
  Node(a_, "conv1");
  char* block = Alloc(kChunk, a_);
  ExpectAllocFails(1, a_, GCAP_RESOURCE_EXHAUSTED, "node 'conv1' has 1 live blocks (4096 bytes)");
  Free(block);
  EXPECT_EQ(End(a_), "");
}

// --- Captures -------------------------------------------------------------------------------------------------------

TEST_F(Run, InsideACaptureFreesIntoTheReservation) {
  Free(Alloc(kChunk, a_));
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(a_), nullptr, &capture));
  Begin(a_);
  char* left = Alloc(6 * kGranule, a_);
  EXPECT_EQ(End(a_), Warning("work without a node's name", 1, 6 * kGranule));
  EXPECT_EQ(Alloc(6 * kGranule, a_), left) << "the reservation's, for more of the same capture";
  Free(left);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(gcap_retained_bytes(retained), 6 * kGranule);
  EXPECT_EQ(GranulesLeftFor(a_), 10u);
  gcap_retained_release(retained);
  EXPECT_EQ(GranulesLeftFor(a_), 16u);
}

TEST_F(Run, EndsAfterItsCaptureToo) {
  Free(Alloc(kChunk, a_));
  Begin(a_);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(a_), nullptr, &capture));
  Alloc(6 * kGranule, a_);
  gcap_capture_abort(capture);
  EXPECT_EQ(End(a_), Warning("work without a node's name", 1, 6 * kGranule));
  EXPECT_EQ(GranulesLeftFor(a_), 16u);
}

TEST_F(Run, WhatItMayNotFreeStaysLiveAndIsNamed) {
  Free(Alloc(kChunk, a_));
  Begin(a_);
  Node(a_, "conv1");
  char* left = Alloc(kGranule, a_);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(c_), nullptr, &capture));
  ASSERT_EQ(cudaStreamBeginCapture(gcap_stream_handle(a_), cudaStreamCaptureModeRelaxed), cudaSuccess);
  {
    const LogCatcher log;
    const Outcome ended(gcap_scratch_end_run(scratch_, a_));
    EXPECT_EQ(ended.code, GCAP_FAILED_PRECONDITION);
    EXPECT_TRUE(ended.Names("256 bytes of scratch that node 'conv1' left")) << ended.message;
    EXPECT_TRUE(ended.Names("no open reservation")) << ended.message;
    EXPECT_EQ(log.text(), "");
  }
  Validate();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(gcap_stream_handle(a_), &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  gcap_capture_abort(capture);
  GCAP_EXPECT_FAILS(gcap_scratch_end_run(scratch_, a_), GCAP_FAILED_PRECONDITION, "no open run");
  EXPECT_NE(Describe().find("node 'conv1' has 1 live blocks (256 bytes)"), std::string::npos) << Describe();
  Begin(a_);
  EXPECT_EQ(End(a_), "");
  Free(left);
}

// --- Debug options --------------------------------------------------------------------------------------------------

TEST_F(Run, TellsOfEachFree) {
  struct Events {
    std::vector<gcap_allocator_event_t> all;
  } events;
  options_.on_event = [](void* user, const gcap_allocator_event_t* event) {
    static_cast<Events*>(user)->all.push_back(*event);
  };
  options_.user = &events;
  Create();
  Begin(a_);
  const std::set<void*> left = {Alloc(kGranule, a_), Alloc(2 * kGranule, a_)};
  EXPECT_EQ(End(a_), Warning("work without a node's name", 2, 3 * kGranule));
  ASSERT_EQ(events.all.size(), 4u);
  EXPECT_EQ((std::set<void*>{events.all[2].ptr, events.all[3].ptr}), left);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(events.all[i].sequence, i + 1);
  EXPECT_EQ(events.all[2].kind, GCAP_ALLOCATOR_EVENT_FREE);
}

// A callback may use the scratch, and even begin the next run of the stream.
TEST_F(Run, ACallbackMayBeginTheNextRun) {
  options_.on_event = BeginNextRun;
  options_.user = this;
  Create();
  Begin(a_);
  Alloc(kGranule, a_);
  Alloc(kGranule, a_);
  EXPECT_EQ(End(a_), Warning("work without a node's name", 2, 2 * kGranule));
  EXPECT_EQ(Stats().in_use_bytes, kGranule);
  EXPECT_EQ(End(a_), Warning("work without a node's name", 1, kGranule));
}

TEST_F(Run, ReportsWhatRedZonesFind) {
  options_.red_zones = options_.poison_on_free = true;
  gcap_allocator_t* device = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device));
  gcap_scratch_t* scratch = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(device, &options_, &scratch));
  GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch, a_));
  void* whole = nullptr;
  void* damaged = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, kGranule, a_, &whole));
  GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, kGranule, a_, &damaged));
  EXPECT_EQ(cudaMemsetAsync(damaged, 1, kGranule + 1, gcap_stream_handle(a_)), cudaSuccess);
  {
    const LogCatcher log;
    GCAP_EXPECT_FAILS(gcap_scratch_end_run(scratch, a_), GCAP_INTERNAL, "byte 1 after");
    EXPECT_EQ(log.text(), Warning("work without a node's name", 2, 2 * kGranule)) << "both were freed";
  }
  unsigned char poison[2] = {};
  EXPECT_EQ(cudaMemcpyAsync(poison, whole, 2, cudaMemcpyDeviceToHost, gcap_stream_handle(a_)), cudaSuccess);
  GCAP_EXPECT_OK(gcap_stream_synchronize(a_));
  EXPECT_EQ(poison[0] & poison[1], 0xFF);
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  gcap_allocator_destroy(device);
}

// --- Threads --------------------------------------------------------------------------------------------------------

// Each thread has a stream and leaves blocks in every other run; the next thread frees some of them.
TEST_F(Run, SeveralThreadsHaveRunsAtOnce) {
  constexpr int kRuns = 200;
  const LogCatcher log;
  std::vector<std::thread> threads;
  for (gcap_stream_t* stream : {a_, b_, c_}) {
    threads.emplace_back([this, stream] {
      for (int run = 0; run < kRuns; ++run) {
        GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, stream));
        gcap_scratch_set_node(scratch_, stream, "conv1");
        std::vector<void*> blocks(6, nullptr);
        for (size_t i = 0; i < blocks.size(); ++i) {
          GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 100 * (i + 1), stream, &blocks[i]));
        }
        GCAP_EXPECT_OK(gcap_scratch_keep(scratch_, blocks[0]));
        std::thread other;
        if (run % 20 == 0) {
          other = std::thread([&] { GCAP_EXPECT_OK(gcap_scratch_free(scratch_, blocks[1])); });
        } else {
          GCAP_EXPECT_OK(gcap_scratch_free(scratch_, blocks[1]));
        }
        for (size_t i = 2; i < blocks.size() && run % 2 == 0; ++i)
          GCAP_EXPECT_OK(gcap_scratch_free(scratch_, blocks[i]));
        if (other.joinable()) other.join();
        GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, stream));
        GCAP_EXPECT_OK(gcap_scratch_free(scratch_, blocks[0]));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Validate();
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  const std::string warning = Warning("node 'conv1'", 4, 300 + 400 + 500 + 600);
  EXPECT_EQ(log.text().size(), 3 * kRuns / 2 * warning.size());
}

}  // namespace
}  // namespace testing
}  // namespace gcap
