// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include "gcap/capture.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "lib/internal/run_trace.h"
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

TEST_F(Attachment, IsNotMadeWhileTheThreadCapturesAnotherStreamAndFailsThat) {
  // Making a library handle would break that capture (rule R42), and what was to use it is missing from it.
  const RawStream capturing;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(capturing.get(), nullptr, &capture));
  void* object = this;
  GCAP_EXPECT_FAILS(gcap_stream_attachment(stream_, &kFirst, &object), GCAP_FAILED_PRECONDITION, "no first_t yet");
  EXPECT_EQ(object, nullptr);
  EXPECT_EQ(events_, Events{});
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_CAPTURE_INVALIDATED, "first_t");
  EXPECT_EQ(graph, nullptr);
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kFirst, &object));
  EXPECT_EQ(events_, Events{"create"});
}

TEST_F(Attachment, ThatIsMadeCountsAsAnInitializationOfItsThread) {
  const uint64_t before = gcap_thread_run_trace.initializations;
  void* object = nullptr;
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kFirst, &object));
  EXPECT_EQ(gcap_thread_run_trace.initializations, before + 1);
  GCAP_EXPECT_OK(gcap_stream_attachment(stream_, &kFirst, &object));
  GCAP_EXPECT_FAILS(gcap_stream_attachment(stream_, &kFailing, &object), GCAP_LIBRARY_ERROR, "not in the mood");
  EXPECT_EQ(gcap_thread_run_trace.initializations, before + 1);
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

// --- Deferred releases ----------------------------------------------------------------------------------------------

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

TEST_F(Deferred, ReleaseThatDefersAgainWaitsForWhatItIssued) {
  struct Chain {
    gcap_stream_t* stream;
    CopyJob job;
    int seen = 0;
  } chain{stream_, {}};
  chain.job.set_input(9);
  GCAP_EXPECT_OK(gcap_stream_defer(
      stream_,
      [](void* user) {
        auto* link = static_cast<Chain*>(user);
        GCAP_EXPECT_CUDA(link->job.Issue(gcap_stream_handle(link->stream)));
        GCAP_EXPECT_OK(gcap_stream_defer(
            link->stream, [](void* last) { static_cast<Chain*>(last)->seen = static_cast<Chain*>(last)->job.output(); },
            link));
      },
      &chain));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  EXPECT_EQ(chain.seen, 0) << "the stream was waited for before the second release was asked for";
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  EXPECT_EQ(chain.seen, 9);
}

TEST_F(Deferred, ReleaseThatDefersAgainIsFollowedToTheEndAtDestroy) {
  struct Link {
    gcap_stream_t* stream;
    int left;
    static void Run(void* user) {
      auto* link = static_cast<Link*>(user);
      if (--link->left > 0) GCAP_EXPECT_OK(gcap_stream_defer(link->stream, Run, link));
    }
  } link{stream_, 3};
  GCAP_EXPECT_OK(gcap_stream_defer(stream_, Link::Run, &link));
  DestroyStream();
  EXPECT_EQ(link.left, 0);
}

// Was: the work was taken for done. Scratch that it used went back to its upstream, and to others, while it was
// written.
TEST_F(Deferred, WorkThatAReleaseIssuesIsDoneWhenItsStreamIsDestroyed) {
  struct Last {
    gcap_stream_t* stream;
    CopyJob job;
    static void Run(void* user) {
      auto* last = static_cast<Last*>(user);
      GCAP_EXPECT_CUDA(last->job.Issue(gcap_stream_handle(last->stream)));
    }
  };
  const RawStream raw;  // not gcap's, whose end may do the work as well
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(raw.get(), GCAP_STREAM_USER, /*flags=*/0, /*device_id=*/0, &stream));
  Last last{stream, {}};
  last.job.set_input(7);
  GCAP_EXPECT_OK(gcap_stream_defer(stream, Last::Run, &last));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  EXPECT_EQ(last.job.output(), 7);
}

// Was: the work was taken for done. A block of scratch that the end freed went to another stream while it was filled.
TEST_F(Deferred, WorkThatAnAttachmentsEndIssuesIsDoneWhenItsStreamIsDestroyed) {
  struct Last {
    gcap_stream_t* stream;
    CopyJob job;
  };
  static Last* last;
  const RawStream raw;  // not gcap's, whose end may do the work as well
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(raw.get(), GCAP_STREAM_USER, /*flags=*/0, /*device_id=*/0, &stream));
  Last made{stream, {}};
  last = &made;
  made.job.set_input(7);
  static const gcap_attachment_key_t key = {
      "last_t",
      [](gcap_stream_t*, void** out) -> gcap_status_t {
        *out = last;
        return nullptr;
      },
      [](void*) { GCAP_EXPECT_CUDA(last->job.Issue(gcap_stream_handle(last->stream))); }};
  void* object = nullptr;
  GCAP_ASSERT_OK(gcap_stream_attachment(stream, &key, &object));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  EXPECT_EQ(made.job.output(), 7);
}

// Was: the stream was freed under whoever waited for it.
TEST_F(Deferred, ReleaseCannotDestroyItsStream) {
  struct Ender {
    gcap_stream_t* stream;
    gcap_code_t refusal = GCAP_OK;
    static void Run(void* user) {
      auto* ender = static_cast<Ender*>(user);
      ender->refusal = Outcome(gcap_stream_destroy(ender->stream)).code;
    }
  } ender{stream_};
  GCAP_EXPECT_OK(gcap_stream_defer(stream_, Ender::Run, &ender));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  EXPECT_EQ(ender.refusal, GCAP_FAILED_PRECONDITION);
  ender.refusal = GCAP_OK;
  GCAP_EXPECT_OK(gcap_stream_defer(stream_, Ender::Run, &ender));
  DestroyStream();
  EXPECT_EQ(ender.refusal, GCAP_FAILED_PRECONDITION);
}

// Was: the destroy never returned.
TEST_F(Deferred, ReleaseThatAlwaysDefersItselfEndsWithItsStream) {
  struct Circle {
    gcap_stream_t* stream;
    int calls = 0;
    gcap_code_t refusal = GCAP_OK;
    static void Run(void* user) {
      auto* circle = static_cast<Circle*>(user);
      ++circle->calls;
      circle->refusal = Outcome(gcap_stream_defer(circle->stream, Run, circle)).code;
    }
  } circle{stream_};
  GCAP_EXPECT_OK(gcap_stream_defer(stream_, Circle::Run, &circle));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream_));
  EXPECT_EQ(circle.calls, 16) << "as gcap/stream.h says";
  EXPECT_EQ(circle.refusal, GCAP_FAILED_PRECONDITION) << "the last one was told that it has to release by itself";
  stream_ = nullptr;
}

// Was accepted, and never called.
TEST_F(Deferred, ReleaseIsRefusedInTheEndOfAnAttachment) {
  static gcap_code_t refusal;
  refusal = GCAP_OK;
  const gcap_attachment_key_t key = {
      "defers_t", MakeObject, [](void* stream) {
        const auto release = [](void*) { ADD_FAILURE(); };
        refusal = Outcome(gcap_stream_defer(static_cast<gcap_stream_t*>(stream), release, nullptr)).code;
      }};
  void* object = nullptr;
  GCAP_ASSERT_OK(gcap_stream_attachment(stream_, &key, &object));
  ASSERT_EQ(object, stream_);
  DestroyStream();
  EXPECT_EQ(refusal, GCAP_FAILED_PRECONDITION);
}

TEST_F(Deferred, ReleaseInAScopeIsTheGraphs) {
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
  Defer(&first_);
  Defer(&second_);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  EXPECT_EQ(events_, Events{}) << "a replay reads the buffer again";
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  gcap_retained_release(retained);
  EXPECT_EQ(events_, (Events{"second", "first"}));
}

TEST_F(Deferred, ReleaseInAScopeOfAForkedStreamIsTheGraphs) {
  const RawStream origin;
  gcap_stream_t* wrapper = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(origin.get(), GCAP_STREAM_USER, 0, 0, &wrapper));
  gcap_notification_t* fork = nullptr;
  gcap_notification_t* join = nullptr;
  GCAP_ASSERT_OK(gcap_notification_create(wrapper, &fork));
  GCAP_ASSERT_OK(gcap_notification_create(stream_, &join));
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(origin.get(), nullptr, &capture));
  GCAP_EXPECT_OK(gcap_notification_record(fork));
  GCAP_EXPECT_OK(gcap_notification_wait(fork, stream_));
  Defer(&first_);
  GCAP_EXPECT_OK(gcap_notification_record(join));
  GCAP_EXPECT_OK(gcap_notification_wait(join, wrapper));
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  EXPECT_EQ(events_, Events{});
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  gcap_retained_release(retained);
  EXPECT_EQ(events_, Events{"first"});
  gcap_notification_destroy(fork);
  gcap_notification_destroy(join);
  GCAP_EXPECT_OK(gcap_stream_destroy(wrapper));
}

TEST_F(Deferred, ReleaseInAScopeThatFailsRunsWithItsEnd) {
  for (const bool invalidate_first : {false, true}) {
    events_.clear();
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(stream_), nullptr, &capture));
    if (!invalidate_first) Defer(&first_);
    EXPECT_NE(cudaStreamSynchronize(gcap_stream_handle(stream_)), cudaSuccess);
    (void)cudaGetLastError();
    if (invalidate_first) Defer(&first_);
    EXPECT_EQ(events_, Events{});
    gcap_capture_abort(capture);
    EXPECT_EQ(events_, Events{"first"});
    GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
    EXPECT_EQ(events_, Events{"first"}) << "once";
  }
}

TEST_F(Deferred, ReleaseInAScopeOfAStreamOutsideItIsTheStreams) {
  const RawStream capturing;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(capturing.get(), nullptr, &capture));
  Defer(&first_);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  EXPECT_EQ(retained, nullptr);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_EQ(events_, Events{});
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  EXPECT_EQ(events_, Events{"first"});
}

TEST_F(Deferred, ReleaseIsRefusedWhileSomebodyElseCapturesTheStream) {
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(gcap_stream_handle(stream_), cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_FAILS(gcap_stream_defer(stream_, RunRelease, &first_), GCAP_FAILED_PRECONDITION, "gcap_stream_defer");
  EXPECT_NE(cudaStreamSynchronize(gcap_stream_handle(stream_)), cudaSuccess);
  (void)cudaGetLastError();
  GCAP_EXPECT_FAILS(gcap_stream_defer(stream_, RunRelease, &first_), GCAP_FAILED_PRECONDITION, "invalidated");
  cudaGraph_t graph = nullptr;
  EXPECT_NE(cudaStreamEndCapture(gcap_stream_handle(stream_), &graph), cudaSuccess);
  (void)cudaGetLastError();
  GCAP_EXPECT_OK(gcap_stream_synchronize(stream_));
  EXPECT_EQ(events_, Events{}) << "a refused release stays the caller's";
}

}  // namespace
}  // namespace testing
}  // namespace gcap
