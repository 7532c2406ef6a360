// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What the environment sets: the number of devices, the lazy schedule, the log. Its own binary, since all are read
// once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "cuda_runtime.h"

namespace {

const bool g_environment_set = [] {
  setenv("GCAP_SIM_DEVICES", "2", 1);
  setenv("GCAP_SIM_SCHEDULE", "lazy", 1);
  setenv("GCAP_SIM_DEVICE_BYTES", "0x100000", 1);
  setenv("GCAP_SIM_LOG", "cudaRuntimeGetVersion", 1);
  return true;
}();

// Comes first, as death tests do: the environment is read once.
TEST(EnvironmentDeathTest, TheDevicesSizeIsANumber) {
  size_t free, total;
  for (const char* text : {"", "0", "12 apples", "-1", "99999999999999999999999"}) {
    EXPECT_DEATH((setenv("GCAP_SIM_DEVICE_BYTES", text, 1), cudaMemGetInfo(&free, &total)),
                 "GCAP_SIM_DEVICE_BYTES is '.*', expected a number of bytes above 0");
  }
}

TEST(Environment, DevicesHaveTheSizeTheyAreGiven) {
  size_t free = 0, total = 0;
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free, &total));
  EXPECT_EQ(size_t{1} << 20, total);
  cudaDeviceProp prop;
  ASSERT_EQ(cudaSuccess, cudaGetDeviceProperties(&prop, 1));
  EXPECT_EQ(total, prop.totalGlobalMem);
  void* p;
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaMalloc(&p, free + 1));
  ASSERT_EQ(cudaSuccess, cudaMalloc(&p, free));
  void* q;
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaMalloc(&q, 1));
  EXPECT_EQ(cudaSuccess, cudaFree(p));
}

TEST(Environment, LazyScheduleRunsOnlyWhatASynchronisationNeeds) {
  cudaStream_t a, b;
  char* pinned;
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  ASSERT_EQ(cudaSuccess, cudaMallocHost(reinterpret_cast<void**>(&pinned), 2));
  pinned[0] = pinned[1] = 0;
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(pinned, 1, 1, a));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(pinned + 1, 1, 1, b));
  int device;
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(cudaSuccess, cudaGetDevice(&device));
  EXPECT_EQ(0, pinned[0]);
  ASSERT_EQ(cudaSuccess, cudaStreamSynchronize(a));
  EXPECT_EQ(1, pinned[0]);
  EXPECT_EQ(0, pinned[1]);
  ASSERT_EQ(cudaSuccess, cudaDeviceSynchronize());
  EXPECT_EQ(1, pinned[1]);
  EXPECT_EQ(cudaSuccess, cudaFreeHost(pinned));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(a));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(b));
}

TEST(Environment, DevicesAreSeparate) {
  int count = 0;
  ASSERT_EQ(cudaSuccess, cudaGetDeviceCount(&count));
  ASSERT_EQ(2, count);
  EXPECT_EQ(cudaErrorInvalidDevice, cudaSetDevice(2));
  size_t free0, free1, total;
  ASSERT_EQ(cudaSuccess, cudaSetDevice(1));
  void* p;
  ASSERT_EQ(cudaSuccess, cudaMalloc(&p, 4096));
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free1, &total));
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaSuccess, cudaPointerGetAttributes(&attributes, p));
  EXPECT_EQ(1, attributes.device);
  cudaStream_t stream;
  ASSERT_EQ(cudaSuccess, cudaStreamCreate(&stream));
  ASSERT_EQ(cudaSuccess, cudaMemsetAsync(p, 1, 4096, stream));
  ASSERT_EQ(cudaSuccess, cudaSetDevice(0));
  ASSERT_EQ(cudaSuccess, cudaMemGetInfo(&free0, &total));
  EXPECT_EQ(free1 + 4096, free0);
  // The legacy stream and the synchronisation of one device do not concern the other.
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(nullptr));
  EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
  EXPECT_EQ(0xA5, *static_cast<unsigned char*>(p));
  int device = -1;
  EXPECT_EQ(cudaSuccess, cudaStreamGetDevice(stream, &device));
  EXPECT_EQ(1, device);
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize(stream));
  EXPECT_EQ(1, *static_cast<unsigned char*>(p));
  EXPECT_EQ(cudaSuccess, cudaFree(p));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
}

TEST(Environment, LogTellsTheSelectedCallsOnStderr) {
  int version;
  testing::internal::CaptureStderr();
  EXPECT_EQ(cudaSuccess, cudaRuntimeGetVersion(&version));
  EXPECT_EQ(cudaSuccess, cudaDriverGetVersion(&version));
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(std::string::npos, text.find("cudaRuntimeGetVersion() -> 0 cudaSuccess"));
  EXPECT_EQ(std::string::npos, text.find("cudaDriverGetVersion"));
}

}  // namespace
