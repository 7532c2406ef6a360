// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The gate between captures and waits for a whole device.

#include "lib/internal/capture_gate.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "test/base/device_work.h"

namespace gcap {
namespace testing {
namespace {

TEST(CaptureGate, StaysOpenWhileAScopeIsInside) {
  gcap_capture_gate_enter();
  gcap_capture_gate_enter();
  EXPECT_EQ(gcap_capture_gate_num_inside(), 2u);
  EXPECT_FALSE(gcap_capture_gate_try_close());
  gcap_capture_gate_leave();
  EXPECT_FALSE(gcap_capture_gate_try_close());
  gcap_capture_gate_leave();
  EXPECT_TRUE(gcap_capture_gate_try_close());
  gcap_capture_gate_open();
}

TEST(CaptureGate, HoldsScopesBackUntilTheLastWhoClosedItOpensIt) {
  ASSERT_TRUE(gcap_capture_gate_try_close());
  ASSERT_TRUE(gcap_capture_gate_try_close());
  std::atomic<bool> inside{false};
  std::thread scope([&] {
    gcap_capture_gate_enter();
    inside = true;
    gcap_capture_gate_leave();
  });
  gcap_capture_gate_open();
  std::this_thread::sleep_for(kPatience);
  EXPECT_FALSE(inside);
  gcap_capture_gate_open();
  scope.join();
  EXPECT_TRUE(inside);
  EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
}

// Else those who close it in turn would keep a scope out for ever.
TEST(CaptureGate, IsNotClosedAgainWhileAScopeWaits) {
  ASSERT_TRUE(gcap_capture_gate_try_close());
  std::thread scope([] {
    gcap_capture_gate_enter();
    gcap_capture_gate_leave();
  });
  int closings = 0;
  while (gcap_capture_gate_try_close()) {
    ++closings;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (int i = 0; i <= closings; ++i) gcap_capture_gate_open();
  scope.join();
  EXPECT_TRUE(gcap_capture_gate_try_close());
  gcap_capture_gate_open();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
