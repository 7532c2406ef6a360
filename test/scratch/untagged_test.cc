// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch as an allocator: memory for callers that name no stream, and what is never mixed: a block that a stream used
// last, one that nobody knows the user of, and one that is in use by nobody.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gcap/capture.h"
#include "lib/scratch/inner.h"
#include "test/scratch/other_capture.h"
#include "test/scratch/scratch_test_support.h"
#include "test/support/allocator_stats.h"

namespace gcap {
namespace testing {
namespace {

// Regions are just as large as asked for, so that no rest of one is free for all.
class UntaggedScratch : public ScratchTest {
 protected:
  void SetUp() override {
    ScratchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    options_.extend_as_requested = true;
    Create();
  }
  gcap_allocator_t* view() { return gcap_scratch_allocator(scratch_); }
  char* AllocUntagged(size_t bytes) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_alloc(view(), bytes, &ptr));
    EXPECT_TRUE(upstream_.Owns(ptr, bytes));
    Validate();
    return static_cast<char*>(ptr);
  }
  char* Reserve(size_t bytes) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_reserve(view(), bytes, &ptr));
    EXPECT_TRUE(upstream_.Owns(ptr, bytes));
    Validate();
    return static_cast<char*>(ptr);
  }
  gcap_capture_t* Begin(gcap_stream_t* stream, gcap_capture_mode_t mode = GCAP_CAPTURE_THREAD_LOCAL) {
    gcap_capture_options_t options;
    gcap_capture_options_init(&options);
    options.mode = mode;
    gcap_capture_t* capture = nullptr;
    GCAP_EXPECT_OK(gcap_capture_begin(gcap_stream_handle(stream), &options, &capture));
    return capture;
  }
  // Ends a capture that went well.
  void End(gcap_capture_t* capture) {
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
    gcap_retained_release(retained);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  }
};

TEST_F(UntaggedScratch, ViewIsAnAllocatorOfTheSameDevice) {
  EXPECT_EQ(StatsOf(view()).device_id, 0);
  EXPECT_EQ(StatsOf(view()).alignment, kGranule);
  void* ptr = nullptr;
  GCAP_EXPECT_OK(gcap_allocator_alloc_on_stream(view(), 100, a_, &ptr));
  gcap_allocator_stats_t stats;
  gcap_allocator_get_stats(view(), &stats);
  EXPECT_EQ(stats.requested_in_use_bytes, 100u);
  GCAP_EXPECT_OK(gcap_allocator_free(view(), ptr));
  EXPECT_EQ(Alloc(100, a_), ptr) << "it is tagged with its stream";
  GCAP_EXPECT_OK(gcap_allocator_free(view(), ptr));
  Synchronize(a_);
  GCAP_EXPECT_OK(gcap_allocator_trim(view()));
  EXPECT_EQ(upstream_.num_regions(), 0u);
}

// As cudaFree would have waited.
TEST_F(UntaggedScratch, AskedAgainWaitsInsteadOfGrowing) {
  char* ptr = AllocUntagged(kChunk);
  for (int round = 0; round < 3; ++round) {
    Free(ptr);
    EXPECT_EQ(AllocUntagged(kChunk), ptr);
  }
  EXPECT_EQ(NumRequests(), 1u);
  EXPECT_EQ(Stats().num_allocs, 4u);
  EXPECT_EQ(Stats().in_use_bytes, kChunk);
  Free(ptr);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  EXPECT_EQ(Stats().max_in_use_bytes, kChunk);
}

// The scenario of ONNX Runtime's issue 32342: memory that a stream used although it was asked for without one.
TEST_F(UntaggedScratch, WhatWasFreedWithoutAStreamIsNotGivenToOne) {
  char* ptr = AllocUntagged(kChunk);
  Free(ptr);
  char* other = Alloc(kChunk, a_);
  EXPECT_NE(other, ptr);
  EXPECT_EQ(NumRequests(), 2u);
  // One more request without a stream waits for the device; then the rest of the block is free for all.
  EXPECT_EQ(AllocUntagged(kGranule), ptr);
  EXPECT_EQ(Alloc(kChunk - kGranule, b_), ptr + kGranule);
  EXPECT_EQ(NumRequests(), 2u);
  Free(ptr);
  Free(ptr + kGranule);
  Free(other);
}

TEST_F(UntaggedScratch, WhatAStreamUsedIsGivenOnlyOnceTheStreamIsOver) {
  char* ptr = Alloc(kChunk, a_);
  Free(ptr);
  Wait(b_, a_);
  char* other = AllocUntagged(kChunk);
  EXPECT_NE(other, ptr) << "what streams waited for says nothing of who asks now";
  Synchronize(a_);
  EXPECT_EQ(AllocUntagged(kChunk), ptr);
  EXPECT_EQ(NumRequests(), 2u);
  Free(ptr);
  Free(other);
}

TEST_F(UntaggedScratch, FreedPartsAreJoinedAmongThemselvesAlone) {
  options_.extend_as_requested = false;
  Create();
  char* tagged = Alloc(kChunk / 4, a_);
  std::vector<char*> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(AllocUntagged(kChunk / 4));
  ASSERT_EQ(NumRequests(), 1u);
  for (char* block : blocks) Free(block);
  Free(tagged);
  EXPECT_EQ(AllocUntagged(kChunk / 4 * 3), blocks[0]);
  EXPECT_EQ(NumRequests(), 1u);
  char* whole = AllocUntagged(kChunk);
  EXPECT_EQ(NumRequests(), 2u);
  Free(whole);
  Free(blocks[0]);
}

// Real work on real memory: were the second block handed out without the wait, the simulator would report the race.
TEST_F(UntaggedScratch, TheNextUserComesAfterWhateverStreamUsedItBefore) {
  gcap_allocator_t* device = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device));
  gcap_scratch_t* scratch = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(device, nullptr, &scratch));
  const size_t bytes = size_t{1} << 20;  // the whole first region
  void* ptr = nullptr;
  for (gcap_stream_t* stream : {a_, b_, c_}) {
    void* before = ptr;
    GCAP_ASSERT_OK(gcap_allocator_alloc(gcap_scratch_allocator(scratch), bytes, &ptr));
    EXPECT_TRUE(before == nullptr || ptr == before);
    EXPECT_EQ(cudaMemsetAsync(ptr, 1, bytes, gcap_stream_handle(stream)), cudaSuccess);
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, ptr));
  }
  void* of_stream = nullptr;
  GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, bytes, a_, &of_stream));
  EXPECT_EQ(cudaMemsetAsync(of_stream, 2, bytes, gcap_stream_handle(a_)), cudaSuccess);
  GCAP_EXPECT_OK(gcap_scratch_free(scratch, of_stream));
  for (gcap_stream_t* stream : {a_, c_}) Synchronize(stream);
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  gcap_allocator_destroy(device);
}

TEST_F(UntaggedScratch, TrimWaitsForTheDevice) {
  Free(AllocUntagged(kChunk));
  Trim();
  EXPECT_EQ(upstream_.num_regions(), 0u);
  EXPECT_EQ(Stats().num_shrinkages, 1u);
}

// --- Captures -------------------------------------------------------------------------------------------------------

TEST_F(UntaggedScratch, DoesNotWaitWhileAnotherThreadCaptures) {
  char* ptr = AllocUntagged(kChunk);
  Free(ptr);
  OtherCapture capture(a_, OtherCapture::By::kGcap);
  char* other = AllocUntagged(kChunk);
  EXPECT_NE(other, ptr) << "nobody knows whether it is in use";
  Trim();
  EXPECT_EQ(upstream_.num_regions(), 2u);
  capture.End();
  EXPECT_EQ(AllocUntagged(kChunk), ptr);
  EXPECT_EQ(NumRequests(), 2u);
  Free(other);
  Free(ptr);
}

TEST_F(UntaggedScratch, IsRefusedWhileItsThreadCapturesAndFailsTheCapture) {
  for (const bool reserve : {false, true}) {
    gcap_capture_t* capture = Begin(a_);
    void* ptr = this;
    GCAP_EXPECT_FAILS(reserve ? gcap_allocator_reserve(view(), 100, &ptr) : gcap_allocator_alloc(view(), 100, &ptr),
                      GCAP_FAILED_PRECONDITION, "capturing");
    EXPECT_EQ(ptr, nullptr);
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "scratch");
    Validate();
  }
  EXPECT_EQ(NumRequests(), 0u);
}

TEST_F(UntaggedScratch, FreeIsRefusedWhileItsThreadCapturesAndLeavesTheCaptureAlone) {
  char* ptr = AllocUntagged(100);
  char* reserved = Reserve(100);
  gcap_capture_t* capture = Begin(a_);
  for (char* block : {ptr, reserved}) {
    GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, block), GCAP_FAILED_PRECONDITION, "capturing");
  }
  Validate();
  End(capture);
  EXPECT_EQ(Stats().in_use_bytes, 2 * kGranule);
  Free(ptr);
  Free(reserved);
}

// --- Reserve --------------------------------------------------------------------------------------------------------

TEST_F(UntaggedScratch, ReserveIsARegionOfItsOwn) {
  Free(Alloc(kChunk, a_));
  Synchronize(a_);
  char* weights = Reserve(1000);
  EXPECT_EQ(upstream_.requests(), (std::vector<size_t>{kChunk, 1024}));
  const gcap_allocator_stats_t stats = Stats();
  EXPECT_EQ(stats.num_reserves, 1u);
  EXPECT_EQ(stats.num_extensions, 1u);
  EXPECT_EQ(stats.in_use_bytes, 1024u);
  EXPECT_EQ(stats.requested_in_use_bytes, 1000u);
  EXPECT_EQ(stats.total_allocated_bytes, kChunk + 1024);
  Trim();
  EXPECT_EQ(upstream_.num_regions(), 1u);
  Free(weights);
  EXPECT_EQ(upstream_.num_regions(), 0u);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
  EXPECT_EQ(Stats().total_allocated_bytes, 0u);
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, weights), GCAP_INVALID_ARGUMENT, "not allocated");
}

TEST_F(UntaggedScratch, ReserveKeepsToTheLimit) {
  options_.memory_limit_bytes = 2 * kChunk;
  Create();
  char* weights = Reserve(2 * kChunk - kGranule);
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_allocator_reserve(view(), kGranule + 1, &ptr), GCAP_RESOURCE_EXHAUSTED,
                    std::to_string(2 * kChunk));
  EXPECT_EQ(ptr, nullptr);
  Validate();
  Free(Reserve(kGranule));
  Free(weights);
}

TEST_F(UntaggedScratch, ReserveThatUpstreamDoesNotTakeBackStaysHandedOut) {
  char* weights = Reserve(1000);
  upstream_.refuses_free = true;
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, weights), GCAP_UNAVAILABLE, "takes nothing back");
  Validate();
  EXPECT_EQ(Stats().in_use_bytes, 1024u);
  EXPECT_EQ(Stats().requested_in_use_bytes, 1000u);
  upstream_.refuses_free = false;
  Free(weights);
}

TEST_F(UntaggedScratch, DestroyRefusesWhileItIsHandedOut) {
  char* ptr = AllocUntagged(100);
  char* weights = Reserve(100);
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, "2 blocks");
  Validate();
  Free(ptr);
  Free(weights);
}

// The streams get more than they ask for, so that the blocks of one lie together.
TEST_F(UntaggedScratch, WhatAStreamWasGivenAndHasNotUsedIsFreeForAll) {
  constexpr size_t kPart = 64 << 10;
  options_.extend_as_requested = false;
  options_.initial_chunk_bytes = 16 * kPart;
  Create();
  std::vector<char*> blocks = {Alloc(kGranule, a_)};
  for (int i = 1; i < 16; ++i) blocks.push_back(AllocUntagged(kPart));
  EXPECT_EQ(NumRequests(), 1u);
  for (char* block : blocks) Free(block);
}

// --- Streams that are destroyed -------------------------------------------------------------------------------------

TEST_F(UntaggedScratch, WhatADestroyedStreamUsedIsFreeForAll) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  char* ptr = Alloc(kChunk, stream);
  Free(ptr);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  Validate();
  EXPECT_EQ(Alloc(kChunk, a_), ptr);
  Free(ptr);
  EXPECT_EQ(Stats().num_allocs, 2u);
}

// Any stream may have been told to use it since.
TEST_F(UntaggedScratch, FreeOnADestroyedStreamIsOfNobodyKnowsWhom) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  char* ptr = Alloc(kChunk, stream);
  char* other = Alloc(100, stream);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  Validate();
  EXPECT_EQ(Stats().in_use_bytes, kChunk + kGranule);
  Free(ptr);
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, ptr), GCAP_INVALID_ARGUMENT, "freed already");
  char* of_stream = Alloc(kChunk, a_);
  EXPECT_NE(of_stream, ptr);
  EXPECT_EQ(AllocUntagged(kChunk), ptr);
  EXPECT_EQ(Stats().num_allocs, 4u);
  for (char* block : {ptr, other, of_stream}) Free(block);
  EXPECT_EQ(Stats().in_use_bytes, 0u);
}

TEST_F(UntaggedScratch, AReservationOfADestroyedStreamCanOnlyBeReleased) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  Free(Alloc(2 * kChunk, stream));
  gcap_scratch_reservation_t* reservation = Open(stream);
  char* freed = Alloc(kChunk, stream);
  char* live = Alloc(kChunk, stream);
  Free(freed);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  Validate();
  EXPECT_EQ(gcap_scratch_reservation_bytes(reservation), 2 * kChunk);
  GCAP_EXPECT_FAILS(gcap_scratch_reservation_reopen(reservation), GCAP_FAILED_PRECONDITION, "was destroyed");
  EXPECT_GT(gcap_scratch_describe(scratch_, nullptr, 0), 0);
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, "1 reservations");
  Free(live);
  Release(reservation);
  char* other = Alloc(2 * kChunk, a_);
  EXPECT_NE(other, freed) << "a replay may have used it on any stream";
  EXPECT_EQ(AllocUntagged(2 * kChunk), std::min(freed, live));
  Free(std::min(freed, live));
  Free(other);
}

TEST_F(UntaggedScratch, DebugOptionsSurviveADestroyedStream) {
  gcap_allocator_t* device = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device));
  options_.red_zones = options_.poison_on_free = true;
  options_.recorded_operations = 10;
  gcap_scratch_t* scratch = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(device, &options_, &scratch));
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  void* ptr = nullptr;
  void* untagged = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_alloc(scratch, 100, stream, &ptr));
  GCAP_ASSERT_OK(gcap_allocator_reserve(gcap_scratch_allocator(scratch), 100, &untagged));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
  for (void* block : {ptr, untagged}) GCAP_EXPECT_OK(gcap_scratch_free(scratch, block));
  GCAP_EXPECT_OK(gcap_scratch_validate(scratch));
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  gcap_allocator_destroy(device);
}

TEST_F(UntaggedScratch, RejectsBadInput) {
  void* ptr = this;
  GCAP_EXPECT_OK(gcap_allocator_alloc(view(), 0, &ptr));
  EXPECT_EQ(ptr, nullptr);
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 254}) {
    GCAP_EXPECT_FAILS(gcap_allocator_alloc(view(), bytes, &ptr), GCAP_INVALID_ARGUMENT, std::to_string(bytes));
    GCAP_EXPECT_FAILS(gcap_allocator_reserve(view(), bytes, &ptr), GCAP_INVALID_ARGUMENT, std::to_string(bytes));
  }
  char* block = AllocUntagged(1000);
  char* weights = Reserve(1000);
  for (char* start : {block, weights}) {
    GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, start + kGranule), GCAP_INVALID_ARGUMENT, "inside a block");
    Validate();
  }
  Free(block);
  GCAP_EXPECT_FAILS(gcap_scratch_free(scratch_, block), GCAP_INVALID_ARGUMENT, "freed already");
  Free(weights);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
