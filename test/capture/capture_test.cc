// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0

#include "gcap/capture.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gcap/log.h"
#include "gtest/gtest.h"
#include "lib/capture/inner.h"
#include "lib/internal/capture_gate.h"
#include "test/base/device_work.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

using Events = std::vector<std::string>;

// Something that a capture calls back.
struct Callback {
  Events* events;
  const char* name;

  static void Close(void* user, bool committed) {
    const auto* callback = static_cast<Callback*>(user);
    callback->events->push_back(std::string(callback->name) + (committed ? " committed" : " undone"));
  }
  static void Release(void* user) {
    const auto* callback = static_cast<Callback*>(user);
    callback->events->push_back(callback->name);
  }
};

class Capture : public DeviceTest {
 protected:
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_FALSE(gcap_thread_is_capturing());
    EXPECT_EQ(gcap_capture_current(), nullptr);
    EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING);
    DeviceTest::TearDown();
  }

  gcap_capture_t* Begin(const RawStream& stream) {
    gcap_capture_t* capture = nullptr;
    GCAP_EXPECT_OK(gcap_capture_begin(stream.get(), nullptr, &capture));
    return capture;
  }

  // Ends a capture that must succeed, and gives the number of its nodes.
  size_t EndWell(gcap_capture_t* capture) {
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
    size_t nodes = 0;
    GCAP_EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    gcap_retained_release(retained);
    return nodes;
  }

  // Ends a capture that must fail, and gives the status.
  Outcome EndBadly(gcap_capture_t* capture) {
    auto* graph = reinterpret_cast<cudaGraph_t>(this);
    auto* retained = reinterpret_cast<gcap_retained_t*>(this);
    Outcome outcome(gcap_capture_end(capture, &graph, &retained));
    EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED") << outcome.message;
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(retained, nullptr);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    return outcome;
  }

  // The stream works at once, and captures.
  void ExpectUsable(const RawStream& stream) {
    EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusNone);
    CopyJob job;
    job.set_input(12);
    GCAP_EXPECT_CUDA(job.Issue(stream.get()));
    stream.Synchronize();
    EXPECT_EQ(job.output(), 12);
    gcap_capture_t* capture = Begin(stream);
    GCAP_EXPECT_CUDA(job.Issue(stream.get()));
    EXPECT_EQ(EndWell(capture), CopyJob::kNodes);
  }

  void QuietWarnings() { gcap_log_set_sink(CountLog, &warnings_, GCAP_LOG_WARNING); }
  static void CountLog(void* count, gcap_log_level_t, const char*) { ++*static_cast<int*>(count); }

  int warnings_ = 0;
  Events events_;
};

TEST_F(Capture, OptionsDefaultToThreadLocalWithALedger) {
  gcap_capture_options_t options = {sizeof(gcap_capture_options_t), GCAP_CAPTURE_RELAXED, 1};
  gcap_capture_options_init(&options);
  EXPECT_EQ(options.mode, GCAP_CAPTURE_THREAD_LOCAL);
  EXPECT_EQ(options.ledger_calls, 64u);
}

TEST_F(Capture, GivesTheGraphOfWhatWasIssuedAndRunsNothing) {
  const RawStream stream;
  CopyJob job;
  job.set_input(1);
  gcap_capture_t* capture = Begin(stream);
  ASSERT_NE(capture, nullptr);
  EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusActive);
  EXPECT_EQ(gcap_capture_stream(capture), stream.get());
  GCAP_EXPECT_CUDA(job.Issue(stream.get()));
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = reinterpret_cast<gcap_retained_t*>(this);
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  EXPECT_EQ(retained, nullptr) << "nothing was retained";
  EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusNone);
  stream.Synchronize();
  EXPECT_EQ(job.output(), -1);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  GCAP_EXPECT_CUDA(cudaGraphLaunch(exec, stream.get()));
  stream.Synchronize();
  EXPECT_EQ(job.output(), 1);
  GCAP_EXPECT_CUDA(cudaGraphExecDestroy(exec));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(Capture, TellsItsThreadAndOnlyItsThread) {
  const RawStream stream;
  EXPECT_FALSE(gcap_thread_is_capturing());
  gcap_capture_t* capture = Begin(stream);
  EXPECT_TRUE(gcap_thread_is_capturing());
  EXPECT_EQ(gcap_capture_current(), capture);
  EXPECT_EQ(gcap_capture_gate_num_inside(), 1u);
  std::thread([this] {
    EXPECT_FALSE(gcap_thread_is_capturing());
    EXPECT_EQ(gcap_capture_current(), nullptr);
    EXPECT_EQ(gcap_capture_gate_num_inside(), 1u);
    const RawStream other;
    gcap_capture_t* second = Begin(other);
    EXPECT_EQ(gcap_capture_gate_num_inside(), 2u);
    EndWell(second);
  }).join();
  EXPECT_EQ(gcap_capture_gate_num_inside(), 1u);
  EndWell(capture);
}

TEST_F(Capture, OfTheLegacyStreamIsInvalidArgument) {
  for (const cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamLegacy}) {
    auto* capture = reinterpret_cast<gcap_capture_t*>(this);
    GCAP_EXPECT_FAILS(gcap_capture_begin(stream, nullptr, &capture), GCAP_INVALID_ARGUMENT, "default stream");
    EXPECT_EQ(capture, nullptr);
  }
}

TEST_F(Capture, InAnUnknownModeIsInvalidArgument) {
  const RawStream stream;
  const gcap_capture_options_t options = {sizeof(gcap_capture_options_t), static_cast<gcap_capture_mode_t>(3), 0};
  auto* capture = reinterpret_cast<gcap_capture_t*>(this);
  GCAP_EXPECT_FAILS(gcap_capture_begin(stream.get(), &options, &capture), GCAP_INVALID_ARGUMENT, "mode is 3");
  EXPECT_EQ(capture, nullptr);
  ExpectUsable(stream);
}

TEST_F(Capture, WithOptionsOfNoVersionIsInvalidArgument) {
  const RawStream stream;
  const gcap_capture_options_t options = {1, GCAP_CAPTURE_THREAD_LOCAL, 0};
  auto* capture = reinterpret_cast<gcap_capture_t*>(this);
  GCAP_EXPECT_FAILS(gcap_capture_begin(stream.get(), &options, &capture), GCAP_INVALID_ARGUMENT, "struct_size is 1");
  EXPECT_EQ(capture, nullptr);
  ExpectUsable(stream);
}

TEST_F(Capture, WithTooLargeALedgerIsInvalidArgument) {
  const RawStream stream;
  const gcap_capture_options_t options = {sizeof(gcap_capture_options_t), GCAP_CAPTURE_THREAD_LOCAL,
                                          GCAP_CAPTURE_MAX_LEDGER_CALLS + 1};
  auto* capture = reinterpret_cast<gcap_capture_t*>(this);
  GCAP_EXPECT_FAILS(gcap_capture_begin(stream.get(), &options, &capture), GCAP_INVALID_ARGUMENT,
                    "ledger_calls is 65537, allowed are 0..65536");
  EXPECT_EQ(capture, nullptr);
  ExpectUsable(stream);
}

TEST_F(Capture, OfAStreamThatSomebodyCapturesIsRefusedAndLeavesThatCaptureAlone) {
  const RawStream stream;
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  auto* capture = reinterpret_cast<gcap_capture_t*>(this);
  GCAP_EXPECT_FAILS(gcap_capture_begin(stream.get(), nullptr, &capture), GCAP_FAILED_PRECONDITION, "is capturing");
  EXPECT_EQ(capture, nullptr);
  EXPECT_FALSE(gcap_thread_is_capturing());
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  ExpectUsable(stream);
}

TEST_F(Capture, ModeDecidesWhichUnsafeCallsBreakIt) {
  const struct {
    gcap_capture_mode_t mode;
    bool own_survives;
    bool other_survives;
  } rows[] = {
      {GCAP_CAPTURE_THREAD_LOCAL, false, true},
      {GCAP_CAPTURE_GLOBAL, false, false},
      {GCAP_CAPTURE_RELAXED, true, true},
  };
  const RawStream stream;
  const RawStream idle;
  const auto unsafe = [&idle] { return cudaStreamQuery(idle.get()) == cudaSuccess; };
  for (const auto& row : rows) {
    const gcap_capture_options_t options = {sizeof(gcap_capture_options_t), row.mode, 64};
    for (const bool own : {true, false}) {
      SCOPED_TRACE(std::to_string(row.mode) + (own ? " own" : " other"));
      gcap_capture_t* capture = nullptr;
      GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), &options, &capture));
      const bool survives = own ? row.own_survives : row.other_survives;
      if (own) {
        EXPECT_EQ(unsafe(), survives);
        (void)cudaGetLastError();
      } else {
        std::thread([&] { EXPECT_EQ(unsafe(), survives); }).join();
      }
      if (survives) {
        EndWell(capture);
      } else {
        EXPECT_EQ(EndBadly(capture).cuda_error, cudaErrorStreamCaptureInvalidated);
      }
      ExpectUsable(stream);
    }
  }
}

// Where the driver refuses an allocation, it is seen whoever made it, and named if GCAP_CUDA did. In the relaxed mode
// it is legal, so the graph is right, and only the ledger may know.
TEST_F(Capture, AnAllocationFailsItUnlessTheModeIsRelaxed) {
  const RawStream stream;
  for (const auto mode : {GCAP_CAPTURE_THREAD_LOCAL, GCAP_CAPTURE_GLOBAL, GCAP_CAPTURE_RELAXED}) {
    for (const bool noted : {true, false}) {
      SCOPED_TRACE(std::to_string(mode) + (noted ? " noted" : " raw"));
      const gcap_capture_options_t options = {sizeof(gcap_capture_options_t), mode, 64};
      gcap_capture_t* capture = nullptr;
      GCAP_ASSERT_OK(gcap_capture_begin(stream.get(), &options, &capture));
      void* memory = nullptr;
      if (noted) {
        gcap_status_free(GCAP_CUDA(cudaMalloc(&memory, 64)));
      } else {
        (void)cudaMalloc(&memory, 64);
      }
      EXPECT_EQ(gcap_capture_get_calls(capture, nullptr, 0), noted ? 1u : 0u);
      if (mode == GCAP_CAPTURE_RELAXED) {
        EndWell(capture);
      } else {
        EXPECT_EQ(EndBadly(capture).Names("cudaMalloc"), noted);
      }
      EXPECT_EQ(memory != nullptr, mode == GCAP_CAPTURE_RELAXED);
      GCAP_EXPECT_CUDA(cudaFree(memory));
    }
  }
}

// --- The latch ------------------------------------------------------------------------------------------------------

TEST_F(Capture, FailsWhenACudaErrorWasSeenThoughTheDriverWouldEndItWell) {
  const RawStream stream;
  CopyJob job;
  gcap_capture_t* capture = Begin(stream);
  GCAP_EXPECT_CUDA(job.Issue(stream.get()));
  // Refused with an error, and the capture goes on without the work (rule R9).
  gcap_status_ignore(GCAP_CUDA(cudaMemcpyAsync(nullptr, &job, 4, cudaMemcpyDefault, stream.get())));
  EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusActive);
  const Outcome outcome = EndBadly(capture);
  EXPECT_EQ(outcome.cuda_error, cudaErrorInvalidValue);
  EXPECT_TRUE(outcome.Names("cudaMemcpyAsync")) << outcome.message;
  EXPECT_EQ(outcome.cuda_call.rfind("cudaMemcpyAsync(", 0), 0u) << outcome.cuda_call;
  ExpectUsable(stream);
}

TEST_F(Capture, FailsWhenACallFailedAndNobodyLooked) {
  RawStream stream;
  gcap_capture_t* capture = Begin(stream);
  // The driver refuses the arguments, keeps the capture, and would end it well without the copy (rule R9).
  int to = 0;
  (void)cudaMemcpyAsync(nullptr, &to, sizeof(to), cudaMemcpyDefault, stream.get());
  const Outcome outcome = EndBadly(capture);
  EXPECT_EQ(outcome.cuda_error, cudaErrorInvalidValue);
  EXPECT_TRUE(outcome.Names("an unreported call failed")) << outcome.message;
}

TEST_F(Capture, IsNotBlamedForAnErrorThatWasThereBefore) {
  RawStream stream;
  gcap_log_set_sink([](void*, gcap_log_level_t, const char*) {}, nullptr, GCAP_LOG_ERROR);
  EXPECT_NE(cudaSetDevice(-1), cudaSuccess);
  EXPECT_EQ(EndWell(Begin(stream)), 0u);
}

TEST_F(Capture, OfAThreadThatExitsIsAbortedAndTheStreamWorks) {
  RawStream stream;
  gcap_log_set_sink([](void*, gcap_log_level_t, const char*) {}, nullptr, GCAP_LOG_ERROR);
  std::thread([this, &stream] { Begin(stream); }).join();
  EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
  EXPECT_EQ(EndWell(Begin(stream)), 0u);
}

TEST_F(Capture, FailsByAnyStatusThatMeansLostWork) {
  const RawStream stream;
  for (const gcap_code_t code : {GCAP_CUDA_ERROR, GCAP_LIBRARY_ERROR, GCAP_RESOURCE_EXHAUSTED}) {
    gcap_capture_t* capture = Begin(stream);
    gcap_status_ignore(GCAP_STATUS(code, "lost in the %s", "library"));
    EXPECT_TRUE(EndBadly(capture).Names("lost in the library"));
  }
}

TEST_F(Capture, DoesNotFailByAStatusThatLosesNoWork) {
  const RawStream stream;
  for (const gcap_code_t code : {GCAP_INVALID_ARGUMENT, GCAP_FAILED_PRECONDITION, GCAP_NOT_FOUND, GCAP_ALREADY_EXISTS,
                                 GCAP_UNAVAILABLE, GCAP_UNIMPLEMENTED}) {
    gcap_capture_t* capture = Begin(stream);
    gcap_status_ignore(GCAP_STATUS(code, "an expected answer"));
    EndWell(capture);
  }
}

TEST_F(Capture, DoesNotFailByAnErrorOfAnotherThread) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream);
  std::thread([] { gcap_status_ignore(GCAP_STATUS(GCAP_CUDA_ERROR, "elsewhere")); }).join();
  EndWell(capture);
}

TEST_F(Capture, DoesNotFailByAnErrorBeforeOrAfterAnotherCapture) {
  const RawStream stream;
  gcap_status_ignore(GCAP_STATUS(GCAP_CUDA_ERROR, "before"));
  gcap_capture_t* capture = Begin(stream);
  gcap_capture_abort(capture);
  gcap_status_ignore(GCAP_STATUS(GCAP_CUDA_ERROR, "between"));
  EndWell(Begin(stream));
}

TEST_F(Capture, FailedByHandNamesTheFirstCauseAndCountsTheOthers) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream);
  for (const char* text : {"the kernel gave up", "and again", "and again"}) {
    gcap_status_t cause = GCAP_STATUS(GCAP_INVALID_ARGUMENT, "%s", text);
    gcap_capture_fail(capture, cause);
    EXPECT_STREQ(gcap_status_message(cause), text) << "the cause stays the caller's";
    gcap_status_free(cause);
  }
  const Outcome outcome = EndBadly(capture);
  EXPECT_TRUE(outcome.Names("the kernel gave up")) << outcome.message;
  EXPECT_TRUE(outcome.Names("3 failures")) << outcome.message;
  ExpectUsable(stream);
}

// It was latched where it was made, and came up with a prefix.
TEST_F(Capture, FailedOnceMoreByItsCauseCountsOneFailure) {
  const RawStream stream;
  for (const bool has_prefix : {true, false}) {
    for (const bool once : {true, false}) {
      gcap_capture_t* capture = Begin(stream);
      gcap_status_t cause = GCAP_STATUS(GCAP_LIBRARY_ERROR, "the kernel gave up");
      if (has_prefix) cause = gcap_status_annotate(cause, GCAP_LIBRARY_ERROR, "node 'x'");
      once ? gcap_capture_fail_once(capture, cause) : gcap_capture_fail(capture, cause);
      gcap_status_free(cause);
      const Outcome outcome = EndBadly(capture);
      EXPECT_TRUE(outcome.Names("the kernel gave up")) << outcome.message;
      EXPECT_EQ(outcome.Names("2 failures"), !once) << outcome.message;
    }
  }
}

TEST_F(Capture, MayBeFailedByManyThreads) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([capture] {
      gcap_status_t cause = GCAP_STATUS(GCAP_INTERNAL, "from a helper");
      for (int k = 0; k < 50; ++k) gcap_capture_fail(capture, cause);
      gcap_status_free(cause);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(EndBadly(capture).Names("first of 200 failures"));
}

TEST_F(Capture, ThatTheDriverInvalidatedIsNamedByItsFirstFailure) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream);
  gcap_status_ignore(GCAP_CUDA(cudaStreamSynchronize(stream.get())));
  EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusInvalidated);
  const Outcome outcome = EndBadly(capture);
  EXPECT_EQ(outcome.cuda_error, cudaErrorStreamCaptureUnsupported);
  EXPECT_TRUE(outcome.Names("cudaStreamSynchronize")) << outcome.message;
  EXPECT_TRUE(outcome.Names("cudaStreamEndCapture")) << outcome.message;
  ExpectUsable(stream);
}

TEST_F(Capture, WithAForkNotJoinedFails) {
  const RawStream stream;
  const RawStream fork;
  CopyJob job;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  gcap_capture_t* capture = Begin(stream);
  GCAP_EXPECT_CUDA(cudaEventRecord(event, stream.get()));
  GCAP_EXPECT_CUDA(cudaStreamWaitEvent(fork.get(), event, 0));
  GCAP_EXPECT_CUDA(job.Issue(fork.get()));
  EXPECT_EQ(EndBadly(capture).cuda_error, cudaErrorStreamCaptureUnjoined);
  ExpectUsable(fork);
  ExpectUsable(stream);
  GCAP_EXPECT_CUDA(cudaEventDestroy(event));
}

// --- Ends -----------------------------------------------------------------------------------------------------------

TEST_F(Capture, EndedBehindItsBackFailsAndIsGone) {
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_TRUE(EndBadly(capture).Names("cudaStreamEndCapture"));
  ExpectUsable(stream);
}

// Was: the end succeeded with the second capture's graph, which lacks the first one's work.
TEST_F(Capture, ReplacedBehindItsBackFailsAndIsGone) {
  const RawStream stream;
  const CopyJob job;
  gcap_capture_t* capture = Begin(stream);
  GCAP_EXPECT_CUDA(job.Issue(stream.get()));
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream.get(), &graph), cudaSuccess);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  ASSERT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  GCAP_EXPECT_CUDA(job.Issue(stream.get()));
  EXPECT_TRUE(EndBadly(capture).Names("in another capture than the one that gcap began"));
  ExpectUsable(stream);
}

TEST_F(Capture, EndedOnAnotherThreadGoesOn) {
  const RawStream stream;
  CopyJob job;
  gcap_capture_t* capture = Begin(stream);
  std::thread([this, capture] {
    auto* graph = reinterpret_cast<cudaGraph_t>(this);
    auto* retained = reinterpret_cast<gcap_retained_t*>(this);
    GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, &retained), GCAP_FAILED_PRECONDITION, "thread");
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(retained, nullptr);
  }).join();
  GCAP_EXPECT_CUDA(job.Issue(stream.get()));
  EXPECT_EQ(EndWell(capture), CopyJob::kNodes);
}

TEST_F(Capture, EndOfNoneIsFailedPrecondition) {
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_end(gcap_capture_current(), &graph, &retained), GCAP_FAILED_PRECONDITION, "none open");
}

TEST_F(Capture, OfNoneIsRefusedOrIgnored) {
  GCAP_EXPECT_FAILS(gcap_capture_on_close(nullptr, Callback::Close, nullptr), GCAP_FAILED_PRECONDITION, "NULL");
  GCAP_EXPECT_FAILS(gcap_capture_retain(nullptr, Callback::Release, /*bytes=*/nullptr, nullptr),
                    GCAP_FAILED_PRECONDITION, "NULL");
  EXPECT_EQ(gcap_capture_stream(nullptr), nullptr);
  gcap_status_t cause = GCAP_STATUS(GCAP_INTERNAL, "nobody hears it");
  gcap_capture_fail(nullptr, cause);
  gcap_status_free(cause);
}

TEST_F(Capture, WithoutAPlaceForAnOutputOrACallbackIsInvalidArgument) {
  const RawStream stream;
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_FAILS(gcap_capture_begin(stream.get(), nullptr, nullptr), GCAP_INVALID_ARGUMENT, "out_capture is NULL");
  EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusNone);
  gcap_capture_t* capture = Begin(stream);
  GCAP_EXPECT_FAILS(gcap_capture_on_close(capture, nullptr, this), GCAP_INVALID_ARGUMENT, "close is NULL");
  GCAP_EXPECT_FAILS(gcap_capture_retain(capture, nullptr, /*bytes=*/nullptr, this), GCAP_INVALID_ARGUMENT,
                    "release is NULL");
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, nullptr, &retained), GCAP_INVALID_ARGUMENT, "out_graph is NULL");
  GCAP_EXPECT_FAILS(gcap_capture_end(capture, &graph, nullptr), GCAP_INVALID_ARGUMENT, "out_retained is NULL");
  EXPECT_EQ(gcap_capture_current(), capture) << "it goes on";
  EXPECT_EQ(EndWell(capture), 0u);
}

TEST_F(Capture, AbortUndoesIt) {
  const RawStream stream;
  CopyJob job;
  gcap_capture_t* capture = Begin(stream);
  GCAP_EXPECT_CUDA(job.Issue(stream.get()));
  gcap_capture_abort(capture);
  ExpectUsable(stream);
  EXPECT_EQ(job.output(), -1);
  gcap_capture_abort(nullptr);
}

TEST_F(Capture, AbortOnAnotherThreadOnlyFailsIt) {
  QuietWarnings();
  const RawStream stream;
  gcap_capture_t* capture = Begin(stream);
  std::thread([capture] { gcap_capture_abort(capture); }).join();
  EXPECT_EQ(warnings_, 1);
  EXPECT_EQ(gcap_capture_current(), capture);
  EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusActive);
  EXPECT_TRUE(EndBadly(capture).Names("given up"));
  ExpectUsable(stream);
}

TEST_F(Capture, AbandonedIsAbortedByTheNextBegin) {
  QuietWarnings();
  const RawStream stream;
  const RawStream next;
  Callback step = {&events_, "step"};
  Callback entry = {&events_, "entry"};
  gcap_capture_t* abandoned = Begin(stream);
  GCAP_EXPECT_OK(gcap_capture_on_close(abandoned, Callback::Close, &step));
  GCAP_EXPECT_OK(gcap_capture_retain(abandoned, Callback::Release, /*bytes=*/nullptr, &entry));
  gcap_capture_t* capture = Begin(next);
  EXPECT_EQ(warnings_, 1);
  EXPECT_EQ(events_, (Events{"step undone", "entry"}));
  EXPECT_EQ(gcap_capture_current(), capture);
  EXPECT_EQ(gcap_capture_gate_num_inside(), 1u);
  EXPECT_EQ(stream.CaptureStatus(), cudaStreamCaptureStatusNone);
  EndWell(capture);
  ExpectUsable(stream);
}

TEST_F(Capture, AbandonedOnTheSameStreamIsReplaced) {
  QuietWarnings();
  const RawStream stream;
  CopyJob job;
  GCAP_EXPECT_CUDA(job.Issue(stream.get()));
  Begin(stream);
  GCAP_EXPECT_CUDA(job.Issue(stream.get()));
  gcap_capture_t* capture = Begin(stream);
  EXPECT_EQ(EndWell(capture), 0u) << "nothing of the abandoned capture is left";
}

// --- Steps and retained entries -------------------------------------------------------------------------------------

TEST_F(Capture, StepsRunOnceInReverseOrderWhenTheStreamHasLeftCaptureMode) {
  static const RawStream* stream_in_step = nullptr;
  const RawStream stream;
  stream_in_step = &stream;
  Callback first = {&events_, "first"};
  Callback second = {&events_, "second"};
  for (const bool commit : {true, false}) {
    events_.clear();
    gcap_capture_t* capture = Begin(stream);
    GCAP_EXPECT_OK(gcap_capture_on_close(capture, Callback::Close, &first));
    GCAP_EXPECT_OK(gcap_capture_on_close(capture, Callback::Close, &second));
    GCAP_EXPECT_OK(gcap_capture_on_close(
        capture,
        [](void*, bool) {
          EXPECT_EQ(stream_in_step->CaptureStatus(), cudaStreamCaptureStatusNone);
          EXPECT_FALSE(gcap_thread_is_capturing());
          EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
        },
        nullptr));
    EXPECT_EQ(events_, Events{});
    if (commit) {
      EndWell(capture);
      EXPECT_EQ(events_, (Events{"second committed", "first committed"}));
    } else {
      gcap_capture_abort(capture);
      EXPECT_EQ(events_, (Events{"second undone", "first undone"}));
    }
  }
}

TEST_F(Capture, RetainedEntriesOutliveItAndAreReleasedInReverseOrder) {
  const RawStream stream;
  Callback first = {&events_, "first"};
  Callback second = {&events_, "second"};
  gcap_capture_t* capture = Begin(stream);
  GCAP_EXPECT_OK(gcap_capture_retain(capture, Callback::Release, /*bytes=*/nullptr, &first));
  GCAP_EXPECT_OK(gcap_capture_retain(capture, Callback::Release, /*bytes=*/nullptr, &second));
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  ASSERT_NE(retained, nullptr);
  EXPECT_EQ(events_, Events{});
  gcap_retained_release(retained);
  EXPECT_EQ(events_, (Events{"second", "first"}));
  gcap_retained_release(nullptr);
}

TEST_F(Capture, RetainedEntriesAreReleasedByTheLastOwner) {
  const RawStream stream;
  Callback entry = {&events_, "entry"};
  gcap_capture_t* capture = Begin(stream);
  GCAP_EXPECT_OK(gcap_capture_retain(capture, Callback::Release, /*bytes=*/nullptr, &entry));
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_EQ(gcap_retained_share(retained), retained);
  gcap_retained_release(retained);
  EXPECT_EQ(events_, Events{});
  gcap_retained_release(retained);
  EXPECT_EQ(events_, Events{"entry"});
}

TEST_F(Capture, RetainedBytesAreAskedWhenTheSizeIs) {
  const RawStream stream;
  size_t sizes[] = {100, 20};
  const auto keep = [](void*) {};
  const auto bytes = [](void* size) { return *static_cast<size_t*>(size); };
  gcap_capture_t* capture = Begin(stream);
  GCAP_EXPECT_OK(gcap_capture_retain(capture, keep, bytes, &sizes[0]));
  GCAP_EXPECT_OK(gcap_capture_retain(capture, keep, /*bytes=*/nullptr, nullptr));
  GCAP_EXPECT_OK(gcap_capture_retain(capture, keep, bytes, &sizes[1]));
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graph, &retained));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  EXPECT_EQ(gcap_retained_bytes(retained), 120u);
  sizes[1] = 3;
  EXPECT_EQ(gcap_retained_bytes(retained), 103u);
  gcap_retained_release(retained);
  EXPECT_EQ(gcap_retained_bytes(nullptr), 0u);
}

TEST_F(Capture, RetainedEntriesOfAFailedOneAreReleasedAfterItsSteps) {
  const RawStream stream;
  Callback step = {&events_, "step"};
  Callback first = {&events_, "first"};
  Callback second = {&events_, "second"};
  gcap_capture_t* capture = Begin(stream);
  GCAP_EXPECT_OK(gcap_capture_retain(capture, Callback::Release, /*bytes=*/nullptr, &first));
  GCAP_EXPECT_OK(gcap_capture_on_close(capture, Callback::Close, &step));
  GCAP_EXPECT_OK(gcap_capture_retain(capture, Callback::Release, /*bytes=*/nullptr, &second));
  gcap_status_ignore(GCAP_STATUS(GCAP_LIBRARY_ERROR, "no"));
  EndBadly(capture);
  EXPECT_EQ(events_, (Events{"step undone", "second", "first"}));
}

// --- Threads --------------------------------------------------------------------------------------------------------

TEST_F(Capture, ManyThreadsCaptureAtOnceWithoutDisturbingEachOther) {
  std::vector<std::thread> threads;
  std::atomic<int> committed{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t, &committed] {
      const RawStream stream;
      CopyJob job;
      for (int round = 0; round < 20; ++round) {
        gcap_capture_t* capture = Begin(stream);
        GCAP_EXPECT_CUDA(job.Issue(stream.get()));
        EXPECT_GE(gcap_capture_gate_num_inside(), 1u);
        if ((round + t) % 2 == 0) {
          EXPECT_EQ(EndWell(capture), CopyJob::kNodes);
          ++committed;
        } else {
          gcap_capture_abort(capture);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(committed, 40);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
