// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Keys, guards and variants where host memory is short, and that their runs take none for ever.

#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "test/base/heap_failure.h"
#include "test/graph/guarded_test.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphKeyedSim : public GuardedTest {
 protected:
  // A run by key whose work states guards of each kind, drops what they answer, and fills.
  Outcome RunStep(int32_t number, int decision) {
    decision_ = decision;
    const gcap_graph_key_t key = KeyOf(number, "decode");
    *seen_ = 0xff;
    return RunWork(RunBy(&key), [&](cudaStream_t stream) {
      gcap_graph_guard_t bytes = Guard("bytes", GCAP_GRAPH_GUARD_BYTES, &decision_);
      bytes.bytes = 3;
      const gcap_graph_guard_t guards[] = {Integer("decision", decision_, decision, decision), bytes,
                                           Answer("answer", &asked_)};
      for (const gcap_graph_guard_t& guard : guards) gcap_status_free(GCAP_GRAPH_GUARD(&guard));
      return Fill(stream, decision);
    });
  }

  int decision_ = 0;
  Asked asked_;
};

// The simulator needs memory of its own, so only what gcap takes is refused here: to know a key, and to keep a guard.
TEST_F(GraphKeyedSim, WithoutMemoryForAKeyTheRunIsRefused) {
  options_.min_num_runs_before_capture = 1;  // the begin of an eager run calls no CUDA
  CreateKeyed();
  int skip = 0;
  for (int hits = 1; hits > 0; ++skip) {
    SCOPED_TRACE("allocation " + std::to_string(skip));
    const int32_t number = skip;
    const gcap_graph_key_t key = KeyOf(number, "decode");
    const gcap_run_t run = RunBy(&key);
    gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_EAGER;
    gcap_status_t begun = nullptr;
    {
      const HeapFailure no_memory(1, skip);
      begun = gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr);
      hits = no_memory.hits();
    }
    const Outcome outcome(begun);
    int id = 0;
    const Outcome found(gcap_graph_manager_find(manager_, &key, &id));
    EXPECT_EQ(outcome.code, hits > 0 ? GCAP_RESOURCE_EXHAUSTED : GCAP_OK) << outcome.message;
    EXPECT_EQ(found.code, hits > 0 ? GCAP_NOT_FOUND : GCAP_OK) << found.message;
    if (outcome.ok()) {
      EXPECT_TRUE(End().ok());
    }
  }
  EXPECT_GT(skip, 2) << "a key and its slot take memory";
}

// The id's graph is for another answer, and stays.
TEST_F(GraphKeyedSim, WithoutMemoryForAnotherGraphOfAnIdTheRunIsRefused) {
  options_.max_variants = 2;
  CreateKeyed();
  const gcap_graph_guard_t answer = Answer("answer", &asked_);
  EXPECT_EQ(RunGuarded(0, {answer}, 1), GCAP_RUN_CAPTURED);
  asked_.answer = 1;
  const gcap_run_t run = RunBy(nullptr, 0);
  gcap_graph_run_kind_t kind = GCAP_GRAPH_RUN_CAPTURE;
  {
    const HeapFailure no_memory(1, /*skip=*/1);  // the reason why the graph is not for the run comes first
    GCAP_EXPECT_FAILS(gcap_graph_manager_begin_run(manager_, &run, &kind, nullptr), GCAP_RESOURCE_EXHAUSTED,
                      "no host memory for graph id 0");
    EXPECT_EQ(no_memory.hits(), 1);
  }
  EXPECT_EQ(kind, GCAP_GRAPH_RUN_EAGER);
  EXPECT_EQ(RunGuarded(0, {answer}, 2), GCAP_RUN_CAPTURED);
  EXPECT_EQ(RunGuarded(0, {answer}, 2), GCAP_RUN_REPLAYED);
  asked_.answer = 0;
  EXPECT_EQ(RunGuarded(0, {answer}, 1), GCAP_RUN_REPLAYED);
}

TEST_F(GraphKeyedSim, WithoutMemoryForAGuardThereIsNoGraph) {
  const LogCatcher log;
  int skip = 0;
  for (int hits = 1; hits > 0; ++skip) {
    SCOPED_TRACE("allocation " + std::to_string(skip));
    CreateKeyed();
    int decision = 2, calls = 0;
    const Work work = [&](cudaStream_t stream) {
      const gcap_graph_guard_t guards[] = {Integer("decision", decision, 2, 2), Answer("answer", &asked_)};
      if (++calls == 1) {
        const HeapFailure no_memory(1, skip);
        for (const gcap_graph_guard_t& guard : guards) gcap_status_ignore(GCAP_GRAPH_GUARD(&guard));
        hits = no_memory.hits();
      }
      return Fill(stream, decision);
    };
    EXPECT_TRUE(RunWork(RunBy(nullptr, 0), work).ok());
    EXPECT_EQ(Seen(), 2);
    EXPECT_EQ(result_.outcome, hits > 0 ? GCAP_RUN_EAGER : GCAP_RUN_CAPTURED);
    DestroyManager();
  }
  EXPECT_GT(skip, 2) << "a list, and the file of each guard";
}

TEST_F(GraphKeyedSim, RunsOfKnownKeysAndVariantsTakeNoMemory) {
  CreateKeyed();
  const auto run_all = [&] {
    for (int32_t number = 1; number <= 2; ++number) {
      for (int decision = 1; decision <= 3; ++decision) {
        EXPECT_TRUE(RunStep(number, decision).ok());
        EXPECT_EQ(Seen(), decision);
      }
    }
  };
  run_all();
  const long blocks = LiveBlocks();
  for (int round = 0; round < 300; ++round) run_all();
  // Of 1,800 replays. The simulator's own lists grow now and then, by one block for twice as many calls.
  EXPECT_LT(LiveBlocks() - blocks, 20);
  EXPECT_EQ(Info(GCAP_GRAPH_ID_NONE).captures, 6u);
}

// Keys that come and go leave nothing.
TEST_F(GraphKeyedSim, ForgottenKeysLeaveNothing) {
  options_.max_graphs = 2;
  options_.max_ids_without_graph = 2;
  CreateKeyed();
  for (int32_t number = 0; number < 20; ++number) EXPECT_TRUE(RunStep(number, 1).ok());
  const long blocks = LiveBlocks();
  for (int32_t number = 20; number < 220; ++number) EXPECT_TRUE(RunStep(number, 1).ok());
  EXPECT_LT(LiveBlocks() - blocks, 20);  // of 200 keys, with what the simulator takes
}

}  // namespace
}  // namespace testing
}  // namespace gcap
