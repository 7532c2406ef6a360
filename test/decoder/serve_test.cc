// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// examples/decoder: every token is that of the eager run, whatever joins, leaves and moves, and each combination of a
// bucket, a size of the pool and a kernel that chooses tokens is captured once. What a run should be is worked out here
// by a small model of the schedule and of a manager's budget, from what batch.h, cache.h and graph_options.h say of
// them.

#include <list>
#include <set>
#include <tuple>
#include <vector>

#include "test/decoder/decode.h"
#include "test/support/device_test.h"

namespace gcap {
namespace testing {
namespace {

class Serve : public DeviceTest {};

// What the graph of a step depends on: rows, pages of the pool, and whether tokens are drawn.
using Graph = std::tuple<int, int, bool>;

// The steps of one thread, as their graphs.
class Schedule {
 public:
  Schedule(const serve_options_t& options, int thread) {
    std::vector<sequence_t> waiting;
    for (int i = thread; i < options.num_sequences; i += options.num_threads) {
      waiting.emplace_back();
      sequence_draw(options.seed, i, &waiting.back());
    }
    size_t next = 0;
    for (int step = 0; step < options.num_steps; ++step) {
      live_.remove_if([](const sequence_t& s) { return s.position == Positions(s); });
      while (next < waiting.size() && waiting[next].arrival <= step && HasRoomFor(waiting[next])) {
        live_.push_back(waiting[next++]);
      }
      if (live_.empty() && next == waiting.size()) break;
      if (live_.empty()) continue;
      graphs_.push_back(NextGraph());
      for (sequence_t& sequence : live_) ++sequence.position;
    }
  }

  const std::vector<Graph>& graphs() const { return graphs_; }

 private:
  static int Positions(const sequence_t& s) { return s.num_prompt + s.num_wanted - 1; }
  static int PagesOf(int positions) { return (positions + DECODER_PAGE_TOKENS - 1) / DECODER_PAGE_TOKENS; }

  bool HasRoomFor(const sequence_t& sequence) const {
    int pages = PagesOf(Positions(sequence));
    for (const sequence_t& live : live_) pages += PagesOf(Positions(live));
    return live_.size() < 8 && pages <= 32;
  }

  Graph NextGraph() {
    int rows = 1, pages = 0;
    bool draws = false;
    while (rows < static_cast<int>(live_.size())) rows *= 2;
    for (const sequence_t& live : live_) {
      pages += PagesOf(live.position + 1);
      draws |= live.temperature > 0;
    }
    while (pool_ < pages) pool_ *= 2;
    return Graph(rows, pool_, draws);
  }

  std::list<sequence_t> live_;
  int pool_ = 8;
  std::vector<Graph> graphs_;
};

// What a manager makes of these runs. The first run of a key, which is rows and pages, is eager. A later one is
// replayed where the key has a graph whose guard holds, and else captured. The least recently used graph goes when
// there are more than `max_graphs`.
step_counts_t RunsOf(const std::vector<Graph>& steps, size_t max_graphs) {
  step_counts_t runs = {};
  std::set<std::pair<int, int>> warm;
  std::list<Graph> graphs;  // the most recently used first
  for (const Graph& graph : steps) {
    const auto found = std::find(graphs.begin(), graphs.end(), graph);
    if (warm.insert({std::get<0>(graph), std::get<1>(graph)}).second) {
      ++runs.eager;
    } else if (found != graphs.end()) {
      ++runs.replayed;
      graphs.splice(graphs.begin(), graphs, found);
    } else {
      ++runs.captured;
      graphs.push_front(graph);
      if (max_graphs == 0 || graphs.size() <= max_graphs) continue;
      ++runs.evicted;
      graphs.pop_back();
    }
  }
  return runs;
}

void ExpectRuns(const step_counts_t& runs, const step_counts_t& expected) {
  EXPECT_EQ(runs.eager, expected.eager);
  EXPECT_EQ(runs.captured, expected.captured);
  EXPECT_EQ(runs.replayed, expected.replayed);
  EXPECT_EQ(runs.evicted, expected.evicted);
}

step_counts_t ExpectedRuns(const serve_options_t& options) {
  step_counts_t sum = {};
  for (int thread = 0; thread < options.num_threads; ++thread) {
    const step_counts_t runs = RunsOf(Schedule(options, thread).graphs(), options.max_graphs);
    sum.eager += runs.eager;
    sum.captured += runs.captured;
    sum.replayed += runs.replayed;
    sum.evicted += runs.evicted;
  }
  return sum;
}

// Decodes eagerly and with graphs, and compares.
void ExpectTokensOfTheEagerRun(serve_options_t options) {
  const Decoded captured(options);
  ExpectRuns(captured.report.runs, ExpectedRuns(options));
  const step_counts_t& runs = captured.report.runs;
  EXPECT_EQ(runs.holes, options.attends_in_holes ? DECODER_LAYERS * (runs.captured - runs.evicted) : 0);
  options.is_eager = true;
  options.attends_in_holes = false;
  const Decoded eager(options);
  EXPECT_EQ(eager.report.runs.eager, eager.report.steps);
  EXPECT_EQ(captured.tokens, eager.tokens);
  for (const sequence_t& sequence : captured.sequences) EXPECT_EQ(sequence.num_tokens, sequence.num_wanted);
  EXPECT_GT(captured.report.cache.pool_moves, 0);
  EXPECT_GT(captured.report.cache.page_moves, 0);
  EXPECT_GT(captured.report.cache.growths, 0);
}

TEST_F(Serve, EachTokenIsThatOfTheEagerRun) { ExpectTokensOfTheEagerRun(DecodeOptions()); }

TEST_F(Serve, EachTokenOfTwoThreadsIsThatOfTheEagerRun) {
  serve_options_t options = DecodeOptions();
  options.num_threads = 2;
  ExpectTokensOfTheEagerRun(options);
}

TEST_F(Serve, EachTokenIsThatOfTheEagerRunWhereGraphsAreEvicted) {
  for (int threads = 1; threads <= 2; ++threads) {
    serve_options_t options = DecodeOptions();
    options.num_threads = threads;
    options.max_graphs = 2;
    EXPECT_GT(ExpectedRuns(options).evicted, 2);
    ExpectTokensOfTheEagerRun(options);
  }
}

TEST_F(Serve, EachTokenIsThatOfTheEagerRunWhereAttentionIsInHoles) {
  serve_options_t options = DecodeOptions();
  options.num_threads = 2;
  options.max_graphs = 2;
  options.attends_in_holes = true;
  ExpectTokensOfTheEagerRun(options);
}

// Each of the two threads has a pool of 256 KiB at most, twice while it moves, and two graphs.
TEST_F(Serve, TwoThreadsStayBelowALimitOfMemory) {
  serve_options_t options = DecodeOptions();
  options.num_threads = 2;
  options.max_graphs = 2;
  options.memory_limit_bytes = size_t{1536} << 10;
  ExpectTokensOfTheEagerRun(options);
  EXPECT_LE(Decoded(options).report.memory_bytes, options.memory_limit_bytes);
}

// A sequence that draws its tokens gets others with another seed, and a greedy one does not see the seed: the seed is a
// value of the step, not of the graph.
TEST_F(Serve, TokensOfASequenceAreManyDifferentOnes) {
  const Decoded captured(DecodeOptions());
  std::set<int> different;
  int num_drawing = 0;
  for (const sequence_t& sequence : captured.sequences) {
    different.insert(sequence.tokens, sequence.tokens + sequence.num_tokens);
    num_drawing += sequence.temperature > 0;
  }
  EXPECT_GT(different.size(), 64u);  // of 256: a model that always says the same would hide a wrong replay
  EXPECT_GT(num_drawing, 0);
  EXPECT_LT(num_drawing, static_cast<int>(captured.sequences.size()));
}

// Memory that begins where a buffer ends cannot be told from the buffer's end, and would fix the graph.
TEST_F(Serve, NothingBeginsWhereThePoolEnds) {
  gcap_runtime_t* runtime = nullptr;
  gcap_run_resources_t resources;
  cache_t cache;
  void* next[4] = {};
  GCAP_ASSERT_OK(gcap_runtime_create(nullptr, &runtime));
  GCAP_ASSERT_OK(gcap_runtime_get_resources(runtime, &resources));
  GCAP_ASSERT_OK(cache_create(&resources, &cache));
  const void* const end = cache.pages + cache.num_pages;
  for (void*& block : next) {
    GCAP_ASSERT_OK(gcap_scratch_alloc(resources.scratch, 256, resources.stream, &block));
    EXPECT_NE(block, end);
  }
  for (void* block : next) GCAP_EXPECT_OK(gcap_scratch_free(resources.scratch, block));
  GCAP_EXPECT_OK(cache_destroy(&cache));
  GCAP_EXPECT_OK(gcap_runtime_destroy(runtime));
}

TEST_F(Serve, StepsAreCutOff) {
  serve_options_t options = DecodeOptions();
  options.num_steps = 20;
  const Decoded captured(options);
  EXPECT_EQ(captured.report.steps, static_cast<int>(Schedule(options, 0).graphs().size()));
  ExpectRuns(captured.report.runs, ExpectedRuns(options));
}

}  // namespace
}  // namespace testing
}  // namespace gcap
