// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Drawn work, captured with its buffers somewhere and run with them elsewhere: it does what the same work does that is
// issued there, and its kernels get the same arguments. GCAP_SIM_SEED is the first seed; GCAP_TEST_ROUNDS how many
// follow, of which each shard takes its share; GCAP_TEST_REPLAYS how often a graph that moves is replayed elsewhere
// beyond the first runs, which costs less than another work.

#include "test/support/device_test.h"
#include "test/support/environment.h"
#include "test/support/log_catcher.h"
#include "test/support/moves/drawn_moves.h"

namespace gcap {
namespace testing {
namespace {

constexpr unsigned long long kRounds = 2000, kReplays = 2;

class GraphMovingDrawn : public DeviceTest, public ::testing::WithParamInterface<unsigned> {};

constexpr unsigned kShards = 4;

TEST_P(GraphMovingDrawn, EachRunIsAsTheWorkAlone) {
  const unsigned long long first = NumberOr("GCAP_SIM_SEED", 1), rounds = NumberOr("GCAP_TEST_ROUNDS", kRounds);
  const unsigned more = static_cast<unsigned>(NumberOr("GCAP_TEST_REPLAYS", kReplays));
  drawn_counts_t counts = {};
  const LogCatcher log;  // of why graphs stay
  for (unsigned long long seed = first + GetParam(); seed < first + rounds; seed += kShards) {
    drawn_source_t source = {nullptr, 0, seed};
    char text[1024] = "";
    ASSERT_TRUE(drawn_moves_try(&source, more, &counts, text, sizeof(text)))
        << "seed " << seed << ": " << text << "; to run it again: GCAP_SIM_SEED=" << seed << " GCAP_TEST_ROUNDS=1";
  }
  std::printf("%u runs, %u replays, %u moved, %u eager, %u binds refused, %u pointers that are hidden and told\n",
              counts.runs, counts.replays, counts.moved, counts.eager, counts.refused_binds, counts.hidden);
  if (rounds < kRounds) return;
  const unsigned works = static_cast<unsigned>(rounds / kShards);
  EXPECT_GT(counts.moved, works) << "where all is eager, nothing is tested";
  EXPECT_GT(counts.eager, works / 4) << "where all moves, no work is hard";
}

// As the fuzz target moves does.
TEST_P(GraphMovingDrawn, EachRunOfSeveralIdsIsAsTheWorkAlone) {
  const unsigned long long first = NumberOr("GCAP_SIM_SEED", 1), rounds = NumberOr("GCAP_TEST_ROUNDS", kRounds) / 20;
  drawn_counts_t counts = {};
  const LogCatcher log;
  for (unsigned long long seed = first + GetParam(); seed < first + rounds; seed += kShards) {
    drawn_source_t source = {nullptr, 0, seed};
    char text[1024] = "";
    ASSERT_TRUE(drawn_moves_play(&source, &counts, text, sizeof(text)))
        << "seed " << seed << ": " << text << "; to run it again: GCAP_SIM_SEED=" << seed << " GCAP_TEST_ROUNDS=20";
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, GraphMovingDrawn, ::testing::Range(0u, kShards));

}  // namespace
}  // namespace testing
}  // namespace gcap
