// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a program gets of the driver, and of its kernels, that a record of one GPU does not cover.
#include <gtest/gtest.h>

#include "cuda_runtime.h"
#include "gcap_sim.h"
#include "test/sim/driver_abi.h"

namespace gcap::testing {
namespace {

GetAttribute Entry() {
  void* function = nullptr;
  EXPECT_EQ(cudaSuccess, cudaGetDriverEntryPoint("cuPointerGetAttribute", &function, cudaEnableDefault));
  return reinterpret_cast<GetAttribute>(function);
}

TEST(Driver, TheOldWayGivesTheSameFunctions) {
  void *old_way = nullptr, *none = &old_way;
  cudaDriverEntryPointQueryResult status;
  ASSERT_EQ(cudaSuccess,
            cudaGetDriverEntryPointByVersion("cuPointerGetAttribute", &old_way, 13000, cudaEnableDefault, &status));
  EXPECT_EQ(reinterpret_cast<GetAttribute>(old_way), Entry());
  EXPECT_EQ(cudaSuccess, cudaGetDriverEntryPoint("cuMemAlloc_v2", &none, cudaEnableDefault, &status));
  EXPECT_EQ(cudaDriverEntryPointSymbolNotFound, status);
  EXPECT_EQ(nullptr, none);
}

TEST(DriverDeathTest, AnAttributeThatIsNotModelledStopsTheProgram) {
  void* memory = nullptr;
  unsigned long long value[8];
  ASSERT_EQ(cudaSuccess, cudaMalloc(&memory, 64));
  const GetAttribute get = Entry();
  EXPECT_DEATH(get(value, 1, reinterpret_cast<uintptr_t>(memory)), "attribute 1 is not modelled");
  EXPECT_EQ(cudaSuccess, cudaFree(memory));
}

TEST(Driver, AFaultHitsAFunctionOfTheDriverByItsNameAndAsAnyCall) {
  void* memory = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(cudaSuccess, cudaMalloc(&memory, 64));
  const GetAttribute get = Entry();
  const uint64_t calls = gcap_sim_calls("cuPointerGetAttribute");
  for (const char* name : {static_cast<const char*>(nullptr), "cuPointerGetAttribute"}) {
    gcap_sim_fail_nth(name, 1, cudaErrorUnknown);
    EXPECT_EQ(999, get(&bytes, 12, reinterpret_cast<uintptr_t>(memory)));
    EXPECT_EQ(0u, bytes);
    EXPECT_EQ(cudaSuccess, cudaGetLastError());  // the runtime's, which knows nothing of it
  }
  EXPECT_EQ(0, get(&bytes, 12, reinterpret_cast<uintptr_t>(memory)));
  EXPECT_EQ(64u, bytes);
  EXPECT_EQ(calls + 3, gcap_sim_calls("cuPointerGetAttribute"));
  EXPECT_EQ(cudaSuccess, cudaFree(memory));
}

char g_stub;

TEST(Driver, ParametersLieAtMultiplesOfTheirSizes) {
  static const size_t kBytes[] = {1, 4, 2, 8, 12, 24};
  const gcap_sim_kernel_t kernel = {&g_stub, "k", kBytes, 6, [](const gcap_sim_launch_t*, void* const*) {}, nullptr};
  gcap_sim_register_kernel(&kernel);
  const size_t places[] = {0, 4, 8, 16, 24, 40};
  for (size_t i = 0; i < 6; ++i) {
    size_t offset = 77, bytes = 77;
    ASSERT_EQ(cudaSuccess, cudaFuncGetParamInfo(&g_stub, i, &offset, &bytes));
    EXPECT_EQ(places[i], offset) << i;
    EXPECT_EQ(kBytes[i], bytes) << i;
    offset = bytes = 77;
    for (const char* name : {"cuFuncGetParamInfo", "cuKernelGetParamInfo"}) {
      EXPECT_EQ(0, DriverEntry<GetParam>(name)(&g_stub, i, &offset, &bytes));
      EXPECT_EQ(places[i], offset) << i;
      EXPECT_EQ(kBytes[i], bytes) << i;
    }
  }
}

TEST(Driver, OfWhatIsNoKernelNothingIsTold) {
  int no_kernel = 0;
  size_t offset = 0;
  const char* name = nullptr;
  for (const char* entry : {"cuFuncGetParamInfo", "cuKernelGetParamInfo"}) {
    EXPECT_EQ(400, DriverEntry<GetParam>(entry)(&no_kernel, 0, &offset, nullptr));
    EXPECT_EQ(400, DriverEntry<GetParam>(entry)(nullptr, 0, &offset, nullptr));
    EXPECT_EQ(1, DriverEntry<GetParam>(entry)(&g_stub, 6, &offset, nullptr));
    EXPECT_EQ(1, DriverEntry<GetParam>(entry)(&g_stub, 0, nullptr, nullptr));
    EXPECT_EQ(0, DriverEntry<GetParam>(entry)(&g_stub, 5, &offset, nullptr));
  }
  for (const char* entry : {"cuFuncGetName", "cuKernelGetName"}) {
    EXPECT_EQ(400, DriverEntry<GetName>(entry)(&name, &no_kernel));
    EXPECT_EQ(1, DriverEntry<GetName>(entry)(nullptr, &g_stub));
    EXPECT_EQ(0, DriverEntry<GetName>(entry)(&name, &g_stub));
    EXPECT_STREQ("k", name);
    name = nullptr;
  }
}

// --- Reserved addresses ---------------------------------------------------------------------------------------------

constexpr size_t kUnit = size_t{2} << 20;

class Reserved : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(0, reserve_(&range_, kUnit, 0, 0, 0)); }
  void TearDown() override {
    EXPECT_EQ(0, unreserve_(range_, kUnit));
    EXPECT_EQ(0u, gcap_sim_live("reserved address range"));
  }

  const Reserve reserve_ = DriverEntry<Reserve>("cuMemAddressReserve");
  const Unreserve unreserve_ = DriverEntry<Unreserve>("cuMemAddressFree");
  uintptr_t range_ = 0;
};

TEST_F(Reserved, WhatCannotBeReservedIsRefused) {
  uintptr_t other = 77;
  for (size_t bytes : {size_t{0}, size_t{4096}, kUnit + 1, kUnit / 2 * 3}) {
    EXPECT_EQ(1, reserve_(&other, bytes, 0, 0, 0)) << bytes;
  }
  EXPECT_EQ(1, reserve_(&other, kUnit, 3, 0, 0));
  EXPECT_EQ(1, reserve_(&other, kUnit, 0, 0, 1));
  EXPECT_EQ(1, reserve_(nullptr, kUnit, 0, 0, 0));
  EXPECT_EQ(2, reserve_(&other, SIZE_MAX / kUnit * kUnit, 0, 0, 0));
  EXPECT_EQ(2, reserve_(&other, size_t{1} << 50, 0, 0, 0));
  EXPECT_EQ(77u, other);
  EXPECT_EQ(1, unreserve_(range_, 2 * kUnit));
  EXPECT_EQ(1, unreserve_(range_ + 4096, kUnit));
  EXPECT_EQ(1, unreserve_(0, kUnit));
  EXPECT_EQ(1u, gcap_sim_live("reserved address range"));
}

TEST_F(Reserved, RangesAreAlignedAndApart) {
  uintptr_t ranges[3] = {};
  const size_t alignments[] = {4096, kUnit, 8 * kUnit};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(0, reserve_(&ranges[i], 3 * kUnit, alignments[i], 0, 0));
    EXPECT_EQ(0u, ranges[i] % alignments[i]);
    EXPECT_EQ(0u, ranges[i] % kUnit);
    for (int j = 0; j < i; ++j) EXPECT_TRUE(ranges[i] >= ranges[j] + 3 * kUnit || ranges[j] >= ranges[i] + 3 * kUnit);
  }
  for (uintptr_t range : ranges) EXPECT_EQ(0, unreserve_(range, 3 * kUnit));
  uintptr_t large = 0;
  ASSERT_EQ(0, reserve_(&large, size_t{64} << 30, 0, 0, 0));
  EXPECT_EQ(0, unreserve_(large, size_t{64} << 30));
}

TEST_F(Reserved, AnAddressOfIsNoMemory) {
  void* inside = reinterpret_cast<void*>(range_ + 100);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaSuccess, cudaPointerGetAttributes(&attributes, inside));
  EXPECT_EQ(cudaMemoryTypeUnregistered, attributes.type);
  EXPECT_EQ(-2, attributes.device);
  EXPECT_EQ(nullptr, attributes.devicePointer);
  EXPECT_EQ(nullptr, attributes.hostPointer);
  size_t value[2] = {};
  for (int attribute : {7, 11, 12}) EXPECT_EQ(1, Entry()(value, attribute, range_)) << attribute;
  EXPECT_NE(cudaSuccess, cudaHostRegister(inside, 100, 0));
  (void)cudaGetLastError();
}

TEST_F(Reserved, ACaptureTakesFillsAndRefusesCopiesThatSayWhereTo) {
  char host[64] = {};
  void* const nowhere = reinterpret_cast<void*>(range_);
  void* memory = nullptr;
  cudaStream_t stream;
  cudaGraph_t graph;
  ASSERT_EQ(cudaSuccess, cudaMalloc(&memory, 64));
  ASSERT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpyAsync(nowhere, memory, 64, cudaMemcpyDeviceToDevice, stream));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpyAsync(nowhere, host, 64, cudaMemcpyHostToDevice, stream));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpy2DAsync(nowhere, 64, memory, 64, 32, 2, cudaMemcpyDeviceToDevice, stream));
  EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(nowhere, memory, 64, cudaMemcpyDefault, stream));
  EXPECT_EQ(cudaSuccess, cudaMemsetAsync(nowhere, 1, 64, stream));
  EXPECT_EQ(cudaSuccess, cudaMemset2DAsync(nowhere, 64, 1, 32, 2, stream));
  uintptr_t other = 0;
  EXPECT_EQ(0, reserve_(&other, kUnit, 0, 0, 0));
  EXPECT_EQ(0, unreserve_(other, kUnit));
  ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  EXPECT_EQ(cudaSuccess, cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(3u, nodes);
  (void)cudaGetLastError();
  EXPECT_EQ(cudaSuccess, cudaGraphDestroy(graph));
  EXPECT_EQ(cudaSuccess, cudaStreamDestroy(stream));
  EXPECT_EQ(cudaSuccess, cudaFree(memory));
}

TEST_F(Reserved, FaultsHitBothFunctions) {
  uintptr_t other = 0;
  gcap_sim_fail_nth("cuMemAddressReserve", 1, cudaErrorMemoryAllocation);
  EXPECT_EQ(2, reserve_(&other, kUnit, 0, 0, 0));
  gcap_sim_fail_nth("cuMemAddressFree", 1, cudaErrorUnknown);
  EXPECT_EQ(999, unreserve_(range_, kUnit));
  EXPECT_EQ(1u, gcap_sim_live("reserved address range"));
}

TEST_F(Reserved, WhatIsLeftIsALeak) {
  uintptr_t other = 0;
  (void)gcap_sim_check();
  ASSERT_EQ(0, reserve_(&other, kUnit, 0, 0, 0));
  EXPECT_EQ(1u, gcap_sim_check());
  const std::string report = gcap_sim_report(0);
  EXPECT_NE(std::string::npos, report.find("leak of 1 of the kind \"reserved address range\"")) << report;
  EXPECT_NE(std::string::npos, report.find("made by cuMemAddressReserve")) << report;
  EXPECT_EQ(0, unreserve_(other, kUnit));
  EXPECT_EQ(0u, gcap_sim_check());
}

void CopyTo(uintptr_t address) {
  char host[64] = {};
  (void)cudaMemcpy(reinterpret_cast<void*>(address), host, 64, cudaMemcpyDefault);
}

TEST_F(Reserved, ACopyByTheHostStopsTheProgram) {
  EXPECT_DEATH(CopyTo(range_), "64 bytes at .* for a copy are no memory of this process");
}

}  // namespace
}  // namespace gcap::testing
