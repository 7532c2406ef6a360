// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The engine that makes calls fail must itself complain: each thing that a failure may leave behind is left here on
// purpose.

#include "test/support/faults.h"

#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"

namespace gcap {
namespace testing {
namespace {

cudaEvent_t CreateEvent() {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  return event;
}

TEST(Faults, AWalkFailsEachCallOnceAndNamesItsFunction) {
  int trials = 0;
  const Walked walked = WalkFaults([&trials](Fault& fault) {
    ++trials;
    fault.Arm();
    int value = 0;
    const bool failed[] = {cudaGetDevice(&value) != cudaSuccess, cudaGetDeviceCount(&value) != cudaSuccess,
                           cudaGetDevice(&value) != cudaSuccess};
    (void)cudaGetLastError();  // no fault hits this call
    EXPECT_EQ(fault.Disarm(), trials <= 3);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(failed[i], i + 1 == trials);
    EXPECT_EQ(fault.Is("cudaGetDeviceCount"), trials == 2);
  });
  EXPECT_EQ(trials, 4);
  EXPECT_EQ(walked.calls, 3u);
  EXPECT_EQ(walked.functions, (Functions{"cudaGetDevice", "cudaGetDeviceCount"}));
}

TEST(Faults, AWalkFailsCallsOfTheDriverToo) {
  using Reserve = int (*)(uintptr_t*, size_t, size_t, uintptr_t, unsigned long long);
  using Unreserve = int (*)(uintptr_t, size_t);
  constexpr size_t kBytes = size_t{2} << 20;
  void *reserve = nullptr, *unreserve = nullptr;
  ASSERT_EQ(cudaGetDriverEntryPoint("cuMemAddressReserve", &reserve, cudaEnableDefault), cudaSuccess);
  ASSERT_EQ(cudaGetDriverEntryPoint("cuMemAddressFree", &unreserve, cudaEnableDefault), cudaSuccess);
  const Walked walked = WalkFaults([&](Fault& fault) {
    uintptr_t range = 0;
    fault.Arm();
    const int reserved = reinterpret_cast<Reserve>(reserve)(&range, kBytes, 0, 0, 0);
    const int freed = reserved == 0 ? reinterpret_cast<Unreserve>(unreserve)(range, kBytes) : 0;
    fault.Disarm();
    EXPECT_EQ(reserved, fault.Is("cuMemAddressReserve") ? cudaErrorUnknown : 0);
    EXPECT_EQ(freed, fault.Is("cuMemAddressFree") ? cudaErrorUnknown : 0);
    if (freed == 0) return;
    EXPECT_EQ(reinterpret_cast<Unreserve>(unreserve)(range, kBytes), 0);
  });
  EXPECT_EQ(walked.functions, (Functions{"cuMemAddressFree", "cuMemAddressReserve"}));
}

TEST(Faults, WhatTheThreadWasNotGivenBackIsReportedAndGivenBack) {
  Fault fault(100);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_NONFATAL_FAILURE(fault.ExpectThreadAsBefore(), "mode was not given back");
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_NONFATAL_FAILURE(fault.ExpectThreadAsBefore(), "device was not given back");
  EXPECT_NE(cudaSetDevice(-1), cudaSuccess);
  EXPECT_NONFATAL_FAILURE(fault.ExpectThreadAsBefore(), "last error was left behind");
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
  fault.ExpectThreadAsBefore();
}

TEST(Faults, DisarmExcusesASettingOnlyWhereTheCallThatRestoresItFailed) {
  Fault of_restore(2);
  of_restore.Arm();
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorUnknown);
  EXPECT_EQ(cudaGetLastError(), cudaErrorUnknown);
  EXPECT_TRUE(of_restore.Disarm());
  of_restore.ExpectThreadAsBefore();
  Fault fault(1);
  fault.Arm();
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorUnknown);
  EXPECT_EQ(cudaGetLastError(), cudaErrorUnknown);
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_NONFATAL_FAILURE(fault.Disarm(), "device was not given back");
}

TEST(Faults, AHandleThatIsLeftIsReportedUnlessItIsExpected) {
  const Handles before = LiveHandles();
  Fault fault(100);
  cudaEvent_t event = CreateEvent();
  EXPECT_NONFATAL_FAILURE(fault.ExpectNothingLeft(before), "event");
  fault.ExpectKept("event");
  fault.ExpectNothingLeft(before);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_NONFATAL_FAILURE(fault.ExpectNothingLeft(before), "event");
  fault.AllowKept();
  fault.ExpectNothingLeft(before);
}

TEST(Faults, AFailedDestructionLeavesItsOwnHandleAndNoOther) {
  const Handles before = LiveHandles();
  cudaEvent_t event = CreateEvent();
  Fault fault(1);
  fault.Arm();
  EXPECT_EQ(cudaEventDestroy(event), cudaErrorUnknown);
  EXPECT_EQ(cudaGetLastError(), cudaErrorUnknown);
  EXPECT_TRUE(fault.Disarm());
  fault.ExpectNothingLeft(before);
  cudaEvent_t other = CreateEvent();
  EXPECT_NONFATAL_FAILURE(fault.ExpectNothingLeft(before), "event");
  EXPECT_EQ(cudaEventDestroy(other), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_NONFATAL_FAILURE(fault.ExpectNothingLeft(before), "event");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
