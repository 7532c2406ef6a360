// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What becomes of an id from run to run: warm-up, capture, failure, back-off.

#include <cstring>
#include <string>
#include <thread>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

using GraphManager = ManagerTest;

constexpr gcap_graph_run_kind_t kEager = GCAP_GRAPH_RUN_EAGER;
constexpr gcap_graph_run_kind_t kCapture = GCAP_GRAPH_RUN_CAPTURE;

TEST_F(GraphManager, OptionsHaveTheirDefaults) {
  gcap_graph_manager_options_t options;
  std::memset(&options, 0xff, sizeof(options));
  gcap_graph_manager_options_init(&options);
  EXPECT_EQ(options.min_num_runs_before_capture, 2u);
  EXPECT_EQ(options.backoff_runs, 1u);
  EXPECT_EQ(options.capture.mode, GCAP_CAPTURE_THREAD_LOCAL);
}

TEST_F(GraphManager, StatesHaveTheirNames) {
  const char* const names[] = {"COLD", "WARMING", "READY", "CAPTURING", "CAPTURED", "COOLING", "STALE"};
  for (int state = 0; state < 7; ++state) {
    EXPECT_STREQ(gcap_graph_state_name(static_cast<gcap_graph_state_t>(state)), names[state]);
  }
}

TEST_F(GraphManager, WithoutOptionsTakesTheDefaults) {
  GCAP_ASSERT_OK(gcap_graph_manager_create(nullptr, &manager_));
  CopyJob job;
  EXPECT_EQ(Run(0, job), kEager);
  EXPECT_EQ(Run(0, job), kEager);
  EXPECT_EQ(Run(0, job), kCapture);
}

TEST_F(GraphManager, CapturesAfterAsManyEagerRunsAsAskedFor) {
  for (const uint32_t runs : {0u, 1u, 2u, 5u}) {
    SCOPED_TRACE(runs);
    Create(runs);
    CopyJob job;
    for (uint32_t i = 0; i < runs; ++i) {
      EXPECT_EQ(Run(7, job), kEager);
      EXPECT_EQ(State(7), "WARMING");
      EXPECT_EQ(Info(7).eager_runs, i + 1);
    }
    EXPECT_EQ(Run(7, job), kCapture);
    EXPECT_EQ(State(7), "CAPTURED");
    EXPECT_EQ(Info(7).eager_runs, runs);
    GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
    manager_ = nullptr;
  }
}

TEST_F(GraphManager, EveryRunHasItsResultsEagerOrCaptured) {
  Create(1);
  CopyJob job;
  for (int value = 1; value <= 2; ++value) {
    job.set_input(value);
    Run(3, job);
    EXPECT_EQ(job.output(), value);
  }
  EXPECT_EQ(State(3), "CAPTURED");
}

TEST_F(GraphManager, SaysBeforeARunWhetherItIsCaptured) {
  Create(/*min_runs=*/2);
  CopyJob job;
  const auto expect_next = [&](bool captures) {
    for (int i = 0; i < 3; ++i) {  // a question changes nothing
      EXPECT_EQ(Info(5).captures_next, captures) << State(5);
    }
  };
  const auto run = [&](bool captures) {
    expect_next(captures);
    EXPECT_EQ(Run(5, job), captures ? GCAP_GRAPH_RUN_CAPTURE : GCAP_GRAPH_RUN_EAGER);
  };
  run(false);
  run(false);
  expect_next(true);
  FailingRun(5);
  run(false);  // cools down
  run(true);
  expect_next(false);  // replays
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 5));
  run(true);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 5));
  expect_next(false);
  EXPECT_FALSE(Info(GCAP_GRAPH_ID_NONE).captures_next);
  gcap_graph_info_t of_nothing;
  of_nothing.captures_next = true;
  gcap_graph_manager_get_info(nullptr, 5, &of_nothing);
  EXPECT_FALSE(of_nothing.captures_next);
  EXPECT_EQ(Info(5).eager_runs, 0u);
}

TEST_F(GraphManager, AFailedWarmUpRunDoesNotCount) {
  Create(1);
  FailingRun(0);
  EXPECT_EQ(Info(0).eager_runs, 0u);
  CopyJob job;
  EXPECT_EQ(Run(0, job), kEager);
  EXPECT_EQ(Run(0, job), kCapture);
}

TEST_F(GraphManager, IdsAreIndependent) {
  Create(1);
  CopyJob job;
  EXPECT_EQ(Run(0, job), kEager);
  EXPECT_EQ(Run(2147483647, job), kEager);
  EXPECT_EQ(Run(0, job), kCapture);
  EXPECT_EQ(State(2147483647), "WARMING");
  EXPECT_EQ(Run(2147483647, job), kCapture);
}

TEST_F(GraphManager, IdNoneNeverCaptures) {
  Create(0);
  CopyJob job;
  for (int i = 0; i < 4; ++i) {
    job.set_input(i);
    EXPECT_EQ(Run(GCAP_GRAPH_ID_NONE, job), kEager);
    EXPECT_EQ(job.output(), i);
  }
  EXPECT_EQ(State(GCAP_GRAPH_ID_NONE), "COLD");
  EXPECT_FALSE(gcap_graph_manager_is_captured(manager_, GCAP_GRAPH_ID_NONE));
  GCAP_EXPECT_FAILS(Replay(manager_, GCAP_GRAPH_ID_NONE, true), GCAP_NOT_FOUND, "-1");
}

TEST_F(GraphManager, UnknownCaptureModeIsInvalidArgumentAtOnce) {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.capture.mode = static_cast<gcap_capture_mode_t>(77);
  gcap_graph_manager_t* manager = nullptr;
  GCAP_EXPECT_FAILS(gcap_graph_manager_create(&options, &manager), GCAP_INVALID_ARGUMENT, "77");
  EXPECT_EQ(manager, nullptr);
}

TEST_F(GraphManager, ACapturedRunOfAThreadThatExitedIsNobodys) {
  Create(0);
  gcap_log_set_sink([](void*, gcap_log_level_t, const char*) {}, nullptr, GCAP_LOG_ERROR);
  std::thread([this] { EXPECT_EQ(Begin(0), kCapture); }).join();
  gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING);
  CopyJob job;
  job.set_input(9);
  EXPECT_EQ(Run(0, job), kCapture);
  EXPECT_EQ(job.output(), 9);
}

TEST_F(GraphManager, PerThreadStreamIsInvalidArgumentForAnId) {
  Create(0);
  gcap_graph_run_kind_t kind = kCapture;
  GCAP_EXPECT_FAILS(BeginPlain(manager_, 0, cudaStreamPerThread, &kind), GCAP_INVALID_ARGUMENT, "cudaStreamPerThread");
  GCAP_ASSERT_OK(BeginPlain(manager_, GCAP_GRAPH_ID_NONE, cudaStreamPerThread, &kind));
  EXPECT_EQ(kind, kEager);
  GCAP_EXPECT_OK(EndPlain(manager_, nullptr, true));
}

TEST_F(GraphManager, IdBelowNoneIsInvalidArgument) {
  Create(0);
  gcap_graph_run_kind_t kind = kCapture;
  GCAP_EXPECT_FAILS(BeginPlain(manager_, -2, stream_->get(), &kind), GCAP_INVALID_ARGUMENT, "id is -2");
  EXPECT_EQ(kind, kEager);
  GCAP_EXPECT_FAILS(EndPlain(manager_, nullptr, true), GCAP_FAILED_PRECONDITION, "no run");
}

// The warm-up ran on stream 0, and every run from the first capture on was refused.
TEST_F(GraphManager, ADefaultStreamIsRefusedAtTheFirstRunOfAnId) {
  Create(2);
  gcap_graph_run_kind_t kind = kCapture;
  for (const cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamLegacy, cudaStreamPerThread}) {
    for (int i = 0; i < 4; ++i) {
      GCAP_EXPECT_FAILS(BeginPlain(manager_, 0, stream, &kind), GCAP_INVALID_ARGUMENT,
                        stream == cudaStreamPerThread ? "cudaStreamPerThread" : "legacy default stream");
    }
    EXPECT_EQ(State(0), "COLD");
    GCAP_EXPECT_OK(BeginPlain(manager_, GCAP_GRAPH_ID_NONE, stream, &kind));
    EXPECT_EQ(kind, kEager);
    GCAP_EXPECT_OK(EndPlain(manager_, nullptr, true));
  }
}

TEST_F(GraphManager, ACapturedIdIsNotRunAgain) {
  Create(0);
  CopyJob job;
  Run(4, job);
  gcap_graph_run_kind_t kind = kCapture;
  GCAP_EXPECT_FAILS(BeginPlain(manager_, 4, stream_->get(), &kind), GCAP_ALREADY_EXISTS, "id 4");
  EXPECT_EQ(State(4), "CAPTURED");
}

TEST_F(GraphManager, AStreamCapturedBySomebodyElseIsRefusedAndTheIdStaysReady) {
  Create(0);
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeThreadLocal));
  gcap_graph_run_kind_t kind = kCapture;
  GCAP_EXPECT_FAILS(BeginPlain(manager_, 0, stream_->get(), &kind), GCAP_FAILED_PRECONDITION, "is capturing");
  EXPECT_EQ(State(0), "READY");
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_->get(), &graph), cudaSuccess);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  CopyJob job;
  EXPECT_EQ(Run(0, job), kCapture);
}

TEST_F(GraphManager, WhileCapturingTheScopeIsTheThreadsAndInfoIsLegal) {
  Create(0);
  ASSERT_EQ(Begin(5), kCapture);
  EXPECT_EQ(State(5), "CAPTURING");
  EXPECT_FALSE(gcap_graph_manager_is_captured(manager_, 5));
  ASSERT_NE(gcap_capture_current(), nullptr);
  EXPECT_EQ(gcap_capture_stream(gcap_capture_current()), stream_->get());
  EXPECT_EQ(stream_->CaptureStatus(), cudaStreamCaptureStatusActive);
  EXPECT_TRUE(End().ok());
  EXPECT_TRUE(gcap_graph_manager_is_captured(manager_, 5));
  EXPECT_EQ(gcap_capture_current(), nullptr);
}

TEST_F(GraphManager, OnAThreadThatCapturesNothingIsLaunchedOrReleased) {
  Create(0);
  CopyJob job;
  Run(0, job);
  ASSERT_EQ(Begin(1), kCapture);
  bool replayed = true;
  GCAP_EXPECT_FAILS(Replay(manager_, 0, false), GCAP_FAILED_PRECONDITION, "capturing");
  GCAP_EXPECT_FAILS(TryReplay(manager_, 0, false, &replayed), GCAP_FAILED_PRECONDITION, "capturing");
  EXPECT_FALSE(replayed);
  GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, 0), GCAP_FAILED_PRECONDITION, "capturing");
  GCAP_EXPECT_FAILS(gcap_graph_manager_release_all(manager_), GCAP_FAILED_PRECONDITION, "capturing");
  EXPECT_EQ(stream_->CaptureStatus(), cudaStreamCaptureStatusActive);
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(State(0), "CAPTURED");
  EXPECT_EQ(Info(0).replays, 1u);
}

TEST_F(GraphManager, DestroyOnAThreadThatCapturesIsRefused) {
  Create(0);
  const RawStream other;
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(other.get(), nullptr, &capture));
  GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager_), GCAP_FAILED_PRECONDITION, "capturing");
  gcap_capture_abort(capture);
}

TEST_F(GraphManager, AnEmptyCaptureIsKeptAndWarnedAbout) {
  Create(0);
  ASSERT_EQ(Begin(0), kCapture);
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(warnings_, 1);
  EXPECT_EQ(State(0), "CAPTURED");
  EXPECT_EQ(Info(0).nodes, 0u);
  GCAP_EXPECT_OK(Replay(manager_, 0, true));
}

TEST_F(GraphManager, CountsRunsCapturesReplaysAndNodes) {
  Create(2);
  CopyJob job;
  Run(0, job);
  Run(0, job);
  gcap_graph_info_t info = Info(0);
  EXPECT_EQ(info.eager_runs, 2u);
  EXPECT_EQ(info.captures + info.failures + info.replays, 0u);
  EXPECT_EQ(info.nodes, 0u);
  Run(0, job);
  info = Info(0);
  EXPECT_EQ(info.captures, 1u);
  EXPECT_EQ(info.replays, 1u);
  EXPECT_EQ(info.nodes, CopyJob::kNodes);
  EXPECT_GT(info.capture_ns, 0u);
  EXPECT_GT(info.instantiate_ns, 0u);
  GCAP_EXPECT_OK(Replay(manager_, 0, true));
  EXPECT_EQ(Info(0).replays, 2u);
  EXPECT_EQ(Info(0).eager_runs, 2u);
}

TEST_F(GraphManager, AnIdNeverSeenIsColdWithZeros) {
  Create(0);
  const gcap_graph_info_t info = Info(99);
  gcap_graph_info_t expected = {};
  expected.struct_size = sizeof(expected);
  expected.captures_next = true;  // no run has to come before
  EXPECT_EQ(std::memcmp(&info, &expected, sizeof(info)), 0);
}

// --- Failed captures and back-off -----------------------------------------------------------------------------------

TEST_F(GraphManager, AFailedRunInACaptureExecutesNothingAndNamesTheFailure) {
  Create(0);
  CopyJob job;
  ASSERT_EQ(Begin(6), kCapture);
  GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
  gcap_status_t failure = GCAP_STATUS(GCAP_INVALID_ARGUMENT, "the kernel has no such shape");
  GCAP_EXPECT_FAILS(EndPlain(manager_, failure, true), GCAP_CAPTURE_INVALIDATED, "no such shape");
  stream_->Synchronize();
  EXPECT_EQ(job.output(), -1);
  EXPECT_EQ(State(6), "COOLING");
  EXPECT_EQ(Info(6).failures, 1u);
  EXPECT_EQ(Info(6).nodes, 0u);
  job.set_input(1);
  EXPECT_EQ(Run(6, job), kEager);
  EXPECT_EQ(job.output(), 1);
}

TEST_F(GraphManager, ALatchedErrorFailsTheCaptureThoughTheRunSaysItIsWell) {
  Create(0);
  CopyJob job;
  ASSERT_EQ(Begin(6), kCapture);
  GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
  gcap_status_ignore(GCAP_CUDA(cudaMemcpyAsync(nullptr, &job, 4, cudaMemcpyDefault, stream_->get())));
  const Outcome outcome = End();
  EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(outcome.Names("cudaMemcpyAsync")) << outcome.message;
  EXPECT_TRUE(outcome.Names("id 6")) << outcome.message;
  EXPECT_EQ(State(6), "COOLING");
}

TEST_F(GraphManager, ACaptureThatTheDriverInvalidatedCoolsDownAndTheStreamWorks) {
  Create(0);
  ASSERT_EQ(Begin(6), kCapture);
  EXPECT_NE(cudaStreamSynchronize(stream_->get()), cudaSuccess);
  const Outcome outcome = End();
  EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
  EXPECT_EQ(outcome.cuda_error, cudaErrorStreamCaptureUnsupported) << "the ignored call's own error";
  CopyJob job;
  job.set_input(3);
  EXPECT_EQ(Run(6, job), kEager);
  EXPECT_EQ(job.output(), 3);
  EXPECT_EQ(Run(6, job), kCapture);
  EXPECT_EQ(State(6), "CAPTURED");
  EXPECT_EQ(Info(6).failures, 1u);
}

// Eager runs of an id until the next capture is due; that capture fails.
#define EXPECT_EAGER_RUNS_THEN_FAIL(id, expected)                \
  do {                                                           \
    uint64_t eager = 0;                                          \
    CopyJob job;                                                 \
    while (Begin(id) == kEager) {                                \
      EXPECT_EQ(State(id), "COOLING");                           \
      ASSERT_TRUE(End().ok());                                   \
      ASSERT_LE(++eager, 5000u);                                 \
    }                                                            \
    EXPECT_EQ(eager, static_cast<uint64_t>(expected));           \
    EXPECT_FALSE(End(GCAP_STATUS(GCAP_INTERNAL, "again")).ok()); \
  } while (0)

TEST_F(GraphManager, TheBackOffDoublesWithEachFailureInARowUpTo1024Times) {
  Create(0, /*backoff_runs=*/3);
  FailingRun(0);
  for (uint64_t factor = 1; factor <= 1024; factor *= 2) EXPECT_EAGER_RUNS_THEN_FAIL(0, 3 * factor);
  EXPECT_EAGER_RUNS_THEN_FAIL(0, 3 * 1024);
  EXPECT_EQ(Info(0).failures, 13u);
}

TEST_F(GraphManager, ASuccessfulCaptureEndsTheRow) {
  Create(0);
  CopyJob job;
  FailingRun(0);
  EXPECT_EAGER_RUNS_THEN_FAIL(0, 1);
  while (Run(0, job) == kEager) continue;
  EXPECT_EQ(State(0), "CAPTURED");
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  FailingRun(0);
  EXPECT_EAGER_RUNS_THEN_FAIL(0, 1);
}

TEST_F(GraphManager, WithoutBackOffTheNextRunIsCapturedAgain) {
  Create(0, /*backoff_runs=*/0);
  FailingRun(0);
  EXPECT_EAGER_RUNS_THEN_FAIL(0, 0);
  EXPECT_EAGER_RUNS_THEN_FAIL(0, 0);
  CopyJob job;
  EXPECT_EQ(Run(0, job), kCapture);
}

TEST_F(GraphManager, WhatAFailedRunRetainedIsReleasedAtOnce) {
  Create(0);
  int released = 0;
  ASSERT_EQ(Begin(0), kCapture);
  GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, &released));
  EXPECT_FALSE(End(GCAP_STATUS(GCAP_INTERNAL, "no")).ok());
  EXPECT_EQ(released, 1);
}

// --- Runs that are not ended as they should be ----------------------------------------------------------------------

TEST_F(GraphManager, EndWithoutARunIsFailedPrecondition) {
  Create(0);
  GCAP_EXPECT_FAILS(EndPlain(manager_, nullptr, true), GCAP_FAILED_PRECONDITION, "no run");
  CopyJob job;
  Run(0, job);
  GCAP_EXPECT_FAILS(EndPlain(manager_, nullptr, true), GCAP_FAILED_PRECONDITION, "no run");
}

TEST_F(GraphManager, ARunOfAnotherThreadIsNeitherEndedNorAborted) {
  Create(0);
  CopyJob job;
  ASSERT_EQ(Begin(0), kCapture);
  std::thread([this] {
    gcap_graph_run_kind_t kind = kCapture;
    GCAP_EXPECT_FAILS(EndPlain(manager_, nullptr, true), GCAP_FAILED_PRECONDITION, "another thread");
    GCAP_EXPECT_FAILS(BeginPlain(manager_, 1, stream_->get(), &kind), GCAP_FAILED_PRECONDITION, "another thread");
    EXPECT_EQ(kind, kEager);
    GCAP_EXPECT_FAILS(gcap_graph_manager_destroy(manager_), GCAP_FAILED_PRECONDITION, "another thread");
  }).join();
  GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(Info(0).nodes, CopyJob::kNodes);
}

TEST_F(GraphManager, AnAbandonedCaptureIsAbortedByTheNextRunAndMayBeTriedAgain) {
  Create(0);
  CopyJob job;
  int released = 0;
  ASSERT_EQ(Begin(0), kCapture);
  GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, &released));
  GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
  EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), kEager);
  EXPECT_EQ(warnings_, 1);
  EXPECT_EQ(released, 1);
  EXPECT_EQ(stream_->CaptureStatus(), cudaStreamCaptureStatusNone);
  EXPECT_EQ(State(0), "READY");
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(Run(0, job), kCapture);
}

TEST_F(GraphManager, AnAbandonedEagerRunDoesNotCount) {
  Create(1);
  CopyJob job;
  ASSERT_EQ(Begin(0), kEager);
  EXPECT_EQ(Run(0, job), kEager);
  EXPECT_EQ(warnings_, 1);
  EXPECT_EQ(Info(0).eager_runs, 1u);
}

TEST_F(GraphManager, DestroyAbortsAnOpenRun) {
  Create(0);
  CopyJob job;
  ASSERT_EQ(Begin(0), kCapture);
  GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
  manager_ = nullptr;
  EXPECT_EQ(stream_->CaptureStatus(), cudaStreamCaptureStatusNone);
  EXPECT_EQ(job.output(), -1);
}

TEST_F(GraphManager, ARunWhoseScopeIsGoneTakesNobodyElsesCapture) {
  // The next scope may lie at the address of the one that it aborted; many rounds make that likely.
  const RawStream other;
  CopyJob job;
  for (int round = 0; round < 32; ++round) {
    Create(0);
    ASSERT_EQ(Begin(0), kCapture);
    gcap_capture_t* theirs = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(other.get(), nullptr, &theirs));
    GCAP_EXPECT_CUDA(job.Issue(other.get()));
    if (round % 2 == 0) {
      EXPECT_STREQ(gcap_code_name(End().code), "CAPTURE_INVALIDATED");
      EXPECT_EQ(State(0), "COOLING");
    } else {
      EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), kEager);
      EXPECT_TRUE(Outcome(EndPlain(manager_, nullptr, false)).ok());
    }
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    GCAP_ASSERT_OK(gcap_capture_end(theirs, &graph, &retained));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
    manager_ = nullptr;
  }
}

TEST_F(GraphManager, TwoManagersOnOneStreamKeepTheirIdsApart) {
  Create(0);
  CopyJob job;
  Run(0, job);
  gcap_graph_manager_t* second = nullptr;
  GCAP_ASSERT_OK(gcap_graph_manager_create(nullptr, &second));
  EXPECT_FALSE(gcap_graph_manager_is_captured(second, 0));
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(second));
  EXPECT_TRUE(gcap_graph_manager_is_captured(manager_, 0));
}

TEST_F(GraphManager, DestroyOfNullIsFine) { GCAP_EXPECT_OK(gcap_graph_manager_destroy(nullptr)); }

}  // namespace
}  // namespace testing
}  // namespace gcap
