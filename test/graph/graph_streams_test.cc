// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs and their streams: replays on another stream, uploads, dumps, and streams that are destroyed first.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph.h"
#include "gcap/graph_plan.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

class GraphStreams : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    gcap_graph_manager_options_init(&options_);
    options_.min_num_runs_before_capture = 0;
  }
  void CreateWithOptions() { GCAP_ASSERT_OK(gcap_graph_manager_create(&options_, &manager_)); }

  // Captures the job on a stream of its own choice.
  void CaptureOn(cudaStream_t stream, int id, const CopyJob& job, int* released = nullptr) {
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    GCAP_ASSERT_OK(BeginPlain(manager_, id, stream, &kind));
    ASSERT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job.Issue(stream));
    if (released != nullptr)
      GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, released));
    EXPECT_TRUE(End().ok());
  }

  gcap_graph_manager_options_t options_;
};

// --- On another stream ----------------------------------------------------------------------------------------------

TEST_F(GraphStreams, AReplayElsewhereComesAfterWhatTheCapturingStreamWasGiven) {
  CreateWithOptions();
  CopyJob job;
  const RawStream other;
  CaptureOn(stream_->get(), 0, job);
  Gate gate;
  gate.Hold(stream_->get());
  job.set_input(5);
  GCAP_EXPECT_OK(ReplayOn(manager_, 0, other.get(), /*synchronize=*/false));
  EXPECT_EQ(cudaStreamQuery(other.get()), cudaErrorNotReady);
  EXPECT_EQ(job.output(), 0);
  gate.Open();
  other.Synchronize();
  EXPECT_EQ(job.output(), 5);
  EXPECT_EQ(Info(0).replays, 2u);
}

TEST_F(GraphStreams, AReplayElsewhereComesBeforeWhatTheCapturingStreamIsGivenNext) {
  CreateWithOptions();
  CopyJob job;
  const RawStream other;
  CaptureOn(stream_->get(), 0, job);
  Gate gate;
  gate.Hold(other.get());
  GCAP_EXPECT_OK(ReplayOn(manager_, 0, other.get(), /*synchronize=*/false));
  EXPECT_EQ(cudaStreamQuery(stream_->get()), cudaErrorNotReady) << "it waits for the replay on the other";
  gate.Open();
  stream_->Synchronize();
  EXPECT_EQ(cudaStreamQuery(other.get()), cudaSuccess);
}

TEST_F(GraphStreams, AReplayElsewhereWaitsForThatStreamWhenAsked) {
  CreateWithOptions();
  CopyJob job;
  const RawStream other;
  CaptureOn(stream_->get(), 0, job);
  int value = 0;
  for (cudaStream_t stream : {other.get(), stream_->get(), other.get(), cudaStream_t(cudaStreamLegacy),
                              cudaStream_t(cudaStreamPerThread), cudaStream_t(nullptr)}) {
    job.set_input(++value);
    GCAP_EXPECT_OK(ReplayOn(manager_, 0, stream, true));
    EXPECT_EQ(job.output(), value);
  }
}

TEST_F(GraphStreams, AReleaseWaitsForAReplayElsewhere) {
  CreateWithOptions();
  CopyJob job;
  int released = 0;
  const RawStream other;
  CaptureOn(stream_->get(), 0, job, &released);
  Gate gate;
  gate.Hold(other.get());
  job.set_input(3);
  GCAP_EXPECT_OK(ReplayOn(manager_, 0, other.get(), /*synchronize=*/false));
  std::thread opener([&gate] {
    std::this_thread::sleep_for(kPatience);
    gate.Open();
  });
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  EXPECT_EQ(job.output(), 3);
  EXPECT_EQ(released, 1);
  opener.join();
}

TEST_F(GraphStreams, AReplayElsewhereIntoACaptureIsRefused) {
  CreateWithOptions();
  CopyJob job;
  const RawStream other;
  CaptureOn(stream_->get(), 0, job);
  for (cudaStream_t captured : {other.get(), stream_->get()}) {
    GCAP_EXPECT_CUDA(cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal));
    GCAP_EXPECT_FAILS(ReplayOn(manager_, 0, other.get(), false), GCAP_FAILED_PRECONDITION, "is capturing");
    cudaGraph_t graph = nullptr;
    GCAP_EXPECT_CUDA(cudaStreamEndCapture(captured, &graph));
    GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  }
  EXPECT_EQ(Info(0).replays, 1u);
  GCAP_EXPECT_OK(ReplayOn(manager_, 0, other.get(), true));
}

TEST_F(GraphStreams, AReplayOnAnotherDeviceIsInvalidArgument) {
  int devices = 0;
  GCAP_EXPECT_CUDA(cudaGetDeviceCount(&devices));
  if (devices < 2) GTEST_SKIP() << "needs two devices, this machine has " << devices;
  CreateWithOptions();
  CopyJob job;
  CaptureOn(stream_->get(), 0, job);
  GCAP_EXPECT_CUDA(cudaSetDevice(1));
  {
    const RawStream other;
    GCAP_EXPECT_FAILS(ReplayOn(manager_, 0, other.get(), true), GCAP_INVALID_ARGUMENT,
                      "is of device 1, the graph was captured on 0");
  }
  GCAP_EXPECT_CUDA(cudaSetDevice(0));
}

TEST_F(GraphStreams, AGraphIsOfItsStreamsDeviceWhateverTheThreadsIs) {
  int devices = 0;
  GCAP_EXPECT_CUDA(cudaGetDeviceCount(&devices));
  if (devices < 2) GTEST_SKIP() << "needs two devices, this machine has " << devices;
  CreateWithOptions();
  gcap_stream_t* stream = nullptr;
  gcap_stream_t* other = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(1, &stream));
  GCAP_ASSERT_OK(gcap_stream_create(1, &other));
  char* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaSetDevice(1));
  GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), 64));
  GCAP_EXPECT_CUDA(cudaSetDevice(0));
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_ASSERT_OK(BeginPlain(manager_, 0, gcap_stream_handle(stream), &kind));
  GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, 1, 64, gcap_stream_handle(stream)));
  EXPECT_TRUE(End().ok());
  GCAP_EXPECT_OK(ReplayOn(manager_, 0, gcap_stream_handle(other), false));
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  int device = -1;
  GCAP_EXPECT_CUDA(cudaGetDevice(&device));
  EXPECT_EQ(device, 0);
  GCAP_EXPECT_OK(gcap_stream_destroy(other));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

TEST_F(GraphStreams, AReplayElsewhereOfUnknownIdIsNotFound) {
  CreateWithOptions();
  GCAP_EXPECT_FAILS(ReplayOn(manager_, 4, stream_->get(), true), GCAP_NOT_FOUND, "graph id 4");
}

// Refusals are part of it: an id that is being captured or was released, a stream that is capturing; and the runtime's,
// where a replay waits for its stream after another thread began to capture there.
TEST_F(GraphStreams, ThreadsMayReplayRecaptureAndReleaseAtOnce) {
  constexpr int kRounds = 60;
  CreateWithOptions();
  CopyJob job;
  job.set_input(7);
  const auto allowed = [](gcap_status_t status) {
    const Outcome outcome(status);
    EXPECT_TRUE(outcome.ok() || outcome.code == GCAP_NOT_FOUND || outcome.code == GCAP_FAILED_PRECONDITION ||
                outcome.cuda_error == cudaErrorStreamCaptureUnsupported)
        << outcome.message;
  };
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (const bool elsewhere : {false, true}) {
    threads.emplace_back([&, elsewhere] {
      const RawStream mine;
      while (!done) {
        allowed(elsewhere ? ReplayOn(manager_, 0, mine.get(), true) : Replay(manager_, 0, true));
      }
    });
  }
  threads.emplace_back([&] {
    while (!done) {
      allowed(gcap_graph_manager_release(manager_, 0));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const PlainWork issue = [](void* work, cudaStream_t stream) {
    return GCAP_CUDA(static_cast<CopyJob*>(work)->Issue(stream));
  };
  for (int round = 0; round < kRounds; ++round) {
    GCAP_EXPECT_OK(RunPlain(manager_, 0, stream_->get(), issue, &job, round % 4 == 0));
    allowed(gcap_graph_manager_recapture(manager_, 0));
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  stream_->Synchronize();
  EXPECT_EQ(job.output(), 7);
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
}

// --- Dump -------------------------------------------------------------------------------------------------------------

TEST_F(GraphStreams, AGraphThatIsUploadedFirstReplays) {
  options_.upload = true;
  CreateWithOptions();
  CopyJob job;
  CaptureOn(stream_->get(), 0, job);
  job.set_input(6);
  GCAP_EXPECT_OK(Replay(manager_, 0, true));
  EXPECT_EQ(job.output(), 6);
  EXPECT_EQ(Info(0).replays, 2u);
}

TEST_F(GraphStreams, AGraphThatKeepsItsSourceCanBeDumped) {
  options_.keep_source = true;
  CreateWithOptions();
  CopyJob job;
  CaptureOn(stream_->get(), 0, job);
  const std::string path = ::testing::TempDir() + "graph_streams_test.dot";
  GCAP_EXPECT_OK(gcap_graph_manager_dump(manager_, 0, path.c_str(), 0));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_NE(text.str().find("digraph"), std::string::npos) << text.str();
  EXPECT_EQ(std::remove(path.c_str()), 0);
  GCAP_EXPECT_FAILS(gcap_graph_manager_dump(manager_, 1, path.c_str(), 0), GCAP_NOT_FOUND, "graph id 1");
  GCAP_EXPECT_FAILS(gcap_graph_manager_dump(manager_, 0, "/nowhere/at/all.dot", 0), GCAP_CUDA_ERROR,
                    "'/nowhere/at/all.dot'");
}

TEST_F(GraphStreams, AGraphWithoutItsSourceCannotBeDumped) {
  CreateWithOptions();
  CopyJob job;
  CaptureOn(stream_->get(), 0, job);
  GCAP_EXPECT_FAILS(gcap_graph_manager_dump(manager_, 0, "unused.dot", 0), GCAP_FAILED_PRECONDITION, "keep_source");
}

// --- Streams that end first -----------------------------------------------------------------------------------------

TEST_F(GraphStreams, AGraphWhoseStreamWasDestroyedIsRefusedAndCanBeReleased) {
  CreateWithOptions();
  CopyJob job;
  int released = 0;
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  CaptureOn(gcap_stream_handle(stream), 3, job, &released);
  GCAP_EXPECT_OK(Replay(manager_, 3, false));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  const RawStream reuses_the_handle;
  bool replayed = true;
  GCAP_EXPECT_FAILS(Replay(manager_, 3, true), GCAP_FAILED_PRECONDITION, "graph id 3: its stream");
  GCAP_EXPECT_FAILS(TryReplay(manager_, 3, true, &replayed), GCAP_FAILED_PRECONDITION, "was destroyed");
  EXPECT_FALSE(replayed);
  GCAP_EXPECT_FAILS(ReplayOn(manager_, 3, stream_->get(), true), GCAP_FAILED_PRECONDITION, "was destroyed");
  EXPECT_EQ(released, 0);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 3));
  EXPECT_EQ(released, 1);
  EXPECT_EQ(Run(3, job), GCAP_GRAPH_RUN_CAPTURE);
}

TEST_F(GraphStreams, AReCaptureOnAnotherStreamSucceedsADestroyedOne) {
  CreateWithOptions();
  CopyJob job;
  int released = 0;
  gcap_stream_t* stream = nullptr;
  GCAP_ASSERT_OK(gcap_stream_create(0, &stream));
  CaptureOn(gcap_stream_handle(stream), 3, job, &released);
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 3));
  CaptureOn(stream_->get(), 3, job);
  EXPECT_EQ(released, 1) << "its stream was drained when it was destroyed";
  job.set_input(8);
  GCAP_EXPECT_OK(Replay(manager_, 3, true));
  EXPECT_EQ(job.output(), 8);
}

TEST_F(GraphStreams, AGraphOfAUsersStreamOutlivesOneOfSeveralWrappers) {
  CreateWithOptions();
  CopyJob job;
  gcap_stream_t* first = nullptr;
  gcap_stream_t* second = nullptr;
  GCAP_ASSERT_OK(gcap_stream_wrap(stream_->get(), GCAP_STREAM_USER, 0, 0, &first));
  GCAP_ASSERT_OK(gcap_stream_wrap(stream_->get(), GCAP_STREAM_USER, 0, 0, &second));
  CaptureOn(stream_->get(), 0, job);
  GCAP_EXPECT_OK(gcap_stream_destroy(second));
  job.set_input(4);
  GCAP_EXPECT_OK(Replay(manager_, 0, true));
  EXPECT_EQ(job.output(), 4);
  GCAP_EXPECT_OK(gcap_stream_destroy(first));
  GCAP_EXPECT_FAILS(Replay(manager_, 0, true), GCAP_FAILED_PRECONDITION, "was destroyed");
}

}  // namespace
}  // namespace testing
}  // namespace gcap
