// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The device and pinned allocators when CUDA calls fail, and with two devices: what only the simulator can stage.

#include <string>

#include "gcap/allocator.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/allocator_stats.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

// Lets every call of alloc and of free fail once, and expects `num_alloc_calls` and `num_free_calls` of them.
void WalkAllocator(gcap_allocator_t* allocator, uint64_t num_alloc_calls, uint64_t num_free_calls) {
  const size_t live = gcap_sim_live(nullptr);
  const Walked allocs = WalkFaults([&](Fault& fault) {
    void* ptr = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_allocator_alloc(allocator, 512, &ptr); });
    EXPECT_EQ(outcome.code, fault.hit() ? GCAP_CUDA_ERROR : GCAP_OK) << outcome.message;
    EXPECT_EQ(outcome.cuda_error, fault.hit() ? cudaErrorUnknown : cudaSuccess);
    EXPECT_EQ(ptr == nullptr, fault.hit());
    EXPECT_NE(outcome.message.find(fault.function()), std::string::npos) << fault.function();
    GCAP_EXPECT_OK(gcap_allocator_free(allocator, ptr));
    EXPECT_EQ(gcap_sim_live(nullptr), live) << outcome.message;
    EXPECT_EQ(StatsOf(allocator).in_use_bytes, 0u);
  });
  EXPECT_EQ(allocs.calls, num_alloc_calls);
  const Walked frees = WalkFaults([&](Fault& fault) {
    void* ptr = nullptr;
    GCAP_EXPECT_OK(gcap_allocator_alloc(allocator, 512, &ptr));
    const LogCatcher log;
    const Outcome outcome = fault.During([&] { return gcap_allocator_free(allocator, ptr); });
    // A failure means that the block is still there; one that came too late for that is logged.
    EXPECT_EQ(outcome.ok(), gcap_sim_live(nullptr) == live) << outcome.message;
    EXPECT_EQ(StatsOf(allocator).in_use_bytes, outcome.ok() ? 0u : 512u);
    EXPECT_EQ(fault.hit(), !outcome.ok() || !log.text().empty()) << outcome.message << log.text();
    EXPECT_NE((outcome.message + log.text()).find(fault.function()), std::string::npos) << fault.function();
    if (!outcome.ok()) GCAP_EXPECT_OK(gcap_allocator_free(allocator, ptr));
    EXPECT_EQ(gcap_sim_live(nullptr), live) << outcome.message;
  });
  EXPECT_EQ(frees.calls, num_free_calls);
}

TEST(DeviceAllocatorFaults, OfAllocAndFreeLeaveNothing) {
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(1, &allocator));
  // Get device, set it, relax, the call itself, and the way back.
  WalkAllocator(allocator, 6, 6);
  gcap_allocator_destroy(allocator);
}

TEST(PinnedAllocatorFaults, OfAllocAndFreeLeaveNothing) {
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_pinned_allocator_create(&allocator));
  // Relax, the call itself, and back.
  WalkAllocator(allocator, 3, 3);
  gcap_allocator_destroy(allocator);
}

TEST(PinnedAllocatorFaults, OfShortMemoryAreExhaustion) {
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_pinned_allocator_create(&allocator));
  gcap_sim_fail_nth("cudaHostAlloc", 1, cudaErrorMemoryAllocation);
  void* ptr = nullptr;
  GCAP_EXPECT_FAILS(gcap_allocator_alloc(allocator, 12345, &ptr), GCAP_RESOURCE_EXHAUSTED, "12345");
  EXPECT_EQ(ptr, nullptr);
  gcap_allocator_destroy(allocator);
}

TEST(DeviceAllocatorFaults, OfCreateLeaveNothing) {
  const Walked walked = WalkFaults([](Fault& fault) {
    gcap_allocator_t* allocator = nullptr;
    const Outcome outcome = fault.During([&] { return gcap_device_allocator_create(1, &allocator); });
    EXPECT_EQ(outcome.code, fault.hit() ? GCAP_CUDA_ERROR : GCAP_OK) << outcome.message;
    EXPECT_EQ(allocator == nullptr, fault.hit());
    gcap_allocator_destroy(allocator);
  });
  EXPECT_EQ(walked.calls, 1u);
}

TEST(DeviceAllocator, AllocatesOnItsOwnDevice) {
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_device_allocator_create(1, &allocator));
  EXPECT_EQ(StatsOf(allocator).device_id, 1);
  void* ptr = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_alloc(allocator, 512, &ptr));
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, ptr), cudaSuccess);
  EXPECT_EQ(attributes.device, 1);
  EXPECT_EQ(CurrentDevice(), 0);
  GCAP_EXPECT_OK(gcap_allocator_free(allocator, ptr));
  gcap_allocator_destroy(allocator);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
