// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What scratch does before it says that memory is out: each rung of the ladder saves a request that nothing else would,
// a rung that fails loses nothing, and no capture is broken. Then what it says.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "gcap/capture.h"
#include "gcap/log.h"
#include "lib/scratch/inner.h"
#include "lib/stream/inner.h"
#include "test/scratch/other_capture.h"
#include "test/scratch/scratch_test_support.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

std::string Address(gcap_stream_t* stream) {
  char text[32];
  snprintf(text, sizeof(text), "%p", static_cast<void*>(gcap_stream_handle(stream)));
  return text;
}

// Upstream has room for four chunks.
class Exhaustion : public ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    options_.extend_as_requested = true;
    upstream_.capacity_bytes = 4 * kChunk;
    Create();
  }
  // Two regions with nothing handed out, used by these streams last.
  void MakeTwoFreeRegions(gcap_stream_t* first, gcap_stream_t* second) {
    char* blocks[] = {Alloc(2 * kChunk, first), Alloc(2 * kChunk, second)};
    ASSERT_EQ(NumRequests(), 2u);
    for (char* block : blocks) Free(block);
  }
  char* AllocUntagged(size_t bytes) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_alloc(gcap_scratch_allocator(scratch_), bytes, &ptr));
    Validate();
    return static_cast<char*>(ptr);
  }
};

TEST_F(Exhaustion, GivesIdleRegionsBack) {
  MakeTwoFreeRegions(a_, b_);
  Synchronize(a_);
  Synchronize(b_);
  const uint64_t sync_id = gcap_stream_sync_id(a_);
  char* ptr = Alloc(3 * kChunk, a_);
  EXPECT_EQ(Stats().num_shrinkages, 2u);
  EXPECT_EQ(upstream_.num_trims(), 0u);
  EXPECT_EQ(gcap_stream_sync_id(a_), sync_id) << "nobody had to wait";
  Free(ptr);
}

TEST_F(Exhaustion, GivesIdleRegionsBackForTheLimitsSake) {
  options_.memory_limit_bytes = 3 * kChunk;
  upstream_.capacity_bytes = SIZE_MAX;
  Create();
  Free(Alloc(2 * kChunk, a_));
  Synchronize(a_);
  Free(Alloc(3 * kChunk, b_));
  EXPECT_EQ(upstream_.requests(), (std::vector<size_t>{2 * kChunk, 3 * kChunk}));
}

TEST_F(Exhaustion, AsksUpstreamToTrim) {
  upstream_.cached_bytes = 2 * kChunk;
  const uint64_t sync_id = gcap_stream_sync_id(a_);
  char* ptr = Alloc(3 * kChunk, a_);
  EXPECT_EQ(upstream_.num_trims(), 1u);
  EXPECT_EQ(gcap_stream_sync_id(a_), sync_id);
  Free(ptr);
}

TEST_F(Exhaustion, WaitsForItsOwnStreamAlone) {
  MakeTwoFreeRegions(a_, a_);
  const uint64_t others_sync_id = gcap_stream_sync_id(b_);
  const uint64_t sync_id = gcap_stream_sync_id(a_);
  char* ptr = Alloc(3 * kChunk, a_);
  EXPECT_EQ(Stats().num_shrinkages, 2u);
  EXPECT_GT(gcap_stream_sync_id(a_), sync_id);
  EXPECT_EQ(gcap_stream_sync_id(b_), others_sync_id);
  Free(ptr);
}

TEST_F(Exhaustion, NeverTakesWhatAnotherStreamMayUse) {
  MakeTwoFreeRegions(a_, b_);
  ExpectAllocFails(3 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, "cached by stream " + Address(b_));
  EXPECT_EQ(upstream_.num_regions(), 1u) << "what its own stream used was over after the wait";
  Free(Alloc(2 * kChunk, b_));
}

TEST_F(Exhaustion, WaitsForTheDeviceWhereNobodyKnowsWhoUsesMemory) {
  char* ptr = AllocUntagged(4 * kChunk);
  Free(ptr);
  EXPECT_EQ(Alloc(3 * kChunk, a_), ptr);
  EXPECT_EQ(upstream_.num_regions(), 1u);
  EXPECT_EQ(Stats().num_shrinkages, 0u);
  Free(ptr);
}

TEST_F(Exhaustion, OfAReserveClimbsTheSameLadder) {
  MakeTwoFreeRegions(a_, b_);
  Synchronize(a_);
  Synchronize(b_);
  void* ptr = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_reserve(gcap_scratch_allocator(scratch_), 4 * kChunk, &ptr));
  Validate();
  EXPECT_EQ(Stats().num_shrinkages, 2u);
  Free(ptr);
}

TEST_F(Exhaustion, OfWhatACaptureWillNeedClimbsTheSameLadder) {
  Free(Alloc(3 * kChunk, a_));
  Synchronize(a_);
  Trim();
  Free(Alloc(2 * kChunk, b_));
  Synchronize(b_);
  GCAP_EXPECT_OK(gcap_scratch_reservation_prepare(scratch_, a_));
  Validate();
  EXPECT_EQ(Stats().total_allocated_bytes, 3 * kChunk) << "the other region went back for it";
  const size_t num_requests = NumRequests();
  Free(Alloc(3 * kChunk, a_));
  EXPECT_EQ(NumRequests(), num_requests);
}

// --- Rungs that fail ------------------------------------------------------------------------------------------------

TEST_F(Exhaustion, FailuresOfRungsAreToldInTheEnd) {
  MakeTwoFreeRegions(a_, b_);
  Synchronize(a_);
  Synchronize(b_);
  upstream_.refuses_free = upstream_.refuses_trim = true;
  ExpectAllocFails(3 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, "takes nothing back");
  ExpectAllocFails(3 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, "trims nothing");
  EXPECT_EQ(Stats().total_allocated_bytes, 4 * kChunk) << "nothing was lost";
  upstream_.refuses_free = upstream_.refuses_trim = false;
  Free(Alloc(3 * kChunk, a_));
}

TEST_F(Exhaustion, FailuresOfRungsAreLoggedWhenALaterOneHelps) {
  Free(Alloc(kChunk, a_));
  Synchronize(a_);
  upstream_.cached_bytes = kChunk;
  upstream_.refuses_free = true;
  const LogCatcher log;
  char* ptr = Alloc(3 * kChunk, a_);
  EXPECT_NE(log.text().find("takes nothing back"), std::string::npos) << log.text();
  upstream_.refuses_free = false;
  Free(ptr);
}

// What is told of the trouble may look at the scratch, and trim it: the block has its place by then.
TEST_F(Exhaustion, TheLogSinkMayUseTheScratch) {
  Free(Alloc(kChunk, a_));
  Synchronize(a_);
  upstream_.cached_bytes = kChunk;
  upstream_.refuses_free = true;
  int times = 0;
  std::function<void()> look = [&] {
    ++times;
    Validate();
    upstream_.refuses_free = false;
    Trim();
  };
  gcap_log_set_sink([](void* user, gcap_log_level_t, const char*) { (*static_cast<std::function<void()>*>(user))(); },
                    &look, GCAP_LOG_WARNING);
  char* ptr = Alloc(3 * kChunk, a_);
  gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING);
  EXPECT_EQ(times, 1);
  EXPECT_TRUE(upstream_.Owns(ptr, 3 * kChunk));
  Free(ptr);
}

// Somebody else captures the stream: it cannot be waited for, and its capture goes on.
TEST_F(Exhaustion, DoesNotWaitForAStreamThatSomebodyCaptures) {
  MakeTwoFreeRegions(a_, a_);
  ASSERT_EQ(cudaStreamBeginCapture(gcap_stream_handle(a_), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ExpectAllocFails(3 * kChunk, a_, GCAP_RESOURCE_EXHAUSTED, "captur");
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(gcap_stream_handle(a_), &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

// --- Captures -------------------------------------------------------------------------------------------------------

TEST_F(Exhaustion, ClimbsNothingWhileItsThreadCaptures) {
  MakeTwoFreeRegions(b_, b_);
  Synchronize(b_);
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(a_), nullptr, &capture));
  ExpectAllocFails(3 * kChunk, b_, GCAP_RESOURCE_EXHAUSTED, "upstream has no");
  EXPECT_EQ(upstream_.num_regions(), 2u);
  EXPECT_EQ(upstream_.num_trims(), 0u);
  gcap_capture_abort(capture);
  Free(Alloc(3 * kChunk, b_));
}

// Real device memory, and every rung but the last climbed: frees, waits, and growth, all in relaxed mode.
TEST_F(Exhaustion, BreaksNoCaptureOfAnotherThread) {
  gcap_allocator_t* device = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device));
  for (const auto by : {OtherCapture::By::kGcap, OtherCapture::By::kCuda}) {
    options_.memory_limit_bytes = 4 << 20;
    gcap_scratch_t* scratch = nullptr;
    GCAP_ASSERT_OK(gcap_scratch_create(device, &options_, &scratch));
    void* blocks[3] = {};
    GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, 1 << 20, a_, &blocks[0]));
    GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, 1 << 20, b_, &blocks[1]));
    if (by == OtherCapture::By::kGcap) {
      GCAP_ASSERT_OK(gcap_allocator_alloc(gcap_scratch_allocator(scratch), 1 << 20, &blocks[2]));
    }
    for (void* block : blocks) GCAP_ASSERT_OK(gcap_scratch_free(scratch, block));
    OtherCapture capture(c_, by);
    void* ptr = this;
    GCAP_EXPECT_FAILS(gcap_scratch_alloc(scratch, 4 << 20, a_, &ptr), GCAP_RESOURCE_EXHAUSTED, Address(b_));
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, 2 << 20, a_, &ptr));
    capture.End();
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, ptr));
    for (gcap_stream_t* stream : {a_, b_}) Synchronize(stream);
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  }
  gcap_allocator_destroy(device);
}

// --- What it says ---------------------------------------------------------------------------------------------------

TEST_F(Exhaustion, TellsWhoHoldsTheMemory) {
  options_.memory_limit_bytes = 4 * kChunk;
  Create();
  Free(Alloc(512, a_));
  gcap_scratch_reservation_t* reservation = Open(a_);
  gcap_scratch_reservation_set_label(reservation, "graph 3");
  Free(Alloc(512, a_));
  Close(reservation);
  char* live = Alloc(1000, a_);
  Free(Alloc(kChunk, b_));
  Free(Alloc(512, c_));
  Synchronize(c_);
  Free(AllocUntagged(768));
  OtherCapture capture(c_, OtherCapture::By::kGcap);  // so that the device is not waited for
  void* ptr = nullptr;
  const Outcome outcome(gcap_scratch_alloc(scratch_, 4 * kChunk, a_, &ptr));
  capture.End();
  EXPECT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED);
  const std::string held = std::to_string(512 + 1024 + kChunk + 768);
  for (const std::string& part :
       {"no " + std::to_string(4 * kChunk) + " bytes free for stream " + Address(a_),
        std::string("1024 bytes are handed out, 1000 of them asked for"), held + " are held from upstream in 4 regions",
        "the limit is " + std::to_string(4 * kChunk), std::string("0 are free for all"),
        std::string("768 are free once the device was synchronised"),
        "512 are kept by graph 3 of stream " + Address(a_),
        std::to_string(kChunk) + " are cached by stream " + Address(b_), "needs " + std::to_string(4 * kChunk)}) {
    EXPECT_TRUE(outcome.Names(part)) << part << "\n" << outcome.message;
  }
  Release(reservation);
  Free(live);
}

TEST_F(Exhaustion, DescribeTellsTheSameALineEach) {
  Free(Alloc(kChunk, b_));
  const int length = gcap_scratch_describe(scratch_, nullptr, 0);
  ASSERT_GT(length, 0);
  std::vector<char> text(static_cast<size_t>(length) + 1, 'x');
  EXPECT_EQ(gcap_scratch_describe(scratch_, text.data(), text.size()), length);
  const std::string whole(text.data());
  EXPECT_EQ(whole.size(), static_cast<size_t>(length));
  EXPECT_NE(whole.find("without a limit\n"), std::string::npos) << whole;
  EXPECT_NE(whole.find("\n" + std::to_string(kChunk) + " are cached by stream " + Address(b_)), std::string::npos)
      << whole;
  char cut[10];
  EXPECT_EQ(gcap_scratch_describe(scratch_, cut, sizeof(cut)), length);
  EXPECT_EQ(std::string(cut), whole.substr(0, 9));
}

// --- Limits ---------------------------------------------------------------------------------------------------------

TEST_F(Exhaustion, ALimitBelowTheFirstRegionIsKept) {
  for (const size_t limit : {size_t{1}, size_t{255}, size_t{300}}) {
    options_.memory_limit_bytes = limit;
    Create();
    const size_t usable_bytes = limit / kGranule * kGranule;
    ExpectAllocFails(usable_bytes + 1, a_, GCAP_RESOURCE_EXHAUSTED, "limit is " + std::to_string(limit));
    if (usable_bytes > 0) Free(Alloc(usable_bytes, a_));
    EXPECT_LE(Stats().total_allocated_bytes, limit);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
