// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "gcap/stream.h"

#include <functional>
#include <string>
#include <thread>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

class Stream : public DeviceTest {
 protected:
  // Ends a capture that a test began behind gcap's back, and says whether it was still in order.
  static bool EndedWell(cudaStream_t stream) {
    cudaGraph_t graph = nullptr;
    const bool well = cudaStreamEndCapture(stream, &graph) == cudaSuccess;
    if (graph != nullptr) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
    (void)cudaGetLastError();
    return well;
  }
};

TEST_F(Stream, IsCreatedNonBlockingAndOwned) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  EXPECT_EQ(gcap_stream_device(stream), 0);
  EXPECT_EQ(gcap_stream_ownership(stream), GCAP_STREAM_OWNED);
  EXPECT_TRUE(gcap_stream_can_capture(stream));
  unsigned int flags = 0;
  GCAP_EXPECT_CUDA(cudaStreamGetFlags(gcap_stream_handle(stream), &flags));
  EXPECT_EQ(flags, static_cast<unsigned int>(cudaStreamNonBlocking));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(Stream, OfAnUnknownDeviceIsInvalidArgument) {
  int count = 0;
  GCAP_EXPECT_CUDA(cudaGetDeviceCount(&count));
  for (const int device : {-1, count, 999}) {
    gcap_stream_t* stream = reinterpret_cast<gcap_stream_t*>(this);
    const std::string culprit = "device_id is " + std::to_string(device);
    GCAP_EXPECT_FAILS(gcap_stream_create(device, &stream), GCAP_INVALID_ARGUMENT, culprit);
    EXPECT_EQ(stream, nullptr);
    const RawStream raw;
    stream = reinterpret_cast<gcap_stream_t*>(this);
    GCAP_EXPECT_FAILS(gcap_stream_wrap(raw.get(), GCAP_STREAM_USER, 0, device, &stream), GCAP_INVALID_ARGUMENT,
                      culprit);
    EXPECT_EQ(stream, nullptr);
  }
}

TEST_F(Stream, WrapLeavesTheHandleToItsOwner) {
  const RawStream raw;
  for (const gcap_stream_ownership_t ownership : {GCAP_STREAM_EXTERNAL, GCAP_STREAM_USER}) {
    gcap_stream_t* stream = nullptr;
    GCAP_ASSERT_OK(gcap_stream_wrap(raw.get(), ownership, 0, 0, &stream));
    EXPECT_EQ(gcap_stream_handle(stream), raw.get());
    EXPECT_EQ(gcap_stream_ownership(stream), ownership);
    EXPECT_EQ(gcap_stream_device(stream), 0);
    EXPECT_TRUE(gcap_stream_can_capture(stream));
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }
  raw.Synchronize();  // still there
}

TEST_F(Stream, WrapRefusesToOwn) {
  const RawStream raw;
  gcap_stream_t* stream = reinterpret_cast<gcap_stream_t*>(this);
  GCAP_EXPECT_FAILS(gcap_stream_wrap(raw.get(), GCAP_STREAM_OWNED, 0, 0, &stream), GCAP_INVALID_ARGUMENT, "ownership");
  EXPECT_EQ(stream, nullptr);
  const auto unknown = static_cast<gcap_stream_ownership_t>(3);
  GCAP_EXPECT_FAILS(gcap_stream_wrap(raw.get(), unknown, 0, 0, &stream), GCAP_INVALID_ARGUMENT, "ownership is 3");
}

TEST_F(Stream, WrapRefusesAnUnknownFlag) {
  const RawStream raw;
  gcap_stream_t* stream = reinterpret_cast<gcap_stream_t*>(this);
  GCAP_EXPECT_FAILS(gcap_stream_wrap(raw.get(), GCAP_STREAM_USER, 1 << 1, 0, &stream), GCAP_INVALID_ARGUMENT,
                    "flags is 0x2");
  EXPECT_EQ(stream, nullptr);
}

TEST_F(Stream, WrapTakesTheDefaultStreamOnlyWhenAllowed) {
  for (const cudaStream_t handle : {cudaStream_t{nullptr}, cudaStreamLegacy}) {
    gcap_stream_t* stream = reinterpret_cast<gcap_stream_t*>(this);
    GCAP_EXPECT_FAILS(gcap_stream_wrap(handle, GCAP_STREAM_USER, 0, 0, &stream), GCAP_INVALID_ARGUMENT,
                      "GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM");
    EXPECT_EQ(stream, nullptr);
    GCAP_ASSERT_OK(gcap_stream_wrap(handle, GCAP_STREAM_USER, GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM, 0, &stream));
    EXPECT_FALSE(gcap_stream_can_capture(stream));
    CopyJob job;
    job.set_input(4);
    GCAP_EXPECT_CUDA(job.Issue(handle));
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    EXPECT_EQ(job.output(), 4);
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }
}

TEST_F(Stream, SynchronizeWaitsForItsWork) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  Gate gate;
  CopyJob job;
  job.set_input(17);
  gate.Hold(gcap_stream_handle(stream));
  GCAP_EXPECT_CUDA(job.Issue(gcap_stream_handle(stream)));
  EXPECT_EQ(job.output(), -1);
  std::thread opener([&gate] {
    std::this_thread::sleep_for(kPatience);
    gate.Open();
  });
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  EXPECT_EQ(job.output(), 17);
  opener.join();
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(Stream, DestroyWaitsForItsWorkWhoeverOwnsIt) {
  const RawStream raw;
  for (const bool owned : {true, false}) {
    gcap_stream_t* stream = nullptr;
    if (owned) {
      GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
    } else {
      GCAP_ASSERT_OK(gcap_stream_wrap(raw.get(), GCAP_STREAM_USER, 0, 0, &stream));
    }
    CopyJob job;
    job.set_input(5);
    GCAP_EXPECT_CUDA(job.Issue(gcap_stream_handle(stream)));
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
    EXPECT_EQ(job.output(), 5);
  }
}

TEST_F(Stream, DestroyOfNullIsFine) { GCAP_EXPECT_OK(gcap_stream_destroy(nullptr)); }

TEST_F(Stream, EndRunWithSynchronizeWaits) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  CopyJob job;
  job.set_input(6);
  GCAP_EXPECT_CUDA(job.Issue(gcap_stream_handle(stream)));
  GCAP_EXPECT_OK(gcap_stream_end_run(stream, true));
  EXPECT_EQ(job.output(), 6);
  EXPECT_TRUE(gcap_stream_has_finished(stream, 0));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(Stream, EndRunWithoutSynchronizeDoesNotWait) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  Gate gate;
  CopyJob job;
  gate.Hold(gcap_stream_handle(stream));
  GCAP_EXPECT_CUDA(job.Issue(gcap_stream_handle(stream)));
  GCAP_EXPECT_OK(gcap_stream_end_run(stream, false));
  EXPECT_EQ(job.output(), -1);
  EXPECT_FALSE(gcap_stream_has_finished(stream, 0));
  gate.Open();
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(Stream, WaitsRefuseACapturingStreamAndLeaveTheCaptureAlone) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  const cudaStream_t handle = gcap_stream_handle(stream);
  GCAP_EXPECT_OK(gcap_stream_defer(
      stream, [](void*) {}, nullptr));  // so that end_run has something to ask the driver for
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_FAILS(gcap_stream_synchronize(stream), GCAP_FAILED_PRECONDITION, "capturing");
  GCAP_EXPECT_FAILS(gcap_stream_end_run(stream, true), GCAP_FAILED_PRECONDITION, "capturing");
  GCAP_EXPECT_FAILS(gcap_stream_end_run(stream, false), GCAP_FAILED_PRECONDITION, "capturing");
  GCAP_EXPECT_FAILS(gcap_stream_destroy(stream), GCAP_FAILED_PRECONDITION, "capturing");
  EXPECT_TRUE(EndedWell(handle));
  EXPECT_EQ(gcap_stream_sync_id(stream), 0u);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(Stream, WaitsRefuseAStreamWhoseCaptureIsInvalidated) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  const cudaStream_t handle = gcap_stream_handle(stream);
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal));
  EXPECT_NE(cudaStreamSynchronize(handle), cudaSuccess);
  (void)cudaGetLastError();
  GCAP_EXPECT_FAILS(gcap_stream_synchronize(stream), GCAP_FAILED_PRECONDITION, "invalidated");
  GCAP_EXPECT_FAILS(gcap_stream_destroy(stream), GCAP_FAILED_PRECONDITION, "invalidated");
  EXPECT_FALSE(EndedWell(handle));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

TEST_F(Stream, WaitLeavesAGlobalCaptureOfAnotherThreadAlone) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  gcap_notification_t* notification = nullptr;
  GCAP_ASSERT_OK(gcap_notification_create(stream, &notification));
  GCAP_EXPECT_OK(gcap_notification_record(notification));
  const RawStream capturing;
  std::thread([&capturing] {
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(capturing.get(), cudaStreamCaptureModeGlobal));
  }).join();
  int released = 0;
  GCAP_EXPECT_OK(gcap_stream_defer(
      stream, [](void* count) { ++*static_cast<int*>(count); }, &released));
  GCAP_EXPECT_OK(gcap_stream_end_run(stream, false));
  GCAP_EXPECT_OK(gcap_notification_wait_on_host(notification));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
  EXPECT_EQ(released, 1);
  EXPECT_EQ(capturing.CaptureStatus(), cudaStreamCaptureStatusActive);
  gcap_notification_destroy(notification);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  EXPECT_FALSE(EndedWell(capturing.get()));  // only the thread that began it could end it well
}

// --- From a raw handle ----------------------------------------------------------------------------------------------

TEST_F(Stream, FromHandleIsTheWrapperUntilItIsDestroyed) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  const cudaStream_t handle = gcap_stream_handle(stream);
  EXPECT_EQ(gcap_stream_from_handle(handle), stream);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  EXPECT_EQ(gcap_stream_from_handle(handle), nullptr);
}

TEST_F(Stream, FromHandleOfAStreamThatNobodyWrappedIsNull) {
  const RawStream raw;
  EXPECT_EQ(gcap_stream_from_handle(raw.get()), nullptr);
}

TEST_F(Stream, FromHandleOfAHandleThatMeansManyStreamsIsNull) {
  for (const cudaStream_t handle : {cudaStream_t{nullptr}, cudaStreamLegacy, cudaStreamPerThread}) {
    gcap_stream_t* stream = nullptr;
    GCAP_ASSERT_OK(gcap_stream_wrap(handle, GCAP_STREAM_USER, GCAP_STREAM_FLAG_ALLOW_DEFAULT_STREAM, 0, &stream));
    EXPECT_EQ(gcap_stream_from_handle(handle), nullptr);
    GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  }
}

TEST_F(Stream, FromHandleOfASharedStreamIsItsNewestWrapper) {
  const RawStream raw;
  gcap_stream_t* older = nullptr;
  gcap_stream_t* newer = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(raw.get(), GCAP_STREAM_USER, 0, 0, &older));
  GCAP_ASSERT_OK(gcap_stream_wrap(raw.get(), GCAP_STREAM_EXTERNAL, 0, 0, &newer));
  EXPECT_EQ(gcap_stream_from_handle(raw.get()), newer);
  GCAP_EXPECT_OK(gcap_stream_destroy(newer));
  EXPECT_EQ(gcap_stream_from_handle(raw.get()), older);
  GCAP_EXPECT_OK(gcap_stream_destroy(older));
}

TEST_F(Stream, WrapOfACapturingStreamLeavesTheCaptureAlone) {
  const RawStream raw;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(raw.get(), cudaStreamCaptureModeThreadLocal));
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(raw.get(), GCAP_STREAM_USER, 0, 0, &stream));
  EXPECT_EQ(gcap_stream_from_handle(raw.get()), stream);
  EXPECT_TRUE(EndedWell(raw.get()));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

// --- In a scope of the calling thread -------------------------------------------------------------------------------

TEST_F(Stream, WaitsInAScopeAreRefusedForEveryStreamAndFailTheScope) {
  gcap_stream_t* capturing = nullptr;
  gcap_stream_t* idle = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &capturing));
  GCAP_ASSERT_OK(gcap_stream_create(0, &idle));
  const struct {
    const char* name;
    gcap_status_t (*wait)(gcap_stream_t*);
  } waits[] = {{"gcap_stream_synchronize", gcap_stream_synchronize},
               {"gcap_stream_end_run", [](gcap_stream_t* stream) { return gcap_stream_end_run(stream, true); }}};
  for (const auto& step : waits) {
    for (gcap_stream_t* stream : {capturing, idle}) {
      gcap_capture_t* capture = nullptr;
      GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(capturing), nullptr, &capture));
      GCAP_EXPECT_FAILS(step.wait(stream), GCAP_FAILED_PRECONDITION, step.name);
      cudaGraph_t graph = nullptr;
      gcap_retained_t* retained = nullptr;
      GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, step.name);
      EXPECT_EQ(graph, nullptr);
      GCAP_EXPECT_OK(step.wait(stream));  // and everything is usable
    }
  }
  GCAP_EXPECT_OK(gcap_stream_destroy(capturing));
  GCAP_EXPECT_OK(gcap_stream_destroy(idle));
}

TEST_F(Stream, EndOfARunInAScopeReleasesNothingAndFailsNothing) {
  gcap_stream_t* capturing = nullptr;
  gcap_stream_t* idle = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &capturing));
  GCAP_ASSERT_OK(gcap_stream_create(0, &idle));
  int released = 0;
  GCAP_EXPECT_OK(gcap_stream_defer(
      idle, [](void* count) { ++*static_cast<int*>(count); }, &released));
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(capturing), nullptr, &capture));
  GCAP_EXPECT_OK(gcap_stream_end_run(capturing, false));
  GCAP_EXPECT_FAILS(gcap_stream_end_run(idle, false), GCAP_FAILED_PRECONDITION, "gcap_stream_end_run");
  GCAP_EXPECT_FAILS(gcap_stream_destroy(idle), GCAP_FAILED_PRECONDITION, "deferred release");
  EXPECT_EQ(released, 0);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  GCAP_EXPECT_OK(gcap_stream_destroy(idle));
  EXPECT_EQ(released, 1);
  GCAP_EXPECT_OK(gcap_stream_destroy(capturing));
}

// --- Bad input ------------------------------------------------------------------------------------------------------

TEST_F(Stream, AMissingArgumentIsNamed) {
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  gcap_notification_t* other = nullptr;
  gcap_notification_t* notification = nullptr;
  GCAP_ASSERT_OK(gcap_notification_create(stream, &notification));
  static const auto nothing = [](void*) {};
  void* object = nullptr;
  static const gcap_attachment_key_t kKey = {"object_t", nullptr, nothing};
  static const gcap_attachment_key_t kEndless = {
      "object_t", [](gcap_stream_t*, void**) -> gcap_status_t { return nullptr; }, nullptr};
  const struct {
    const char* argument;
    std::function<gcap_status_t()> call;
  } calls[] = {
      {"gcap_stream_create: out_stream", [] { return gcap_stream_create(0, nullptr); }},
      {"gcap_stream_wrap: out_stream",
       [&] { return gcap_stream_wrap(gcap_stream_handle(stream), GCAP_STREAM_USER, 0, 0, nullptr); }},
      {"gcap_stream_synchronize: stream", [] { return gcap_stream_synchronize(nullptr); }},
      {"gcap_stream_end_run: stream", [] { return gcap_stream_end_run(nullptr, false); }},
      {"gcap_stream_end_run: stream", [] { return gcap_stream_end_run(nullptr, true); }},
      {"gcap_notification_create: producer", [&] { return gcap_notification_create(nullptr, &other); }},
      {"gcap_notification_create: out_notification", [&] { return gcap_notification_create(stream, nullptr); }},
      {"gcap_notification_record: notification", [] { return gcap_notification_record(nullptr); }},
      {"gcap_notification_wait: notification", [&] { return gcap_notification_wait(nullptr, stream); }},
      {"gcap_notification_wait: consumer", [&] { return gcap_notification_wait(notification, nullptr); }},
      {"gcap_notification_wait_on_host: notification", [] { return gcap_notification_wait_on_host(nullptr); }},
      {"gcap_stream_attachment: stream", [&] { return gcap_stream_attachment(nullptr, &kKey, &object); }},
      {"gcap_stream_attachment: key", [&] { return gcap_stream_attachment(stream, nullptr, &object); }},
      {"gcap_stream_attachment: key->create", [&] { return gcap_stream_attachment(stream, &kKey, &object); }},
      {"gcap_stream_attachment: key->destroy", [&] { return gcap_stream_attachment(stream, &kEndless, &object); }},
      {"gcap_stream_attachment: out_object", [&] { return gcap_stream_attachment(stream, &kKey, nullptr); }},
      {"gcap_stream_defer: stream", [&] { return gcap_stream_defer(nullptr, nothing, &object); }},
      {"gcap_stream_defer: release", [&] { return gcap_stream_defer(stream, nullptr, &object); }},
  };
  for (const auto& call : calls) {
    GCAP_EXPECT_FAILS(call.call(), GCAP_INVALID_ARGUMENT, std::string(call.argument) + " is NULL");
  }
  gcap_notification_destroy(notification);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
