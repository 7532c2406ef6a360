// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Captures of an id that has a graph: the executable is updated in place or made anew, and what the old graph retained
// goes when its launches are done.

#include <memory>
#include <string>
#include <thread>

#include "gcap/graph.h"
#include "gcap/graph_plan.h"
#include "gcap/kit/ops/elementwise.h"
#include "gcap/stream.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

class GraphUpdate : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Create(0);
  }

  // Captures `times` copies of the job in a row, with an entry retained and counted by `released`.
  void Capture(int id, const CopyJob& job, int times = 1, int* released = nullptr) {
    ASSERT_EQ(Begin(id), GCAP_GRAPH_RUN_CAPTURE);
    for (int i = 0; i < times; ++i) GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
    if (released != nullptr)
      GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, released));
    GCAP_EXPECT_OK(EndPlain(manager_, nullptr, /*synchronize=*/false));
  }
  // A run that gives the manager occasion to look at what it has retired.
  void RunSomethingElse() {
    ASSERT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
    EXPECT_TRUE(End().ok());
  }
};

TEST_F(GraphUpdate, OfAnIdWithoutAGraphIsNotFound) {
  GCAP_EXPECT_FAILS(gcap_graph_manager_recapture(manager_, 3), GCAP_NOT_FOUND, "graph id 3");
  FailingRun(3);
  GCAP_EXPECT_FAILS(gcap_graph_manager_recapture(manager_, 3), GCAP_NOT_FOUND, "COOLING");
}

TEST_F(GraphUpdate, OfAKeptGraphSaysWhatChanged) {
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  options.keep_source = true;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &manager_));
  const CopyJob job, other;
  Capture(0, job);
  GCAP_EXPECT_OK(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHAT_CHANGED));
  for (const CopyJob* next : {&other, &other}) {
    GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
    Capture(0, *next);
    const Outcome change(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHAT_CHANGED));
    if (change.ok()) continue;
    EXPECT_EQ(Info(0).captures, 2u) << "the third is as the second";
    EXPECT_TRUE(change.Names("in 4 fields; the first: node 0 of 2, memcpy: the ")) << change.message;
  }
  EXPECT_EQ(Info(0).captures, 3u);
  GCAP_EXPECT_OK(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHAT_CHANGED));
  stream_->Synchronize();
}

// The values are those before the change and after it; and why the last update was refused stays told after one that
// succeeds.
TEST_F(GraphUpdate, AChangedValueIsToldWithTheOneBefore) {
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  options.keep_source = true;
  GCAP_ASSERT_OK(gcap_graph_manager_create(&options, &manager_));
  char* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), 64));
  const auto fill = [&](int times, int value) {
    ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
    for (int i = 0; i < times; ++i) GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, value, 64, stream_->get()));
    EXPECT_TRUE(End().ok());
    GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  };
  fill(2, 5);
  fill(1, 5);
  fill(1, 6);
  EXPECT_EQ(Info(0).updates, 1u);
  const Outcome change(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHAT_CHANGED));
  EXPECT_TRUE(change.Names("in 1 fields; the first: node 0 of 1, memset")) << change.message;
  EXPECT_TRUE(change.Names("0x5 -> 0x6")) << change.message;
  GCAP_EXPECT_FAILS(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_UPDATED), GCAP_CUDA_ERROR,
                    "1 nodes instead of 2");
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

TEST_F(GraphUpdate, UntilTheNextRunTheIdDoesNotReplay) {
  const CopyJob job;
  Capture(0, job);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  EXPECT_EQ(State(0), "STALE");
  EXPECT_FALSE(gcap_graph_manager_is_captured(manager_, 0));
  GCAP_EXPECT_FAILS(Replay(manager_, 0, true), GCAP_NOT_FOUND, "STALE");
  GCAP_EXPECT_FAILS(ReplayOn(manager_, 0, nullptr, true), GCAP_NOT_FOUND, "STALE");
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  stream_->Synchronize();
}

TEST_F(GraphUpdate, ChangesTheExecutableInPlace) {
  CopyJob first;
  CopyJob second;
  first.set_input(1);
  second.set_input(2);
  Capture(0, first);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  Capture(0, second);
  stream_->Synchronize();
  EXPECT_EQ(second.output(), 2);
  const gcap_graph_info_t info = Info(0);
  EXPECT_EQ(State(0), "CAPTURED");
  EXPECT_EQ(info.updates, 1u);
  EXPECT_EQ(info.reinstantiations, 0u);
  EXPECT_EQ(info.captures, 2u);
  first.set_input(3);
  second.set_input(4);
  GCAP_EXPECT_OK(Replay(manager_, 0, true));
  EXPECT_EQ(first.output(), 1) << "the graph is the second one now";
  EXPECT_EQ(second.output(), 4);
  GCAP_EXPECT_OK(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_UPDATED));
}

TEST_F(GraphUpdate, MakesANewExecutableWhereTheDriverRefusesAndSaysWhy) {
  CopyJob job;
  job.set_input(1);
  Capture(0, job, 1);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  Capture(0, job, 2);
  stream_->Synchronize();
  EXPECT_EQ(Info(0).updates, 0u);
  EXPECT_EQ(Info(0).reinstantiations, 1u);
  EXPECT_EQ(Info(0).nodes, 2 * CopyJob::kNodes);
  const Outcome refusal(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_UPDATED));
  EXPECT_EQ(refusal.cuda_error, cudaErrorGraphExecUpdateFailure);
  for (const char* part : {"graph id 0", "topology", "4 nodes instead of 2", "cudaGraphExecUpdate"}) {
    EXPECT_TRUE(refusal.Names(part)) << part << ": " << refusal.message;
  }
  job.set_input(5);
  GCAP_EXPECT_OK(Replay(manager_, 0, true));
  EXPECT_EQ(job.output(), 5);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(GraphUpdate, ARefusalNamesTheNodeThatChanged) {
  const CopyJob job;
  char* memory = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), 64));
  Capture(0, job);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, 0, 64, stream_->get()));
  GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, 1, 64, stream_->get()));
  EXPECT_TRUE(End().ok());
  const Outcome refusal(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_UPDATED));
  EXPECT_TRUE(refusal.Names("type of a node changed")) << refusal.message;
  EXPECT_TRUE(refusal.Names("of 2, memset")) << refusal.message;
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

TEST_F(GraphUpdate, ARefusalNamesTheKernel) {
  const CopyJob job;
  float* memory = nullptr;
  gcap_stream_t* stream = nullptr;
  GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory), 64));
  GCAP_ASSERT_OK(gcap_stream_wrap(stream_->get(), GCAP_STREAM_USER, 0, 0, &stream));
  GCAP_EXPECT_CUDA(cudaMemsetAsync(memory, 0, 64, stream_->get()));
  Capture(0, job);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  const gcap_tensor_t x = {memory, GCAP_DTYPE_F32, 1, {16}};
  for (int i = 0; i < 2; ++i) GCAP_EXPECT_OK(gcap_unary(stream, GCAP_UNARY_RELU, &x, &x));
  EXPECT_TRUE(End().ok());
  const Outcome refusal(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_UPDATED));
  EXPECT_TRUE(refusal.Names("of 2, kernel ")) << refusal.message;
  EXPECT_TRUE(refusal.Names("relu")) << refusal.message;
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  GCAP_EXPECT_OK(gcap_stream_destroy(stream));
  GCAP_EXPECT_CUDA(cudaFree(memory));
}

TEST_F(GraphUpdate, WhatTheOldGraphRetainedGoesWhenItsLaunchesAreDone) {
  for (const int times : {1, 2}) {  // in place, and anew
    SCOPED_TRACE(times);
    Gate gate;
    const CopyJob job;
    int released[2] = {0, 0};
    const int id = times;
    gate.Hold(stream_->get());
    Capture(id, job, 1, &released[0]);
    GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, id));
    Capture(id, job, times, &released[1]);
    EXPECT_EQ(Info(id).updates, times == 1 ? 1u : 0u);
    EXPECT_EQ(released[0], 0) << "the old graph's launch is held up; nobody waited for it";
    gate.Open();
    stream_->Synchronize();
    RunSomethingElse();
    EXPECT_EQ(released[0], 1);
    EXPECT_EQ(released[1], 0);
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, id));
    EXPECT_EQ(released[1], 1);
  }
}

TEST_F(GraphUpdate, WhatWasReplacedStaysWhileTheThreadCapturesSomethingElse) {
  Gate gate;
  const CopyJob job;
  const RawStream other;
  int released[2] = {0, 0};
  gate.Hold(stream_->get());
  Capture(0, job, 1, &released[0]);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  Capture(0, job, 2, &released[1]);
  gate.Open();
  stream_->Synchronize();
  gcap_capture_t* capture = nullptr;
  GCAP_ASSERT_OK(gcap_capture_begin(other.get(), nullptr, &capture));
  ASSERT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);
  GCAP_EXPECT_OK(EndPlain(manager_, nullptr, /*synchronize=*/false));
  EXPECT_EQ(released[0], 0);
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  GCAP_EXPECT_OK(gcap_capture_end(capture, &graph, &retained));
  GCAP_EXPECT_CUDA(cudaGraphDestroy(graph));
  RunSomethingElse();
  EXPECT_EQ(released[0], 1);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
}

TEST_F(GraphUpdate, ReleaseAllWaitsForWhatWasReplaced) {
  const CopyJob job;
  int released[2] = {0, 0};
  Capture(0, job, 1, &released[0]);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  Capture(0, job, 2, &released[1]);
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  EXPECT_EQ(released[0], 1);
  EXPECT_EQ(released[1], 1);
}

TEST_F(GraphUpdate, AFailedOneCoolsDownAndKeepsTheExecutableForTheNext) {
  CopyJob job;
  int released[3] = {0, 0, 0};
  Capture(0, job, 1, &released[0]);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, &released[1]));
  EXPECT_STREQ(gcap_code_name(End(GCAP_STATUS(GCAP_INTERNAL, "no")).code), "CAPTURE_INVALIDATED");
  EXPECT_EQ(State(0), "COOLING");
  EXPECT_EQ(released[1], 1);
  EXPECT_EQ(Info(0).nodes, CopyJob::kNodes) << "of the graph that is kept";
  GCAP_EXPECT_FAILS(Replay(manager_, 0, true), GCAP_NOT_FOUND, "COOLING");
  EXPECT_EQ(Run(0, job), GCAP_GRAPH_RUN_EAGER);
  EXPECT_EQ(released[0], 0);
  Capture(0, job, 1, &released[2]);
  EXPECT_EQ(Info(0).updates, 1u);
  stream_->Synchronize();
  RunSomethingElse();
  EXPECT_EQ(released[0], 1);
  EXPECT_EQ(released[2], 0);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
}

TEST_F(GraphUpdate, AStaleGraphAndOneThatCoolsDownMayBeReleased) {
  const CopyJob job;
  int released = 0;
  Capture(0, job, 1, &released);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  EXPECT_EQ(released, 1);
  Capture(0, job, 1, &released);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  FailingRun(0);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  EXPECT_EQ(released, 2);
  EXPECT_EQ(State(0), "COLD");
}

TEST_F(GraphUpdate, AGraphThatIsBeingCapturedAgainIsNotReleased) {
  const CopyJob job;
  const RawStream other;
  Capture(0, job);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_EXPECT_OK(BeginPlain(manager_, 0, other.get(), &kind));
  std::thread([this] {
    GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, 0), GCAP_FAILED_PRECONDITION, "captured again");
    GCAP_EXPECT_FAILS(gcap_graph_manager_release_all(manager_), GCAP_FAILED_PRECONDITION, "captured again");
  }).join();
  GCAP_EXPECT_CUDA(job.Issue(other.get()));
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(Info(0).updates, 1u);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
}

TEST_F(GraphUpdate, AnAbandonedOneKeepsTheExecutable) {
  const CopyJob job;
  Capture(0, job);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  RunSomethingElse();
  EXPECT_EQ(State(0), "READY");
  Capture(0, job);
  EXPECT_EQ(Info(0).updates, 1u);
  stream_->Synchronize();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
