// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The external adapter when CUDA calls fail, and on another device than the current one: what only the simulator can
// stage.

#include <cstdint>
#include <string>
#include <vector>

#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "test/allocator/external_callbacks.h"
#include "test/base/device_work.h"
#include "test/support/expect_status.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class ExternalAllocatorFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    application = {};
    const gcap_external_allocator_options_t options = ExternalOptions(1);
    GCAP_ASSERT_OK(gcap_external_allocator_create(&options, &allocator_));
  }
  void TearDown() override {
    gcap_allocator_destroy(allocator_);
    EXPECT_EQ(application.num_blocks, 0u);
    application = {};
  }

  size_t InUse() {
    gcap_allocator_stats_t stats;
    gcap_allocator_get_stats(allocator_, &stats);
    return stats.in_use_bytes;
  }

  gcap_allocator_t* allocator_ = nullptr;
};

TEST_F(ExternalAllocatorFaults, DeviceIsCurrentInCallbacksAndRestored) {
  void* ptr = nullptr;
  GCAP_ASSERT_OK(gcap_allocator_reserve(allocator_, 100, &ptr));
  EXPECT_EQ(CurrentDevice(), 0);
  GCAP_EXPECT_OK(gcap_allocator_free(allocator_, ptr));
  EXPECT_EQ(CurrentDevice(), 0);
  GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
  EXPECT_EQ(CurrentDevice(), 0);
  EXPECT_EQ(application.devices, (std::vector<int>{1, 1, 1, 1}));  // alloc, free, empty_cache, empty_cache
}

// Whatever device is current before, a callback finds its own, and leaves the other one current.
TEST_F(ExternalAllocatorFaults, DeviceThatACallbackChangesIsRestored) {
  for (const int before : {0, 1}) {
    for (const int inside : {0, 1}) {
      SCOPED_TRACE(std::to_string(before) + std::to_string(inside));
      application.on_alloc = application.on_free =
          application.on_empty_cache = [inside] { EXPECT_EQ(cudaSetDevice(inside), cudaSuccess); };
      application.devices.clear();
      ASSERT_EQ(cudaSetDevice(before), cudaSuccess);
      void* ptr = nullptr;
      GCAP_ASSERT_OK(gcap_allocator_reserve(allocator_, 100, &ptr));
      EXPECT_EQ(CurrentDevice(), before);
      GCAP_EXPECT_OK(gcap_allocator_free(allocator_, ptr));
      EXPECT_EQ(CurrentDevice(), before);
      GCAP_EXPECT_OK(gcap_allocator_trim(allocator_));
      EXPECT_EQ(CurrentDevice(), before);
      EXPECT_EQ(application.devices, (std::vector<int>{1, 1, 1, 1}));  // alloc, free, empty_cache, empty_cache
    }
  }
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

// The adapter's own CUDA calls, in their order, by name and by number: the callbacks ask for the device too.
struct OwnCall {
  const char* function;
  uint64_t n;
  bool on_the_way_back;
};
constexpr OwnCall kOwnCalls[] = {{"cudaGetDevice", 1, false},
                                 {"cudaSetDevice", 1, false},
                                 {"cudaThreadExchangeStreamCaptureMode", 1, false},
                                 {"cudaThreadExchangeStreamCaptureMode", 2, true},
                                 {"cudaGetDevice", 3, true},
                                 {"cudaSetDevice", 2, true}};

// Runs `step` with the fault armed, expects a status or a log message that names the function, and restores the device
// if that is what failed. Gives the step's outcome.
template <typename Step>
Outcome ExpectReported(const OwnCall& fault, Step step) {
  const LogCatcher log;
  gcap_sim_fail_nth(fault.function, fault.n, cudaErrorUnknown);
  const Outcome outcome(step());
  gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
  EXPECT_NE((outcome.message + log.text()).find(fault.function), std::string::npos) << outcome.message << log.text();
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  const bool device_lost = fault.on_the_way_back && std::string(fault.function) == "cudaSetDevice";
  EXPECT_EQ(CurrentDevice(), device_lost ? 1 : 0);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  const bool mode_lost = fault.on_the_way_back && std::string(fault.function) == "cudaThreadExchangeStreamCaptureMode";
  EXPECT_EQ(mode, mode_lost ? cudaStreamCaptureModeRelaxed : cudaStreamCaptureModeGlobal);
  return outcome;
}

TEST_F(ExternalAllocatorFaults, OfAllocLeaveNothing) {
  for (const OwnCall& fault : kOwnCalls) {
    void* ptr = this;
    const Outcome outcome = ExpectReported(fault, [&] { return gcap_allocator_alloc(allocator_, 100, &ptr); });
    EXPECT_EQ(outcome.code, GCAP_CUDA_ERROR);
    EXPECT_EQ(ptr, nullptr);
    EXPECT_EQ(application.num_blocks, 0u);
    EXPECT_EQ(InUse(), 0u);
  }
}

// A failure means that the block is still there; one that came too late for that is logged.
TEST_F(ExternalAllocatorFaults, OfFreeLeaveTheBlockFreedOrFreeable) {
  for (const OwnCall& fault : kOwnCalls) {
    void* ptr = nullptr;
    GCAP_ASSERT_OK(gcap_allocator_alloc(allocator_, 100, &ptr));
    const Outcome outcome = ExpectReported(fault, [&] { return gcap_allocator_free(allocator_, ptr); });
    EXPECT_EQ(outcome.ok(), fault.on_the_way_back);  // only the way back failed
    EXPECT_EQ(application.num_blocks, outcome.ok() ? 0u : 1u);
    EXPECT_EQ(InUse(), outcome.ok() ? 0u : 100u);
    if (!outcome.ok()) GCAP_EXPECT_OK(gcap_allocator_free(allocator_, ptr));
  }
}

// The memory is gone by then, so the block is freed whatever becomes of the cache.
TEST_F(ExternalAllocatorFaults, OfEmptyCacheAfterAFreeAreLogged) {
  for (const OwnCall& fault : kOwnCalls) {
    void* ptr = nullptr;
    GCAP_ASSERT_OK(gcap_allocator_reserve(allocator_, 100, &ptr));
    OwnCall of_empty_cache = fault;  // the free's own calls, and its callback's, come before
    of_empty_cache.n += std::string(fault.function) == "cudaGetDevice" ? 3 : 2;
    application.TakeCalls();
    const Outcome outcome = ExpectReported(of_empty_cache, [&] { return gcap_allocator_free(allocator_, ptr); });
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    std::vector<std::string> expected = {"free"};
    if (fault.on_the_way_back) expected.push_back("empty_cache");
    EXPECT_EQ(application.TakeCalls(), expected);
    EXPECT_EQ(InUse(), 0u);
  }
}

TEST_F(ExternalAllocatorFaults, OfTrimAreReported) {
  for (const OwnCall& fault : kOwnCalls) {
    const Outcome outcome = ExpectReported(fault, [&] { return gcap_allocator_trim(allocator_); });
    EXPECT_EQ(outcome.code, GCAP_CUDA_ERROR);
  }
}

// An application without calls of CUDA: each call that fails is the adapter's.
TEST_F(ExternalAllocatorFaults, SeveralAreToldInTheirOrder) {
  gcap_external_allocator_options_t options = ExternalOptions(1);
  options.alloc = [](size_t) { return reinterpret_cast<void*>(1); };  // refused, and given back
  options.free = [](void*) {};
  options.empty_cache = [] {};
  gcap_allocator_t* allocator = nullptr;
  GCAP_ASSERT_OK(gcap_external_allocator_create(&options, &allocator));
  int num_refused = 0;
  for (const Reach reach : {Reach::kOneCall, Reach::kAllAfter}) {
    const auto trim = [&](Fault& fault) {
      const Outcome outcome = fault.During([&] { return gcap_allocator_trim(allocator); });
      EXPECT_EQ(outcome.ok(), !fault.hit());
      EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    };
    const auto alloc = [&](Fault& fault) {
      void* ptr = nullptr;
      const Outcome outcome = fault.During([&] { return gcap_allocator_alloc(allocator, 100, &ptr); });
      const bool is_refused = outcome.message.rfind("the external alloc callback returned 0x1", 0) == 0;
      EXPECT_EQ(outcome.code, is_refused ? GCAP_LIBRARY_ERROR : GCAP_CUDA_ERROR) << outcome.message;
      EXPECT_TRUE(!fault.hit() || fault.ComesFirst(outcome)) << outcome.message;
      num_refused += is_refused && fault.hit();
    };
    EXPECT_GE(WalkFaults(trim, reach).calls, 6u);
    EXPECT_GE(WalkFaults(alloc, reach).calls, 12u);
  }
  EXPECT_EQ(num_refused, 2 * 9);  // all but the way to the first callback
  gcap_allocator_destroy(allocator);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
