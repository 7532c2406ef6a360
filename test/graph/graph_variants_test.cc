// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Variants: several graphs of one id or key, told apart by their guards. The capture of one leaves the others alone;
// budget, eviction, release and counters are of all of them.

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph_buffers.h"
#include "gtest/gtest.h"
#include "test/graph/guarded_test.h"
#include "test/support/environment.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

class GraphVariants : public GuardedTest {
 protected:
  // A run of `id` whose work follows decision_.
  gcap_run_outcome_t RunFor(int id, int decision) {
    decision_ = decision;
    return RunGuarded(id, {Integer("decision", decision_, decision, decision)}, decision);
  }
  // The same for a run with fields of its own. Counts how often the work is issued.
  gcap_run_outcome_t RunFor(gcap_run_t run, int decision, int* issued) {
    decision_ = decision;
    const gcap_graph_guard_t guard = Integer("decision", decision_, decision, decision);
    const Outcome outcome = RunWork(run, [&](cudaStream_t stream) {
      ++*issued;
      GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
      return Fill(stream, decision);
    });
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    return result_.outcome;
  }
  // Each of the decisions: as many runs, of which all must replay.
  void ExpectAllReplay(int id, const std::vector<int>& decisions) {
    for (const int decision : decisions) EXPECT_EQ(RunFor(id, decision), GCAP_RUN_REPLAYED) << decision;
  }

  int decision_ = 0;
};

TEST_F(GraphVariants, ThatAlternateAreEachCapturedOnce) {
  CreateKeyed();
  const std::vector<int> decisions = {1, 2, 3};
  for (const int decision : decisions) EXPECT_EQ(RunFor(0, decision), GCAP_RUN_CAPTURED);
  const int rounds = static_cast<int>(NumberOr("GCAP_TEST_ROUNDS", 1000));
  for (int round = 0; round < rounds; ++round) ExpectAllReplay(0, decisions);
  const gcap_graph_info_t info = Info(0);
  EXPECT_EQ(info.captures, 3u);
  EXPECT_EQ(info.updates + info.reinstantiations, 0u);
  EXPECT_EQ(info.graphs, 3u);
  EXPECT_EQ(info.replays, 3u * static_cast<uint64_t>(rounds + 1));
  EXPECT_EQ(info.nodes, 6u);
  EXPECT_STREQ(gcap_graph_state_name(info.state), "CAPTURED");
  EXPECT_EQ(Info(GCAP_GRAPH_ID_NONE).ids, 1u);
  EXPECT_EQ(Info(GCAP_GRAPH_ID_NONE).graphs, 3u);
  EXPECT_EQ(Info(GCAP_GRAPH_ID_NONE).captures, 3u);
  int ids[2] = {-1, -1};
  EXPECT_EQ(gcap_graph_manager_list_ids(manager_, ids, 2), 1u);
}

TEST_F(GraphVariants, OfAKeyAreFoundByIt) {
  CreateKeyed();
  const int number = 5;
  const gcap_graph_key_t key = KeyOf(number, "decode");
  for (int round = 0; round < 3; ++round) {
    for (decision_ = 1; decision_ <= 3; ++decision_) {
      const gcap_graph_guard_t guard = Integer("decision", decision_, decision_, decision_);
      const Outcome run = RunWork(RunBy(&key), [&](cudaStream_t stream) {
        GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
        return Fill(stream, decision_);
      });
      EXPECT_TRUE(run.ok()) << run.message;
      EXPECT_EQ(Seen(), decision_);
      EXPECT_EQ(result_.outcome, round == 0 ? GCAP_RUN_CAPTURED : GCAP_RUN_REPLAYED);
      EXPECT_EQ(result_.id, IdOf(key));
    }
  }
  EXPECT_STREQ(Info(IdOf(key)).name, "decode");
  EXPECT_EQ(Info(IdOf(key)).graphs, 3u);
}

// One more than there may be takes the place of the one that was used longest ago.
TEST_F(GraphVariants, BeyondTheMostTakeTheOldestsPlace) {
  options_.max_variants = 3;
  CreateKeyed();
  for (const int decision : {1, 2, 3}) EXPECT_EQ(RunFor(0, decision), GCAP_RUN_CAPTURED);
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_REPLAYED);
  EXPECT_EQ(RunFor(0, 4), GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(0).graphs, 3u);
  EXPECT_EQ(Info(0).updates, 1u);
  ExpectAllReplay(0, {1, 3, 4});
  EXPECT_EQ(RunFor(0, 2), GCAP_RUN_CAPTURED);  // in the place of 1
  ExpectAllReplay(0, {2, 3, 4});
}

TEST_F(GraphVariants, APinnedOneKeepsItsPlace) {
  options_.max_variants = 2;
  CreateKeyed();
  gcap_run_t pinned = RunBy(nullptr, 0);
  pinned.pinned = true;
  int issued = 0;
  EXPECT_EQ(RunFor(pinned, 1, &issued), GCAP_RUN_CAPTURED);
  for (const int decision : {2, 3, 4}) EXPECT_EQ(RunFor(0, decision), GCAP_RUN_CAPTURED);
  ExpectAllReplay(0, {1, 4});
}

// Whether there is a graph for a run is whether one's guards hold, not whether the id has any.
TEST_F(GraphVariants, ARunThatIsCapturedOnlyAddsTheOneThatIsMissing) {
  CreateKeyed();
  gcap_run_t run = RunBy(nullptr, 0);
  run.capture_only = true;
  int issued = 0;
  for (const int decision : {1, 2, 1, 2}) EXPECT_EQ(RunFor(run, decision, &issued), GCAP_RUN_RECORDED);
  EXPECT_EQ(issued, 2);
  EXPECT_EQ(Info(0).graphs, 2u);
  EXPECT_EQ(Info(0).replays, 0u);
  ExpectAllReplay(0, {1, 2});
}

// A step for each of a thousand decisions, whose graph retains something.
class ThousandVariants : public GraphVariants {
 protected:
  static constexpr int kDecisions = 1000;

  gcap_run_outcome_t RunFor(int decision) {
    decision_ = decision;
    const gcap_graph_guard_t guard = Integer("decision", decision_, decision, decision);
    *seen_ = 0xff;
    const Outcome outcome = RunWork(RunBy(nullptr, 0), [&](cudaStream_t stream) {
      GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
      GCAP_RETURN_IF_ERROR(gcap_capture_retain(gcap_capture_current(), CountRelease, /*bytes=*/nullptr, &released_));
      return Fill(stream, decision % 251);
    });
    EXPECT_TRUE(outcome.ok()) << outcome.message;
    EXPECT_EQ(Seen(), decision % 251);
    return result_.outcome;
  }

  int released_ = 0;
};

TEST_F(ThousandVariants, WithoutALimitAreAsManyAsDecisions) {
  options_.max_variants = 0;
  CreateKeyed();
  for (int decision = 0; decision < kDecisions; ++decision) EXPECT_EQ(RunFor(decision), GCAP_RUN_CAPTURED);
  for (int decision = 0; decision < kDecisions; ++decision) EXPECT_EQ(RunFor(decision), GCAP_RUN_REPLAYED);
  EXPECT_EQ(Info(0).graphs, static_cast<size_t>(kDecisions));
  EXPECT_EQ(Info(0).updates + Info(0).reinstantiations, 0u);
  EXPECT_EQ(released_, 0);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  EXPECT_EQ(released_, kDecisions);
  EXPECT_EQ(Info(GCAP_GRAPH_ID_NONE).graphs, 0u);
}

// Beyond the limit each decision takes the place of another one, whose graph releases what it retained.
TEST_F(ThousandVariants, WithALimitKeepAsManyAsThat) {
  CreateKeyed();
  for (int round = 0; round < 2; ++round) {
    for (int decision = 0; decision < kDecisions; ++decision) EXPECT_EQ(RunFor(decision), GCAP_RUN_CAPTURED);
    EXPECT_EQ(Info(0).graphs, options_.max_variants);
    EXPECT_EQ(released_, (round + 1) * kDecisions - static_cast<int>(options_.max_variants));
  }
  const int kept = static_cast<int>(options_.max_variants);
  for (int decision = kDecisions - kept; decision < kDecisions; ++decision) {
    EXPECT_EQ(RunFor(decision), GCAP_RUN_REPLAYED);
  }
  EXPECT_TRUE(Explain(0, GCAP_GRAPH_WHY_OTHER_VARIANT).Names("guard 'decision' ("));
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  EXPECT_EQ(released_, 2 * kDecisions);
}

TEST_F(GraphVariants, ANewOneIsWarm) {
  options_.min_num_runs_before_capture = 2;
  CreateKeyed();
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_EAGER);
  EXPECT_EQ(RunFor(0, 2), GCAP_RUN_EAGER);
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_CAPTURED);
  EXPECT_EQ(RunFor(0, 2), GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(0).eager_runs, 2u);
}

TEST_F(GraphVariants, AFailedCaptureOfOneLeavesTheOthers) {
  CreateKeyed();
  LogCatcher log;
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_CAPTURED);
  decision_ = 2;
  const Outcome failed = RunWork(RunBy(nullptr, 0), [](cudaStream_t) {
    return gcap_thread_is_capturing() ? GCAP_STATUS(GCAP_LIBRARY_ERROR, "no kernel") : nullptr;
  });
  EXPECT_TRUE(failed.ok()) << failed.message;
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "CAPTURE_FAILED");
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_REPLAYED);
  EXPECT_EQ(RunFor(0, 2), GCAP_RUN_EAGER);
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "COOLING");
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_REPLAYED);
  EXPECT_EQ(RunFor(0, 2), GCAP_RUN_CAPTURED);
  ExpectAllReplay(0, {1, 2});
  EXPECT_EQ(Info(0).failures, 1u);
  EXPECT_EQ(Info(0).graphs, 2u);
}

TEST_F(GraphVariants, ARunThatIsCancelledOrLeftOpenLosesNone) {
  CreateKeyed();
  LogCatcher log;
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_CAPTURED);
  decision_ = 2;
  const Outcome cancelled =
      RunWork(RunBy(nullptr, 0), [](cudaStream_t) { return GCAP_STATUS(GCAP_CANCELLED, "on purpose"); });
  EXPECT_EQ(cancelled.code, GCAP_CANCELLED);
  EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  EXPECT_EQ(Begin(GCAP_GRAPH_ID_NONE), GCAP_GRAPH_RUN_EAGER);  // aborts the capture, which was never ended
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_REPLAYED);
  EXPECT_EQ(RunFor(0, 2), GCAP_RUN_CAPTURED);
  ExpectAllReplay(0, {1, 2});
}

TEST_F(GraphVariants, ARecaptureIsOfAll) {
  CreateKeyed();
  for (const int decision : {1, 2}) EXPECT_EQ(RunFor(0, decision), GCAP_RUN_CAPTURED);
  GCAP_EXPECT_OK(gcap_graph_manager_recapture(manager_, 0));
  EXPECT_FALSE(gcap_graph_manager_is_captured(manager_, 0));
  for (const int decision : {1, 2}) EXPECT_EQ(RunFor(0, decision), GCAP_RUN_CAPTURED);
  ExpectAllReplay(0, {1, 2});
  EXPECT_EQ(Info(0).graphs, 2u);
  EXPECT_EQ(Info(0).updates, 2u);
}

TEST_F(GraphVariants, AReleaseIsOfAll) {
  CreateKeyed();
  int released = 0;
  for (const int decision : {1, 2, 3}) {
    decision_ = decision;
    const gcap_graph_guard_t guard = Integer("decision", decision_, decision, decision);
    EXPECT_TRUE(RunWork(RunBy(nullptr, 0), [&](cudaStream_t stream) {
                  GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
                  GCAP_RETURN_IF_ERROR(gcap_capture_retain(
                      gcap_capture_current(), CountRelease, [](void*) { return kMany; }, &released));
                  return Fill(stream, decision);
                }).ok());
  }
  EXPECT_EQ(RetainedBytes(0), 3 * kMany);
  EXPECT_GE(Info(GCAP_GRAPH_ID_NONE).bytes, 3 * kMany);
  GCAP_EXPECT_OK(gcap_graph_manager_release(manager_, 0));
  EXPECT_EQ(released, 3);
  EXPECT_EQ(Info(0).captures, 0u);
  EXPECT_EQ(gcap_graph_manager_list_ids(manager_, nullptr, 0), 0u);
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_CAPTURED);
}

// A release is refused while one of them is captured, and then all of them are there still.
TEST_F(GraphVariants, AReleaseThatIsRefusedIsOfNone) {
  CreateKeyed();
  for (const int decision : {1, 2}) EXPECT_EQ(RunFor(0, decision), GCAP_RUN_CAPTURED);
  decision_ = 3;
  EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  EXPECT_STREQ(gcap_graph_state_name(Info(0).state), "CAPTURING");
  Outcome refused(nullptr);
  std::thread([&] { refused = Outcome(gcap_graph_manager_release(manager_, 0)); }).join();
  EXPECT_EQ(refused.code, GCAP_FAILED_PRECONDITION) << refused.message;
  const gcap_graph_guard_t guard = Integer("decision", decision_, 3, 3);
  GCAP_EXPECT_OK(GCAP_GRAPH_GUARD(&guard));
  EXPECT_TRUE(End(Fill(stream_->get(), 3)).ok());
  ExpectAllReplay(0, {1, 2});
}

TEST_F(GraphVariants, AReleaseOfEverythingThatIsRefusedIsOfNone) {
  CreateKeyed();
  for (const int id : {0, 1}) EXPECT_EQ(RunFor(id, 1), GCAP_RUN_CAPTURED);
  decision_ = 2;
  EXPECT_EQ(Begin(0), GCAP_GRAPH_RUN_CAPTURE);
  Outcome refused(nullptr);
  std::thread([&] { refused = Outcome(gcap_graph_manager_release_all(manager_)); }).join();
  EXPECT_EQ(refused.code, GCAP_FAILED_PRECONDITION);
  EXPECT_TRUE(refused.Names("graph id 0 is being captured")) << refused.message;
  const gcap_graph_guard_t guard = Integer("decision", decision_, 2, 2);
  GCAP_EXPECT_OK(GCAP_GRAPH_GUARD(&guard));
  EXPECT_TRUE(End(Fill(stream_->get(), 2)).ok());
  ExpectAllReplay(0, {1, 2});
  EXPECT_EQ(Info(1).graphs, 1u);
  GCAP_EXPECT_OK(gcap_graph_manager_release_all(manager_));
  EXPECT_EQ(Info(GCAP_GRAPH_ID_NONE).ids, 0u);
}

TEST_F(GraphVariants, CountForTheBudget) {
  struct Told {
    int count = 0;
    uint64_t captures = 0;
  } told;
  options_.max_graphs = 3;
  options_.user = &told;
  options_.on_evict = [](void* user, int, const gcap_graph_info_t* info) {
    ++static_cast<Told*>(user)->count;
    static_cast<Told*>(user)->captures += info->captures;
  };
  CreateKeyed();
  for (const int decision : {1, 2, 3}) EXPECT_EQ(RunFor(0, decision), GCAP_RUN_CAPTURED);
  EXPECT_EQ(told.count, 0);
  EXPECT_EQ(RunFor(1, 9), GCAP_RUN_CAPTURED);  // evicts the variant for 1
  EXPECT_EQ(told.count, 1);
  EXPECT_EQ(told.captures, 1u);
  EXPECT_EQ(Info(GCAP_GRAPH_ID_NONE).graphs, 3u);
  EXPECT_EQ(Info(0).graphs, 2u);
  EXPECT_EQ(Info(0).captures, 3u) << "an eviction keeps the counters";
  EXPECT_EQ(Info(0).evictions, 1u);
  ExpectAllReplay(0, {2, 3});
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_CAPTURED);  // evicts that of the other id
  EXPECT_FALSE(gcap_graph_manager_is_captured(manager_, 1));
  ExpectAllReplay(0, {1, 2, 3});
  // All of them go, one by one, and the id is warm still.
  for (const int id : {2, 3, 4}) EXPECT_EQ(RunFor(id, 7), GCAP_RUN_CAPTURED);
  EXPECT_EQ(Info(0).graphs, 0u);
  EXPECT_STREQ(gcap_graph_state_name(Info(0).state), "READY");
  EXPECT_EQ(Info(0).captures, 4u);
  EXPECT_EQ(RunFor(0, 2), GCAP_RUN_CAPTURED);
}

TEST_F(GraphVariants, AReplayAloneTakesTheOneThatHolds) {
  CreateKeyed();
  for (const int decision : {1, 2}) EXPECT_EQ(RunFor(0, decision), GCAP_RUN_CAPTURED);
  for (const int decision : {1, 2, 1}) {
    decision_ = decision;
    *seen_ = 0;
    GCAP_EXPECT_OK(Replay(manager_, 0, true));
    EXPECT_EQ(Seen(), decision);
  }
  EXPECT_TRUE(Explain(0, GCAP_GRAPH_WHY_OTHER_VARIANT).Names("is 1, was 2, and the graph is for 2 to 2"));
  EXPECT_FALSE(Info(0).captures_next);
  decision_ = 3;
  EXPECT_FALSE(Replays(0));
  EXPECT_TRUE(Info(0).captures_next);
}

// A graph that states nothing is for all decisions: the newest capture counts.
TEST_F(GraphVariants, OneWithoutGuardsComesBeforeTheOlder) {
  CreateKeyed();
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_CAPTURED);
  decision_ = 2;
  EXPECT_EQ(RunGuarded(0, {}, 5), GCAP_RUN_CAPTURED);
  decision_ = 1;
  EXPECT_EQ(RunGuarded(0, {}, 5), GCAP_RUN_REPLAYED);
}

TEST_F(GraphVariants, ABindOfOneOfSeveralIsRefused) {
  CreateKeyed();
  for (const int decision : {1, 2}) {
    decision_ = decision;
    const gcap_graph_guard_t guard = Integer("decision", decision_, decision, decision);
    EXPECT_TRUE(RunOnBuffer(0, [&](cudaStream_t stream, void* at) -> gcap_status_t {
                  GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
                  return GCAP_CUDA(cudaMemsetAsync(at, decision, 1, stream));
                }).ok());
    EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
    if (decision == 1) GCAP_EXPECT_OK(gcap_graph_manager_bind(manager_, 0, 0, byte_));
  }
  GCAP_EXPECT_FAILS(gcap_graph_manager_bind(manager_, 0, 0, byte_), GCAP_FAILED_PRECONDITION, "several graphs");
  GCAP_EXPECT_FAILS(gcap_graph_manager_check_moves(manager_, 0), GCAP_FAILED_PRECONDITION, "several graphs");
}

// The newest variant has no graph, since its capture failed, and an older one cannot be moved to the run's buffer.
TEST_F(GraphVariants, OneThatCannotBeMovedSaysSoBehindOneWithoutAGraph) {
  options_.backoff_runs = 1000;
  CreateKeyed();
  LogCatcher log;
  const auto run_on = [this](int decision, bool may_capture) {
    decision_ = decision;
    const gcap_graph_guard_t guard = Integer("decision", decision_, decision, decision);
    return RunOnBuffer(0, [this, guard, decision, may_capture](cudaStream_t stream, void* at) -> gcap_status_t {
      if (gcap_thread_is_capturing() && !may_capture) return GCAP_STATUS(GCAP_LIBRARY_ERROR, "no kernel");
      GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
      GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(at, decision, 1, stream)));
      return GCAP_CUDA(cudaLaunchHostFunc(
          stream, [](void*) {}, this));  // so it cannot be moved
    });
  };
  EXPECT_TRUE(run_on(1, /*may_capture=*/true).ok());
  EXPECT_EQ(result_.outcome, GCAP_RUN_CAPTURED);
  EXPECT_TRUE(run_on(2, /*may_capture=*/false).ok());
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "CAPTURE_FAILED");
  unsigned char* const home = byte_;
  GCAP_EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&byte_), 1));
  EXPECT_TRUE(run_on(1, /*may_capture=*/true).ok());
  EXPECT_STREQ(gcap_why_eager_name(result_.why_eager), "NOT_MOVABLE");
  const Outcome why = Explain(0, GCAP_GRAPH_WHY_EAGER);
  EXPECT_NE(why.message.find("host function"), std::string::npos) << why.message;
  GCAP_EXPECT_CUDA(cudaFree(byte_));
  byte_ = home;
}

TEST_F(GraphVariants, AreForgottenOneByOneWithIdsThatHaveNoGraph) {
  options_.max_ids_without_graph = 1;
  options_.backoff_runs = 1000;
  CreateKeyed();
  LogCatcher log;
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_CAPTURED);
  decision_ = 2;
  EXPECT_TRUE(RunWork(RunBy(nullptr, 0), [](cudaStream_t) {
                return gcap_thread_is_capturing() ? GCAP_STATUS(GCAP_LIBRARY_ERROR, "no kernel") : nullptr;
              }).ok());
  EXPECT_EQ(RunWork(RunBy(nullptr, 1), [](cudaStream_t) { return GCAP_STATUS(GCAP_CANCELLED, "stop"); }).code,
            GCAP_CANCELLED);
  EXPECT_EQ(RunFor(0, 1), GCAP_RUN_REPLAYED) << "the variant that cooled down was forgotten, not the id";
  EXPECT_EQ(RunFor(0, 2), GCAP_RUN_CAPTURED);
}

// Drawn runs of drawn decisions, some ids evicted: each does what its own step does, and no decision is captured again
// that has a graph.
TEST_F(GraphVariants, OfDrawnDecisionsAreAlwaysThoseOfTheStep) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 draw(seed);
    options_.max_variants = seed % 3 == 0 ? 0 : 1 + seed % 4;
    options_.max_graphs = seed % 2 == 0 ? 5 : 0;
    CreateKeyed();
    struct Decisions {
      int32_t integer = 0;
      const void* pointer = nullptr;
      char bytes[12] = {};
      Asked asked;
    } now;
    const int places[3] = {};
    for (int step = 0; step < static_cast<int>(NumberOr("GCAP_TEST_ROUNDS", 12000)) / 6; ++step) {
      switch (draw() % 5) {
        case 0: now.integer = static_cast<int32_t>(draw() % 9); break;
        case 1: now.pointer = &places[draw() % 3]; break;
        case 2: now.bytes[draw() % 12] = static_cast<char>(draw() % 2); break;
        case 3: now.asked.answer = static_cast<int64_t>(draw() % 3); break;
        default: break;
      }
      const int id = static_cast<int>(draw() % 3);
      gcap_graph_guard_t bytes = Guard("bytes", GCAP_GRAPH_GUARD_BYTES, now.bytes);
      bytes.bytes = sizeof(now.bytes);
      // What each id's work depends on, and states; its value tells all of that apart.
      const int bucket = now.integer / 3;
      const int place =
          now.pointer == nullptr ? 0 : 1 + static_cast<int>(static_cast<const int*>(now.pointer) - places);
      std::vector<gcap_graph_guard_t> guards = {Integer("integer", now.integer, 3 * bucket, 3 * bucket + 2)};
      int value = bucket;
      if (id == 1) {
        guards.push_back(Guard("pointer", GCAP_GRAPH_GUARD_POINTER, &now.pointer));
        guards.push_back(Answer("answer", &now.asked));
        value += 10 * place + 50 * static_cast<int>(now.asked.answer);
      }
      if (id == 2) {
        guards.push_back(bytes);
        value += 4 * (now.bytes[0] + 2 * now.bytes[5] + 4 * now.bytes[11]);
      }
      RunGuarded(id, guards, value);
      EXPECT_NE(result_.outcome, GCAP_RUN_EAGER);
      EXPECT_TRUE(Replays(id)) << "the graph that was just used holds";
      ASSERT_FALSE(HasFailure()) << "step " << step;
    }
    for (int id = 0; id < 3 && options_.max_variants == 0 && options_.max_graphs == 0; ++id) {
      EXPECT_EQ(Info(id).captures, Info(id).graphs);
    }
    DestroyManager();
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
