// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The simulator's headers against NVIDIA's: every constant, size and offset.
#include <gtest/gtest.h>

#include <cstring>

#include "test/cuda_abi/abi_table.h"

namespace {

TEST(CudaAbi, NumbersEqualThoseOfTheToolkit) {
  ASSERT_EQ(gcap_abi_real_count, gcap_abi_sim_count);
  for (size_t i = 0; i < gcap_abi_sim_count; ++i) {
    ASSERT_STREQ(gcap_abi_real[i].name, gcap_abi_sim[i].name);
    EXPECT_EQ(gcap_abi_real[i].value, gcap_abi_sim[i].value) << gcap_abi_sim[i].name;
    EXPECT_EQ(gcap_abi_real[i].bytes, gcap_abi_sim[i].bytes) << gcap_abi_sim[i].name << " (size)";
  }
}

TEST(CudaAbi, TablesAreNotTheSameHeaderTwice) {
  // Known numbers that no header of ours computes: 1008 bytes and the code of an invalidated capture.
  auto find = [](const char* name) -> long long {
    for (size_t i = 0; i < gcap_abi_real_count; ++i) {
      if (strcmp(gcap_abi_real[i].name, name) == 0) return gcap_abi_real[i].value;
    }
    return -1;
  };
  EXPECT_EQ(901, find("cudaErrorStreamCaptureInvalidated"));
  EXPECT_EQ(1008, find("struct cudaDeviceProp"));
}

}  // namespace
