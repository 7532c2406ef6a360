// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch over the device allocator when CUDA calls fail: what only the simulator can stage. Streams make calls of
// their own, so they are made before, and every step is one that reaches the driver through the allocator alone.

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "gcap/capture.h"
#include "gcap/scratch.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/scratch/inner.h"
#include "test/base/device_work.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// Get device, set it, relax, the call itself, and the way back.
constexpr uint64_t kCallsPerRegion = 6;

class ScratchFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    GCAP_ASSERT_OK(gcap_stream_create(1, &stream_));
    GCAP_ASSERT_OK(gcap_device_allocator_create(1, &device_));
    Create();
  }
  void TearDown() override {
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    gcap_allocator_destroy(device_);
    GCAP_EXPECT_OK(gcap_stream_destroy(stream_));
  }

  // Regions of a mebibyte, also after a trim.
  void Create() {
    gcap_scratch_options_t options;
    gcap_scratch_options_init(&options);
    options.initial_growth_chunk_bytes = options.initial_chunk_bytes;
    GCAP_ASSERT_OK(gcap_scratch_create(device_, &options, &scratch_));
  }
  void* Alloc(size_t bytes) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, bytes, stream_, &ptr));
    return ptr;
  }
  // Two idle regions.
  void MakeIdleRegions() {
    void* first = Alloc(1 << 20);
    void* second = Alloc(1 << 20);
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, first));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, second));
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
    EXPECT_EQ(gcap_sim_live("device memory"), 2u);
  }
  // Whatever failed, arena and device agree on what is held.
  void ExpectConsistent() {
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
    gcap_allocator_stats_t scratch_stats, device_stats;
    gcap_scratch_get_stats(scratch_, &scratch_stats);
    gcap_allocator_get_stats(device_, &device_stats);
    EXPECT_EQ(scratch_stats.total_allocated_bytes, device_stats.in_use_bytes);
    EXPECT_EQ(gcap_sim_live("device memory") > 0, device_stats.in_use_bytes > 0);
  }

  size_t NumBytesInUse() {
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(scratch_, &stats);
    return stats.in_use_bytes;
  }

  gcap_stream_t* stream_ = nullptr;
  gcap_allocator_t* device_ = nullptr;
  gcap_scratch_t* scratch_ = nullptr;
};

// The arena is of device 1, and the thread's device is another one, as it stays.
TEST_F(ScratchFaults, NoOptionLeavesTheThreadOnTheArenasDevice) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  for (const bool debugs : {false, true}) {
    GCAP_ASSERT_OK(gcap_scratch_destroy(scratch_));
    gcap_scratch_options_t options;
    gcap_scratch_options_init(&options);
    options.red_zones = options.poison_on_free = debugs;
    GCAP_ASSERT_OK(gcap_scratch_create(device_, &options, &scratch_));
    const std::function<gcap_status_t(void**)> steps[] = {
        [&](void** ptr) { return gcap_scratch_alloc(scratch_, 1000, stream_, ptr); },
        [&](void**) { return gcap_scratch_validate(scratch_); },
        [&](void** ptr) { return gcap_scratch_free(scratch_, *ptr); },
        [&](void**) { return gcap_stream_synchronize(stream_); },
        [&](void**) { return gcap_scratch_trim(scratch_); },
    };
    void* ptr = nullptr;
    for (const auto& step : steps) {
      SCOPED_TRACE(&step - steps);
      GCAP_EXPECT_OK(step(&ptr));
      EXPECT_EQ(CurrentDevice(), 0);
    }
  }
}

TEST_F(ScratchFaults, OfAllocLeaveNothing) {
  const Walked walked = WalkFaults([this](Fault& fault) {
    void* ptr = this;
    const Outcome outcome = fault.During([&] { return gcap_scratch_alloc(scratch_, 100, stream_, &ptr); });
    EXPECT_EQ(outcome.code, fault.hit() ? GCAP_CUDA_ERROR : GCAP_OK) << outcome.message;
    EXPECT_EQ(outcome.cuda_error, fault.hit() ? cudaErrorUnknown : cudaSuccess);
    EXPECT_EQ(ptr == nullptr, fault.hit());
    ExpectConsistent();
    EXPECT_EQ(gcap_sim_live("device memory"), fault.hit() ? 0u : 1u);
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
    if (!fault.hit()) fault.ExpectKept("device memory");  // by the arena
  });
  EXPECT_EQ(walked.calls, kCallsPerRegion);
}

// With red zones such a block could be allocated and never freed.
TEST_F(ScratchFaults, AStreamOfAnotherDeviceIsRefused) {
  gcap_stream_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &other));
  const std::string culprit = "device 0, the memory of this scratch is on device 1";
  void* ptr = this;
  GCAP_EXPECT_FAILS(gcap_scratch_alloc(scratch_, 100, other, &ptr), GCAP_INVALID_ARGUMENT, culprit);
  EXPECT_EQ(ptr, nullptr);
  GCAP_EXPECT_FAILS(gcap_allocator_alloc_on_stream(gcap_scratch_allocator(scratch_), 100, other, &ptr),
                    GCAP_INVALID_ARGUMENT, culprit);
  GCAP_EXPECT_FAILS(gcap_scratch_begin_run(scratch_, other), GCAP_INVALID_ARGUMENT, culprit);
  GCAP_EXPECT_FAILS(gcap_scratch_reservation_prepare(scratch_, other), GCAP_INVALID_ARGUMENT, culprit);
  gcap_scratch_reservation_t* reservation = nullptr;
  GCAP_EXPECT_FAILS(gcap_scratch_reservation_open(scratch_, other, &reservation), GCAP_INVALID_ARGUMENT, culprit);
  GCAP_EXPECT_OK(gcap_scratch_forget_stream(scratch_, other));
  ExpectConsistent();
  EXPECT_EQ(gcap_sim_live("device memory"), 0u);
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
}

TEST_F(ScratchFaults, HostMemoryIsForStreamsOfAnyDevice) {
  gcap_allocator_t* pinned = nullptr;
  GCAP_ASSERT_OK(gcap_pinned_allocator_create(&pinned));
  gcap_scratch_t* scratch = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_create(pinned, nullptr, &scratch));
  gcap_stream_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &other));
  for (gcap_stream_t* stream : {stream_, other}) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(scratch, 100, stream, &ptr));
    GCAP_EXPECT_OK(gcap_scratch_free(scratch, ptr));
  }
  GCAP_EXPECT_OK(gcap_scratch_destroy(scratch));
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
  gcap_allocator_destroy(pinned);
}

TEST_F(ScratchFaults, ShortDeviceMemoryIsAskedForLess) {
  gcap_sim_fail_nth("cudaMalloc", 1, cudaErrorMemoryAllocation);
  void* ptr = Alloc(100);
  gcap_allocator_stats_t stats;
  gcap_scratch_get_stats(scratch_, &stats);
  EXPECT_EQ(stats.total_allocated_bytes, 256u);
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
  ExpectConsistent();
}

// At its limit an arena gives back what is idle, and waits for the stream.
TEST_F(ScratchFaults, OfTwoStepsAtTheLimitAreToldInTheirOrder) {
  GCAP_ASSERT_OK(gcap_scratch_destroy(scratch_));
  gcap_scratch_options_t options;
  gcap_scratch_options_init(&options);
  options.initial_growth_chunk_bytes = options.initial_chunk_bytes;
  options.memory_limit_bytes = 2 << 20;
  GCAP_ASSERT_OK(gcap_scratch_create(device_, &options, &scratch_));
  void* idle = Alloc(1 << 20);
  void* behind_work = Alloc(1 << 20);
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, idle));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, behind_work));
  for (const char* function : {"cudaFree", "cudaStreamSynchronize"}) {
    gcap_sim_fault_t fault = {};
    fault.function = function;
    fault.nth = 1;
    fault.code = cudaErrorUnknown;
    gcap_sim_inject(&fault);
  }
  void* ptr = nullptr;
  const Outcome outcome(gcap_scratch_alloc(scratch_, 2 << 20, stream_, &ptr));
  gcap_sim_clear_faults();
  EXPECT_EQ(outcome.code, GCAP_RESOURCE_EXHAUSTED);
  const size_t limit = outcome.message.find("its limit is 2097152"), first = outcome.message.find("cudaFree");
  EXPECT_TRUE(outcome.Names("cudaStreamSynchronize")) << outcome.message;
  EXPECT_LT(limit, first) << outcome.message;
  EXPECT_LT(first, outcome.message.find("cudaStreamSynchronize")) << outcome.message;
  ExpectConsistent();
}

TEST_F(ScratchFaults, OfTrimKeepWhatIsStillHeld) {
  const Walked walked = WalkFaults([this](Fault& fault) {
    MakeIdleRegions();
    const LogCatcher log;
    const Outcome outcome = fault.During([&] { return gcap_scratch_trim(scratch_); });
    EXPECT_EQ(fault.hit(), !outcome.ok() || !log.text().empty()) << outcome.message << log.text();
    ExpectConsistent();
    EXPECT_EQ(gcap_sim_live("device memory"), outcome.ok() ? 0u : 1u) << outcome.message;
    GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
    EXPECT_EQ(gcap_sim_live("device memory"), 0u);
  });
  EXPECT_EQ(walked.calls, 2 * kCallsPerRegion);
}

TEST_F(ScratchFaults, OfDestroyKeepTheArena) {
  const Walked walked = WalkFaults([this](Fault& fault) {
    MakeIdleRegions();
    const LogCatcher log;
    const Outcome outcome = fault.During([&] { return gcap_scratch_destroy(scratch_); });
    EXPECT_EQ(fault.hit(), !outcome.ok() || !log.text().empty()) << outcome.message << log.text();
    EXPECT_EQ(gcap_sim_live("device memory"), outcome.ok() ? 0u : 1u) << outcome.message;
    if (outcome.ok()) Create();
    ExpectConsistent();
    GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
  });
  EXPECT_EQ(walked.calls, 2 * kCallsPerRegion);
}

// With all debug options: a capture in which a call fails ends without a graph, nothing is lost, and the next one
// works.
TEST_F(ScratchFaults, OfDebugOptionsInACaptureFailTheCapture) {
  GCAP_ASSERT_OK(gcap_scratch_destroy(scratch_));
  gcap_scratch_options_t options;
  gcap_scratch_options_init(&options);
  options.red_zones = options.poison_on_free = true;
  options.recorded_operations = 10;
  GCAP_ASSERT_OK(gcap_scratch_create(device_, &options, &scratch_));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, Alloc(1000)));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  const Walked walked = WalkFaults([this](Fault& fault) {
    gcap_capture_t* capture = nullptr;
    GCAP_EXPECT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
    gcap_scratch_reservation_t* reservation = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_reservation_open(scratch_, stream_, &reservation));
    fault.Arm();
    void* ptr = nullptr;
    const Outcome given(gcap_scratch_alloc(scratch_, 1000, stream_, &ptr));
    const Outcome freed(gcap_scratch_free(scratch_, ptr));
    fault.Disarm();
    EXPECT_TRUE(fault.hit() || (given.ok() && freed.ok())) << given.message << freed.message;
    gcap_scratch_reservation_close(reservation);
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    const Outcome ended(gcap_capture_end(capture, &graph, &retained));
    EXPECT_EQ(ended.ok(), !fault.hit()) << ended.message;  // also when it was a question of the capture's ledger
    if (graph != nullptr) {
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    if (!freed.ok()) GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
    gcap_scratch_reservation_release(reservation);
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
    ExpectConsistent();
  });
  EXPECT_GT(walked.calls, 4u);
}

// Nobody else has the pointers: what the zones cannot be read of, or the poison not be written to, was lost for ever,
// and so was the scratch, which then could not be destroyed.
TEST_F(ScratchFaults, OfTheEndOfARunLoseNoBlock) {
  GCAP_ASSERT_OK(gcap_scratch_destroy(scratch_));
  gcap_scratch_options_t options;
  gcap_scratch_options_init(&options);
  options.red_zones = options.poison_on_free = true;
  GCAP_ASSERT_OK(gcap_scratch_create(device_, &options, &scratch_));
  const Walked walked = WalkFaults([this](Fault& fault) {
    GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, stream_));
    Alloc(1000);
    Alloc(3000);
    const Outcome outcome = fault.During([&] { return gcap_scratch_end_run(scratch_, stream_); });
    EXPECT_EQ(outcome.ok(), !fault.hit()) << outcome.message;
    ExpectConsistent();
    EXPECT_EQ(NumBytesInUse(), 0u);
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
    GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
  });
  EXPECT_GT(walked.calls, 8u);
}

// A kernel that asks for memory in a capture breaks the capture, and the run ends before it.
TEST_F(ScratchFaults, ABrokenCaptureLosesNoBlockOfItsRun) {
  GCAP_ASSERT_OK(gcap_scratch_destroy(scratch_));
  gcap_scratch_options_t options;
  gcap_scratch_options_init(&options);
  options.red_zones = options.poison_on_free = true;
  GCAP_ASSERT_OK(gcap_scratch_create(device_, &options, &scratch_));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, Alloc(1000)));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
  GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, stream_));
  Alloc(1000);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaErrorStreamCaptureUnsupported);
  static_cast<void>(cudaGetLastError());
  EXPECT_EQ(Outcome(gcap_scratch_end_run(scratch_, stream_)).code, GCAP_CUDA_ERROR);
  EXPECT_EQ(NumBytesInUse(), 0u);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "");
  ExpectConsistent();
}

// Nobody else has the pointer: a block was lost for ever, and the scratch could not be destroyed.
TEST_F(ScratchFaults, WhatTheEndOfARunCannotFreeIsFreedLater) {
  gcap_stream_t* captured = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(1, &captured));
  enum When { kInTheNextRun, kWhenItsEndIsAskedFor, kAtTheEnd };
  for (const When when : {kInTheNextRun, kWhenItsEndIsAskedFor, kAtTheEnd}) {
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, Alloc(1000)));
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(captured), nullptr, &capture));
    GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, stream_));
    Alloc(1000);
    gcap_sim_fail_nth("cudaStreamIsCapturing", 1, cudaErrorMemoryAllocation);
    GCAP_EXPECT_FAILS(gcap_scratch_end_run(scratch_, stream_), GCAP_CUDA_ERROR, "cannot be freed");
    gcap_sim_clear_faults();
    GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, "1 blocks are handed out");
    EXPECT_EQ(NumBytesInUse(), 1024u) << "no capture frees it";
    gcap_capture_abort(capture);
    if (when == kAtTheEnd) continue;  // of the test, which destroys the scratch
    if (when == kInTheNextRun) {
      GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, stream_));
      Alloc(512);
      GCAP_EXPECT_OK(gcap_scratch_end_run(scratch_, stream_));
    } else {
      GCAP_EXPECT_OK(gcap_scratch_check_end(scratch_));
    }
    EXPECT_EQ(NumBytesInUse(), 0u);
    ExpectConsistent();
  }
  GCAP_EXPECT_OK(gcap_stream_destroy(captured));
}

// The next run of a stream that ends while the run is open does not take the block for its own.
TEST_F(ScratchFaults, WhatTheEndOfARunCannotFreeOutlivesItsStream) {
  gcap_stream_t *captured = nullptr, *ends = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(1, &captured));
  GCAP_ASSERT_OK(gcap_stream_create(1, &ends));
  void* block = nullptr;
  GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 1000, ends, &block));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block));
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(captured), nullptr, &capture));
  GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, ends));
  GCAP_EXPECT_OK(gcap_scratch_alloc(scratch_, 1000, ends, &block));
  gcap_sim_fail_nth("cudaStreamIsCapturing", 1, cudaErrorMemoryAllocation);
  GCAP_EXPECT_FAILS(gcap_scratch_end_run(scratch_, ends), GCAP_CUDA_ERROR, "cannot be freed");
  gcap_sim_clear_faults();
  gcap_capture_abort(capture);
  GCAP_EXPECT_OK(gcap_scratch_begin_run(scratch_, ends));
  GCAP_EXPECT_OK(gcap_stream_destroy(ends));
  GCAP_EXPECT_OK(gcap_stream_destroy(captured));
  EXPECT_EQ(NumBytesInUse(), 1024u);  // the end of the test destroys the scratch
}

// A stream that cannot be drained is kept for ever, and so is what it may still be using; all else goes on.
TEST_F(ScratchFaults, OfDrainingAStreamKeepItsBlocksFromAllOthers) {
  gcap_stream_t* lost = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(1, &lost));
  void* of_lost = nullptr;
  GCAP_ASSERT_OK(gcap_scratch_alloc(scratch_, 1 << 20, lost, &of_lost));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, of_lost));
  gcap_sim_fail_nth("cudaStreamSynchronize", 1, cudaErrorUnknown);
  GCAP_EXPECT_FAILS(gcap_stream_destroy(lost), GCAP_CUDA_ERROR, "cannot be drained");
  gcap_sim_clear_faults();
  GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
  void* other = Alloc(1 << 20);
  EXPECT_NE(other, of_lost);
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, other));
  GCAP_EXPECT_OK(gcap_stream_destroy(lost));
  void* first = Alloc(1 << 20);
  void* second = Alloc(1 << 20);
  EXPECT_TRUE(first == of_lost || second == of_lost);
  for (void* ptr : {first, second}) GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  ExpectConsistent();
}

// What was freed without a stream may still be in use: the arena grows instead.
TEST_F(ScratchFaults, AWaitForTheDeviceThatFailsCoversNothing) {
  constexpr size_t kRegionBytes = size_t{20} << 20;  // all of a region
  gcap_allocator_t* view = gcap_scratch_allocator(scratch_);
  void *freed = nullptr, *meanwhile = nullptr, *later = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(view, kRegionBytes, &freed));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, freed));
  gcap_sim_fail_nth("cudaDeviceSynchronize", 1, cudaErrorUnknown);
  {
    const LogCatcher log;
    GCAP_EXPECT_OK(gcap_allocator_alloc(view, kRegionBytes, &meanwhile));
    EXPECT_NE(log.text().find("cudaDeviceSynchronize"), std::string::npos) << log.text();
  }
  gcap_sim_clear_faults();
  EXPECT_NE(meanwhile, freed);
  GCAP_EXPECT_OK(gcap_allocator_alloc(view, kRegionBytes, &later));
  EXPECT_EQ(later, freed) << "this wait succeeded";
  for (void* ptr : {meanwhile, later}) GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
  ExpectConsistent();
}

// Work may have been given to a stream between the begin of the wait and the free.
TEST_F(ScratchFaults, AFreeDuringTheWaitForTheDeviceIsNotCoveredByIt) {
  constexpr size_t kRegionBytes = size_t{20} << 20;  // all of a region
  gcap_allocator_t* view = gcap_scratch_allocator(scratch_);
  void* early = nullptr;
  void* late = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(view, kRegionBytes, &early));
  GCAP_ASSERT_OK(gcap_allocator_alloc(view, 2 * kRegionBytes, &late));
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, early));
  Gate gate;
  gate.Hold(gcap_stream_handle(stream_));
  const uint64_t waits = gcap_sim_calls("cudaDeviceSynchronize");
  void* again = nullptr;
  std::thread waiter([&] { GCAP_EXPECT_OK(gcap_allocator_alloc(view, kRegionBytes, &again)); });
  while (gcap_sim_calls("cudaDeviceSynchronize") == waits) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  GCAP_EXPECT_FAILS(gcap_scratch_destroy(scratch_), GCAP_FAILED_PRECONDITION, "1 calls wait");
  GCAP_EXPECT_OK(gcap_scratch_free(scratch_, late));
  gate.Open();
  waiter.join();
  EXPECT_EQ(again, early);
  void* other = Alloc(kRegionBytes);
  EXPECT_TRUE(other < late || other >= static_cast<char*>(late) + 2 * kRegionBytes);
  for (void* ptr : {again, other}) GCAP_EXPECT_OK(gcap_scratch_free(scratch_, ptr));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  ExpectConsistent();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
