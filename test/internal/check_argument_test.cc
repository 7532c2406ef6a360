// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "lib/internal/check_argument.h"

#include <climits>
#include <string>

#include "gtest/gtest.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

gcap_status_t TakesTwo(const int* first, void (*second)()) {
  GCAP_RETURN_IF_NULL(first);
  GCAP_RETURN_IF_NULL(second);
  return nullptr;
}

TEST(CheckArgument, NamesTheFunctionAndTheArgumentThatIsNull) {
  const int value = 0;
  GCAP_EXPECT_OK(TakesTwo(&value, [] {}));
  GCAP_EXPECT_FAILS(TakesTwo(nullptr, [] {}), GCAP_INVALID_ARGUMENT, "TakesTwo: first is NULL");
  GCAP_EXPECT_FAILS(TakesTwo(&value, nullptr), GCAP_INVALID_ARGUMENT, "TakesTwo: second is NULL");
}

using CheckDevice = DeviceTest;

TEST_F(CheckDevice, KnowsTheDevicesOfTheMachine) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  for (int device_id = 0; device_id < count; ++device_id) GCAP_EXPECT_OK(gcap_check_device(device_id));
  const std::string allowed = "this machine has devices 0.." + std::to_string(count - 1);
  for (const int device_id : {-1, count, INT_MAX, INT_MIN}) {
    GCAP_EXPECT_FAILS(gcap_check_device(device_id), GCAP_INVALID_ARGUMENT,
                      "device_id is " + std::to_string(device_id) + ", " + allowed);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
