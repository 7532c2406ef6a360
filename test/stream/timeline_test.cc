// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

class Timeline : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (gcap_stream_t*& stream : streams_) GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  }
  void TearDown() override {
    for (gcap_stream_t* stream : streams_) GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    DeviceTest::TearDown();
  }

  gcap_stream_t* stream(int i) { return streams_[i]; }

  static gcap_notification_t* Recorded(gcap_stream_t* producer) {
    gcap_notification_t* notification = nullptr;
    GCAP_EXPECT_OK(gcap_notification_create(producer, &notification));
    GCAP_EXPECT_OK(gcap_notification_record(notification));
    return notification;
  }

  // `consumer` waits for all that `producer` was given.
  static void Wait(gcap_stream_t* consumer, gcap_stream_t* producer) {
    gcap_notification_t* notification = Recorded(producer);
    GCAP_EXPECT_OK(gcap_notification_wait(notification, consumer));
    gcap_notification_destroy(notification);
  }

  static void EndCapture(gcap_stream_t* stream) {
    cudaGraph_t graph = nullptr;
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(gcap_stream_handle(stream), &graph));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  }

 private:
  gcap_stream_t* streams_[4] = {};
};

TEST_F(Timeline, StartsAtZeroAndCountsNotificationsAndSynchronisations) {
  EXPECT_EQ(gcap_stream_sync_id(stream(0)), 0u);
  gcap_notification_t* notification = Recorded(stream(0));
  EXPECT_EQ(gcap_stream_sync_id(stream(0)), 1u);
  GCAP_EXPECT_OK(gcap_notification_record(notification));
  EXPECT_EQ(gcap_stream_sync_id(stream(0)), 2u);
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream(0)));
  EXPECT_EQ(gcap_stream_sync_id(stream(0)), 3u);
  GCAP_EXPECT_OK(gcap_notification_wait(notification, stream(1)));
  EXPECT_EQ(gcap_stream_sync_id(stream(0)), 3u);
  EXPECT_EQ(gcap_stream_sync_id(stream(1)), 0u);
  gcap_notification_destroy(notification);
}

TEST_F(Timeline, AStreamComesAfterItself) {
  EXPECT_TRUE(gcap_stream_has_waited(stream(0), stream(0), 0));
  EXPECT_TRUE(gcap_stream_has_waited(stream(0), stream(0), gcap_stream_sync_id(stream(0))));
}

TEST_F(Timeline, TwoWrappersOfOneStreamComeAfterEachOther) {
  gcap_stream_t* wrapper = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(gcap_stream_handle(stream(0)), GCAP_STREAM_USER, 0, 0, &wrapper));
  EXPECT_TRUE(gcap_stream_has_waited(wrapper, stream(0), 0));
  EXPECT_TRUE(gcap_stream_has_waited(stream(0), wrapper, 0));
  EXPECT_FALSE(gcap_stream_has_waited(wrapper, stream(1), 0));
  EXPECT_FALSE(gcap_stream_has_finished(stream(0), 0)) << "in order is not done";
  GCAP_EXPECT_OK(gcap_stream_destroy(wrapper));
}

TEST_F(Timeline, WaitingOrdersWhatWasIssuedBeforeTheNotification) {
  EXPECT_FALSE(gcap_stream_has_waited(stream(1), stream(0), 0));
  gcap_notification_t* notification = Recorded(stream(0));
  EXPECT_FALSE(gcap_stream_has_waited(stream(1), stream(0), 0)) << "recorded is not waited for";
  GCAP_EXPECT_OK(gcap_notification_wait(notification, stream(1)));
  EXPECT_TRUE(gcap_stream_has_waited(stream(1), stream(0), 0));
  gcap_notification_destroy(notification);
}

TEST_F(Timeline, WaitingDoesNotOrderWhatWasIssuedAfterTheNotification) {
  gcap_notification_t* notification = Recorded(stream(0));
  const uint64_t after = gcap_stream_sync_id(stream(0));
  GCAP_EXPECT_OK(gcap_notification_wait(notification, stream(1)));
  EXPECT_FALSE(gcap_stream_has_waited(stream(1), stream(0), after));
  gcap_notification_destroy(notification);
}

TEST_F(Timeline, WaitingIsNotMutual) {
  Wait(stream(1), stream(0));
  EXPECT_FALSE(gcap_stream_has_waited(stream(0), stream(1), 0));
}

TEST_F(Timeline, WaitingTellsNothingOfThirdStreams) {
  Wait(stream(1), stream(0));
  EXPECT_FALSE(gcap_stream_has_waited(stream(1), stream(2), 0));
  EXPECT_FALSE(gcap_stream_has_waited(stream(2), stream(0), 0));
}

TEST_F(Timeline, WaitingIsTransitive) {
  Wait(stream(1), stream(0));
  Wait(stream(2), stream(1));
  Wait(stream(3), stream(2));
  EXPECT_TRUE(gcap_stream_has_waited(stream(3), stream(0), 0));
  EXPECT_TRUE(gcap_stream_has_waited(stream(3), stream(1), 0));
}

TEST_F(Timeline, ANotificationKnowsOnlyWhatItsProducerKnewWhenItWasRecorded) {
  gcap_notification_t* early = Recorded(stream(1));
  Wait(stream(1), stream(0));
  GCAP_EXPECT_OK(gcap_notification_wait(early, stream(2)));
  EXPECT_TRUE(gcap_stream_has_waited(stream(2), stream(1), 0));
  EXPECT_FALSE(gcap_stream_has_waited(stream(2), stream(0), 0));
  GCAP_EXPECT_OK(gcap_notification_record(early));
  GCAP_EXPECT_OK(gcap_notification_wait(early, stream(2)));
  EXPECT_TRUE(gcap_stream_has_waited(stream(2), stream(0), 0));
  gcap_notification_destroy(early);
}

TEST_F(Timeline, AnOlderWaitTakesNoKnowledgeAway) {
  gcap_notification_t* older = Recorded(stream(0));
  const uint64_t between = gcap_stream_sync_id(stream(0));
  gcap_notification_t* newer = Recorded(stream(0));
  GCAP_EXPECT_OK(gcap_notification_wait(newer, stream(1)));
  GCAP_EXPECT_OK(gcap_notification_wait(older, stream(1)));
  EXPECT_TRUE(gcap_stream_has_waited(stream(1), stream(0), between));
  gcap_notification_destroy(older);
  gcap_notification_destroy(newer);
}

TEST_F(Timeline, SynchronisingTheProducerOrdersItForEverybody) {
  const uint64_t before = gcap_stream_sync_id(stream(0));
  EXPECT_FALSE(gcap_stream_has_finished(stream(0), before));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream(0)));
  EXPECT_TRUE(gcap_stream_has_finished(stream(0), before));
  EXPECT_TRUE(gcap_stream_has_waited(stream(1), stream(0), before));
  const uint64_t after = gcap_stream_sync_id(stream(0));
  EXPECT_FALSE(gcap_stream_has_finished(stream(0), after));
  EXPECT_FALSE(gcap_stream_has_waited(stream(1), stream(0), after));
}

TEST_F(Timeline, WaitingOnTheHostFinishesWhatWasIssuedBeforeTheNotification) {
  CopyJob job;
  job.set_input(8);
  GCAP_EXPECT_CUDA(job.Issue(gcap_stream_handle(stream(0))));
  gcap_notification_t* notification = Recorded(stream(0));
  EXPECT_FALSE(gcap_stream_has_finished(stream(0), 0));
  GCAP_EXPECT_OK(gcap_notification_wait_on_host(notification));
  EXPECT_EQ(job.output(), 8);
  EXPECT_TRUE(gcap_stream_has_finished(stream(0), 0));
  EXPECT_TRUE(gcap_stream_has_waited(stream(1), stream(0), 0));
  EXPECT_FALSE(gcap_stream_has_finished(stream(0), gcap_stream_sync_id(stream(0))));
  gcap_notification_destroy(notification);
}

TEST_F(Timeline, SynchronisingFinishesWhatTheStreamHadWaitedFor) {
  Wait(stream(1), stream(0));
  Wait(stream(2), stream(1));
  const uint64_t later = gcap_stream_sync_id(stream(0));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream(2)));
  EXPECT_TRUE(gcap_stream_has_finished(stream(1), 0));
  EXPECT_TRUE(gcap_stream_has_finished(stream(0), 0));
  EXPECT_TRUE(gcap_stream_has_waited(stream(3), stream(0), 0));
  EXPECT_FALSE(gcap_stream_has_finished(stream(0), later)) << "given after the point that was waited for";
  EXPECT_FALSE(gcap_stream_has_finished(stream(3), 0));
}

TEST_F(Timeline, WaitingOnTheHostFinishesWhatTheProducerHadWaitedFor) {
  Wait(stream(1), stream(0));
  gcap_notification_t* notification = Recorded(stream(1));
  Wait(stream(1), stream(2));  // too late to be part of it
  GCAP_EXPECT_OK(gcap_notification_wait_on_host(notification));
  EXPECT_TRUE(gcap_stream_has_finished(stream(0), 0));
  EXPECT_FALSE(gcap_stream_has_finished(stream(2), 0));
  gcap_notification_destroy(notification);
}

TEST_F(Timeline, AnOlderHostWaitTakesNothingBack) {
  gcap_notification_t* notification = Recorded(stream(0));
  const uint64_t later = gcap_stream_sync_id(stream(0));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream(0)));
  GCAP_EXPECT_OK(gcap_notification_wait_on_host(notification));
  EXPECT_TRUE(gcap_stream_has_finished(stream(0), later));
  gcap_notification_destroy(notification);
}

TEST_F(Timeline, AnEndedProducerLeavesTheOthersKnowledgeInOrder) {
  gcap_stream_t* ended = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &ended));
  Wait(stream(3), ended);
  Wait(stream(3), stream(0));
  Wait(stream(3), stream(1));
  GCAP_EXPECT_OK(gcap_stream_destroy(ended));
  EXPECT_TRUE(gcap_stream_has_waited(stream(3), stream(0), 0));
  EXPECT_TRUE(gcap_stream_has_waited(stream(3), stream(1), 0));
  EXPECT_FALSE(gcap_stream_has_waited(stream(3), stream(2), 0));
}

TEST_F(Timeline, ANewStreamIsNotMistakenForAnEndedOne) {
  // Heap addresses come back at once; knowledge of the old stream must not.
  for (int round = 0; round < 32; ++round) {
    gcap_stream_t* producer = nullptr;
    GCAP_ASSERT_OK(gcap_stream_create(0, &producer));
    EXPECT_FALSE(gcap_stream_has_waited(stream(0), producer, 0));
    Wait(stream(0), producer);
    EXPECT_TRUE(gcap_stream_has_waited(stream(0), producer, 0));
    GCAP_EXPECT_OK(gcap_stream_destroy(producer));
  }
}

TEST_F(Timeline, WaitingReallyOrdersTheDevicesWork) {
  Gate gate;
  CopyJob first;
  CopyJob second;
  gate.Hold(gcap_stream_handle(stream(0)));
  GCAP_EXPECT_CUDA(first.Issue(gcap_stream_handle(stream(0))));
  Wait(stream(1), stream(0));
  GCAP_EXPECT_CUDA(second.Issue(gcap_stream_handle(stream(1))));
  EXPECT_EQ(cudaStreamQuery(gcap_stream_handle(stream(1))), cudaErrorNotReady);
  EXPECT_EQ(second.output(), -1);
  gate.Open();
  first.set_input(1);
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream(1)));
  EXPECT_NE(first.output(), -1) << "the consumer went ahead of its producer";
  EXPECT_EQ(second.output(), 0);
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream(0)));
}

TEST_F(Timeline, ANotificationNeverRecordedCannotBeWaitedFor) {
  gcap_notification_t* notification = nullptr;
  GCAP_ASSERT_OK(gcap_notification_create(stream(0), &notification));
  GCAP_EXPECT_FAILS(gcap_notification_wait(notification, stream(1)), GCAP_FAILED_PRECONDITION, "never recorded");
  GCAP_EXPECT_FAILS(gcap_notification_wait_on_host(notification), GCAP_FAILED_PRECONDITION, "never recorded");
  EXPECT_FALSE(gcap_stream_has_waited(stream(1), stream(0), 0));
  gcap_notification_destroy(notification);
  gcap_notification_destroy(nullptr);
}

TEST_F(Timeline, InACaptureANotificationIsAnEdge) {
  const cudaStream_t origin = gcap_stream_handle(stream(0));
  CopyJob forked;
  gcap_notification_t* fork = nullptr;
  gcap_notification_t* join = nullptr;
  GCAP_ASSERT_OK(gcap_notification_create(stream(0), &fork));
  GCAP_ASSERT_OK(gcap_notification_create(stream(1), &join));
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_OK(gcap_notification_record(fork));
  GCAP_EXPECT_OK(gcap_notification_wait(fork, stream(1)));
  GCAP_EXPECT_CUDA(forked.Issue(gcap_stream_handle(stream(1))));
  GCAP_EXPECT_OK(gcap_notification_record(join));
  GCAP_EXPECT_OK(gcap_notification_wait(join, stream(0)));
  GCAP_EXPECT_FAILS(gcap_notification_wait_on_host(fork), GCAP_FAILED_PRECONDITION, "capture");
  GCAP_EXPECT_FAILS(gcap_notification_wait_on_host(join), GCAP_FAILED_PRECONDITION, "capture");
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(origin, &graph), cudaSuccess);
  size_t nodes = 0;
  GCAP_EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, CopyJob::kNodes);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  gcap_notification_destroy(fork);
  gcap_notification_destroy(join);
}

TEST_F(Timeline, TheLedgerOfAScopeHasWhatIsRecordedAndWaitedFor) {
  gcap_notification_t* notification = nullptr;
  GCAP_ASSERT_OK(gcap_notification_create(stream(0), &notification));
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream(0)), nullptr, &capture));
  GCAP_EXPECT_OK(gcap_notification_record(notification));
  GCAP_EXPECT_OK(gcap_notification_wait(notification, stream(1)));
  gcap_capture_call_t calls[16];
  const size_t count = gcap_capture_get_calls(capture, calls, 16);
  std::string text;
  for (size_t i = 0; i < count && i < 16; ++i) text += std::string(calls[i].operation) + "; ";
  const size_t recorded = text.find("gcap_notification_record; "), waited = text.find("gcap_notification_wait; ");
  EXPECT_NE(waited, std::string::npos) << text;
  EXPECT_LT(recorded, waited) << text;
  gcap_capture_abort(capture);
  gcap_notification_destroy(notification);
}

TEST_F(Timeline, InACaptureAWaitOrdersNoEagerWork) {
  // The graph's nodes are ordered, but neither stream's eager work ever waits for the other's (rule R25).
  gcap_notification_t* fork = nullptr;
  gcap_notification_t* join = nullptr;
  GCAP_ASSERT_OK(gcap_notification_create(stream(0), &fork));
  GCAP_ASSERT_OK(gcap_notification_create(stream(1), &join));
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(gcap_stream_handle(stream(0)), cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_OK(gcap_notification_record(fork));
  GCAP_EXPECT_OK(gcap_notification_wait(fork, stream(1)));
  GCAP_EXPECT_OK(gcap_notification_record(join));
  GCAP_EXPECT_OK(gcap_notification_wait(join, stream(0)));
  EndCapture(stream(0));
  EXPECT_FALSE(gcap_stream_has_waited(stream(1), stream(0), 0));
  EXPECT_FALSE(gcap_stream_has_waited(stream(0), stream(1), 0));
  // Recorded again outside, the same notification is an eager one.
  GCAP_EXPECT_OK(gcap_notification_record(fork));
  GCAP_EXPECT_OK(gcap_notification_wait_on_host(fork));
  EXPECT_TRUE(gcap_stream_has_waited(stream(1), stream(0), 0));
  gcap_notification_destroy(fork);
  gcap_notification_destroy(join);
}

TEST_F(Timeline, AFailedWaitTeachesNothing) {
  gcap_notification_t* eager = Recorded(stream(0));
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(gcap_stream_handle(stream(1)), cudaStreamCaptureModeThreadLocal));
  // An event from outside may not enter a capture (rule R17); the driver is not even asked, which would break it.
  GCAP_EXPECT_FAILS(gcap_notification_wait(eager, stream(1)), GCAP_FAILED_PRECONDITION, "outside the capture");
  EndCapture(stream(1));
  EXPECT_FALSE(gcap_stream_has_waited(stream(1), stream(0), 0));
  gcap_notification_destroy(eager);
}

TEST_F(Timeline, WaitsThatAScopeWouldLackFailIt) {
  gcap_notification_t* eager = Recorded(stream(0));
  const std::function<gcap_status_t()> waits[] = {
      [&] { return gcap_notification_wait_on_host(eager); },
      [&] { return gcap_notification_wait(eager, stream(1)); },
  };
  for (const auto& wait : waits) {
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream(1)), nullptr, &capture));
    GCAP_EXPECT_FAILS(wait(), GCAP_FAILED_PRECONDITION, "capturing");
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "capturing");
    EXPECT_FALSE(gcap_stream_has_waited(stream(1), stream(0), 0));
  }
  for (const auto& wait : waits) GCAP_EXPECT_OK(wait());
  gcap_notification_destroy(eager);
}

TEST_F(Timeline, AnEagerWaitOfAStreamOutsideTheScopeIsLegal) {
  gcap_notification_t* eager = Recorded(stream(0));
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream(1)), nullptr, &capture));
  GCAP_EXPECT_OK(gcap_notification_wait(eager, stream(2)));
  EXPECT_TRUE(gcap_stream_has_waited(stream(2), stream(0), 0));
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  gcap_notification_destroy(eager);
}

TEST_F(Timeline, MayBeReadByOtherThreadsWhileItAdvances) {
  constexpr uint64_t kRounds = 300;
  std::atomic<bool> done{false};
  std::thread reader([this, &done] {
    uint64_t seen = 0;
    while (!done) {
      const uint64_t id = gcap_stream_sync_id(stream(0));
      EXPECT_GE(id, seen) << "a sync id went back";
      seen = id;
      if (gcap_stream_has_waited(stream(1), stream(0), id)) {
        EXPECT_GT(gcap_stream_sync_id(stream(0)), id);
      }
      gcap_stream_has_finished(stream(0), id);
    }
  });
  for (uint64_t i = 0; i < kRounds; ++i) {
    Wait(stream(1), stream(0));
    if (i % 16 == 0) {
      GCAP_EXPECT_OK(gcap_stream_synchronize(stream(0)));
    }
  }
  done = true;
  reader.join();
  EXPECT_EQ(gcap_stream_sync_id(stream(0)), kRounds + (kRounds + 15) / 16);
}

TEST_F(Timeline, NotificationsThatKnowEndedStreamsCostNothingThatIsKnownOfLiveOnes) {
  Wait(stream(1), stream(2));
  for (int round = 0; round < 50; ++round) {
    gcap_stream_t* ended = nullptr;
    GCAP_ASSERT_OK(gcap_stream_create(0, &ended));
    Wait(stream(0), ended);
    gcap_notification_t* stale = Recorded(stream(0));
    GCAP_ASSERT_OK(gcap_stream_destroy(ended));
    GCAP_EXPECT_OK(gcap_notification_wait(stale, stream(1)));
    gcap_notification_destroy(stale);
  }
  EXPECT_TRUE(gcap_stream_has_waited(stream(1), stream(2), 0));
  EXPECT_TRUE(gcap_stream_has_waited(stream(1), stream(0), 49));
  EXPECT_FALSE(gcap_stream_has_waited(stream(1), stream(0), 50));
}

TEST_F(Timeline, WhatWasWaitedForStaysKnownWhileTheConsumerLearnsMore) {
  // The reader never sees less than was true when it began, though what is known moves about and grows meanwhile.
  constexpr int kRounds = 40;
  constexpr int kStreamsOfARound = 6;
  Wait(stream(1), stream(0));
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([this, &done] {
      while (!done) {
        ASSERT_TRUE(gcap_stream_has_waited(stream(1), stream(0), 0));
        ASSERT_FALSE(gcap_stream_has_waited(stream(1), stream(2), 0));
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    std::vector<gcap_stream_t*> others(kStreamsOfARound);
    for (gcap_stream_t*& other : others) {
      GCAP_ASSERT_OK(gcap_stream_create(0, &other));
      Wait(stream(1), other);
    }
    for (gcap_stream_t* other : others) {
      EXPECT_TRUE(gcap_stream_has_waited(stream(1), other, 0));
      GCAP_EXPECT_OK(gcap_stream_destroy(other));
    }
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
}

TEST_F(Timeline, StreamsComeAndGoOnManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int round = 0; round < 20; ++round) {
        gcap_stream_t* producer = nullptr;
        gcap_stream_t* consumer = nullptr;
        GCAP_EXPECT_OK(gcap_stream_create(0, &producer));
        GCAP_EXPECT_OK(gcap_stream_create(0, &consumer));
        Wait(consumer, producer);
        EXPECT_TRUE(gcap_stream_has_waited(consumer, producer, 0));
        GCAP_EXPECT_OK(gcap_stream_destroy(producer));
        GCAP_EXPECT_OK(gcap_stream_destroy(consumer));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
