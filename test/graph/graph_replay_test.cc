// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Replay and release of captured graphs, by one thread and by many.

#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "gcap/graph.h"
#include "gtest/gtest.h"
#include "test/graph/manager_test.h"
#include "test/support/device_floats.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

class GraphReplay : public ManagerTest {
 protected:
  void SetUp() override {
    ManagerTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    Create(0);
  }

  // Captures a job that also retains an entry, counted by `released`.
  void CaptureRetaining(int id, const CopyJob& job, std::atomic<int>* released) {
    ASSERT_EQ(Begin(id), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
    GCAP_EXPECT_OK(gcap_capture_retain(
        gcap_capture_current(), [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, /*bytes=*/nullptr,
        released));
    const Outcome outcome = End();
    ASSERT_TRUE(outcome.ok()) << outcome.message;
  }
};

TEST_F(GraphReplay, OfUnknownIdIsNotFound) {
  GCAP_EXPECT_FAILS(Replay(manager_, 3, true), GCAP_NOT_FOUND, "graph id 3 is not captured: it is COLD");
  EXPECT_FALSE(gcap_graph_manager_is_captured(manager_, 3));
  bool replayed = true;
  GCAP_EXPECT_OK(TryReplay(manager_, 3, true, &replayed));
  EXPECT_FALSE(replayed);
}

TEST_F(GraphReplay, OfAnIdNotYetCapturedNamesItsState) {
  FailingRun(3);
  GCAP_EXPECT_FAILS(Replay(manager_, 3, true), GCAP_NOT_FOUND, "COOLING");
  bool replayed = true;
  GCAP_EXPECT_OK(TryReplay(manager_, 3, true, &replayed));
  EXPECT_FALSE(replayed);
}

TEST_F(GraphReplay, ReadsWhatTheInputsHoldNow) {
  CopyJob job;
  Run(0, job);
  for (int value = 1; value <= 5; ++value) {
    job.set_input(value);
    GCAP_EXPECT_OK(Replay(manager_, 0, true));
    EXPECT_EQ(job.output(), value);
  }
  bool replayed = false;
  job.set_input(6);
  GCAP_EXPECT_OK(TryReplay(manager_, 0, true, &replayed));
  EXPECT_TRUE(replayed);
  EXPECT_EQ(job.output(), 6);
  EXPECT_EQ(Info(0).replays, 7u);
}

TEST_F(GraphReplay, OfOneIdLeavesTheOthersAlone) {
  CopyJob first;
  CopyJob second;
  Run(1, first);
  Run(2, second);
  first.set_input(10);
  second.set_input(20);
  GCAP_EXPECT_OK(Replay(manager_, 2, true));
  EXPECT_EQ(first.output(), 0);
  EXPECT_EQ(second.output(), 20);
}

TEST_F(GraphReplay, WaitsOnlyWhenAsked) {
  Gate gate;
  CopyJob job;
  Run(0, job);
  job.set_input(5);
  gate.Hold(stream_->get());
  GCAP_EXPECT_OK(Replay(manager_, 0, /*synchronize=*/false));
  EXPECT_EQ(job.output(), 0) << "the stream is held, so the replay cannot have run";
  std::thread opener([&gate] {
    std::this_thread::sleep_for(kPatience);
    gate.Open();
  });
  GCAP_EXPECT_OK(Replay(manager_, 0, /*synchronize=*/true));
  EXPECT_EQ(job.output(), 5);
  opener.join();
}

TEST_F(GraphReplay, FirstOneAfterACaptureWaitsOnlyWhenAsked) {
  for (const bool synchronize : {false, true}) {
    Gate gate;
    CopyJob job;
    job.set_input(9);
    gate.Hold(stream_->get());
    const int id = synchronize ? 1 : 0;
    ASSERT_EQ(Begin(id), GCAP_GRAPH_RUN_CAPTURE);
    GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
    std::thread opener([&gate, synchronize] {
      if (synchronize) {
        std::this_thread::sleep_for(kPatience);
        gate.Open();
      }
    });
    GCAP_EXPECT_OK(EndPlain(manager_, nullptr, synchronize));
    EXPECT_EQ(job.output(), synchronize ? 9 : -1);
    opener.join();
    gate.Open();
    stream_->Synchronize();
    EXPECT_EQ(job.output(), 9);
  }
}

TEST_F(GraphReplay, RunsOnTheStreamThatCapturedIt) {
  DeviceFloats given({7}), from({1}), to({0}), seen({0});
  const auto copy = [this](const DeviceFloats& out, const DeviceFloats& in) {
    GCAP_EXPECT_CUDA(cudaMemcpyAsync(out.get(), in.get(), in.Bytes(), cudaMemcpyDeviceToDevice, stream_->get()));
  };
  ASSERT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  copy(to, from);
  EXPECT_TRUE(End().ok());
  Gate gate;
  gate.Hold(stream_->get());
  copy(from, given);
  GCAP_EXPECT_OK(Replay(manager_, 0, false));
  copy(seen, to);
  gate.Open();
  stream_->Synchronize();
  EXPECT_EQ(seen.Get(), std::vector<float>{7}) << "the replay comes after the stream's earlier work, before the later";
}

// --- Release --------------------------------------------------------------------------------------------------------

TEST_F(GraphReplay, ReleaseOfAnIdWithoutAGraphForgetsIt) {
  GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, 3), GCAP_NOT_FOUND, "graph id 3");
  FailingRun(3);
  EXPECT_EQ(State(3), "COOLING");
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 3));
  EXPECT_EQ(State(3), "COLD");
  EXPECT_EQ(Info(3).failures, 0u);
  GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, 3), GCAP_NOT_FOUND, "graph id 3");
  GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, GCAP_GRAPH_ID_NONE), GCAP_NOT_FOUND, "graph id -1");
}

TEST_F(GraphReplay, ReleaseMakesTheIdColdAndItMayBeCapturedAgain) {
  CopyJob job;
  Run(0, job);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  EXPECT_EQ(State(0), "COLD");
  EXPECT_EQ(Info(0).captures + Info(0).replays + Info(0).nodes, 0u);
  GCAP_EXPECT_FAILS(Replay(manager_, 0, true), GCAP_NOT_FOUND, "COLD");
  GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, 0), GCAP_NOT_FOUND, "graph id 0");
  job.set_input(2);
  EXPECT_EQ(Run(0, job), GCAP_GRAPH_RUN_CAPTURE);
  EXPECT_EQ(job.output(), 2);
}

TEST_F(GraphReplay, ReleaseFreesWhatWasRetainedAndNothingEarlier) {
  CopyJob job;
  std::atomic<int> released{0};
  CaptureRetaining(0, job, &released);
  GCAP_EXPECT_OK(Replay(manager_, 0, true));
  EXPECT_EQ(released, 0);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  EXPECT_EQ(released, 1);
}

TEST_F(GraphReplay, ReleaseWaitsForALaunchInFlight) {
  Gate gate;
  CopyJob job;
  std::atomic<int> released{0};
  CaptureRetaining(0, job, &released);
  job.set_input(3);
  gate.Hold(stream_->get());
  GCAP_EXPECT_OK(Replay(manager_, 0, false));
  std::atomic<bool> returned{false};
  std::thread releaser([this, &returned] {
    GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
    returned = true;
  });
  std::this_thread::sleep_for(kPatience);
  EXPECT_FALSE(returned);
  EXPECT_EQ(released, 0) << "a launch in flight still reads what was retained";
  gate.Open();
  releaser.join();
  EXPECT_EQ(released, 1);
  EXPECT_EQ(job.output(), 3);
}

TEST_F(GraphReplay, ReleaseAllReleasesEveryGraphAndForgetsEveryId) {
  CopyJob job;
  std::atomic<int> released{0};
  for (int id = 0; id < 20; ++id) CaptureRetaining(id, job, &released);
  FailingRun(20);
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  EXPECT_EQ(released, 20);
  for (int id = 0; id <= 20; ++id) EXPECT_EQ(State(id), "COLD");
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
}

TEST_F(GraphReplay, DestroyReleasesEveryGraphAfterItsLaunches) {
  CopyJob job;
  std::atomic<int> released{0};
  for (int id = 0; id < 3; ++id) CaptureRetaining(id, job, &released);
  job.set_input(4);
  GCAP_EXPECT_OK(Replay(manager_, 1, false));
  GCAP_EXPECT_OK(gcap_graph_manager_destroy(manager_));
  manager_ = nullptr;
  EXPECT_EQ(released, 3);
  EXPECT_EQ(job.output(), 4);
}

TEST_F(GraphReplay, OnAStreamThatAnotherThreadCapturesIsRefusedAndLeavesThatCaptureAlone) {
  CopyJob job;
  Run(0, job);
  ASSERT_EQ(Begin(1), GCAP_GRAPH_RUN_CAPTURE);
  std::thread([this] {
    GCAP_EXPECT_FAILS(Replay(manager_, 0, false), GCAP_FAILED_PRECONDITION, "id 1");
    GCAP_EXPECT_FAILS(gcap_graph_manager_release(manager_, 0), GCAP_FAILED_PRECONDITION, "capturing");
    GCAP_EXPECT_FAILS(gcap_graph_manager_release_all(manager_), GCAP_FAILED_PRECONDITION, "capturing");
  }).join();
  GCAP_EXPECT_CUDA(job.Issue(stream_->get()));
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(Info(1).nodes, CopyJob::kNodes);
  EXPECT_EQ(State(0), "CAPTURED");
  GCAP_EXPECT_OK(Replay(manager_, 0, true));
}

TEST_F(GraphReplay, OnAnotherStreamThanTheOneThatCapturesGoesOn) {
  CopyJob job;
  const RawStream other;
  Run(0, job);
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
  GCAP_EXPECT_OK(BeginPlain(manager_, 1, other.get(), &kind));
  job.set_input(8);
  std::thread([this] { GCAP_EXPECT_OK(Replay(manager_, 0, true)); }).join();
  EXPECT_EQ(job.output(), 8);
  std::thread([this] { GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0)); }).join();
  GCAP_EXPECT_CUDA(job.Issue(other.get()));
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(Info(1).nodes, CopyJob::kNodes);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 1));
}

// --- Many ids, many threads -----------------------------------------------------------------------------------------

TEST_F(GraphReplay, AgreesWithAMapOverManyIds) {
  constexpr unsigned kSeed = 20240607;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  std::map<int, int> replays;  // of the ids that are captured
  for (int step = 0; step < 2000; ++step) {
    const int id = static_cast<int>(random() % 64) * 1000003;
    const bool captured = replays.count(id) != 0;
    switch (random() % 3) {
      case 0:
        if (!captured) {
          ASSERT_EQ(Begin(id), GCAP_GRAPH_RUN_CAPTURE);
          ASSERT_TRUE(End().ok());
          replays[id] = 1;
        }
        break;
      case 1: {
        bool replayed = false;
        GCAP_ASSERT_OK(TryReplay(manager_, id, false, &replayed));
        ASSERT_EQ(replayed, captured);
        if (captured) ++replays[id];
        break;
      }
      default: ASSERT_EQ(Outcome(gcap_graph_manager_release(manager_, id)).ok(), captured); replays.erase(id);
    }
    ASSERT_EQ(gcap_graph_manager_is_captured(manager_, id), replays.count(id) != 0);
    ASSERT_EQ(Info(id).replays, replays.count(id) != 0 ? static_cast<uint64_t>(replays[id]) : 0u);
  }
}

TEST_F(GraphReplay, OfOneManagerMayComeFromManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kReplays = 50;
  CopyJob job;
  job.set_input(7);
  Run(0, job);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kReplays; ++i) {
        GCAP_EXPECT_OK(Replay(manager_, 0, (i + t) % 4 == 0));
        EXPECT_TRUE(gcap_graph_manager_is_captured(manager_, 0));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stream_->Synchronize();
  EXPECT_EQ(job.output(), 7);
  EXPECT_EQ(Info(0).replays, 1u + kThreads * kReplays);
}

TEST_F(GraphReplay, MayRaceWithAReleaseOnAnotherThread) {
  for (int round = 0; round < 10; ++round) {
    CopyJob job;
    std::atomic<int> released{0};
    std::atomic<bool> gone{false};
    CaptureRetaining(0, job, &released);
    std::thread releaser([this, &gone] {
      GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
      gone = true;
    });
    bool replayed = true;
    while (replayed) {
      GCAP_EXPECT_OK(TryReplay(manager_, 0, false, &replayed));
    }
    releaser.join();
    EXPECT_TRUE(gone);
    EXPECT_EQ(released, 1);
    stream_->Synchronize();
  }
}

TEST_F(GraphReplay, GoesOnWhileAnotherThreadCapturesAnotherId) {
  CopyJob job;
  Run(0, job);
  std::atomic<bool> done{false};
  std::thread replayer([this, &done] {
    while (!done) GCAP_EXPECT_OK(Replay(manager_, 0, true));
  });
  std::thread capturer([this] {
    const RawStream stream;
    const CopyJob other;
    for (int id = 1; id <= 30; ++id) {
      gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
      GCAP_EXPECT_OK(BeginPlain(manager_, id, stream.get(), &kind));
      EXPECT_EQ(kind, GCAP_GRAPH_RUN_CAPTURE);
      GCAP_EXPECT_CUDA(other.Issue(stream.get()));
      GCAP_EXPECT_OK(EndPlain(manager_, nullptr, true));
      EXPECT_EQ(Info(id).nodes, CopyJob::kNodes);
      GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, id));
    }
  });
  capturer.join();
  done = true;
  replayer.join();
}

}  // namespace
}  // namespace testing
}  // namespace gcap
