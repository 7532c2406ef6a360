// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch that does not cache: what upstream is asked for and gets back, and when; what captures use; what becomes of
// memory that may still be in use, and of memory that runs out.

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "test/scratch/scratch_test_support.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

using Sizes = std::vector<size_t>;

class Bypass : public ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    options_.bypass = true;
    Create();
  }
  // What a call that has nothing else to do gives back.
  void MakeACall() { Free(Alloc(kGranule * 99, c_)); }
  size_t NumRegions() const { return upstream_.num_regions(); }
};

TEST_F(Bypass, IsOffByDefault) {
  gcap_scratch_options_t options;
  std::memset(&options, 0xa5, sizeof(options));
  gcap_scratch_options_init(&options);
  EXPECT_FALSE(options.bypass);
}

TEST_F(Bypass, EachAllocationIsOneRequestOfItsSize) {
  std::vector<void*> blocks;
  for (const size_t bytes : {1u, 256u, 1000u, 70000u, 256u}) blocks.push_back(Alloc(bytes, a_));
  EXPECT_EQ(upstream_.requests(), (Sizes{256, 256, 1024, 70144, 256}));
  EXPECT_EQ(Stats().total_allocated_bytes, 256u + 256 + 1024 + 70144 + 256);
  for (void* block : blocks) Free(block);
}

TEST_F(Bypass, WhatItsStreamHasPassedGoesBackAtTheNextCall) {
  void* const first = Alloc(512, a_);
  void* const second = Alloc(1024, a_);
  Free(first);
  Synchronize(a_);
  EXPECT_EQ(NumRegions(), 2u) << "nobody called";
  void* const third = Alloc(256, b_);
  EXPECT_FALSE(upstream_.Owns(first, 512));
  EXPECT_EQ(NumRegions(), 2u);
  Free(third);
  Synchronize(b_);
  Free(second);
  EXPECT_EQ(NumRegions(), 1u) << "a free gives back too, but not what it frees itself";
  Synchronize(a_);
  Trim();
  EXPECT_EQ(NumRegions(), 0u);
}

TEST_F(Bypass, WhatMayBeInUseStays) {
  void* const block = Alloc(512, a_);
  Free(block);
  for (int i = 0; i < 10; ++i) {
    Free(Alloc(256, b_));
    Synchronize(b_);
  }
  EXPECT_TRUE(upstream_.Owns(block, 512)) << "stream a was not waited for";
  Synchronize(a_);
  MakeACall();
  EXPECT_FALSE(upstream_.Owns(block, 512));
}

TEST_F(Bypass, ALoopThatIsWaitedForHoldsOneBlockAndAsksEachTime) {
  for (size_t i = 1; i <= 10; ++i) {
    Free(Alloc(512, a_));
    Synchronize(a_);
    EXPECT_EQ(NumRequests(), i);
    EXPECT_EQ(NumRegions(), 1u);
  }
}

// Else a run that is not waited for would hold the sum of all that it ever allocated.
TEST_F(Bypass, WhatIsNotPassedServesItsStreamAgain) {
  void* const block = Alloc(512, a_);
  Free(block);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Alloc(500, a_), block) << "of the same size when rounded up";
    Free(block);
  }
  EXPECT_EQ(upstream_.requests(), Sizes{512});
  void* const smaller = Alloc(256, a_);
  void* const larger = Alloc(513, a_);
  EXPECT_EQ(upstream_.requests(), (Sizes{512, 256, 768})) << "blocks are never cut";
  Free(smaller);
  Free(larger);
}

TEST_F(Bypass, AnotherStreamGetsABlockOnceItHasWaitedForIt) {
  void* const block = Alloc(512, a_);
  Free(block);
  void* const other = Alloc(512, b_);
  EXPECT_NE(other, block);
  Wait(c_, a_);
  EXPECT_EQ(Alloc(512, c_), block);
  EXPECT_EQ(NumRequests(), 2u);
  Free(block);
  Free(other);
}

TEST_F(Bypass, MemoryForNoStreamWaitsForTheDevice) {
  gcap_allocator_t* const view = gcap_scratch_allocator(scratch_);
  void *block = nullptr, *again = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(view, 1000, &block));
  EXPECT_EQ(upstream_.requests(), Sizes{1024});
  GCAP_EXPECT_OK(gcap_allocator_free(view, block));
  MakeACall();
  EXPECT_TRUE(upstream_.Owns(block, 1000)) << "any stream may use it";
  GCAP_ASSERT_OK(gcap_allocator_alloc(view, 1000, &again));
  EXPECT_EQ(again, block) << "after a wait for the device, as without the option";
  GCAP_EXPECT_OK(gcap_allocator_free(view, again));
  void* weights = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_reserve(view, 300, &weights));
  EXPECT_EQ(upstream_.requests().back(), 512u);
  GCAP_EXPECT_OK(gcap_allocator_free(view, weights));
  EXPECT_FALSE(upstream_.Owns(weights, 300));
  Synchronize(c_);
  Trim();
  EXPECT_EQ(NumRegions(), 0u);
}

// --- Captures -------------------------------------------------------------------------------------------------------

TEST_F(Bypass, ACaptureUsesWhatWasPreparedAndTheGraphKeepsIt) {
  void* const first = Alloc(512, a_);
  void* const second = Alloc(256, a_);
  Free(first);
  Free(second);
  Synchronize(a_);
  MakeACall();
  Synchronize(c_);
  EXPECT_FALSE(upstream_.Owns(first, 512));
  EXPECT_FALSE(upstream_.Owns(second, 256));
  GCAP_EXPECT_OK(gcap_scratch_reservation_prepare(scratch_, a_));
  Validate();
  EXPECT_EQ(upstream_.requests().back(), 768u) << "the most that was live at a time";
  MakeACall();
  Synchronize(c_);
  const size_t num_requests = NumRequests();

  gcap_scratch_reservation_t* const reservation = Open(a_);
  void* const mine = Alloc(512, a_);
  void* const too = Alloc(256, a_);
  Free(mine);
  EXPECT_EQ(Alloc(512, a_), mine);
  Free(mine);
  Free(too);
  Close(reservation);
  EXPECT_EQ(NumRequests(), num_requests) << "a capture asks upstream for nothing";

  Synchronize(a_);
  MakeACall();
  EXPECT_TRUE(upstream_.Owns(mine, 512)) << "the graph keeps it";
  EXPECT_NE(Alloc(768, a_), std::min(mine, too));
  gcap_scratch_reservation_release(reservation);
  MakeACall();
  EXPECT_TRUE(upstream_.Owns(mine, 512)) << "its last replay may not have finished";
  Synchronize(a_);
  MakeACall();
  EXPECT_FALSE(upstream_.Owns(mine, 512));
  Synchronize(c_);
  Trim();
  EXPECT_EQ(NumRegions(), 1u) << "the live block";
  Free(const_cast<char*>(upstream_.regions().begin()->first));
}

// A free of another stream's block is a call that gives back, but for a thread that captures.
TEST_F(Bypass, NothingGoesBackWhileTheThreadCaptures) {
  void* const passed = Alloc(512, b_);
  void* const other = Alloc(1024, b_);
  Free(passed);
  Synchronize(b_);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(a_), nullptr, &capture));
  Free(other);
  EXPECT_TRUE(upstream_.Owns(passed, 512));
  gcap_capture_abort(capture);
  MakeACall();
  EXPECT_FALSE(upstream_.Owns(passed, 512));
}

TEST_F(Bypass, WhatACaptureLackedIsHeldForTheNext) {
  gcap_scratch_reservation_t* reservation = Open(a_);
  ExpectAllocFails(512, a_, GCAP_RESOURCE_EXHAUSTED, "lacks 512 more");
  Close(reservation);
  gcap_scratch_reservation_release(reservation);
  for (int i = 0; i < 3; ++i) {
    MakeACall();
    Synchronize(c_);
  }
  const Sizes requests = upstream_.requests();
  EXPECT_EQ(std::count(requests.begin(), requests.end(), 512u), 1);
  const size_t num_requests = NumRequests();
  reservation = Open(a_);
  void* const block = Alloc(512, a_);
  EXPECT_EQ(NumRequests(), num_requests);
  Free(block);
  Close(reservation);
  gcap_scratch_reservation_release(reservation);
  Synchronize(a_);
  MakeACall();
  EXPECT_FALSE(upstream_.Owns(block, 512)) << "held for one capture, not longer";
}

TEST_F(Bypass, ATrimGivesBackWhatIsHeldForACapture) {
  gcap_scratch_reservation_t* const reservation = Open(a_);
  ExpectAllocFails(512, a_, GCAP_RESOURCE_EXHAUSTED, "lacks 512 more");
  Close(reservation);
  gcap_scratch_reservation_release(reservation);
  MakeACall();
  Synchronize(c_);
  EXPECT_EQ(NumRegions(), 2u);
  Trim();
  EXPECT_EQ(NumRegions(), 0u);
}

// --- Out of memory --------------------------------------------------------------------------------------------------

TEST_F(Bypass, MemoryThatRunsOutIsWaitedFor) {
  upstream_.capacity_bytes = 1024;
  Free(Alloc(1024, a_));
  void* const block = Alloc(512, a_);  // of a stream that was not waited for
  EXPECT_EQ(NumRegions(), 1u);
  EXPECT_EQ(Stats().total_allocated_bytes, 512u);
  ExpectAllocFails(768, a_, GCAP_RESOURCE_EXHAUSTED, "upstream has no 768 bytes");
  Free(block);
  Free(Alloc(1024, a_));
}

TEST_F(Bypass, TheLimitHolds) {
  options_.memory_limit_bytes = 1024;
  Create();
  void* const block = Alloc(1024, a_);
  ExpectAllocFails(1, b_, GCAP_RESOURCE_EXHAUSTED, "its limit is 1024, of which 1024 are held");
  Free(block);
  Free(Alloc(256, a_));
  EXPECT_EQ(Stats().total_allocated_bytes, 256u);
}

TEST_F(Bypass, ARefusalOfUpstreamsFreeIsLoggedAndTriedAgain) {
  void* const block = Alloc(512, a_);
  Free(block);
  Synchronize(a_);
  upstream_.refuses_free = true;
  void* other = nullptr;
  {
    LogCatcher log;
    other = Alloc(256, b_);
    EXPECT_NE(log.text().find("memory that upstream did not take back: "), std::string::npos) << log.text();
    EXPECT_NE(log.text().find("upstream takes nothing back now"), std::string::npos) << log.text();
  }
  EXPECT_TRUE(upstream_.Owns(block, 512));
  upstream_.refuses_free = false;
  Free(other);
  EXPECT_FALSE(upstream_.Owns(block, 512));
}

TEST_F(Bypass, UpstreamMayCallTheScratch) {
  void* inner = nullptr;
  upstream_.on_alloc = [&] {
    upstream_.on_alloc = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 256, b_, &inner));
  };
  void* const outer = Alloc(512, a_);
  EXPECT_EQ(upstream_.requests(), (Sizes{256, 512}));
  Free(inner);
  Free(outer);
}

// --- At random ------------------------------------------------------------------------------------------------------

class BypassAtRandom : public Bypass, public ::testing::WithParamInterface<unsigned> {};

// The test keeps its own account: of what is live, and of whether its stream was waited for since a block was freed.
TEST_P(BypassAtRandom, NothingGoesBackThatIsLiveOrMayBeInUse) {
  struct Block {
    size_t bytes;
    int stream;
    int waits_at_free;  // -1: live
  };
  gcap_stream_t* const streams[] = {a_, b_, c_};
  int waits[3] = {0, 0, 0};
  std::map<const char*, Block> blocks;  // the last one at each address that upstream has not got back
  upstream_.on_release = [&](const char* base, size_t bytes) {
    const auto found = blocks.find(base);
    ASSERT_NE(found, blocks.end());
    EXPECT_EQ(found->second.bytes, bytes);
    EXPECT_NE(found->second.waits_at_free, -1) << "live";
    EXPECT_GT(waits[found->second.stream], found->second.waits_at_free) << "its stream may still use it";
    blocks.erase(found);
  };
  std::mt19937 random(GetParam());
  const auto below = [&random](int end) { return std::uniform_int_distribution<int>(0, end - 1)(random); };
  for (int step = 0; step < 2000; ++step) {
    const int s = below(3);
    const int kind = below(10);
    if (kind < 5) {
      const size_t bytes = kGranule * static_cast<size_t>(1 + below(4));
      char* const ptr = Alloc(bytes, streams[s]);
      const auto found = blocks.find(ptr);
      if (found != blocks.end()) {
        EXPECT_NE(found->second.waits_at_free, -1) << "given twice";
        EXPECT_TRUE(found->second.stream == s || waits[found->second.stream] > found->second.waits_at_free);
      }
      blocks[ptr] = {bytes, s, -1};
    } else if (kind < 9) {
      std::vector<const char*> live;
      for (const auto& [ptr, block] : blocks) {
        if (block.waits_at_free == -1) live.push_back(ptr);
      }
      if (live.empty()) continue;
      const char* const ptr = live[static_cast<size_t>(below(static_cast<int>(live.size())))];
      blocks[ptr].waits_at_free = waits[blocks[ptr].stream];
      Free(const_cast<char*>(ptr));
    } else {
      Synchronize(streams[s]);
      ++waits[s];
    }
    EXPECT_EQ(blocks.size(), NumRegions());
  }
  for (const auto& [ptr, block] : std::map<const char*, Block>(blocks)) {
    if (block.waits_at_free != -1) continue;
    blocks[ptr].waits_at_free = waits[block.stream];
    Free(const_cast<char*>(ptr));
  }
  for (int s = 0; s < 3; ++s) {
    Synchronize(streams[s]);
    ++waits[s];
  }
  Trim();
  EXPECT_EQ(NumRegions(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BypassAtRandom, ::testing::Range(1u, 6u));

TEST_F(Bypass, ThreadsGetAndGiveBackAtOnce) {
  constexpr int kThreads = 4, kRounds = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      gcap_stream_t* stream = nullptr;
      GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
      for (int i = 0; i < kRounds; ++i) {
        void *one = nullptr, *two = nullptr;
        GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, static_cast<size_t>(256 * (1 + t)), stream, &one));
        GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 512, stream, &two));
        GCAP_EXPECT_OK(gcap_scratch_free(scratch_, one));
        GCAP_EXPECT_OK(gcap_scratch_free(scratch_, two));
        if (i % 4 == t) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
      }
      GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
      GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, stream));
      GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  Validate();
  Trim();
  EXPECT_EQ(NumRegions(), 0u);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
