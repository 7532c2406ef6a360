// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Variants by how buffers lie, where each CUDA call of one's capture and of one's replay fails; and that their replays
// take no memory.

#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/graph/aliasing_test.h"
#include "test/support/faults.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphAliasingSim : public AliasingTest {
 protected:
  void TearDown() override {
    gcap_sim_clear_faults();
    AliasingTest::TearDown();
  }
  // A run on buffers that lie so, whose result is an eager run's if it succeeds.
  Outcome RunLie(Lie lie) {
    const std::vector<gcap_graph_buffer_t> items = ItemsAt(next_place_++, lie);
    return RunOn(items, AddOfLie());
  }
};

TEST_F(GraphAliasingSim, AHundredThousandStepsOfThreeWaysCaptureThreeTimesAndTakeNoMemory) {
  const std::vector<Lie> lies = {Lie::kApart, Lie::kEqual, Lie::kOverlapping};
  for (const Lie lie : lies) EXPECT_EQ(RunAt(next_place_++, lie), GCAP_RUN_CAPTURED);
  // The places where a graph has been are remembered, up to a number.
  for (int step = 0; step < 3000; ++step) ExpectAllReplay({lies[static_cast<size_t>(step) % 3]});
  const long blocks = LiveBlocks();
  std::mt19937 draw(1);
  for (int step = 0; step < 100000 && !HasFailure(); ++step) ExpectAllReplay({lies[draw() % 3]});
  // The simulator's own lists grow now and then, by one block for twice as many calls.
  EXPECT_LT(LiveBlocks() - blocks, 20);
  const gcap_graph_info_t info = Info(kId);
  EXPECT_EQ(info.captures, 3u);
  EXPECT_EQ(info.graphs, 3u);
  EXPECT_EQ(info.updates + info.reinstantiations + info.evictions + info.eager_runs, 0u);
  EXPECT_EQ(info.replays, 103003u);
}

// Whatever call fails while one way is captured, or replays elsewhere, the graph of the other way is as it was.
TEST_F(GraphAliasingSim, WhateverFailsForOneWayTheOtherReplays) {
  for (const bool is_captured : {false, true}) {
    (void)WalkFaults([&](Fault& fault) {
      const LogCatcher log;
      ASSERT_EQ(RunAt(next_place_++, Lie::kApart), GCAP_RUN_CAPTURED);
      if (is_captured) (void)RunAt(next_place_++, Lie::kEqual);
      stream_->Synchronize();
      fault.Arm();
      const Outcome outcome = RunLie(Lie::kEqual);
      fault.Disarm();
      stream_->Synchronize();
      EXPECT_TRUE(outcome.ok() || fault.hit()) << outcome.message;
      ExpectAllReplay({Lie::kApart});
      for (int i = 0; i < 4; ++i) (void)RunAt(next_place_++, Lie::kEqual);
      ExpectAllReplay({Lie::kApart});
      EXPECT_LE(Info(kId).graphs, 2u);
      (void)Outcome(gcap_graph_manager_release_all(manager_));
      fault.AllowKept();
    });
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
