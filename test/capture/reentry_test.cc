// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Callbacks of a capture that call the capture module themselves: close steps, releases and the log sink. None may lose
// an entry, a scope or a stream.

#include <functional>
#include <string>
#include <vector>

#include "gcap/capture.h"
#include "gcap/log.h"
#include "gtest/gtest.h"
#include "lib/capture/inner.h"
#include "lib/internal/capture_gate.h"
#include "test/base/device_work.h"
#include "test/capture/scope_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

using Function = std::function<void()>;

void CallClose(void* function, bool) { (*static_cast<Function*>(function))(); }
void Call(void* function) { (*static_cast<Function*>(function))(); }
void Count(void* count) { ++*static_cast<int*>(count); }
void CountClose(void* count, bool) { ++*static_cast<int*>(count); }

class CaptureReentry : public ScopeTest {
 protected:
  void SetUp() override {
    ScopeTest::SetUp();
    gcap_log_set_sink([](void* messages, gcap_log_level_t,
                         const char* message) { static_cast<std::vector<std::string>*>(messages)->push_back(message); },
                      &messages_, GCAP_LOG_WARNING);
  }
  void TearDown() override {
    gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING);
    if (IsSkipped()) return;
    EXPECT_FALSE(gcap_thread_is_capturing());
    EXPECT_EQ(gcap_capture_current(), nullptr);
    EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
    ScopeTest::TearDown();
  }

  // Runs `callback` as a close step of a capture that ends well and of one that fails, and as a release of the latter.
  void InEachCallback(const std::function<void(gcap_capture_t*)>& callback) {
    enum { kStepOfGood, kStepOfFailed, kReleaseOfFailed, kPlaces };
    for (int place = 0; place < kPlaces; ++place) {
      SCOPED_TRACE(place);
      const RawStream stream;
      gcap_capture_t* capture = Begin(stream.get());
      int calls = 0;
      Function function = [&] {
        ++calls;
        callback(capture);
      };
      if (place == kReleaseOfFailed) {
        GCAP_EXPECT_OK(gcap_capture_retain(capture, Call, /*bytes=*/nullptr, &function));
      } else {
        GCAP_EXPECT_OK(gcap_capture_on_close(capture, CallClose, &function));
      }
      if (place == kStepOfGood) {
        const Outcome outcome = End(capture);
        EXPECT_TRUE(outcome.ok()) << outcome.message;
      } else {
        gcap_capture_abort(capture);
      }
      EXPECT_EQ(calls, 1);
      EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusNone);
      EXPECT_EQ(gcap_capture_current(), nullptr);
    }
  }

  std::vector<std::string> messages_;
};

// A retain in a close step answered OK, and its release never came.
TEST_F(CaptureReentry, AScopeThatEndsTakesNothingMore) {
  const RawStream other;
  InEachCallback([&other](gcap_capture_t* capture) {
    int calls = 0;
    const cudaStream_t streams[] = {other.get()};
    const auto no_bytes = [](void*) { return size_t{0}; };
    GCAP_EXPECT_FAILS(gcap_capture_retain(capture, Count, /*bytes=*/nullptr, &calls), GCAP_FAILED_PRECONDITION,
                      "its end has begun");
    GCAP_EXPECT_FAILS(gcap_capture_retain(capture, Count, no_bytes, &calls), GCAP_FAILED_PRECONDITION,
                      "its end has begun");
    GCAP_EXPECT_FAILS(gcap_capture_on_close(capture, CountClose, &calls), GCAP_FAILED_PRECONDITION,
                      "its end has begun");
    GCAP_EXPECT_FAILS(gcap_capture_fork(capture, streams, 1), GCAP_FAILED_PRECONDITION, "its end has begun");
    GCAP_EXPECT_FAILS(gcap_capture_join(capture, streams, 1), GCAP_FAILED_PRECONDITION, "its end has begun");
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_FAILED_PRECONDITION, "ended by the thread");
    EXPECT_EQ(calls, 0) << "what was refused is not called";
  });
  EXPECT_TRUE(messages_.empty());
}

// The cause of a fail in a close step was lost with its memory; an abort said that another thread had called it.
TEST_F(CaptureReentry, AScopeThatEndsCannotFailAnyMore) {
  InEachCallback([](gcap_capture_t* capture) {
    gcap_status_t cause = GCAP_STATUS(GCAP_INTERNAL, "too late");
    gcap_capture_fail(capture, cause);
    gcap_status_free(cause);
    gcap_capture_abort(capture);
  });
  EXPECT_TRUE(messages_.empty());
}

TEST_F(CaptureReentry, ACallbackMayCapture) {
  const RawStream other;
  InEachCallback([&other](gcap_capture_t*) {
    const CopyJob job;
    gcap_capture_t* inner = Begin(other.get());
    EXPECT_EQ(gcap_capture_current(), inner);
    GCAP_EXPECT_CUDA(job.Issue(other.get()));
    const Outcome outcome = End(inner);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
  });
  EXPECT_TRUE(messages_.empty());
}

TEST_F(CaptureReentry, ACaptureThatACallbackLeavesOpenIsAborted) {
  const RawStream other;
  int closed = 0;
  InEachCallback(
      [&](gcap_capture_t*) { GCAP_EXPECT_OK(gcap_capture_on_close(Begin(other.get()), CountClose, &closed)); });
  EXPECT_EQ(closed, 3);
  EXPECT_EQ(other.CaptureStatus(), cudaStreamCaptureStatusNone);
  ASSERT_EQ(messages_.size(), 3u);
  EXPECT_NE(messages_[0].find("a close step: the capture of stream"), std::string::npos) << messages_[0];
  EXPECT_NE(messages_[2].find("a release: the capture of stream"), std::string::npos) << messages_[2];
}

// A begin aborted the thread's scope, a step of which began another one; that one was forgotten, its stream captured
// for ever, and the process counted an open scope to its end.
TEST_F(CaptureReentry, ABeginForgetsNoScopeOfAStepOfTheScopeThatItAborts) {
  const RawStream first, second, third;
  Function begins = [&second] { Begin(second.get()); };
  GCAP_EXPECT_OK(gcap_capture_on_close(Begin(first.get()), CallClose, &begins));
  gcap_capture_t* capture = Begin(third.get());
  EXPECT_EQ(gcap_capture_current(), capture);
  EXPECT_EQ(gcap_capture_gate_num_inside(), 1u);
  EXPECT_EQ(first.CaptureStatus(), cudaStreamCaptureStatusNone);
  EXPECT_EQ(second.CaptureStatus(), cudaStreamCaptureStatusNone);
  EXPECT_TRUE(End(capture).ok());
}

// The same by the log sink, wherever a begin calls it.
TEST_F(CaptureReentry, ABeginForgetsNoScopeOfTheLogSink) {
  for (const bool abandons : {true, false}) {
    SCOPED_TRACE(abandons);
    const RawStream first, third;
    static const RawStream* second = nullptr;
    const RawStream of_sink;
    second = &of_sink;
    static int calls;
    calls = 0;
    if (abandons) Begin(first.get());
    gcap_log_set_sink(
        [](void*, gcap_log_level_t, const char*) {
          if (++calls == 1) Begin(second->get());
        },
        nullptr, GCAP_LOG_WARNING);
    void* no_memory = nullptr;
    if (!abandons) {
      EXPECT_NE(cudaMalloc(&no_memory, ~size_t{0} / 2), cudaSuccess);  // an error that nobody clears is logged too
    }
    gcap_capture_t* capture = Begin(third.get());
    EXPECT_GE(calls, 1);
    EXPECT_EQ(gcap_capture_gate_num_inside(), 1u);
    EXPECT_EQ(first.CaptureStatus(), cudaStreamCaptureStatusNone);
    EXPECT_EQ(of_sink.CaptureStatus(), cudaStreamCaptureStatusNone);
    EXPECT_TRUE(End(capture).ok());
    (void)cudaGetLastError();
  }
}

TEST_F(CaptureReentry, BytesMayCallTheScopeThatIsOpen) {
  const RawStream stream;
  int released = 0;
  gcap_capture_t* capture = Begin(stream.get());
  GCAP_EXPECT_OK(gcap_capture_retain(
      capture, [](void*) {},
      [](void* count) {
        GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), Count, /*bytes=*/nullptr, count));
        return size_t{7};
      },
      &released));
  cudaGraph_t graph = nullptr;
  gcap_retained_t *retained = nullptr, *of_next = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  capture = Begin(stream.get());
  EXPECT_EQ(gcap_retained_bytes(retained), 7u);
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &of_next));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  gcap_retained_release(of_next);
  EXPECT_EQ(released, 1);
  gcap_retained_release(retained);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
