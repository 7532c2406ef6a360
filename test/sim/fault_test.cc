// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Injected faults, and faults of device work: which call they hit, what sticks, and that they leave the schedule alone.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cuda_runtime.h"
#include "gcap_sim.h"

extern "C" {
#include "sim/api/submit.h"
}

namespace {

constexpr size_t kBytes = 64;

void FaultingStub() {}

void RunFaulting(const gcap_sim_launch_t*, void* const*) { gcap_sim_device_fault(cudaErrorIllegalAddress); }

const bool g_registered = [] {
  gcap_sim_kernel_t twin = {};
  twin.function = reinterpret_cast<const void*>(&FaultingStub);
  twin.name = "faulting";
  twin.run = RunFaulting;
  gcap_sim_register_kernel(&twin);
  return true;
}();

void Inject(const char* function, uint64_t nth, cudaError_t code, bool sticky = false) {
  gcap_sim_fault_t fault = {};
  fault.function = function;
  fault.nth = nth;
  fault.code = code;
  fault.sticky = sticky;
  gcap_sim_inject(&fault);
}

void InjectByChance(const char* function, double probability, cudaError_t code) {
  gcap_sim_fault_t fault = {};
  fault.function = function;
  fault.probability = probability;
  fault.code = code;
  gcap_sim_inject(&fault);
}

cudaError_t GetDevice() {
  int device;
  return cudaGetDevice(&device);
}

class Fault : public testing::Test {
 protected:
  void SetUp() override {
    gcap_sim_set_seed(0);
    ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned_), kBytes));
    pinned_[0] = 0;
  }
  void TearDown() override {
    gcap_sim_clear_faults();
    EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream_));
    EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
    EXPECT_EQ(cudaSuccess, cudaFreeHost(pinned_));
    EXPECT_EQ(0u, gcap_sim_live(nullptr));
    cudaGetLastError();
  }
  cudaError_t LaunchFaulting() {
    return cudaLaunchKernel(reinterpret_cast<const void*>(&FaultingStub), dim3(1), dim3(1), nullptr, 0, stream_);
  }

  cudaStream_t stream_;
  unsigned char* pinned_;
};

TEST_F(Fault, SeveralAreArmedAtOnce) {
  Inject("cudaGetDevice", 2, cudaErrorUnknown);
  Inject("cudaGetDevice", 3, cudaErrorNoDevice);
  Inject("cudaEventDestroy", 1, cudaErrorNotSupported);
  EXPECT_EQ(cudaSuccess, GetDevice());
  EXPECT_EQ(cudaErrorUnknown, GetDevice());
  EXPECT_EQ(cudaErrorNoDevice, GetDevice());
  EXPECT_EQ(cudaSuccess, GetDevice());
  EXPECT_EQ(cudaErrorNotSupported, cudaEventDestroy(nullptr));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventDestroy(nullptr));
}

TEST_F(Fault, FirstArmedWinsAndTheOtherHasCounted) {
  Inject(nullptr, 1, cudaErrorUnknown);
  Inject("cudaGetDevice", 1, cudaErrorNoDevice);
  EXPECT_EQ(cudaErrorUnknown, GetDevice());
  EXPECT_EQ(cudaSuccess, GetDevice());
}

TEST_F(Fault, OfAnyFunctionSparesReadsOfTheLastError) {
  Inject(nullptr, 1, cudaErrorUnknown);
  EXPECT_EQ(cudaSuccess, cudaGetLastError());
  EXPECT_EQ(cudaSuccess, cudaPeekAtLastError());
  EXPECT_EQ(cudaErrorUnknown, GetDevice());
}

TEST_F(Fault, OfAnyFunctionIsTheOneOfThatManyCalls) {
  int device = 0;
  const auto work = [&] {
    (void)cudaPeekAtLastError();
    const cudaError_t first = cudaGetDevice(&device);
    (void)cudaGetLastError();
    return std::vector<cudaError_t>{first, cudaGetDevice(&device)};
  };
  const uint64_t before = gcap_sim_calls_for_faults();
  (void)work();
  const uint64_t calls = gcap_sim_calls_for_faults() - before;
  EXPECT_EQ(calls, 2u);
  gcap_sim_fail_nth(nullptr, calls, cudaErrorUnknown);
  EXPECT_EQ(work(), (std::vector<cudaError_t>{cudaSuccess, cudaErrorUnknown}));
}

TEST_F(Fault, ByNameHitsReadsOfTheLastErrorToo) {
  Inject("cudaGetLastError", 1, cudaErrorUnknown);
  EXPECT_EQ(cudaErrorUnknown, cudaGetLastError());
}

TEST_F(Fault, ChanceHitsAboutAsOftenAsItSays) {
  InjectByChance("cudaGetDevice", 0.25, cudaErrorUnknown);
  constexpr int kCalls = 4000;
  int hits = 0;
  for (int i = 0; i < kCalls; ++i) hits += GetDevice() == cudaErrorUnknown;
  // Five standard deviations of a binomial distribution: 5 * sqrt(4000 * 0.25 * 0.75) is 137.
  EXPECT_NEAR(kCalls / 4, hits, 137);
}

TEST_F(Fault, ChanceOfOneHitsAlways) {
  InjectByChance("cudaGetDevice", 1, cudaErrorUnknown);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(cudaErrorUnknown, GetDevice());
}

std::vector<bool> HitsUnder(uint64_t seed) {
  gcap_sim_set_seed(seed);
  std::vector<bool> hits;
  for (int i = 0; i < 200; ++i) hits.push_back(GetDevice() != cudaSuccess);
  return hits;
}

TEST_F(Fault, ChanceIsDrawnFromTheSeed) {
  InjectByChance("cudaGetDevice", 0.5, cudaErrorUnknown);
  std::vector<bool> first = HitsUnder(1);
  EXPECT_EQ(first, HitsUnder(1));
  EXPECT_NE(first, HitsUnder(2));
}

// How far a stream has come after each of many calls.
std::string Interleaving(cudaStream_t stream, unsigned char* pinned) {
  std::string order;
  gcap_sim_set_seed(11);
  for (int i = 1; i <= 40; ++i) {
    EXPECT_EQ(cudaSuccess, cudaMemsetAsync(pinned, i, 1, stream));
    order += std::to_string(pinned[0]) + ",";
  }
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream));
  pinned[0] = 0;
  return order;
}

TEST_F(Fault, ChanceDoesNotShiftTheSchedule) {
  std::string without = Interleaving(stream_, pinned_);
  InjectByChance("cudaMemsetAsync", 1e-12, cudaErrorUnknown);  // drawn at each call, and as good as never hit
  EXPECT_EQ(without, Interleaving(stream_, pinned_));
}

TEST_F(Fault, StickyOneAnswersEveryCallUntilItIsCleared) {
  Inject("cudaMemsetAsync", 1, cudaErrorLaunchFailure, true);
  EXPECT_EQ(cudaErrorLaunchFailure, cudaMemsetAsync(pinned_, 1, 1, stream_));
  cudaGraph_t graph;
  EXPECT_EQ(cudaSuccess, GetDevice());  // the host's own matter
  EXPECT_EQ(cudaErrorLaunchFailure, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaErrorLaunchFailure, cudaStreamEndCapture(stream_, &graph));
  EXPECT_EQ(cudaErrorLaunchFailure, cudaStreamDestroy(stream_));
  EXPECT_EQ(cudaErrorLaunchFailure, cudaGetLastError());
  EXPECT_EQ(cudaSuccess, cudaGetLastError());
  EXPECT_EQ(cudaErrorLaunchFailure, cudaDeviceSynchronize());
  EXPECT_STREQ("cudaErrorLaunchFailure", cudaGetErrorName(cudaErrorLaunchFailure));
  EXPECT_EQ(cudaErrorLaunchFailure, gcap_sim_library_call("aLibraryCall", GCAP_SIM_CALL_FREE));
  gcap_sim_clear_faults();
  EXPECT_EQ(cudaSuccess, GetDevice());
  EXPECT_EQ(cudaErrorLaunchFailure, cudaGetLastError());  // the thread's, kept until it is read
  EXPECT_EQ(cudaSuccess, cudaGetLastError());
}

TEST_F(Fault, OfALibraryCallIsHitByItsName) {
  Inject("aLibraryCall", 2, cudaErrorNotSupported);
  EXPECT_EQ(cudaSuccess, gcap_sim_library_call("aLibraryCall", GCAP_SIM_CALL_FREE));
  EXPECT_EQ(cudaSuccess, gcap_sim_library_call("anotherLibraryCall", GCAP_SIM_CALL_FREE));
  EXPECT_EQ(cudaErrorNotSupported, gcap_sim_library_call("aLibraryCall", GCAP_SIM_CALL_FREE));
}

TEST_F(Fault, OfAKernelSurfacesWhereTheHostWaits) {
  // The last one waits for another stream: a fault concerns the device. It has run by then, since many calls let it.
  for (auto wait :
       {+[](cudaStream_t s) { return cudaStreamSynchronize(s); }, +[](cudaStream_t) { return cudaDeviceSynchronize(); },
        +[](cudaStream_t) {
          for (int i = 0; i < 1000; ++i) EXPECT_EQ(cudaSuccess, GetDevice());
          return cudaStreamSynchronize(nullptr);
        }}) {
    ASSERT_EQ(cudaSuccess, LaunchFaulting());
    EXPECT_EQ(cudaErrorIllegalAddress, wait(stream_));
    EXPECT_EQ(cudaErrorIllegalAddress, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
    EXPECT_EQ(cudaErrorIllegalAddress, cudaGetLastError());
    gcap_sim_clear_faults();
  }
}

TEST_F(Fault, OfAKernelSurfacesThroughAnEventAndAQuery) {
  cudaEvent_t event;
  ASSERT_EQ(cudaSuccess, cudaEventCreate(&event));
  ASSERT_EQ(cudaSuccess, LaunchFaulting());
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event, stream_));
  EXPECT_EQ(cudaErrorIllegalAddress, cudaEventSynchronize(event));
  gcap_sim_clear_faults();
  ASSERT_EQ(cudaSuccess, LaunchFaulting());
  ASSERT_EQ(cudaSuccess, cudaEventRecord(event, stream_));
  cudaError_t code;
  while ((code = cudaEventQuery(event)) == cudaErrorNotReady) continue;
  EXPECT_EQ(cudaErrorIllegalAddress, code);
  gcap_sim_clear_faults();
  EXPECT_EQ(cudaSuccess, cudaEventDestroy(event));
}

TEST_F(Fault, OfAKernelStopsWhatIsQueuedBehindIt) {
  int called = 0;
  ASSERT_EQ(cudaSuccess, LaunchFaulting());
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(pinned_, 1, 1, stream_));
  ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(
                             stream_, [](void* p) { ++*static_cast<int*>(p); }, &called));
  EXPECT_EQ(cudaErrorIllegalAddress, cudaStreamSynchronize(stream_));
  EXPECT_EQ(0, pinned_[0]);
  EXPECT_EQ(0, called);
  gcap_sim_clear_faults();
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(pinned_, 1, 1, stream_));
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream_));
  EXPECT_EQ(1, pinned_[0]);
}

TEST_F(Fault, OfAKernelInAGraphSurfacesToo) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  int called = 0;
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  ASSERT_EQ(cudaSuccess, LaunchFaulting());
  ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(
                             stream_, [](void* p) { ++*static_cast<int*>(p); }, &called));
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream_, &graph));
  ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&exec, graph, 0));
  ASSERT_EQ(cudaSuccess, cudaGraphLaunch(exec, stream_));
  EXPECT_EQ(cudaErrorIllegalAddress, cudaStreamSynchronize(stream_));
  EXPECT_EQ(0, called);
  gcap_sim_clear_faults();
  EXPECT_EQ(cudaSuccess, cudaGraphExecDestroy(exec));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
}

// Without the fixture: a reset leaves no handles to tear down.
TEST(FaultAndReset, WhatIsQueuedHasNoEffectAndAResetBringsNoDeviceBack) {
  cudaStream_t stream;
  unsigned char* pinned;
  int called = 0;
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned), kBytes));
  ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(
                             stream, [](void* p) { ++*static_cast<int*>(p); }, &called));
  Inject("cudaStreamQuery", 1, cudaErrorIllegalAddress, true);
  EXPECT_EQ(cudaErrorIllegalAddress, cudaStreamQuery(stream));
  EXPECT_EQ(cudaErrorIllegalAddress, cudaStreamSynchronize(stream));
  EXPECT_EQ(cudaErrorIllegalAddress, cudaGetLastError());
  EXPECT_EQ(cudaSuccess, cudaDeviceReset());
  EXPECT_EQ(0, called);
  EXPECT_EQ(cudaErrorDevicesUnavailable, cudaStreamCreate(&stream));
  gcap_sim_clear_faults();
  EXPECT_EQ(cudaErrorDevicesUnavailable, cudaGetLastError());
  EXPECT_EQ(cudaSuccess, cudaStreamCreate(&stream));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
  EXPECT_EQ(0u, gcap_sim_live(nullptr));
}

using FaultDeathTest = Fault;

TEST_F(FaultDeathTest, NonsenseStopsTheProgramAndNamesTheValue) {
  EXPECT_DEATH(Inject("cudaGetDevice", 1, cudaSuccess), "gcap_sim_inject: code is cudaSuccess");
  EXPECT_DEATH(Inject("cudaGetDevise", 1, cudaErrorUnknown), "'cudaGetDevise' is no function");
  EXPECT_DEATH(InjectByChance(nullptr, 1.5, cudaErrorUnknown), "probability 1.5");
  EXPECT_DEATH(InjectByChance(nullptr, -1, cudaErrorUnknown), "probability -1");
  EXPECT_DEATH(InjectByChance(nullptr, 0, cudaErrorUnknown), "probability 0");
  EXPECT_DEATH(gcap_sim_inject(nullptr), "gcap_sim_inject: the fault is NULL");
  EXPECT_DEATH(gcap_sim_device_fault(cudaErrorIllegalAddress), "gcap_sim_device_fault: only the twin");
  gcap_sim_fault_t both = {};
  both.nth = 3;
  both.probability = 0.5;
  both.code = cudaErrorUnknown;
  EXPECT_DEATH(gcap_sim_inject(&both), "nth is 3 and probability 0.5");
}

}  // namespace
