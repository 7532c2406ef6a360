// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Questions about the order of streams take no lock while nothing moves: the linker sends the locks to a counter. A
// move that was not begun, or not ended, sends each question to the lock from then on.

#include <pthread.h>

#include <vector>

#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace {

thread_local int locks = 0;

}  // namespace

extern "C" {

int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  ++locks;
  return __real_pthread_mutex_lock(mutex);
}

}  // extern "C"

namespace {

using TimelineLock = gcap::testing::DeviceTest;

void Wait(gcap_stream_t* consumer, gcap_stream_t* producer) {
  gcap_notification_t* notification = nullptr;
  GCAP_ASSERT_OK(gcap_notification_create(producer, &notification));
  GCAP_EXPECT_OK(gcap_notification_record(notification));
  GCAP_EXPECT_OK(gcap_notification_wait(notification, consumer));
  gcap_notification_destroy(notification);
}

TEST_F(TimelineLock, AQuestionTakesNoneWhateverWasLearnedOrForgotten) {
  constexpr size_t kProducers = 40;  // what is known grows, and moves
  gcap_stream_t* consumer = nullptr;
  std::vector<gcap_stream_t*> producers(kProducers);
  for (gcap_stream_t*& producer : producers) GCAP_ASSERT_OK(gcap_stream_create(0, &producer));
  GCAP_ASSERT_OK(gcap_stream_create(0, &consumer));
  for (size_t i = kProducers; i-- > 0;) {
    Wait(consumer, producers[i]);
    if (i % 4 == 0) {  // which is forgotten when there is no room
      GCAP_EXPECT_OK(gcap_stream_destroy(producers[i]));
      producers[i] = nullptr;
    }
    locks = 0;
    for (size_t j = 0; j < kProducers; ++j) {
      if (producers[j] == nullptr) continue;
      EXPECT_EQ(gcap_stream_has_waited(consumer, producers[j], 0), j >= i);
    }
    EXPECT_EQ(locks, 0) << i;
  }
  for (gcap_stream_t* producer : producers) GCAP_EXPECT_OK(gcap_stream_destroy(producer));
  GCAP_EXPECT_OK(gcap_stream_destroy(consumer));
}

}  // namespace
