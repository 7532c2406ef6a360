// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a program gets of the driver, and of its kernels, that a record of one GPU does not cover.
#include <gtest/gtest.h>

#include "cuda_runtime.h"
#include "gcap_sim.h"

namespace {

using GetAttribute = int (*)(void*, int, unsigned long long);

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

TEST(Driver, AFaultOfTheRuntimeHitsNoFunctionOfTheDriver) {
  void* memory = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(cudaSuccess, cudaMalloc(&memory, 64));
  const GetAttribute get = Entry();
  gcap_sim_fail_nth(nullptr, 1, cudaErrorUnknown);
  EXPECT_EQ(0, get(&bytes, 12, reinterpret_cast<uintptr_t>(memory)));
  EXPECT_EQ(64u, bytes);
  gcap_sim_clear_faults();
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
  }
}

}  // namespace
