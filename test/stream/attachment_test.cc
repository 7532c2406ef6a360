// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "gcap/capture.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

// What was made and ended, in order. Keys have no user pointer, so it is global.
std::vector<std::string>* events = nullptr;

gcap_status_t MakeObject(gcap_stream_t* stream, void** out_object) {
  events->push_back("create");
  *out_object = stream;
  return nullptr;
}

gcap_status_t FailToMake(gcap_stream_t*, void**) {
  events->push_back("fail");
  return GCAP_STATUS(GCAP_LIBRARY_ERROR, "the library is not in the mood");
}

const gcap_attachment_key_t kFirst = {"first_t", MakeObject, [](void*) { events->push_back("destroy first"); }};
const gcap_attachment_key_t kSecond = {"second_t", MakeObject, [](void*) { events->push_back("destroy second"); }};
const gcap_attachment_key_t kFailing = {"failing_t", FailToMake, [](void*) { events->push_back("destroy failing"); }};

class Attachment : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    events = &events_;
    GCAP_ASSERT_OK(gcap_stream_create(0, &stream_));
  }
  void TearDown() override {
    GCAP_EXPECT_OK(gcap_stream_destroy(stream_));
    DeviceTest::TearDown();
  }

  void DestroyStream() {
    GCAP_EXPECT_OK(gcap_stream_destroy(stream_));
    stream_ = nullptr;
  }

  // Ends a capture without a node.
  void EndCapture() {
    cudaGraph_t graph = nullptr;
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(gcap_stream_handle(stream_), &graph));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  }

  using Events = std::vector<std::string>;

  gcap_stream_t* stream_ = nullptr;
  Events events_;
};

TEST_F(Attachment, IsMadeOnFirstUseAndOnce) {
  void* object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kFirst, &object));
  EXPECT_EQ(object, stream_);
  object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kFirst, &object));
  EXPECT_EQ(object, stream_);
  EXPECT_EQ(events_, Events{"create"});
}

TEST_F(Attachment, IsNotEndedWhileTheThreadCapturesAnotherStream) {
  void* object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kFirst, &object));
  const RawStream capturing;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(capturing.get(), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_stream_destroy(stream_), GCAP_FAILED_PRECONDITION, "first_t");
  EXPECT_EQ(events_, Events{"create"});
  gcap_capture_abort(capture);
}

TEST_F(Attachment, IsTheStreamsOwn) {
  gcap_stream_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &other));
  void* object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kFirst, &object));
  EXPECT_EQ(object, stream_);
  GCAP_EXPECT_OK(gcap_stream_attachment(other, &kFirst, &object));
  EXPECT_EQ(object, other);
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
  EXPECT_EQ(events_, (Events{"create", "create", "destroy first"}));
}

TEST_F(Attachment, OfTwoKeysAreTwoObjectsWhateverTheirNames) {
  const gcap_attachment_key_t namesake = kFirst;
  void* object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kFirst, &object));
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &namesake, &object));
  EXPECT_EQ(events_, (Events{"create", "create"}));
  DestroyStream();
}

TEST_F(Attachment, EndsWithItsStreamInReverseOrder) {
  void* object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kFirst, &object));
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kSecond, &object));
  DestroyStream();
  EXPECT_EQ(events_, (Events{"create", "create", "destroy second", "destroy first"}));
}

TEST_F(Attachment, ThatCannotBeMadeIsTriedAgain) {
  void* object = this;
  GCAP_EXPECT_FAILS(gcap_stream_attachment(stream_, &kFailing, &object), GCAP_LIBRARY_ERROR, "not in the mood");
  EXPECT_EQ(object, nullptr);
  GCAP_EXPECT_FAILS(gcap_stream_attachment(stream_, &kFailing, &object), GCAP_LIBRARY_ERROR, "not in the mood");
  DestroyStream();
  EXPECT_EQ(events_, (Events{"fail", "fail"})) << "what was never made must not be destroyed";
}

TEST_F(Attachment, OfAnExternalStreamIsInvalidArgument) {
  gcap_stream_t* external = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(gcap_stream_handle(stream_), GCAP_STREAM_EXTERNAL, 0, 0, &external));
  void* object = this;
  GCAP_EXPECT_FAILS(gcap_stream_attachment(external, &kFirst, &object), GCAP_INVALID_ARGUMENT, "first_t");
  EXPECT_EQ(object, nullptr);
  EXPECT_EQ(events_, Events{});
  GCAP_EXPECT_OK(gcap_stream_destroy(external));
}

TEST_F(Attachment, OfAUserStreamIsGcapsOwn) {
  gcap_stream_t* user = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(gcap_stream_handle(stream_), GCAP_STREAM_USER, 0, 0, &user));
  void* object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(user, &kFirst, &object));
  EXPECT_EQ(object, user);
  GCAP_EXPECT_OK(gcap_stream_destroy(user));
  EXPECT_EQ(events_, (Events{"create", "destroy first"}));
}

TEST_F(Attachment, IsNotMadeWhileTheStreamCaptures) {
  void* object = this;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(gcap_stream_handle(stream_), cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_FAILS(gcap_stream_attachment(stream_, &kFirst, &object), GCAP_FAILED_PRECONDITION, "first_t");
  EXPECT_EQ(object, nullptr);
  EndCapture();
  EXPECT_EQ(events_, Events{});
}

TEST_F(Attachment, ThatWasMadeBeforeIsThereWhileTheStreamCaptures) {
  void* object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kFirst, &object));
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(gcap_stream_handle(stream_), cudaStreamCaptureModeThreadLocal));
  object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kFirst, &object));
  EXPECT_EQ(object, stream_);
  EndCapture();
}

// --- Deferred releases
// ------------------------------------------------------------------------------------------------

class Deferred : public Attachment {
 protected:
  struct Release {
    Events* events;
    const char* name;
  };

  // The entry lives as long as the test.
  void Defer(Release* release) { GCAP_EXPECT_OK(gcap_stream_defer(stream_, RunRelease, release)); }
  static void RunRelease(void* user) {
    const auto* release = static_cast<Release*>(user);
    release->events->push_back(release->name);
  }

  Release first_{&events_, "first"};
  Release second_{&events_, "second"};
};

TEST_F(Deferred, ReleasesRunAtSynchronizeInOrder) {
  Defer(&first_);
  Defer(&second_);
  EXPECT_EQ(events_, Events{});
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  EXPECT_EQ(events_, (Events{"first", "second"}));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  EXPECT_EQ(events_, (Events{"first", "second"})) << "a release runs once";
}

TEST_F(Deferred, ReleasesRunAtDestroyBeforeTheAttachmentsEnd) {
  void* object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kFirst, &object));
  Defer(&first_);
  DestroyStream();
  EXPECT_EQ(events_, (Events{"create", "first", "destroy first"}));
}

TEST_F(Deferred, EndRunReleasesWhatTheStreamHasPassedAndNothingElse) {
  Gate gate;
  Defer(&first_);
  GCAP_EXPECT_CUDA(cudaStreamSynchronize(gcap_stream_handle(stream_)));  // not gcap's: it releases nothing
  gate.Hold(gcap_stream_handle(stream_));
  Defer(&second_);
  GCAP_EXPECT_OK(gcap_stream_end_run(stream_, false));
  EXPECT_EQ(events_, Events{"first"});
  GCAP_EXPECT_OK(gcap_stream_end_run(stream_, false));
  EXPECT_EQ(events_, Events{"first"});
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "not ready is an answer, not an error";
  gate.Open();
  GCAP_EXPECT_CUDA(cudaStreamSynchronize(gcap_stream_handle(stream_)));
  GCAP_EXPECT_OK(gcap_stream_end_run(stream_, false));
  EXPECT_EQ(events_, (Events{"first", "second"}));
}

TEST_F(Deferred, ReleaseMayBeAskedForAgainAfterTheQueueRanEmpty) {
  for (const bool synchronize : {true, false, true}) {
    events_.clear();
    Defer(&first_);
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(gcap_stream_handle(stream_)));
    GCAP_EXPECT_OK(gcap_stream_end_run(stream_, synchronize));
    EXPECT_EQ(events_, Events{"first"});
  }
}

TEST_F(Deferred, ReleaseIsRefusedWhileTheStreamCaptures) {
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(gcap_stream_handle(stream_), cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_FAILS(gcap_stream_defer(stream_, RunRelease, &first_), GCAP_FAILED_PRECONDITION, "gcap_stream_defer");
  EndCapture();
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  EXPECT_EQ(events_, Events{}) << "a refused release stays the caller's";
}

}  // namespace
}  // namespace testing
}  // namespace gcap
