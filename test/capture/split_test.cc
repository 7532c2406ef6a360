// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Several graphs in one scope, and attempts: what a split gives and leaves as it is, what it refuses before the next
// graph begins, and what a part of the work that was tried did to the capture.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/capture/inner.h"
#include "lib/capture/steps.h"
#include "test/base/device_work.h"
#include "test/capture/scope_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

class CaptureSplit : public ScopeTest {
 protected:
  gcap_status_t Fork() const {
    const cudaStream_t other = other_.get();
    return gcap_capture_fork(gcap_capture_current(), &other, 1);
  }
  gcap_status_t Join() const {
    const cudaStream_t other = other_.get();
    return gcap_capture_join(gcap_capture_current(), &other, 1);
  }

  // What such a stream does alone invalidates its capture, and nobody hears of it.
  void BreakSilently() const {
    EXPECT_NE(cudaStreamQuery(origin_.get()), cudaSuccess);
    (void)cudaGetLastError();
  }

  // The scope ends without a graph, and the streams can be used.
  void ExpectFails(gcap_capture_t* capture) const {
    EXPECT_STREQ(gcap_code_name(End(capture).code), "CAPTURE_INVALIDATED");
    for (const RawStream* stream : {&origin_, &other_}) {
      EXPECT_EQ(stream->CaptureStatus(), cudaStreamCaptureStatusNone);
      GCAP_EXPECT_CUDA(job_.Issue(stream->get()));
      stream->Synchronize();
    }
  }

  const RawStream origin_, other_;
  const CopyJob job_;
};

size_t NumNodes(cudaGraph_t graph) {
  size_t nodes = 0;
  GCAP_EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
  return nodes;
}

// --- Splits ---------------------------------------------------------------------------------------------------------

TEST_F(CaptureSplit, GivesTheGraphOfEachPartAndKeepsTheScope) {
  int closed = 0;
  gcap_capture_t* capture = Begin(origin_.get());
  GCAP_EXPECT_OK(gcap_capture_on_close(
      capture, [](void* count, bool committed) { *static_cast<int*>(count) += committed ? 1 : 100; }, &closed));
  std::vector<cudaGraph_t> graphs(3);
  GCAP_EXPECT_CUDA(job_.Issue(origin_.get()));
  GCAP_ASSERT_OK(gcap_capture_split(capture, "sort", &graphs[0]));
  EXPECT_EQ(gcap_capture_current(), capture);
  EXPECT_FALSE(gcap_capture_is_left(capture));
  GCAP_EXPECT_OK(Fork());
  GCAP_EXPECT_CUDA(job_.Issue(other_.get()));
  GCAP_EXPECT_OK(Join());
  GCAP_EXPECT_CUDA(job_.Issue(origin_.get()));
  GCAP_ASSERT_OK(gcap_capture_split(capture, "sort", &graphs[1]));
  EXPECT_EQ(closed, 0);
  gcap_retained_t* retained = nullptr;
  GCAP_ASSERT_OK(gcap_capture_end(capture, &graphs[2], &retained));
  EXPECT_EQ(closed, 1);
  gcap_retained_release(retained);
  EXPECT_EQ(NumNodes(graphs[0]), CopyJob::kNodes);
  EXPECT_EQ(NumNodes(graphs[1]), 2 * CopyJob::kNodes);
  EXPECT_EQ(NumNodes(graphs[2]), 0u);
  for (const cudaGraph_t graph : graphs) GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

// An allocation that nobody notes breaks a capture in any mode but one.
TEST_F(CaptureSplit, TheNextGraphIsCapturedInTheModeOfTheScope) {
  for (const gcap_capture_mode_t mode : {GCAP_CAPTURE_THREAD_LOCAL, GCAP_CAPTURE_GLOBAL, GCAP_CAPTURE_RELAXED}) {
    cudaGraph_t first = nullptr;
    void* memory = nullptr;
    gcap_capture_t* capture = Begin(origin_.get(), kDefaultCalls, mode);
    GCAP_ASSERT_OK(gcap_capture_split(capture, "sort", &first));
    const bool is_legal = cudaMalloc(&memory, 64) == cudaSuccess;
    (void)cudaGetLastError();
    EXPECT_EQ(is_legal, mode == GCAP_CAPTURE_RELAXED);
    EXPECT_EQ(End(capture).ok(), is_legal);
    GCAP_EXPECT_CUDA(cudaFree(memory));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(first));
  }
}

TEST_F(CaptureSplit, OtherStreamsLeaveAndAreForkedAgain) {
  for (const bool forks_again : {true, false}) {
    cudaGraph_t first = nullptr;
    gcap_capture_t* capture = Begin(origin_.get());
    GCAP_EXPECT_OK(Fork());
    GCAP_EXPECT_OK(Join());
    GCAP_ASSERT_OK(gcap_capture_split(capture, "sort", &first));
    if (forks_again) {
      GCAP_EXPECT_OK(Fork());
      GCAP_EXPECT_OK(Join());
      EXPECT_TRUE(End(capture).ok());
    } else {
      GCAP_EXPECT_FAILS(Join(), GCAP_INVALID_ARGUMENT, "streams[0]");
      ExpectFails(capture);
    }
    GCAP_EXPECT_CUDA(cudaGraphDestroy(first));
  }
}

// Nothing is ended that would fail: what comes next is captured, and does not run.
TEST_F(CaptureSplit, WorkThatWasNotJoinedIsNamedWithItsLastCall) {
  for (const uint32_t ledger_calls : {kDefaultCalls, 3u, 2u}) {  // with room to spare, full, and more than full
    for (const bool is_newest : {false, true}) {
      SCOPED_TRACE(std::to_string(ledger_calls) + (is_newest ? " newest" : ""));
      cudaGraph_t first = reinterpret_cast<cudaGraph_t>(this);
      gcap_capture_t* capture = Begin(origin_.get(), ledger_calls);
      GCAP_EXPECT_OK(Fork());
      GCAP_EXPECT_CUDA(job_.Issue(other_.get()));
      gcap_capture_note("an earlier one", other_.get(), "work.cc", 1);
      if (is_newest) gcap_capture_note("work of the origin", origin_.get(), "work.cc", 2);
      gcap_label("branch");
      gcap_capture_note("work of another", other_.get(), "work.cc", 3);
      gcap_label(nullptr);
      if (!is_newest) gcap_capture_note("work of the origin", origin_.get(), "work.cc", 4);
      const Outcome outcome(gcap_capture_split(capture, "sort", &first));
      EXPECT_EQ(outcome.code, GCAP_FAILED_PRECONDITION);
      EXPECT_TRUE(outcome.Names("hole 'sort'")) << outcome.message;
      EXPECT_TRUE(outcome.Names(" (its last call: work of another in label 'branch' at work.cc:3")) << outcome.message;
      EXPECT_FALSE(outcome.Names("work of the origin") || outcome.Names("an earlier one")) << outcome.message;
      EXPECT_EQ(first, nullptr);
      EXPECT_EQ(origin_.CaptureStatus(), cudaStreamCaptureStatusActive);
      EXPECT_FALSE(gcap_capture_is_left(capture));
      ExpectFails(capture);
    }
  }
}

// Two nodes, and one edge.
TEST_F(CaptureSplit, WorkThatIsJoinedByOneEdgeIsNotNamed) {
  void* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(&memory, 64));
  for (const bool joins : {true, false}) {
    cudaGraph_t first = nullptr;
    gcap_capture_t* capture = Begin(origin_.get());
    GCAP_EXPECT_OK(Fork());
    GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, 0, 64, other_.get()));
    if (joins) GCAP_EXPECT_OK(Join());
    GCAP_CAPTURE_NOTE("work that the join does not know of", other_.get());
    GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, 0, 64, origin_.get()));
    const Outcome outcome(gcap_capture_split(capture, "sort", &first));
    EXPECT_EQ(outcome.ok(), joins) << outcome.message;
    if (joins) {
      GCAP_EXPECT_CUDA(cudaGraphDestroy(first));
      EXPECT_TRUE(End(capture).ok());
    } else {
      ExpectFails(capture);
    }
  }
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

// To each of whose nodes many ways lead.
TEST_F(CaptureSplit, WorkBehindManyForksAndJoinsIsFound) {
  cudaGraph_t first = nullptr;
  gcap_capture_t* capture = Begin(origin_.get());
  for (int diamond = 0; diamond < 12; ++diamond) {
    GCAP_EXPECT_OK(Fork());
    for (const RawStream* stream : {&origin_, &other_}) GCAP_EXPECT_CUDA(job_.Issue(stream->get()));
    GCAP_EXPECT_OK(Join());
  }
  GCAP_CAPTURE_NOTE("noted, and not joined again as far as that tells", other_.get());
  GCAP_ASSERT_OK(gcap_capture_split(capture, "sort", &first));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(first));
  for (int diamond = 0; diamond < 12; ++diamond) {
    GCAP_EXPECT_OK(Fork());
    for (const RawStream* stream : {&origin_, &other_}) GCAP_EXPECT_CUDA(job_.Issue(stream->get()));
    if (diamond < 11) GCAP_EXPECT_OK(Join());
  }
  GCAP_EXPECT_FAILS(gcap_capture_split(capture, "sort", &first), GCAP_FAILED_PRECONDITION, "not joined");
  ExpectFails(capture);
}

// The ledger lies where that of the scope before lay.
TEST_F(CaptureSplit, WorkThatNobodyNotedIsNamedWithoutACallOfAnEarlierScope) {
  for (const bool notes : {true, false}) {
    cudaGraph_t first = nullptr;
    gcap_capture_t* capture = Begin(origin_.get());
    GCAP_EXPECT_OK(Fork());
    GCAP_EXPECT_CUDA(job_.Issue(other_.get()));
    for (uint32_t i = 0; notes && i < kDefaultCalls; ++i) GCAP_CAPTURE_NOTE("an earlier one", other_.get());
    const Outcome outcome(gcap_capture_split(capture, "sort", &first));
    EXPECT_EQ(outcome.code, GCAP_FAILED_PRECONDITION);
    EXPECT_EQ(outcome.Names("an earlier one"), notes) << outcome.message;
    ExpectFails(capture);
  }
}

// Somebody ended the capture and began two others on its streams.
TEST_F(CaptureSplit, WorkOfAnotherCaptureIsNotNamed) {
  cudaGraph_t ended = nullptr, first = nullptr;
  gcap_capture_t* capture = Begin(origin_.get());
  GCAP_EXPECT_OK(Fork());
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(origin_.get(), &ended));
  for (const RawStream* stream : {&origin_, &other_}) {
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(stream->get(), cudaStreamCaptureModeThreadLocal));
    GCAP_EXPECT_CUDA(job_.Issue(stream->get()));
  }
  const Outcome outcome(gcap_capture_split(capture, "sort", &first));
  EXPECT_FALSE(outcome.Names("not joined")) << outcome.message;
  EXPECT_TRUE(outcome.Names("in another capture than the one that gcap began")) << outcome.message;
  EXPECT_EQ(first, nullptr);
  gcap_capture_abort(capture);
  GCAP_EXPECT_CUDA(cudaGraphDestroy(ended));
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(other_.get(), &ended));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(ended));
}

TEST_F(CaptureSplit, AScopeThatHasFailedGoesOnAsItIs) {
  cudaGraph_t first = reinterpret_cast<cudaGraph_t>(this);
  gcap_capture_t* capture = Begin(origin_.get());
  gcap_status_ignore(GCAP_STATUS(GCAP_LIBRARY_ERROR, "a library gave up"));
  GCAP_EXPECT_FAILS(gcap_capture_split(capture, "sort", &first), GCAP_LIBRARY_ERROR, "a library gave up");
  EXPECT_EQ(first, nullptr);
  EXPECT_EQ(origin_.CaptureStatus(), cudaStreamCaptureStatusActive);
  ExpectFails(capture);
}

// Else the work behind the hole would be a graph, and that before the hole would be lost.
TEST_F(CaptureSplit, ABrokenCaptureIsNotBegunAnew) {
  for (const bool is_told : {false, true}) {
    cudaGraph_t first = reinterpret_cast<cudaGraph_t>(this);
    gcap_capture_t* capture = Begin(origin_.get());
    if (is_told) {
      EXPECT_NE(cudaStreamQuery(origin_.get()), cudaSuccess);  // the thread's last error has it
    } else {
      BreakSilently();
    }
    const Outcome outcome(gcap_capture_split(capture, "sort", &first));
    EXPECT_EQ(outcome.code, is_told ? GCAP_CUDA_ERROR : GCAP_CAPTURE_INVALIDATED) << outcome.message;
    EXPECT_EQ(first, nullptr);
    EXPECT_EQ(origin_.CaptureStatus(), cudaStreamCaptureStatusInvalidated);
    ExpectFails(capture);
  }
}

// --- Attempts -------------------------------------------------------------------------------------------------------

class CaptureAttempt : public CaptureSplit {
 protected:
  gcap_capture_t* BeginAttempt() {
    gcap_capture_t* capture = Begin(origin_.get());
    GCAP_EXPECT_OK(gcap_capture_attempt_begin(capture, "sort", &attempt_));
    EXPECT_TRUE(gcap_capture_is_in_attempt());
    return capture;
  }
  Outcome EndAttempt() {
    const Outcome outcome(gcap_capture_attempt_end(&attempt_, "sort"));
    EXPECT_FALSE(gcap_capture_is_in_attempt());
    return outcome;
  }

  gcap_capture_attempt_t attempt_ = {};
};

TEST_F(CaptureAttempt, ThatOnlyCapturesLeavesTheCaptureAsItWas) {
  gcap_capture_t* capture = BeginAttempt();
  gcap_capture_t* within = capture;
  GCAP_EXPECT_FAILS(gcap_capture_begin(other_.get(), nullptr, &within), GCAP_FAILED_PRECONDITION, "hole");
  EXPECT_EQ(within, nullptr);
  EXPECT_EQ(gcap_capture_current(), capture) << "the begin aborted it";
  GCAP_EXPECT_CUDA(job_.Issue(origin_.get()));
  const Outcome outcome = EndAttempt();
  EXPECT_TRUE(outcome.ok()) << outcome.message;
  EXPECT_TRUE(End(capture).ok());
}

// As where it is called between two graphs.
TEST_F(CaptureAttempt, IsOneStepWhateverItCalls) {
  gcap_capture_steps_t steps = {};
  gcap_capture_t* capture = Begin(origin_.get());
  gcap_capture_keep_steps(capture, &steps);
  GCAP_CAPTURE_NOTE("before", origin_.get());
  GCAP_ASSERT_OK(gcap_capture_attempt_begin(capture, "sort", &attempt_));
  GCAP_EXPECT_CUDA(job_.Issue(origin_.get()));
  GCAP_CAPTURE_NOTE("within", origin_.get());
  EXPECT_TRUE(EndAttempt().ok());
  GCAP_CAPTURE_NOTE("behind", origin_.get());
  EXPECT_TRUE(End(capture).ok());
  std::vector<std::string> operations;
  for (size_t i = 0; i < steps.count; ++i) operations.push_back(steps.items[i].operation);
  ASSERT_EQ(operations, (std::vector<std::string>{"before", "hole 'sort'", "behind"}));
  EXPECT_EQ(steps.items[1].kind, GCAP_CAPTURE_STEP_CALL);
  EXPECT_EQ(steps.items[1].stream, origin_.get());
  EXPECT_STREQ(steps.items[1].file, "");
  EXPECT_EQ(steps.items[1].line, 0);
  EXPECT_EQ(steps.items[1].num_nodes, CopyJob::kNodes);
  gcap_capture_steps_free(&steps);
}

TEST_F(CaptureAttempt, OnlyWorkThatItLeftUnjoinedIsNamed) {
  const RawStream third;
  const cudaStream_t forked = third.get();
  for (const bool leaves : {false, true}) {
    gcap_capture_t* capture = Begin(origin_.get());
    GCAP_EXPECT_OK(Fork());
    GCAP_EXPECT_CUDA(job_.Issue(other_.get()));
    GCAP_CAPTURE_NOTE("work before", other_.get());
    GCAP_ASSERT_OK(gcap_capture_attempt_begin(capture, "sort", &attempt_));
    if (leaves) {
      GCAP_EXPECT_OK(gcap_capture_fork(capture, &forked, 1));
      GCAP_EXPECT_CUDA(job_.Issue(forked));
      GCAP_CAPTURE_NOTE("work within", forked);
    }
    const Outcome outcome = EndAttempt();
    EXPECT_EQ(outcome.code, leaves ? GCAP_FAILED_PRECONDITION : GCAP_OK) << outcome.message;
    EXPECT_EQ(outcome.Names("work within at " __FILE__), leaves) << outcome.message;
    EXPECT_FALSE(outcome.Names("work before")) << outcome.message;
    if (leaves) GCAP_EXPECT_OK(gcap_capture_join(capture, &forked, 1));
    GCAP_EXPECT_OK(Join());
    cudaGraph_t first = nullptr;
    GCAP_EXPECT_OK(gcap_capture_split(capture, "sort", &first));  // what the attempt found is over
    GCAP_EXPECT_CUDA(cudaGraphDestroy(first));
    EXPECT_TRUE(End(capture).ok());
  }
}

TEST_F(CaptureAttempt, ThatBreaksTheCaptureIsToldWithTheCause) {
  gcap_capture_t* capture = BeginAttempt();
  BreakSilently();
  EXPECT_STREQ(gcap_code_name(EndAttempt().code), "CAPTURE_INVALIDATED");
  ExpectFails(capture);
  capture = BeginAttempt();
  gcap_status_ignore(GCAP_CUDA(cudaStreamSynchronize(origin_.get())));
  const Outcome told = EndAttempt();
  EXPECT_STREQ(gcap_code_name(told.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(told.Names("cudaStreamSynchronize")) << told.message;
  ExpectFails(capture);
  capture = BeginAttempt();
  gcap_status_ignore(GCAP_STATUS(GCAP_LIBRARY_ERROR, "a library gave up"));
  const Outcome failed = EndAttempt();
  EXPECT_STREQ(gcap_code_name(failed.code), "LIBRARY_ERROR") << "the capture itself goes on";
  ExpectFails(capture);
}

TEST_F(CaptureAttempt, ThatGivesWorkToAnotherStreamOrClosesTheScopeFails) {
  gcap_capture_t* capture = BeginAttempt();
  GCAP_CAPTURE_NOTE("work outside", other_.get());
  const Outcome escaped = EndAttempt();
  EXPECT_STREQ(gcap_code_name(escaped.code), "CAPTURE_INVALIDATED");
  EXPECT_TRUE(escaped.Names("work outside at " __FILE__)) << escaped.message;
  ExpectFails(capture);
  capture = BeginAttempt();
  gcap_capture_abort(capture);
  EXPECT_STREQ(gcap_code_name(EndAttempt().code), "CAPTURE_INVALIDATED");
}

TEST_F(CaptureAttempt, IsNotBegunInACaptureThatHasFailed) {
  for (const int how : {0, 1, 2}) {
    SCOPED_TRACE(how);
    gcap_capture_t* capture = Begin(origin_.get());
    if (how == 0) gcap_status_ignore(GCAP_STATUS(GCAP_LIBRARY_ERROR, "a library gave up"));
    if (how == 1) BreakSilently();
    if (how == 2) GCAP_CAPTURE_NOTE("work outside", other_.get());
    const Outcome outcome(gcap_capture_attempt_begin(capture, "sort", &attempt_));
    EXPECT_EQ(outcome.code, how == 0 ? GCAP_LIBRARY_ERROR : GCAP_CAPTURE_INVALIDATED) << outcome.message;
    EXPECT_FALSE(gcap_capture_is_in_attempt());
    ExpectFails(capture);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
