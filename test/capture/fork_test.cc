// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Several streams in one capture: forks, joins, and what is said of work that was never joined.

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gcap/log.h"
#include "gtest/gtest.h"
#include "test/base/device_work.h"
#include "test/capture/diamond.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"

namespace gcap {
namespace testing {
namespace {

class CaptureFork : public DeviceTest {
 protected:
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_EQ(gcap_capture_current(), nullptr);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    gcap_log_set_sink(nullptr, nullptr, GCAP_LOG_WARNING);
    DeviceTest::TearDown();
  }

  static gcap_capture_t* Begin(cudaStream_t stream) {
    gcap_capture_t* capture = nullptr;
    GCAP_EXPECT_OK(gcap_capture_begin(stream, nullptr, &capture));
    return capture;
  }

  // Ends a scope; a graph that came of it is given to `use`.
  template <typename Use>
  static Outcome End(gcap_capture_t* capture, Use use) {
    cudaGraph_t graph = nullptr;
    gcap_retained_t* retained = nullptr;
    const Outcome outcome(gcap_capture_end(capture, &graph, &retained));
    EXPECT_EQ(outcome.ok(), graph != nullptr);
    if (graph != nullptr) {
      use(graph);
      GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
    }
    return outcome;
  }
  static Outcome End(gcap_capture_t* capture) {
    return End(capture, [](cudaGraph_t) {});
  }

  static std::string Named(cudaStream_t stream) {
    char text[64];
    std::snprintf(text, sizeof(text), "stream %p", static_cast<void*>(stream));
    return text;
  }

  // Captures the diamond and replays it three times.
  static void ExpectRightReplays(const Diamond& diamond) {
    gcap_capture_t* capture = Begin(diamond.origin());
    diamond.Capture(capture);
    const Outcome outcome = End(capture, [&diamond](cudaGraph_t graph) {
      size_t nodes = 0;
      GCAP_EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
      EXPECT_EQ(nodes, diamond.num_nodes()) << "forks and joins are edges, not nodes";
      cudaGraphExec_t exec = nullptr;
      ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
      for (const int input : {3, 1, 4}) EXPECT_TRUE(diamond.Replay(exec, input));
      GCAP_EXPECT_CUDA(cudaGraphExecDestroy(exec));
    });
    EXPECT_TRUE(outcome.ok()) << outcome.message;
  }

  static void ExpectUsable(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
    GCAP_EXPECT_CUDA(cudaStreamIsCapturing(stream, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    CopyJob job;
    job.set_input(12);
    GCAP_EXPECT_CUDA(job.Issue(stream));
    GCAP_EXPECT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(job.output(), 12);
  }
  static void ExpectUsable(const std::vector<const RawStream*>& streams) {
    for (const RawStream* stream : streams) ExpectUsable(stream->get());
  }

  // What a program does by hand: `to` comes after `from`.
  static void Order(cudaStream_t from, cudaStream_t to) {
    cudaEvent_t event = nullptr;
    GCAP_EXPECT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    GCAP_EXPECT_CUDA(cudaEventRecord(event, from));
    GCAP_EXPECT_CUDA(cudaStreamWaitEvent(to, event, 0));
    GCAP_EXPECT_CUDA(cudaEventDestroy(event));
  }

  const std::string kNever = "never joined: ";
};

TEST_F(CaptureFork, GivesOneGraphInTheRightOrder) { ExpectRightReplays(Diamond({0, 0, 0})); }

TEST_F(CaptureFork, ReachesAcrossDevices) {
  int devices = 0;
  GCAP_EXPECT_CUDA(cudaGetDeviceCount(&devices));
  if (devices < 2) GTEST_SKIP() << "needs two devices, this machine has " << devices;
  ExpectRightReplays(Diamond({1, 0, 1}));
  int current = -1;
  GCAP_EXPECT_CUDA(cudaGetDevice(&current));
  EXPECT_EQ(current, 0) << "the thread's device was not given back";
}

TEST_F(CaptureFork, MayHappenTwiceToAStream) {
  const Diamond diamond({0});
  gcap_capture_t* capture = Begin(diamond.origin());
  diamond.Capture(capture);
  diamond.Capture(capture);
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureFork, OfNoneIsNothing) {
  const RawStream origin;
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_OK(gcap_capture_fork(capture, nullptr, 0));
  GCAP_EXPECT_OK(gcap_capture_join(capture, nullptr, 0));
  EXPECT_TRUE(End(capture).ok());
}

TEST_F(CaptureFork, WithoutWorkNeedsNoJoin) {
  const RawStream origin, fork;
  const cudaStream_t streams[] = {fork.get()};
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_OK(gcap_capture_fork(capture, streams, 1));
  EXPECT_TRUE(End(capture).ok());
  ExpectUsable({&origin, &fork});
}

TEST_F(CaptureFork, OfManyStreamsNamesEachThatIsUnjoined) {
  const RawStream origin;
  const std::vector<RawStream> forks(20);
  const std::vector<CopyJob> jobs(forks.size());
  std::vector<cudaStream_t> streams;
  std::string unjoined;
  for (const RawStream& fork : forks) {
    streams.push_back(fork.get());
    unjoined += (unjoined.empty() ? "" : ", ") + Named(fork.get());
  }
  for (const bool joins : {true, false}) {
    gcap_capture_t* capture = Begin(origin.get());
    GCAP_EXPECT_OK(gcap_capture_fork(capture, streams.data(), streams.size()));
    for (size_t i = 0; i < streams.size(); ++i) GCAP_EXPECT_CUDA(jobs[i].Issue(streams[i]));
    if (joins) GCAP_EXPECT_OK(gcap_capture_join(capture, streams.data(), streams.size()));
    const Outcome outcome = End(capture);
    EXPECT_EQ(outcome.ok(), joins) << outcome.message;
    EXPECT_EQ(outcome.Names(kNever + unjoined), !joins) << outcome.message;
  }
}

// --- What was never joined ------------------------------------------------------------------------------------------

TEST_F(CaptureFork, NeverJoinedIsListedByStream) {
  const RawStream origin, joined, first, second, idle;
  const cudaStream_t streams[] = {first.get(), joined.get(), second.get(), idle.get()};
  const CopyJob jobs[3];
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_OK(gcap_capture_fork(capture, streams, 4));
  for (size_t i = 0; i < 3; ++i) GCAP_EXPECT_CUDA(jobs[i].Issue(streams[i]));
  GCAP_EXPECT_OK(gcap_capture_join(capture, &streams[1], 1));
  const Outcome outcome = End(capture);
  EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
  EXPECT_EQ(outcome.cuda_error, cudaErrorStreamCaptureUnjoined);
  EXPECT_TRUE(outcome.Names(kNever + Named(first.get()) + ", " + Named(second.get()) + " (rule R6")) << outcome.message;
  ExpectUsable({&origin, &joined, &first, &second, &idle});
}

TEST_F(CaptureFork, GivenWorkAfterItsJoinIsListedWhenThatWasNoted) {
  const RawStream origin, fork;
  const cudaStream_t streams[] = {fork.get()};
  const CopyJob job;
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_OK(gcap_capture_fork(capture, streams, 1));
  GCAP_EXPECT_OK(gcap_capture_join(capture, streams, 1));
  GCAP_EXPECT_CUDA(job.Issue(fork.get()));
  GCAP_CAPTURE_NOTE("late work", fork.get());
  EXPECT_TRUE(End(capture).Names(kNever + Named(fork.get())));
}

TEST_F(CaptureFork, MadeByHandIsListedWhenItsWorkWasNoted) {
  const RawStream origin, fork;
  const CopyJob job, before;
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_CUDA(before.Issue(origin.get()));
  Order(origin.get(), fork.get());
  GCAP_EXPECT_CUDA(job.Issue(fork.get()));
  GCAP_CAPTURE_NOTE("my_kernel<<<1, 32>>>", fork.get());
  const Outcome outcome = End(capture);
  EXPECT_TRUE(outcome.Names(kNever + Named(fork.get()) + " (rule R6")) << outcome.message;
  ExpectUsable({&origin, &fork});
}

TEST_F(CaptureFork, JoinedByHandOrThroughAnotherEndsWell) {
  const RawStream origin, first, second;
  const cudaStream_t streams[] = {first.get(), second.get()};
  const CopyJob jobs[3];
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_OK(gcap_capture_fork(capture, streams, 2));
  for (size_t i = 0; i < 2; ++i) GCAP_EXPECT_CUDA(jobs[i].Issue(streams[i]));
  Order(first.get(), second.get());
  Order(second.get(), origin.get());
  GCAP_EXPECT_CUDA(jobs[2].Issue(origin.get()));
  const Outcome outcome = End(capture);
  EXPECT_TRUE(outcome.ok()) << outcome.message;
}

// The origin has no work behind the join.
TEST_F(CaptureFork, JoinedByHandLastOfAllIsNotListed) {
  const RawStream origin, first, second;
  const cudaStream_t streams[] = {first.get(), second.get()};
  const CopyJob jobs[2];
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_OK(gcap_capture_fork(capture, streams, 2));
  for (size_t i = 0; i < 2; ++i) GCAP_EXPECT_CUDA(jobs[i].Issue(streams[i]));
  Order(first.get(), origin.get());
  EXPECT_TRUE(End(capture).Names(kNever + Named(second.get()) + " (rule R6"));
}

TEST_F(CaptureFork, JoinedByHandBeforeMoreWorkIsNotListed) {
  const RawStream origin, first, second;
  const cudaStream_t streams[] = {first.get(), second.get()};
  const CopyJob jobs[3];
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_OK(gcap_capture_fork(capture, streams, 2));
  for (size_t i = 0; i < 2; ++i) GCAP_EXPECT_CUDA(jobs[i].Issue(streams[i]));
  Order(first.get(), origin.get());
  GCAP_EXPECT_CUDA(jobs[2].Issue(origin.get()));
  EXPECT_TRUE(End(capture).Names(kNever + Named(second.get()) + " (rule R6"));
}

TEST_F(CaptureFork, OnlyPartlyJoinedIsListedAlone) {
  const RawStream origin, first, second;
  const cudaStream_t streams[] = {first.get(), second.get()};
  const CopyJob jobs[3];
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_OK(gcap_capture_fork(capture, streams, 2));
  for (size_t i = 0; i < 2; ++i) GCAP_EXPECT_CUDA(jobs[i].Issue(streams[i]));
  Order(first.get(), origin.get());
  GCAP_EXPECT_CUDA(jobs[2].Issue(first.get()));
  Order(first.get(), second.get());
  Order(second.get(), origin.get());
  GCAP_EXPECT_CUDA(jobs[2].Issue(second.get()));
  EXPECT_TRUE(End(capture).Names(kNever + Named(second.get()) + " (rule R6"));
}

TEST_F(CaptureFork, LookForUnjoinedWorkIsNotBlamedForABreak) {
  const RawStream origin, fork;
  const cudaStream_t streams[] = {fork.get()};
  const CopyJob job;
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_OK(gcap_capture_fork(capture, streams, 1));
  GCAP_EXPECT_CUDA(job.Issue(fork.get()));
  GCAP_CAPTURE_NOTE("the last good one", nullptr);
  EXPECT_NE(cudaStreamQuery(origin.get()), cudaSuccess);
  (void)cudaGetLastError();
  const Outcome outcome = End(capture);
  EXPECT_TRUE(outcome.Names("not noted")) << outcome.message;
  EXPECT_TRUE(outcome.Names("after the last good one at " __FILE__)) << outcome.message;
  EXPECT_FALSE(outcome.Names("cudaStreamGetCaptureInfo")) << outcome.message;
}

TEST_F(CaptureFork, AbortedOrAbandonedLeavesEveryStreamUsable) {
  gcap_log_set_sink([](void*, gcap_log_level_t, const char*) {}, nullptr, GCAP_LOG_ERROR);
  const RawStream origin, fork, next;
  const cudaStream_t streams[] = {fork.get()};
  const CopyJob job;
  for (const bool abandoned : {false, true}) {
    gcap_capture_t* capture = Begin(origin.get());
    GCAP_EXPECT_OK(gcap_capture_fork(capture, streams, 1));
    GCAP_EXPECT_CUDA(job.Issue(fork.get()));
    GCAP_CAPTURE_NOTE("work", fork.get());
    if (abandoned) {
      EXPECT_TRUE(End(Begin(next.get())).ok());
    } else {
      gcap_capture_abort(capture);
    }
    ExpectUsable({&origin, &fork, &next});
  }
}

// --- Bad input ------------------------------------------------------------------------------------------------------

TEST_F(CaptureFork, OfAStreamThatCannotForkIsRefusedAndFailsTheCapture) {
  const RawStream origin, fork;
  const struct {
    cudaStream_t stream;
    const char* culprit;
  } rows[] = {
      {nullptr, "streams[1] is the legacy default stream"},
      {cudaStreamLegacy, "streams[1] is the legacy default stream"},
      {origin.get(), "the origin"},
  };
  for (const auto& row : rows) {
    const cudaStream_t streams[] = {fork.get(), row.stream};
    for (const auto call : {gcap_capture_fork, gcap_capture_join}) {
      gcap_capture_t* capture = Begin(origin.get());
      GCAP_EXPECT_FAILS(call(capture, streams, 2), GCAP_INVALID_ARGUMENT, row.culprit);
      const Outcome outcome = End(capture);
      EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
      EXPECT_TRUE(outcome.Names(row.culprit)) << outcome.message;
    }
  }
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_FAILS(gcap_capture_fork(capture, nullptr, 2), GCAP_INVALID_ARGUMENT, "streams is NULL");
  EXPECT_FALSE(End(capture).ok());
}

TEST_F(CaptureFork, JoinOfAStreamThatWasNotForkedIsRefusedAndFailsTheCapture) {
  const RawStream origin, fork;
  const cudaStream_t streams[] = {fork.get()};
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_FAILS(gcap_capture_join(capture, streams, 1), GCAP_INVALID_ARGUMENT, "did not fork");
  EXPECT_TRUE(End(capture).Names("did not fork"));
}

TEST_F(CaptureFork, OfAStreamOfAnotherCaptureIsRefusedAndLeavesThatOneAlone) {
  const RawStream origin, other;
  const cudaStream_t streams[] = {other.get()};
  gcap_capture_t* capture = Begin(origin.get());
  GCAP_EXPECT_CUDA(cudaStreamBeginCapture(other.get(), cudaStreamCaptureModeThreadLocal));
  GCAP_EXPECT_FAILS(gcap_capture_fork(capture, streams, 1), GCAP_FAILED_PRECONDITION, "somebody else");
  EXPECT_FALSE(End(capture).ok());
  cudaGraph_t graph = nullptr;
  GCAP_EXPECT_CUDA(cudaStreamEndCapture(other.get(), &graph));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(CaptureFork, OfNoScopeOrAnotherThreadsIsFailedPrecondition) {
  const RawStream origin, fork;
  const cudaStream_t stream = fork.get();
  for (const auto call : {gcap_capture_fork, gcap_capture_join}) {
    GCAP_EXPECT_FAILS(call(nullptr, &stream, 1), GCAP_FAILED_PRECONDITION, "capture is NULL");
    gcap_capture_t* capture = Begin(origin.get());
    std::thread([&] {
      GCAP_EXPECT_FAILS(call(capture, &stream, 1), GCAP_FAILED_PRECONDITION, "another thread's");
    }).join();
    EXPECT_TRUE(End(capture).ok()) << "that capture goes on";
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
