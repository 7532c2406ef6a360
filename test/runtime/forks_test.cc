// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// More streams in a run: eager, captured and replayed, on streams of the runtime and beside a user stream; their
// scratch; and runs that go wrong between fork and join.

#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gtest/gtest.h"
#include "lib/scratch/inner.h"
#include "test/base/device_work.h"
#include "test/runtime/runtime_fixture.h"
#include "test/support/log_catcher.h"
#include "test/support/runs.h"

namespace {

using gcap::testing::DeviceFloats;
using gcap::testing::Floats;
using gcap::testing::GraphOptions;
using gcap::testing::LogCatcher;
using gcap::testing::Memory;
using gcap::testing::Outcome;

// z = x, by way of y and of scratch: each half in a stream of its own.
class RuntimeForks : public gcap::testing::RuntimeTest {
 protected:
  static constexpr size_t kHalf = 128;

  static gcap_status_t CopyOn(gcap_stream_t* stream, const float* from, void* to) {
    return GCAP_CUDA(
        cudaMemcpyAsync(to, from, kHalf * sizeof(float), cudaMemcpyDeviceToDevice, gcap_stream_handle(stream)));
  }

  static gcap_status_t Branch(gcap_scratch_t* scratch, gcap_stream_t* stream, const float* from, float* to) {
    void* block = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(scratch, kHalf * sizeof(float), stream, &block));
    gcap_status_t status = CopyOn(stream, from, block);
    if (status == nullptr) status = CopyOn(stream, static_cast<float*>(block), to);
    return gcap_status_join(status, gcap_scratch_free(scratch, block));
  }

  gcap_status_t Branches(const gcap_run_resources_t& run) {
    gcap_stream_t* streams[2];
    GCAP_RETURN_IF_ERROR(gcap_runtime_fork(runtime_, 2, streams));
    for (int i : {0, 1}) {
      GCAP_RETURN_IF_ERROR(Branch(run.scratch, streams[i], x_.get() + i * kHalf, y_.get() + i * kHalf));
    }
    return nullptr;
  }

  gcap_status_t Work(const gcap_run_resources_t& run) {
    GCAP_RETURN_IF_ERROR(Branches(run));
    GCAP_RETURN_IF_ERROR(gcap_runtime_join(runtime_));
    return Copy(run, y_, z_);
  }

  // A run of the work, or its replay, with new input.
  void ExpectRight(int id, float first) {
    SetInput(first);
    const Outcome outcome = Run(id, work_);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(z_.Get(), Ramp(first));
  }

  Floats Ramp(float first) {
    Floats values(2 * kHalf);
    for (float& value : values) value = first++;
    return values;
  }

  void SetInput(float first) {
    x_.Set(Ramp(first));
    y_.Set(Floats(2 * kHalf));
    z_.Set(Floats(2 * kHalf));
  }

  DeviceFloats x_{Floats(2 * kHalf)}, y_{Floats(2 * kHalf)}, z_{Floats(2 * kHalf)};
  const RuntimeTest::Work work_ = [this](const gcap_run_resources_t& run) { return Work(run); };
  const RuntimeTest::Work forget_ = [this](const gcap_run_resources_t& run) { return Branches(run); };
};

TEST_F(RuntimeForks, BranchesAreRightInEagerRunsInTheCaptureAndInReplays) {
  for (const bool has_user_stream : {false, true}) {
    for (const bool shares_graph_memory : {false, true}) {
      SCOPED_TRACE(has_user_stream ? "user stream" : "own stream");
      const gcap::testing::RawStream user;
      gcap_options_t options = GraphOptions(1);
      options.share_graph_memory = shares_graph_memory;
      options.has_user_stream = has_user_stream;
      if (has_user_stream) options.user_stream = user.get();
      const LogCatcher log;
      Create(options);
      for (int id : {0, 1}) {
        for (int round = 1; round <= 4; ++round) {
          SetInput(1000.0f * round + id);
          EXPECT_TRUE(round <= 2 ? Run(id, work_).ok() : Replay(id)) << round;
          EXPECT_EQ(z_.Get(), Ramp(1000.0f * round + id)) << round;
        }
        EXPECT_EQ(Info(id).captures, 1u);
      }
      GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime_)));
      Destroy();
      EXPECT_EQ(log.text(), "");
    }
  }
}

// Nothing is made anew after the first run, and a thread's streams are its own.
TEST_F(RuntimeForks, ARunForksAgainBeforeItJoins) {
  Create(GraphOptions(1));
  const RuntimeTest::Work work = [this](const gcap_run_resources_t& run) -> gcap_status_t {
    for (int i : {0, 1}) {
      gcap_stream_t* stream = nullptr;
      GCAP_RETURN_IF_ERROR(gcap_runtime_fork(runtime_, 1, &stream));
      GCAP_RETURN_IF_ERROR(Branch(run.scratch, stream, x_.get() + i * kHalf, y_.get() + i * kHalf));
    }
    GCAP_RETURN_IF_ERROR(gcap_runtime_join(runtime_));
    return Copy(run, y_, z_);
  };
  for (const float first : {1000.0f, 2000.0f, 3000.0f}) {
    SetInput(first);
    const Outcome outcome = RunWhole(0, work);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(z_.Get(), Ramp(first));
  }
}

TEST_F(RuntimeForks, AThreadGetsItsOwnStreamsBack) {
  Create(GraphOptions());
  std::vector<std::vector<gcap_stream_t*>> seen;
  const auto fork_only = [&](const gcap_run_resources_t&) {
    std::vector<gcap_stream_t*> streams(3);
    GCAP_RETURN_IF_ERROR(gcap_runtime_fork(runtime_, 2, streams.data()));
    GCAP_RETURN_IF_ERROR(gcap_runtime_fork(runtime_, 1, &streams[2]));
    seen.push_back(streams);
    return gcap_runtime_join(runtime_);
  };
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(Run(GCAP_GRAPH_ID_NONE, fork_only).ok());
  std::thread([&] { EXPECT_TRUE(Run(GCAP_GRAPH_ID_NONE, fork_only).ok()); }).join();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0], seen[1]);
  for (gcap_stream_t* mine : seen[0]) {
    for (gcap_stream_t* others : seen[2]) EXPECT_NE(mine, others);
  }
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < i; ++k) EXPECT_NE(seen[0][i], seen[0][k]);
  }
}

// The first graph keeps the memory that the forked streams had, and the second capture finds what it needs all the
// same.
TEST_F(RuntimeForks, CapturesOfTwoIdsFindTheirMemory) {
  gcap_options_t options = GraphOptions(1);
  options.external_alloc = Memory::Alloc;
  options.external_free = Memory::Free;
  options.arena.extend_as_requested = true;  // no region is larger by chance
  options.arena.initial_chunk_bytes = 256;
  Create(options);
  Memory::calls_in_capture = 0;
  for (int round = 0; round < 2; ++round) {
    for (int id : {0, 1}) ExpectRight(id, 10.0f * round + id);
  }
  EXPECT_EQ(Memory::calls_in_capture, 0);
  for (int id : {0, 1}) {
    EXPECT_EQ(Info(id).captures, 1u);
    EXPECT_EQ(Info(id).failures, 0u);
  }
}

TEST_F(RuntimeForks, AreOfAnOpenRun) {
  Create(GraphOptions());
  gcap_stream_t* stream = Resources().stream;
  GCAP_EXPECT_FAILS(gcap_runtime_fork(runtime_, 1, &stream), GCAP_FAILED_PRECONDITION, "no run open");
  EXPECT_EQ(stream, nullptr);
  GCAP_EXPECT_FAILS(gcap_runtime_join(runtime_), GCAP_FAILED_PRECONDITION, "no run open");
  const auto none = [&](const gcap_run_resources_t&) {
    GCAP_EXPECT_FAILS(gcap_runtime_fork(runtime_, 1, nullptr), GCAP_INVALID_ARGUMENT, "out_streams is NULL");
    GCAP_RETURN_IF_ERROR(gcap_runtime_fork(runtime_, 0, nullptr));
    return gcap_runtime_join(runtime_);  // of nothing
  };
  EXPECT_TRUE(Run(GCAP_GRAPH_ID_NONE, none).ok());
}

// What came after may have read too early, so the run fails. What was issued is waited for all the same.
TEST_F(RuntimeForks, ARunThatDoesNotJoinFailsEagerAndCaptured) {
  Create(GraphOptions(1));
  SetInput(5);
  const Outcome eager = Run(GCAP_GRAPH_ID_NONE, forget_);
  EXPECT_EQ(eager.code, GCAP_FAILED_PRECONDITION);
  EXPECT_TRUE(eager.Names("forked 2 streams and did not join")) << eager.message;
  GCAP_EXPECT_OK(gcap_runtime_synchronize(runtime_));
  EXPECT_EQ(y_.Get(), Ramp(5));
  EXPECT_TRUE(Run(0, work_).ok());
  const Outcome captured = Run(0, forget_);
  EXPECT_EQ(captured.code, GCAP_CAPTURE_INVALIDATED);
  EXPECT_TRUE(captured.Names("forked 2 streams and did not join")) << captured.message;
  ExpectRight(GCAP_GRAPH_ID_NONE, 7);
}

// A failure between fork and join is the one that is told, and the next runs are right.
TEST_F(RuntimeForks, AFailureBeforeTheJoinLeavesNothingBehind) {
  Create(GraphOptions(1));
  const auto fail = [this](const gcap_run_resources_t& run) {
    GCAP_RETURN_IF_ERROR(Branches(run));
    return GCAP_STATUS(GCAP_UNAVAILABLE, "the kernel failed");
  };
  for (int round = 0; round < 2; ++round) {
    const Outcome eager = Run(GCAP_GRAPH_ID_NONE, fail);
    EXPECT_EQ(eager.code, GCAP_UNAVAILABLE);
    EXPECT_FALSE(eager.Names("did not join")) << eager.message;
    ExpectRight(0, 1.0f + round);
    EXPECT_TRUE(Run(1 + round, work_).ok());
    EXPECT_EQ(Run(1 + round, fail).code, GCAP_CAPTURE_INVALIDATED);
  }
  SetInput(9);
  EXPECT_TRUE(Replay(0));
  EXPECT_EQ(z_.Get(), Ramp(9));
  GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime_)));
}

// A capture makes no streams: the first capture fails, is done again eagerly, and the next one succeeds.
TEST_F(RuntimeForks, ACaptureWithoutAWarmUpIsDoneAgainEagerly) {
  gcap_options_t options = GraphOptions(0);
  options.graph.backoff_runs = 1;
  Create(options);
  const LogCatcher log;
  for (int round = 1; round <= 6; ++round) {
    SetInput(static_cast<float>(round));
    EXPECT_TRUE(RunWhole(0, work_).ok());
    EXPECT_EQ(z_.Get(), Ramp(static_cast<float>(round)));
  }
  EXPECT_NE(log.text().find("a new stream of the pool"), std::string::npos) << log.text();
  EXPECT_EQ(Info(0).captures, 1u);
}

TEST_F(RuntimeForks, WhatTheWorkLeavesOnAForkedStreamIsFreedAtTheRunsEnd) {
  Create(GraphOptions());
  const LogCatcher log;
  const auto leave = [this](const gcap_run_resources_t& run) {
    gcap_stream_t* stream = nullptr;
    void* block = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_runtime_fork(runtime_, 1, &stream));
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run.scratch, 512, stream, &block));
    return gcap_runtime_join(runtime_);
  };
  EXPECT_TRUE(Run(GCAP_GRAPH_ID_NONE, leave).ok());
  EXPECT_EQ(ScratchStats().in_use_bytes, 0u);
  EXPECT_NE(log.text().find("512 bytes"), std::string::npos) << log.text();
}

// The run that was left open ends when the next one begins, with what it left on its one fork or two; or with the
// runtime.
TEST_F(RuntimeForks, ARunThatWasLeftOpenEndsWithItsForks) {
  for (const int runs_before : {0, 1}) {
    Create(GraphOptions(1));
    for (int i = 0; i < runs_before; ++i) EXPECT_TRUE(Run(0, work_).ok());
    const LogCatcher log;
    SetInput(3);
    GCAP_EXPECT_OK(BeginRun(runtime_, 0));
    GCAP_EXPECT_OK(Branches(Resources()));
    EXPECT_TRUE(Run(GCAP_GRAPH_ID_NONE, work_).ok());
    EXPECT_EQ(z_.Get(), Ramp(3));
    gcap_stream_t* forked = nullptr;
    void* block = nullptr;
    GCAP_EXPECT_OK(BeginRun(runtime_, GCAP_GRAPH_ID_NONE));
    GCAP_EXPECT_OK(gcap_runtime_fork(runtime_, 1, &forked));
    GCAP_EXPECT_OK(gcap_scratch_alloc(Resources().scratch, 512, forked, &block));
    GCAP_EXPECT_OK(BeginRun(runtime_, GCAP_GRAPH_ID_NONE));
    EXPECT_EQ(ScratchStats().in_use_bytes, 0u);
    GCAP_EXPECT_OK(Branches(Resources()));
    Destroy();
  }
}

// The caller has a run of scratch open on a stream that the thread forks: the fork fails, and with it the capture, also
// where the work goes on without.
TEST_F(RuntimeForks, AForkThatFailsFailsTheCapture) {
  Create(GraphOptions(1));
  gcap_stream_t* forked = nullptr;
  const auto fork = [&](const gcap_run_resources_t&) {
    GCAP_RETURN_IF_ERROR(gcap_runtime_fork(runtime_, 1, &forked));
    return gcap_runtime_join(runtime_);
  };
  EXPECT_TRUE(Run(0, fork).ok());
  gcap_stream_t* const callers = forked;
  GCAP_ASSERT_OK(gcap_scratch_begin_run(Resources().scratch, callers));
  const Outcome captured = Run(0, [&](const gcap_run_resources_t&) {
    GCAP_EXPECT_FAILS(gcap_runtime_fork(runtime_, 1, &forked), GCAP_ALREADY_EXISTS, "");
    EXPECT_EQ(forked, nullptr);
    return gcap_status_t(nullptr);
  });
  EXPECT_EQ(captured.code, GCAP_CAPTURE_INVALIDATED) << captured.message;
  GCAP_EXPECT_OK(gcap_scratch_end_run(Resources().scratch, callers));
  EXPECT_TRUE(Run(1, fork).ok());
  EXPECT_TRUE(Run(1, fork).ok());
  EXPECT_TRUE(IsCaptured(1));
}

// Was: the runtime was freed, and the pool of its streams with what they used was lost.
TEST_F(RuntimeForks, AStreamThatCannotEndKeepsTheRuntime) {
  Create(GraphOptions());
  gcap_stream_t* forked = nullptr;
  const auto work = [&](const gcap_run_resources_t&) {
    GCAP_RETURN_IF_ERROR(gcap_runtime_fork(runtime_, 1, &forked));
    return gcap_runtime_join(runtime_);
  };
  std::thread([&] { EXPECT_TRUE(Run(GCAP_GRAPH_ID_NONE, work).ok()); }).join();  // the stream is the pool's again
  const cudaStream_t handle = gcap_stream_handle(forked);
  ASSERT_EQ(cudaStreamBeginCapture(handle, cudaStreamCaptureModeRelaxed), cudaSuccess);
  GCAP_EXPECT_FAILS(gcap_runtime_destroy(runtime_), GCAP_LEAKED, "is capturing");
  runtime_ = nullptr;
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(handle, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(RuntimeForks, AThreadMayExitBetweenForkAndJoin) {
  Create(GraphOptions(1));
  const LogCatcher log;
  for (const int runs_before : {0, 1}) {
    std::thread([&] {
      for (int i = 0; i < runs_before; ++i) EXPECT_TRUE(Run(0, work_).ok());
      GCAP_EXPECT_OK(BeginRun(runtime_, 0));
      GCAP_EXPECT_OK(Branches(Resources()));
    }).join();
  }
  ExpectRight(0, 4);
}

// Its run failed, so nobody is told what the run left; and the memory is there again.
TEST_F(RuntimeForks, AThreadThatExitsLeavesNoScratchOfItsForkedStreams) {
  Create(GraphOptions());
  const LogCatcher log;
  std::thread([&] {
    gcap_stream_t* forked = nullptr;
    void* block = nullptr;
    GCAP_EXPECT_OK(BeginRun(runtime_, GCAP_GRAPH_ID_NONE));
    GCAP_EXPECT_OK(gcap_runtime_fork(runtime_, 1, &forked));
    GCAP_EXPECT_OK(gcap_scratch_alloc(Resources().scratch, 300, forked, &block));
  }).join();
  EXPECT_EQ(log.text().find("blocks of scratch"), std::string::npos) << log.text();
  EXPECT_EQ(ScratchStats().in_use_bytes, 0u);
}

}  // namespace
