// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// device_test.h: the fixture of tests that need a CUDA device, simulated or real.
#ifndef GCAP_TEST_SUPPORT_DEVICE_TEST_H_
#define GCAP_TEST_SUPPORT_DEVICE_TEST_H_

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace gcap {
namespace testing {

// Why no device can be used; empty when there is one.
inline std::string NoDeviceReason() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return "";
  (void)cudaGetLastError();
  return error == cudaSuccess ? "no CUDA device" : std::string("no CUDA device: ") + cudaGetErrorString(error);
}

// Skips where there is no device; with GCAP_REQUIRE_GPU=1 fails instead. A fixture that overrides SetUp calls this one
// first and returns when IsSkipped() or HasFatalFailure(); its TearDown is called all the same.
class DeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = NoDeviceReason();
    if (reason.empty()) return;
    const char* required = std::getenv("GCAP_REQUIRE_GPU");
    if (required != nullptr && std::strcmp(required, "1") == 0) {
      FAIL() << reason << ", and GCAP_REQUIRE_GPU is 1";
    }
    GTEST_SKIP() << reason;
  }
};

}  // namespace testing
}  // namespace gcap

#endif  // GCAP_TEST_SUPPORT_DEVICE_TEST_H_
