// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The wait for a raw handle, of which modules below the stream module make use: what a wrapper learns of it.

#include "lib/internal/synchronize.h"

#include <thread>

#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

class Synchronize : public DeviceTest {
 protected:
  static gcap_stream_t* Wrap(const RawStream& raw) {
    gcap_stream_t* stream = nullptr;
    GCAP_EXPECT_OK(gcap_stream_wrap(raw.get(), GCAP_STREAM_USER, 0, 0, &stream));
    return stream;
  }

  static void DeferCount(gcap_stream_t* stream, int* count) {
    GCAP_EXPECT_OK(gcap_stream_defer(
        stream, [](void* user) { ++*static_cast<int*>(user); }, count));
  }

  // Waits for the stream, and sees that what it was given before is done.
  void ExpectWaits(cudaStream_t stream) {
    job_.set_input(++input_);
    GCAP_EXPECT_CUDA(job_.Issue(stream));
    GCAP_EXPECT_OK(gcap_synchronize_stream(stream));
    EXPECT_EQ(job_.output(), input_);
  }

 private:
  CopyJob job_;
  int input_ = 0;
};

TEST_F(Synchronize, OfAWrappedStreamTeachesItsTimelineAndRunsItsReleases) {
  const RawStream raw;
  gcap_stream_t* stream = Wrap(raw);
  int released = 0;
  DeferCount(stream, &released);
  EXPECT_FALSE(gcap_stream_has_finished(stream, 0));
  ExpectWaits(raw.get());
  EXPECT_TRUE(gcap_stream_has_finished(stream, 0));
  EXPECT_EQ(gcap_stream_sync_id(stream), 1u) << "one wait";
  EXPECT_EQ(released, 1);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

// What the stream had waited for is over too, as after the wrapper's own wait.
TEST_F(Synchronize, TeachesWhatTheStreamHadWaitedFor) {
  const RawStream raw;
  gcap_stream_t* consumer = Wrap(raw);
  gcap_stream_t* producer = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &producer));
  gcap_notification_t* notification = nullptr;
  GCAP_ASSERT_OK(gcap_notification_create(producer, &notification));
  GCAP_ASSERT_OK(gcap_notification_record(notification));
  GCAP_ASSERT_OK(gcap_notification_wait(notification, consumer));
  EXPECT_FALSE(gcap_stream_has_finished(producer, 0));
  ExpectWaits(raw.get());
  EXPECT_TRUE(gcap_stream_has_finished(producer, 0));
  gcap_notification_destroy(notification);
  GCAP_EXPECT_OK(gcap_stream_destroy(producer));
  GCAP_EXPECT_OK(gcap_stream_destroy(consumer));
}

TEST_F(Synchronize, WaitsForAStreamThatHasNoWrapper) {
  const RawStream raw;
  ExpectWaits(raw.get());
  GCAP_EXPECT_OK(gcap_stream_destroy(Wrap(raw)));
  ExpectWaits(raw.get());
  for (const cudaStream_t alias : {cudaStream_t{nullptr}, cudaStreamLegacy, cudaStreamPerThread}) ExpectWaits(alias);
}

// Another thread may use the newest wrapper just now, so that no wrapper is touched.
TEST_F(Synchronize, OfAStreamWithTwoWrappersWaitsAndTeachesNeither) {
  const RawStream raw;
  gcap_stream_t* first = Wrap(raw);
  gcap_stream_t* second = Wrap(raw);
  int released = 0;
  DeferCount(first, &released);
  DeferCount(second, &released);
  ExpectWaits(raw.get());
  EXPECT_FALSE(gcap_stream_has_finished(first, 0));
  EXPECT_FALSE(gcap_stream_has_finished(second, 0));
  EXPECT_EQ(released, 0);
  GCAP_EXPECT_OK(gcap_stream_destroy(second));
  EXPECT_EQ(released, 1);
  ExpectWaits(raw.get());
  EXPECT_TRUE(gcap_stream_has_finished(first, 0)) << "the only one left";
  EXPECT_EQ(released, 2);
  GCAP_EXPECT_OK(gcap_stream_destroy(first));
}

TEST_F(Synchronize, OfAWrappedStreamThatIsCapturingIsRefusedAndLeavesTheCaptureAlone) {
  const RawStream raw;
  gcap_stream_t* stream = Wrap(raw);
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(raw.get(), cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_FAILS(gcap_synchronize_stream(raw.get()), GCAP_FAILED_PRECONDITION, "is capturing");
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(raw.get(), &graph), cudaSuccess);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_FALSE(gcap_stream_has_finished(stream, 0));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(Synchronize, LeavesAGlobalCaptureOfAnotherThreadAlone) {
  const RawStream raw;
  const RawStream captured;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeGlobal));
  std::thread([&raw] { GCAP_EXPECT_OK(gcap_synchronize_stream(raw.get())); }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(captured.get(), &graph), cudaSuccess);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
