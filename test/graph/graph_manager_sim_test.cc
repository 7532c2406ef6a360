// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The graph manager when CUDA calls or allocations fail, under many schedules, and counted by the call: what only the
// simulator can stage.

#include <string>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/graph/manager_test.h"
#include "test/support/faults.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

class GraphManagerSim : public ManagerTest {
 protected:
  // Whatever failed before: the thread captures nothing, the stream neither, and the next runs of the id are right,
  // captured at last and replayed.
  void ExpectNextRunsAreRight(int id, CopyJob* job) {
    EXPECT_FALSE(gcap_thread_is_capturing());
    EXPECT_EQ(gcap_capture_current(), nullptr);
    EXPECT_EQ(stream_->CaptureStatus(), cudaStreamCaptureStatusNone);
    for (int value = 100; !gcap_graph_manager_is_captured(manager_, id); ++value) {
      ASSERT_LT(value, 110) << "never captured again";
      job->set_input(value);
      Run(id, *job);
      EXPECT_EQ(job->output(), value);
    }
    job->set_input(200);
    GCAP_EXPECT_OK(Replay(manager_, id, true));
    EXPECT_EQ(job->output(), 200);
  }
};

TEST_F(GraphManagerSim, FaultsOfBeginRunMakeItAnEagerRun) {
  const Walked walked = WalkFaults([this](Fault& fault) {
    CopyJob job;
    Create(0);
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    const Outcome outcome = fault.During([&] { return BeginPlain(manager_, 0, stream_->get(), &kind); });
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(kind, fault.hit() ? GCAP_GRAPH_RUN_EAGER : GCAP_GRAPH_RUN_CAPTURE);
    EXPECT_EQ(State(0), fault.hit() ? "COOLING" : "CAPTURING");
    job.set_input(1);
    GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
    EXPECT_TRUE(End().ok());
    EXPECT_EQ(job.output(), 1);
    ExpectNextRunsAreRight(0, &job);
    DestroyManager();
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamIsCapturing", "cudaStreamGetDevice", "cudaStreamBeginCapture",
                                         "cudaStreamGetCaptureInfo"}));
}

TEST_F(GraphManagerSim, FaultsOfAnAbandonedRunsAbortDoNotStopTheNext) {
  const Walked walked = WalkFaults([this](Fault& fault) {
    CopyJob job;
    int released = 0;
    Create(0);
    EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, &released));
    GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_CAPTURE;
    const Outcome outcome =
        fault.During([&] { return BeginPlain(manager_, GCAP_GRAPH_ID_NONE, stream_->get(), &kind); });
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(kind, GCAP_GRAPH_RUN_EAGER);
    EXPECT_EQ(released, 1);
    EXPECT_TRUE(End().ok());
    ExpectNextRunsAreRight(0, &job);
    DestroyManager();
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamGetCaptureInfo", "cudaStreamEndCapture", "cudaGraphDestroy"}));
}

TEST_F(GraphManagerSim, FaultsOfEndRunGiveAStatusOrTheResults) {
  const Walked walked = WalkFaults([this](Fault& fault) {
    CopyJob job;
    int released = 0;
    Create(0);
    job.set_input(1);
    EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
    GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, &released));
    const Outcome outcome = fault.During([this] { return EndPlain(manager_, nullptr, /*synchronize=*/true); });
    EXPECT_EQ(outcome.ok(), !fault.hit() || fault.MayBeOfAMeasurement());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    const bool captured = gcap_graph_manager_is_captured(manager_, 0);
    const bool invalidated = outcome.code == GCAP_CAPTURE_INVALIDATED;
    EXPECT_NE(captured, invalidated);
    EXPECT_EQ(released, captured ? 0 : 1);
    EXPECT_EQ(Info(0).nodes, captured ? CopyJob::kNodes : 0u);
    EXPECT_EQ(Info(0).replays, captured ? 1u : 0u);
    EXPECT_EQ(Info(0).failures, captured ? 0u : 1u);
    stream_->Synchronize();
    EXPECT_EQ(job.output(), captured ? 1 : -1) << "either the graph ran, or nothing did";
    ExpectNextRunsAreRight(0, &job);
    DestroyManager();
    EXPECT_EQ(released, 1);
  });
  EXPECT_EQ(
      walked.functions,
      (Functions{"cudaStreamGetCaptureInfo", "cudaStreamEndCapture", "cudaStreamGetDevice", "cudaGraphGetNodes",
                 "cudaGraphNodeGetType", "cudaThreadExchangeStreamCaptureMode", "cudaGraphInstantiateWithParams",
                 "cudaGraphLaunch", "cudaGraphDestroy", "cudaStreamSynchronize", "cudaGetDevice", "cudaMemGetInfo"}));
}

TEST_F(GraphManagerSim, FaultsOfAFailedRunsEndNameTheFirstFailure) {
  const Walked walked = WalkFaults([this](Fault& fault) {
    CopyJob job;
    Create(0);
    EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
    gcap_status_t failure = GCAP_STATUS(GCAP_INTERNAL, "the kernel failed");
    const Outcome outcome = fault.During([&] { return EndPlain(manager_, failure, /*synchronize=*/true); });
    EXPECT_STREQ(gcap_code_name(outcome.code), "CAPTURE_INVALIDATED");
    EXPECT_TRUE(outcome.Names("the kernel failed")) << outcome.message;
    EXPECT_TRUE(!fault.hit() || outcome.Names(fault.function())) << outcome.message;
    ExpectNextRunsAreRight(0, &job);
    DestroyManager();
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamGetCaptureInfo", "cudaStreamEndCapture", "cudaGraphDestroy"}));
}

TEST_F(GraphManagerSim, FaultsOfReplayLeaveTheGraphCaptured) {
  CopyJob job;
  Create(0);
  Run(0, job);
  uint64_t replays = 1;
  const Walked walked = WalkFaults([&](Fault& fault) {
    job.set_input(1);
    GCAP_EXPECT_OK(Replay(manager_, 0, true));
    job.set_input(2);
    const Outcome outcome = fault.During([this] { return Replay(manager_, 0, true); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || (outcome.code == GCAP_CUDA_ERROR && fault.Explains(outcome))) << outcome.message;
    const bool launched = !fault.Is("cudaGraphLaunch");
    replays += launched ? 2 : 1;
    EXPECT_EQ(Info(0).replays, replays);
    stream_->Synchronize();
    EXPECT_EQ(job.output(), launched ? 2 : 1);
    EXPECT_EQ(State(0), "CAPTURED");
  });
  EXPECT_EQ(walked.functions,
            (Functions{"cudaGraphLaunch", "cudaThreadExchangeStreamCaptureMode", "cudaStreamSynchronize"}));
}

// Where a fault leaves a graph that was to be released.
enum class Released { kYes, kStillCaptured, kQuarantined };

Released WhereIs(const Fault& fault, const Outcome& outcome) {
  if (outcome.Names("kept for ever")) return Released::kQuarantined;
  // Until the event is recorded nothing has been given up.
  for (const char* function :
       {"cudaStreamIsCapturing", "cudaGetDevice", "cudaEventCreateWithFlags", "cudaEventRecord"}) {
    if (fault.Is(function)) return Released::kStillCaptured;
  }
  return Released::kYes;
}

TEST_F(GraphManagerSim, FaultsOfReleaseReleaseOrKeepTheGraph) {
  const Walked walked = WalkFaults([this](Fault& fault) {
    CopyJob job;
    int released = 0;
    Create(0);
    EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
    GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, &released));
    EXPECT_TRUE(End().ok());
    const Outcome outcome = fault.During([this] { return gcap_graph_manager_release(manager_, 0); });
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    const Released where = WhereIs(fault, outcome);
    EXPECT_EQ(State(0), where == Released::kStillCaptured ? "CAPTURED" : "COLD");
    if (!outcome.ok()) {
      EXPECT_STREQ(gcap_code_name(outcome.code), where == Released::kStillCaptured ? "CUDA_ERROR" : "LEAKED");
    }
    EXPECT_EQ(Info(0).replays, where == Released::kStillCaptured ? 1u : 0u);
    if (where == Released::kQuarantined) {
      EXPECT_TRUE(fault.Is("cudaEventSynchronize") || fault.Is("cudaThreadExchangeStreamCaptureMode"));
      EXPECT_EQ(released, 0) << "a launch that cannot be waited for may still read it";
    } else {
      EXPECT_EQ(released, where == Released::kYes ? 1 : 0);
    }
    ExpectNextRunsAreRight(0, &job);
    DestroyManager();
    if (where == Released::kQuarantined) {
      fault.ExpectKept("exec");
      fault.ExpectKept("event");
    }
  });
  EXPECT_EQ(walked.functions, (Functions{"cudaStreamIsCapturing", "cudaGetDevice", "cudaEventCreateWithFlags",
                                         "cudaEventRecord", "cudaThreadExchangeStreamCaptureMode",
                                         "cudaEventSynchronize", "cudaEventDestroy", "cudaGraphExecDestroy"}));
}

TEST_F(GraphManagerSim, FaultsOfDestroyLeakWhatMayStillRunAndNothingElse) {
  WalkFaults([this](Fault& fault) {
    CopyJob job;
    int released = 0;
    Create(0);
    for (int id = 0; id < 3; ++id) {
      EXPECT_EQ(Begin(id), GCAP_GRAPH_RUN_CAPTURE);
      GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
      GCAP_EXPECT_OK(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, &released));
      EXPECT_TRUE(End().ok());
    }
    const Outcome outcome = fault.During([this] { return gcap_graph_manager_destroy(manager_); });
    manager_ = nullptr;
    EXPECT_EQ(outcome.ok(), !fault.hit());
    EXPECT_STREQ(gcap_code_name(outcome.code), fault.hit() ? "LEAKED" : "OK");
    EXPECT_TRUE(outcome.ok() || fault.Explains(outcome)) << outcome.message;
    const Released where = WhereIs(fault, outcome);
    EXPECT_EQ(released, where == Released::kYes ? 3 : 2) << "one failure must not keep the others";
    if (where != Released::kYes) fault.ExpectKept("exec");
    if (where == Released::kQuarantined) fault.ExpectKept("event");
  });
}

// --- Calls ----------------------------------------------------------------------------------------------------------

TEST_F(GraphManagerSim, ReplayIsOneLaunchAndWithSynchronizeOneWaitMore) {
  CopyJob job;
  Create(0);
  Run(0, job);
  uint64_t before = gcap_sim_calls(nullptr);
  GCAP_EXPECT_OK(Replay(manager_, 0, false));
  EXPECT_EQ(gcap_sim_calls(nullptr) - before, 1u);
  bool replayed = false;
  const uint64_t launches = gcap_sim_calls("cudaGraphLaunch");
  const uint64_t waits = gcap_sim_calls("cudaStreamSynchronize");
  GCAP_EXPECT_OK(TryReplay(manager_, 0, true, &replayed));
  EXPECT_EQ(gcap_sim_calls("cudaGraphLaunch") - launches, 1u);
  EXPECT_EQ(gcap_sim_calls("cudaStreamSynchronize") - waits, 1u);
  before = gcap_sim_calls(nullptr);
  GCAP_EXPECT_OK(TryReplay(manager_, 1, true, &replayed));
  EXPECT_EQ(gcap_sim_calls(nullptr), before) << "no graph, no call";
}

TEST_F(GraphManagerSim, ReplayDoesNotWaitByDefault) {
  CopyJob job;
  Create(0);
  Run(0, job);
  const gcap_run_t run = ReplayOf(0, /*synchronize=*/false);
  const uint64_t waits = gcap_sim_calls("cudaStreamSynchronize");
  GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &run, nullptr));
  EXPECT_EQ(gcap_sim_calls("cudaStreamSynchronize"), waits);
}

TEST_F(GraphManagerSim, QuestionsAskNoDriver) {
  CopyJob job;
  Create(0);
  Run(0, job);
  const uint64_t before = gcap_sim_calls(nullptr);
  EXPECT_TRUE(gcap_graph_manager_is_captured(manager_, 0));
  EXPECT_EQ(State(0), "CAPTURED");
  EXPECT_EQ(gcap_sim_calls(nullptr), before);
}

TEST_F(GraphManagerSim, ReplaysAreRightUnderManySchedules) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    gcap_sim_set_seed(seed);
    CopyJob job;
    Create(1);
    for (int value = 1; value <= 6; ++value) {
      job.set_input(value);
      bool replayed = false;
      GCAP_EXPECT_OK(TryReplay(manager_, 0, true, &replayed));
      EXPECT_EQ(replayed, value > 2);
      if (!replayed) Run(0, job);
      EXPECT_EQ(job.output(), value);
    }
    DestroyManager();
  }
}

TEST_F(GraphManagerSim, DestroyLeavesNoHandle) {
  CopyJob job;
  const auto before = LiveHandles();
  Create(0);
  for (int id = 0; id < 10; ++id) Run(id, job);
  DestroyManager();
  EXPECT_EQ(LiveHandles(), before);
}

// --- Without host memory --------------------------------------------------------------------------------------------

TEST_F(GraphManagerSim, WithoutMemoryCreateIsRefused) {
  gcap_graph_manager_t* manager = nullptr;
  const HeapFailure no_memory;
  GCAP_EXPECT_FAILS(gcap_graph_manager_create(nullptr, &manager), GCAP_RESOURCE_EXHAUSTED, "memory");
  EXPECT_EQ(manager, nullptr);
}

TEST_F(GraphManagerSim, WithoutMemoryANewIdIsRefusedAndTheNextRunIsRight) {
  CopyJob job;
  Create(1);
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_CAPTURE;
  {
    const HeapFailure no_memory;
    GCAP_EXPECT_FAILS(BeginPlain(manager_, 0, stream_->get(), &kind), GCAP_RESOURCE_EXHAUSTED, "memory");
  }
  EXPECT_EQ(kind, GCAP_GRAPH_RUN_EAGER);
  EXPECT_EQ(State(0), "COLD");
  ExpectNextRunsAreRight(0, &job);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
