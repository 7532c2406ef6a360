// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A scope in a process that has no key for threads left: an exit of its thread would go unnoticed; and forks of a
// process that used scopes alone. A process of its own, since the key is made once.

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

using CaptureKeys = DeviceTest;

TEST_F(CaptureKeys, WithoutAKeyForThreadsABeginIsRefused) {
  const RawStream stream;
  pthread_key_t key;
  while (pthread_key_create(&key, nullptr) == 0) continue;
  gcap_capture_t* capture = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_begin(stream.get(), nullptr, &capture), GCAP_RESOURCE_EXHAUSTED,
                    "pthread_key_create failed");
  EXPECT_EQ(capture, nullptr);
  EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusNone);
}

// Nothing else of gcap was used.
TEST_F(CaptureKeys, AChildOfAProcessThatOnlyBeganACaptureIsRefused) {
  const RawStream stream;
  gcap_capture_t* capture = nullptr;
  gcap_status_ignore(gcap_capture_begin(stream.get(), nullptr, &capture));
  gcap_capture_abort(capture);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Outcome outcome(gcap_capture_begin(stream.get(), nullptr, &capture));
    _exit(outcome.code == GCAP_FAILED_PRECONDITION && outcome.Names("forked") ? 0 : 1);
  }
  int answer = -1;
  ASSERT_EQ(waitpid(child, &answer, 0), child);
  EXPECT_EQ(answer, 0);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
