// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Variants by how the buffers of runs lie to one another: in place, apart and overlapping are graphs of one id, and
// each run takes the one of its own. The oracle is what the work does alone on the run's buffers.

#include <random>
#include <string>
#include <vector>

#include "gcap/graph_guards.h"
#include "gtest/gtest.h"
#include "test/graph/aliasing_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

using Lies = std::vector<Lie>;

class GraphAliasing : public AliasingTest {
 protected:
  void CreateWithMost(size_t most) {
    CreateWith([most](gcap_graph_manager_options_t* options) { options->max_variants = most; });
  }
  // A run whose work states the decision, too.
  gcap_run_outcome_t RunFor(int decision, Lie lie) {
    decision_ = decision;
    gcap_graph_guard_t guard;
    gcap_graph_guard_init(&guard);
    guard.name = "decision";
    guard.address = &decision_;
    guard.bytes = sizeof(decision_);
    guard.low = guard.high = decision;
    const WorkOn work = [&](cudaStream_t stream, void* const* at) {
      GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
      return AddOfLie()(stream, at);
    };
    return RunAt(RunOf(kId, nullptr), next_place_++, lie, work);
  }

  int decision_ = 0;
};

TEST_F(GraphAliasing, WaysThatAlternateAreEachCapturedOnce) {
  const Lies lies = {Lie::kApart, Lie::kEqual, Lie::kOverlapping};
  for (const Lie lie : lies) EXPECT_EQ(RunAt(next_place_++, lie), GCAP_RUN_CAPTURED);
  std::mt19937 draw(1);
  for (int step = 0; step < 3000 && !HasFailure(); ++step) ExpectAllReplay({lies[draw() % 3]});
  const gcap_graph_info_t info = Info(kId);
  EXPECT_EQ(info.captures, 3u);
  EXPECT_EQ(info.graphs, 3u);
  EXPECT_EQ(info.updates + info.reinstantiations + info.evictions + info.eager_runs, 0u);
  EXPECT_EQ(info.replays, 3003u);
  EXPECT_TRUE(WhyNotMovable().ok());
}

// The work of buffers that touch is another than of those apart, so its graphs stay, and are for none that are apart.
TEST_F(GraphAliasing, EachWayIsAGraphIfThereMayBeAsMany) {
  CreateWithMost(0);
  const Lies all = {Lie::kApart,         Lie::kEqual, Lie::kOverlapping, Lie::kTouching, Lie::kOverlappingBefore,
                    Lie::kTouchingBefore};
  for (const Lie lie : all) EXPECT_EQ(RunAt(next_place_++, lie), GCAP_RUN_CAPTURED) << static_cast<int>(lie);
  EXPECT_EQ(Info(kId).graphs, all.size());
  for (int round = 0; round < 3; ++round) {
    ExpectAllReplay({Lie::kApart, Lie::kEqual, Lie::kOverlapping, Lie::kOverlappingBefore});
  }
  EXPECT_EQ(Info(kId).captures, all.size());
}

// Work that does not look at how buffers lie: its graph of buffers that touch is for those apart, too.
TEST_F(GraphAliasing, AGraphOfBuffersThatTouchIsForThoseApart) {
  const auto run = [&](Lie lie) {
    const auto items = ItemsAt(next_place_++, lie);
    const uint64_t captures = Info(kId).captures;
    calls_ = 0;
    Give(items[0].address);
    const Outcome outcome = RunOn(items, AddOne);
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(Seen(items[1].address), *given_ + 1);
    return Info(kId).captures != captures ? 'c' : calls_ == 0 ? 'r' : 'e';
  };
  EXPECT_EQ(run(Lie::kTouching), 'c');
  EXPECT_EQ(run(Lie::kApart), 'r');
  EXPECT_EQ(run(Lie::kTouching), 'r');
  EXPECT_EQ(run(Lie::kTouchingBefore), 'c');
  for (const Lie lie : {Lie::kApart, Lie::kTouching, Lie::kTouchingBefore}) EXPECT_EQ(run(lie), 'r');
}

TEST_F(GraphAliasing, OneMoreThanThereMayBeIsEagerAndTakesNoPlace) {
  CreateWithMost(3);
  const LogCatcher log;
  const Lies lies = {Lie::kApart, Lie::kEqual, Lie::kOverlapping};
  for (const Lie lie : lies) EXPECT_EQ(RunAt(next_place_++, lie), GCAP_RUN_CAPTURED);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(RunAt(next_place_++, Lie::kOverlappingBefore), GCAP_RUN_EAGER);
    EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "NOT_MOVABLE");
    const Outcome why = Explain(GCAP_GRAPH_WHY_EAGER);
    EXPECT_TRUE(why.Names("'input'") && why.Names("'output'") && why.Names("in the capture")) << why.message;
    ExpectAllReplay(lies);
  }
  EXPECT_EQ(Info(kId).captures, 3u);
}

TEST_F(GraphAliasing, WhereOneGraphIsAllOtherWaysAreEager) {
  CreateWithMost(1);
  const LogCatcher log;
  EXPECT_EQ(RunAt(next_place_++, Lie::kApart), GCAP_RUN_CAPTURED);
  for (const Lie lie : {Lie::kEqual, Lie::kOverlapping, Lie::kTouching}) {
    EXPECT_EQ(RunAt(next_place_++, lie), GCAP_RUN_EAGER);
    EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "NOT_MOVABLE");
    ExpectAllReplay({Lie::kApart});
  }
  EXPECT_EQ(Info(kId).captures, 1u);
}

TEST_F(GraphAliasing, WaysAndDecisionsAreToldApartTogether) {
  for (const int decision : {1, 2}) {
    for (const Lie lie : {Lie::kApart, Lie::kEqual}) EXPECT_EQ(RunFor(decision, lie), GCAP_RUN_CAPTURED);
  }
  for (int round = 0; round < 20; ++round) {
    for (const int decision : {2, 1}) {
      for (const Lie lie : {Lie::kApart, Lie::kEqual}) EXPECT_EQ(RunFor(decision, lie), GCAP_RUN_REPLAYED);
    }
  }
  EXPECT_EQ(Info(kId).captures, 4u);
  const LogCatcher log;
  EXPECT_EQ(RunFor(2, Lie::kOverlapping), GCAP_RUN_EAGER) << "there are four";
  EXPECT_EQ(RunFor(3, Lie::kOverlapping), GCAP_RUN_CAPTURED) << "no graph is right for the decision";
  EXPECT_EQ(Info(kId).graphs, 4u);
  EXPECT_EQ(RunFor(3, Lie::kOverlapping), GCAP_RUN_REPLAYED);
}

// The newest that was passed over says why, and of its reasons the last.
TEST_F(GraphAliasing, WhatAGraphWasPassedOverForIsNamed) {
  EXPECT_EQ(RunFor(1, Lie::kApart), GCAP_RUN_CAPTURED);
  EXPECT_TRUE(Explain(GCAP_GRAPH_WHY_OTHER_VARIANT).ok());
  gcap_run_t replay = ReplayOf(kId, /*synchronize=*/true);
  bool replayed = true;
  const auto items = ItemsAt(7, Lie::kEqual);
  const gcap_graph_buffers_t buffers = BuffersOf(items);
  replay.buffers = &buffers;
  GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &replay, &replayed));
  EXPECT_FALSE(replayed);
  const std::string way = "buffers 0 'input' and 1 'output' share bytes here, and do not in the capture";
  EXPECT_TRUE(Explain(GCAP_GRAPH_WHY_OTHER_VARIANT).Names(way)) << Explain(GCAP_GRAPH_WHY_OTHER_VARIANT).message;
  EXPECT_TRUE(Explain(GCAP_GRAPH_WHY_OTHER_VARIANT).Names("graph id 3"));
  EXPECT_TRUE(Info(kId).captures_next);
  GCAP_EXPECT_FAILS(gcap_graph_manager_replay(manager_, &replay, nullptr), GCAP_FAILED_PRECONDITION, way);
  decision_ = 2;
  GCAP_EXPECT_OK(gcap_graph_manager_replay(manager_, &replay, &replayed));
  EXPECT_FALSE(replayed);
  EXPECT_TRUE(Explain(GCAP_GRAPH_WHY_OTHER_VARIANT).Names("guard 'decision'"));
  EXPECT_EQ(RunFor(1, Lie::kEqual), GCAP_RUN_CAPTURED);
  EXPECT_FALSE(Info(kId).captures_next);
}

// Each graph is where its own buffers were last, so a replay of no buffers would work on some that nobody named.
TEST_F(GraphAliasing, ARunWithoutBuffersIsRefusedWhereSeveralHaveThem) {
  EXPECT_EQ(RunAt(1, Lie::kApart), GCAP_RUN_CAPTURED);
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
  GCAP_EXPECT_OK(Bind(0, ItemsAt(2, Lie::kApart)[0].address));
  EXPECT_EQ(RunAt(1, Lie::kEqual), GCAP_RUN_CAPTURED);
  const uint64_t replays = Info(kId).replays;
  GCAP_EXPECT_FAILS(Replay(manager_, kId, true), GCAP_FAILED_PRECONDITION, "give each replay its buffers");
  GCAP_EXPECT_FAILS(Bind(0, ItemsAt(2, Lie::kApart)[0].address), GCAP_FAILED_PRECONDITION, "several graphs");
  WorkOn none = [](cudaStream_t, void* const*) -> gcap_status_t { return nullptr; };
  const Outcome run(RunPlainOn(manager_, kId, stream_->get(), nullptr, Issue, &none, true));
  EXPECT_EQ(run.code, GCAP_FAILED_PRECONDITION) << run.message;
  EXPECT_EQ(Info(kId).replays, replays);
  ExpectAllReplay({Lie::kApart, Lie::kEqual});
}

// Where the id's run was last there is no graph any more, and the one that is left is elsewhere.
TEST_F(GraphAliasing, ARunWithoutBuffersIsRefusedWhereTheGraphOfTheLastOnesWasEvicted) {
  CreateWith([](gcap_graph_manager_options_t* options) { options->max_graphs = 2; });
  gcap_run_t pinned = RunOf(kId, nullptr);
  pinned.pinned = true;
  EXPECT_EQ(RunAt(pinned, 1, Lie::kEqual, AddOfLie()), GCAP_RUN_CAPTURED);
  EXPECT_EQ(RunAt(2, Lie::kApart), GCAP_RUN_CAPTURED);
  EXPECT_EQ(RunAt(3, Lie::kApart, kId + 1), GCAP_RUN_CAPTURED);
  ASSERT_EQ(Info(kId).graphs, 1u);
  GCAP_EXPECT_FAILS(Replay(manager_, kId, true), GCAP_FAILED_PRECONDITION, "which was evicted: give each replay its");
  GCAP_EXPECT_FAILS(Bind(0, ItemsAt(2, Lie::kApart)[0].address), GCAP_FAILED_PRECONDITION, "which was evicted");
  ExpectAllReplay({Lie::kEqual});
  GCAP_EXPECT_OK(Replay(manager_, kId, true));
}

TEST_F(GraphAliasing, ARunThatIsCapturedOnlyAddsTheWayThatIsMissing) {
  gcap_run_t run = RunOf(kId, nullptr);
  run.capture_only = true;
  for (const Lie lie : {Lie::kApart, Lie::kEqual, Lie::kApart, Lie::kEqual}) {
    EXPECT_EQ(RunAt(run, next_place_++, lie, AddOfLie()), GCAP_RUN_RECORDED);
  }
  EXPECT_EQ(calls_, 6) << "of each way two rehearsals and the capture";
  EXPECT_EQ(Info(kId).replays, 0u);
  ExpectAllReplay({Lie::kApart, Lie::kEqual});
}

TEST_F(GraphAliasing, AWarmUpEndsInAGraphOfEachWay) {
  CreateWith([](gcap_graph_manager_options_t* options) { options->min_num_runs_before_capture = 2; });
  const Lies lies = {Lie::kApart, Lie::kEqual, Lie::kOverlapping};
  std::vector<std::vector<gcap_graph_buffer_t>> items;
  std::vector<gcap_graph_buffers_t> buffers;
  for (const Lie lie : lies) items.push_back(ItemsAt(next_place_++, lie));
  for (const auto& each : items) buffers.push_back(BuffersOf(each));
  const WorkOn work = AddOfLie();
  PlainCall call = {nullptr, Issue, const_cast<WorkOn*>(&work)};
  std::vector<gcap_run_t> runs;
  for (const auto& each : buffers) {
    gcap_run_t run = RunOf(kId, stream_->get());
    run.buffers = &each;
    run.work = CallPlain;
    run.user = &call;
    runs.push_back(run);
  }
  GCAP_EXPECT_OK(gcap_graph_manager_warm_up(manager_, runs.data(), runs.size(), nullptr, nullptr));
  EXPECT_EQ(Info(kId).graphs, 3u);
  stream_->Synchronize();
  ExpectAllReplay(lies);
}

TEST_F(GraphAliasing, AFailedOrCancelledCaptureOfOneWayLeavesTheOthers) {
  const LogCatcher log;
  EXPECT_EQ(RunAt(1, Lie::kApart), GCAP_RUN_CAPTURED);
  const WorkOn failing = [this](cudaStream_t stream, void* const* at) {
    return gcap_thread_is_capturing() ? GCAP_STATUS(GCAP_LIBRARY_ERROR, "no kernel") : AddOfLie()(stream, at);
  };
  EXPECT_EQ(RunAt(RunOf(kId, nullptr), 1, Lie::kEqual, failing), GCAP_RUN_EAGER);
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "CAPTURE_FAILED");
  ExpectAllReplay({Lie::kApart});
  EXPECT_EQ(RunAt(1, Lie::kEqual), GCAP_RUN_EAGER);
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "COOLING");
  const auto items = ItemsAt(1, Lie::kOverlapping);
  const Outcome cancelled = RunOn(
      items, [](cudaStream_t, void* const*) -> gcap_status_t { return GCAP_STATUS(GCAP_CANCELLED, "on purpose"); });
  EXPECT_EQ(cancelled.code, GCAP_CANCELLED);
  EXPECT_EQ(RunAt(1, Lie::kEqual), GCAP_RUN_CAPTURED);
  ExpectAllReplay({Lie::kApart, Lie::kEqual});
  EXPECT_EQ(Info(kId).graphs, 2u);
}

TEST_F(GraphAliasing, CountForTheBudgetAndGoTogether) {
  CreateWith([](gcap_graph_manager_options_t* options) { options->max_graphs = 2; });
  for (const Lie lie : {Lie::kApart, Lie::kEqual, Lie::kOverlapping}) {
    EXPECT_EQ(RunAt(next_place_++, lie), GCAP_RUN_CAPTURED);
  }
  EXPECT_EQ(Info(kId).graphs, 2u);
  EXPECT_EQ(Info(kId).evictions, 1u);
  ExpectAllReplay({Lie::kEqual, Lie::kOverlapping});
  EXPECT_EQ(RunAt(next_place_++, Lie::kApart), GCAP_RUN_CAPTURED) << "the oldest went";
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, kId));
  for (const Lie lie : {Lie::kApart, Lie::kOverlapping}) EXPECT_EQ(RunAt(next_place_++, lie), GCAP_RUN_CAPTURED);
  ExpectAllReplay({Lie::kApart, Lie::kOverlapping});
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, kId));
  EXPECT_EQ(Info(GCAP_GRAPH_ID_NONE).graphs, 0u);
}

// Where a graph cannot be moved each way still has one, which replays in its place.
TEST_F(GraphAliasing, GraphsThatStayAreToldApartToo) {
  const LogCatcher log;
  const WorkOn work = [this](cudaStream_t stream, void* const* at) {
    GCAP_RETURN_IF_ERROR(AddOfLie()(stream, at));
    return GCAP_CUDA(cudaLaunchHostFunc(
        stream, [](void*) {}, this));
  };
  const auto run = [&](size_t place, Lie lie) { return RunAt(RunOf(kId, nullptr), place, lie, work); };
  EXPECT_EQ(run(1, Lie::kApart), GCAP_RUN_CAPTURED);
  EXPECT_EQ(run(1, Lie::kEqual), GCAP_RUN_CAPTURED);
  for (const Lie lie : {Lie::kApart, Lie::kEqual}) {
    EXPECT_EQ(run(1, lie), GCAP_RUN_REPLAYED);
    EXPECT_EQ(run(2, lie), GCAP_RUN_EAGER);
    EXPECT_TRUE(Explain(GCAP_GRAPH_WHY_EAGER).Names("host function")) << Explain(GCAP_GRAPH_WHY_EAGER).message;
  }
  EXPECT_EQ(Info(kId).captures, 2u);
}

TEST_F(GraphAliasing, OfAKeyAreFoundByIt) {
  const int32_t bytes = 7;
  const gcap_graph_key_t key = {&bytes, sizeof(bytes), "step"};
  gcap_run_t run = RunOf(GCAP_GRAPH_ID_NONE, nullptr);
  run.key = &key;
  for (int round = 0; round < 3; ++round) {
    for (const Lie lie : {Lie::kApart, Lie::kEqual, Lie::kOverlapping}) {
      EXPECT_EQ(RunAt(run, next_place_++, lie, AddOfLie()), round == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
    }
  }
  EXPECT_EQ(Info(result_.id).graphs, 3u);
}

TEST_F(GraphAliasing, DrawnWaysAndDecisionsAreAlwaysThoseOfTheStep) {
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 draw(seed);
    CreateWith([&](gcap_graph_manager_options_t* options) {
      options->max_variants = seed - 1;
      options->max_graphs = seed == 2 ? 3 : 0;
    });
    const LogCatcher log;
    for (int step = 0; step < 600 && !HasFailure(); ++step) {
      const Lie lie = static_cast<Lie>(draw() % kNumLies);
      if (draw() % 2 == 0) {
        (void)RunFor(static_cast<int>(draw() % 2), lie);
      } else {
        (void)RunAt(draw() % kPlaces, lie, kId + 1);
      }
    }
    if (seed != 1) continue;  // there may be as many graphs as ways
    EXPECT_LE(Info(kId).captures, 2u * kNumLies);
    EXPECT_LE(Info(kId + 1).captures, static_cast<uint64_t>(kNumLies));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
