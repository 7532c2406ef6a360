// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Signals to gcap-doctor while it reports, by a clock of the test's: what comes right after another one is one with it.
#include "doctor/command/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "doctor/base/clock.h"
#include "doctor/command/options.h"

namespace {

uint64_t now_ns = 1000000000;
int looked[2];  // a byte for each look at the clock

class Child : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(pipe(looked), 0);
    gcap_doctor_child_signals_take(&signals_);
  }

  // A program that has this process signalled, and gets the signal from it.
  void SetUp() override {
    char sh[] = "sh", c[] = "-c", line[] = "kill -s TERM $PPID; exec sleep 3600";
    char* arguments[] = {sh, c, line, nullptr};
    bool has_started = false;
    ASSERT_EQ(gcap_doctor_child_run(&signals_, arguments, &has_started), 128 + SIGTERM);
    AwaitLook();
  }

  static void AwaitLook() {
    char byte;
    ASSERT_EQ(read(looked[0], &byte, 1), 1);
  }

  static gcap_doctor_child_signals_t signals_;
};

gcap_doctor_child_signals_t Child::signals_;

TEST_F(Child, SignalRightAfterAnotherLeavesTheReport) {
  const auto report = [](void*) {
    // What the first one does is done when the second one is taken.
    for (int i = 0; i < 2; ++i) {
      kill(getppid(), SIGTERM);
      AwaitLook();
    }
    return 5;
  };
  EXPECT_EQ(gcap_doctor_child_call(&signals_, report, nullptr), 5);
}

TEST_F(Child, SignalAfterAWhileEndsTheReport) {
  now_ns += 1000000000;
  const auto report = [](void*) {
    kill(getppid(), SIGTERM);
    for (;;) pause();
    return 5;
  };
  EXPECT_EQ(gcap_doctor_child_call(&signals_, report, nullptr), 128 + SIGTERM);
}

}  // namespace

uint64_t gcap_doctor_clock_now_ns(void) {
  EXPECT_EQ(write(looked[1], "", 1), 1);
  return now_ns;
}

void gcap_doctor_say(const char* format, ...) { ADD_FAILURE() << format; }
