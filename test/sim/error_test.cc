// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Errors, injected faults and counters; what devices say about themselves.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

class Error : public testing::Test {
 protected:
  void SetUp() override { cudaGetLastError(); }
  void TearDown() override {
    gcap_sim_fail_nth(nullptr, 0, cudaSuccess);
    cudaGetLastError();
  }
};

TEST_F(Error, LastErrorStaysUntilItIsRead) {
  EXPECT_EQ(cudaErrorInvalidValue, cudaMalloc(nullptr, 16));
  int device;
  EXPECT_EQ(cudaSuccess, cudaGetDevice(&device));
  EXPECT_EQ(cudaErrorInvalidValue, cudaPeekAtLastError());
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaEventDestroy(nullptr));
  EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaGetLastError());
  EXPECT_EQ(cudaSuccess, cudaGetLastError());
  EXPECT_EQ(cudaSuccess, cudaPeekAtLastError());
}

TEST_F(Error, LastErrorBelongsToItsThread) {
  EXPECT_EQ(cudaErrorInvalidValue, cudaMalloc(nullptr, 16));
  std::thread([] {
    EXPECT_EQ(cudaSuccess, cudaPeekAtLastError());
    EXPECT_EQ(cudaErrorInvalidDevice, cudaSetDevice(99));
  }).join();
  EXPECT_EQ(cudaErrorInvalidValue, cudaGetLastError());
}

TEST_F(Error, NotReadyIsNoLastError) {
  cudaStream_t stream;
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < 10; ++i)
    ASSERT_EQ(cudaSuccess, cudaLaunchHostFunc(
                               stream, [](void*) {}, nullptr));
  int pending = 0;
  while (cudaStreamQuery(stream) == cudaErrorNotReady) ++pending;
  EXPECT_GT(pending, 0);
  EXPECT_EQ(cudaSuccess, cudaPeekAtLastError());
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
}

TEST_F(Error, NamesAreThoseOfTheEnumeration) {
  EXPECT_STREQ("cudaSuccess", cudaGetErrorName(cudaSuccess));
  EXPECT_STREQ("cudaErrorStreamCaptureInvalidated", cudaGetErrorName(cudaErrorStreamCaptureInvalidated));
  EXPECT_STREQ("unrecognized error code", cudaGetErrorName(static_cast<cudaError_t>(12345)));
  EXPECT_STREQ("no error", cudaGetErrorString(cudaSuccess));
  EXPECT_STRNE("", cudaGetErrorString(cudaErrorTextureNotBound));
}

TEST_F(Error, FaultHitsTheNthCallOfTheNamedFunctionOnce) {
  gcap_sim_fail_nth("cudaMalloc", 2, cudaErrorMemoryAllocation);
  void *a = nullptr, *b = nullptr;
  int device;
  EXPECT_EQ(cudaSuccess, cudaMalloc(&a, 16));
  EXPECT_EQ(cudaSuccess, cudaGetDevice(&device));
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaMalloc(&b, 16));
  EXPECT_EQ(nullptr, b);
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaGetLastError());
  EXPECT_EQ(cudaSuccess, cudaMalloc(&b, 16));
  EXPECT_EQ(cudaSuccess, cudaFree(a));
  EXPECT_EQ(cudaSuccess, cudaFree(b));
}

TEST_F(Error, FaultWithoutANameCountsAllCallsButReadsOfTheLastError) {
  gcap_sim_fail_nth(nullptr, 2, cudaErrorUnknown);
  int device;
  EXPECT_EQ(cudaSuccess, cudaGetDevice(&device));
  EXPECT_EQ(cudaSuccess, cudaGetLastError());
  EXPECT_EQ(cudaErrorUnknown, cudaGetDevice(&device));
  EXPECT_EQ(cudaSuccess, cudaGetDevice(&device));
}

TEST_F(Error, FaultCanBeDisarmed) {
  gcap_sim_fail_nth("cudaGetDevice", 1, cudaErrorUnknown);
  gcap_sim_fail_nth(nullptr, 0, cudaErrorUnknown);
  int device;
  EXPECT_EQ(cudaSuccess, cudaGetDevice(&device));
}

TEST_F(Error, FaultedCallDoesNothing) {
  cudaStream_t stream;
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  gcap_sim_fail_nth("cudaStreamEndCapture", 1, cudaErrorUnknown);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaErrorUnknown, cudaStreamEndCapture(stream, &graph));
  cudaStreamCaptureStatus status;
  ASSERT_EQ(cudaSuccess, cudaStreamIsCapturing(stream, &status));
  EXPECT_EQ(cudaStreamCaptureStatusActive, status);
  EXPECT_EQ(cudaSuccess, cudaStreamEndCapture(stream, &graph));
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
}

TEST_F(Error, CallsAreCounted) {
  uint64_t named = gcap_sim_calls("cudaGetDevice"), all = gcap_sim_calls(nullptr);
  int device;
  for (int i = 0; i < 3; ++i) cudaGetDevice(&device);
  cudaMalloc(nullptr, 1);
  EXPECT_EQ(named + 3, gcap_sim_calls("cudaGetDevice"));
  EXPECT_EQ(all + 4, gcap_sim_calls(nullptr));
  EXPECT_EQ(0u, gcap_sim_calls("cudaNoSuchFunction"));
}

TEST(Device, DescribesItself) {
  int count = 0, version = 0, driver = 0, value = 0;
  ASSERT_EQ(cudaSuccess, cudaGetDeviceCount(&count));
  EXPECT_GE(count, 1);
  EXPECT_EQ(cudaSuccess, cudaRuntimeGetVersion(&version));
  EXPECT_EQ(CUDART_VERSION, version);
  EXPECT_EQ(cudaSuccess, cudaDriverGetVersion(&driver));
  EXPECT_GE(driver, version);
  cudaDeviceProp prop;
  ASSERT_EQ(cudaSuccess, cudaGetDeviceProperties(&prop, 0));
  EXPECT_STREQ("gcap simulator", prop.name);
  ASSERT_EQ(cudaSuccess, cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  EXPECT_EQ(prop.multiProcessorCount, value);
  ASSERT_EQ(cudaSuccess, cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0));
  EXPECT_EQ(prop.maxThreadsPerBlock, value);
  EXPECT_EQ(cudaErrorInvalidDevice, cudaGetDeviceProperties(&prop, count));
  EXPECT_EQ(cudaErrorInvalidDevice, cudaSetDevice(-1));
  EXPECT_EQ(cudaErrorInvalidValue, cudaGetDeviceCount(nullptr));
  cudaGetLastError();
}

}  // namespace
