// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Scratch as an LLM server uses it: sequences join and leave, each with memory of its own that moves, steps of several
// sizes are captured, evicted and captured again. gcap's own scratch makes no graph immovable, and a capture prepares
// what its steps use, not what sequences keep.

#include <array>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gcap/graph_buffers.h"
#include "gcap/runtime.h"
#include "gtest/gtest.h"
#include "test/support/device_test.h"
#include "test/support/expect_status.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kKvBytes = 64 << 10;
constexpr size_t kMiB = size_t{1} << 20;

class Serving : public DeviceTest {
 protected:
  static gcap_options_t Options() {
    gcap_options_t options;
    gcap_options_init(&options);
    options.enable_cuda_graph = true;
    return options;
  }
  void Create(const gcap_options_t& options) { GCAP_ASSERT_OK(gcap_runtime_create(&options, &runtime_)); }
  void TearDown() override { GCAP_EXPECT_OK(gcap_runtime_destroy(runtime_)); }

  gcap_run_resources_t Resources() {
    gcap_run_resources_t resources;
    GCAP_EXPECT_OK(gcap_runtime_get_resources(runtime_, &resources));
    return resources;
  }
  size_t HeldBytes() {
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(gcap_runtime_scratch(runtime_), &stats);
    return stats.total_allocated_bytes;
  }
  void* Alloc(size_t bytes) {
    const gcap_run_resources_t resources = Resources();
    void* block = nullptr;
    GCAP_EXPECT_OK(gcap_scratch_alloc(resources.scratch, bytes, resources.stream, &block));
    return block;
  }
  void Free(void* block) { GCAP_EXPECT_OK(gcap_scratch_free(gcap_runtime_scratch(runtime_), block)); }

  gcap_runtime_t* runtime_ = nullptr;
};

// --- Moves ----------------------------------------------------------------------------------------------------------

// A decode step over some rows: blocks of scratch, large and small ones, some of which are given back early, and the
// sequence's memory.
struct Step {
  int rows = 1;
  gcap_runtime_t* forks = nullptr;  // some of the scratch is another stream's
};

gcap_status_t AllocAndFill(const gcap_run_resources_t* run, gcap_stream_t* stream, size_t bytes, void** out_block) {
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, bytes, stream, out_block));
  return GCAP_CUDA(cudaMemsetAsync(*out_block, 1, 256, gcap_stream_handle(stream)));
}

gcap_status_t DecodeOnFork(const Step& step, const gcap_run_resources_t* run) {
  gcap_stream_t* forked = nullptr;
  GCAP_RETURN_IF_ERROR(gcap_runtime_fork(step.forks, 1, &forked));
  std::array<void*, 2> blocks{};
  for (size_t i = 0; i < blocks.size(); ++i) {
    GCAP_RETURN_IF_ERROR(AllocAndFill(run, forked, (size_t{512} << i) * static_cast<size_t>(step.rows), &blocks[i]));
  }
  for (void* block : blocks) GCAP_RETURN_IF_ERROR(gcap_scratch_free(run->scratch, block));
  return gcap_runtime_join(step.forks);
}

gcap_status_t Decode(void* user, const gcap_run_resources_t* run) {
  const Step& step = *static_cast<Step*>(user);
  const std::array<size_t, 6> units = {3, 17, 1, 40, 9, 2};
  std::array<void*, 6> blocks{};
  for (size_t i = 0; i < blocks.size(); ++i) {
    GCAP_RETURN_IF_ERROR(AllocAndFill(run, run->stream, units[i] * 1024 * static_cast<size_t>(step.rows), &blocks[i]));
    if (i % 2 == 0) continue;
    GCAP_RETURN_IF_ERROR(gcap_scratch_free(run->scratch, blocks[i - 1]));
    blocks[i - 1] = nullptr;
  }
  if (step.forks != nullptr) GCAP_RETURN_IF_ERROR(DecodeOnFork(step, run));
  GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(run->addresses[0], step.rows, kKvBytes, run->cuda_stream)));
  for (void* block : blocks) GCAP_RETURN_IF_ERROR(gcap_scratch_free(run->scratch, block));
  return nullptr;
}

// Sequences come and go, and two sizes of step take turns. Returns the runs that were eager though an id had a graph.
int Serve(gcap_runtime_t* runtime, unsigned seed, bool forks) {
  gcap_run_resources_t resources;
  GCAP_EXPECT_OK(gcap_runtime_get_resources(runtime, &resources));
  std::mt19937 random(seed);
  std::array<void*, 8> sequences{};
  int num_immovable = 0;
  for (int phase = 0; phase < 20; ++phase) {
    Step step{phase % 2 == 0 ? 1 : 4, forks ? runtime : nullptr};
    for (int i = 0; i < 5; ++i) {
      void*& kv = sequences[random() % sequences.size()];
      GCAP_EXPECT_OK(gcap_scratch_free(resources.scratch, kv));
      const size_t bytes = kKvBytes + random() % 16 * 4096;  // so that holes are left
      GCAP_EXPECT_OK(gcap_scratch_alloc(resources.scratch, bytes, resources.stream, &kv));
      const gcap_graph_buffer_t item = {"kv", kv, kKvBytes, 256};
      gcap_graph_buffers_t buffers;
      gcap_graph_buffers_init(&buffers);
      buffers.items = &item;
      buffers.count = 1;
      gcap_run_result_t result;
      gcap_run_result_init(&result);
      gcap_run_t run;
      gcap_run_init(&run);
      run.id = phase % 2;
      run.work = Decode;
      run.user = &step;
      run.buffers = &buffers;
      run.synchronize = true;
      run.result = &result;
      GCAP_EXPECT_OK(gcap_runtime_run(runtime, &run));
      num_immovable += result.why_eager == GCAP_EAGER_NOT_MOVABLE || result.why_eager == GCAP_EAGER_CAPTURE_FAILED;
    }
  }
  for (void* kv : sequences) GCAP_EXPECT_OK(gcap_scratch_free(resources.scratch, kv));
  return num_immovable;
}

struct Mode {
  const char* name;
  bool shared, forks, bypass;
  int num_threads;
};

void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.name; }

class ServingModes : public Serving, public ::testing::WithParamInterface<Mode> {};

// Each phase evicts the graph of the other size, so each begins with rehearsals and a capture.
TEST_P(ServingModes, ScratchOfAStepStaysWhereItsRehearsalHadIt) {
  const Mode& mode = GetParam();
  gcap_options_t options = Options();
  options.graph.max_graphs = 1;
  options.share_graph_memory = mode.shared;
  options.arena.bypass = mode.bypass;
  Create(options);
  std::vector<int> immovable(static_cast<size_t>(mode.num_threads));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < immovable.size(); ++i) {
    threads.emplace_back([&, i] { immovable[i] = Serve(runtime_, static_cast<unsigned>(i), mode.forks); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(immovable, std::vector<int>(immovable.size(), 0));
  GCAP_EXPECT_OK(gcap_scratch_validate(gcap_runtime_scratch(runtime_)));
}

INSTANTIATE_TEST_SUITE_P(All, ServingModes,
                         ::testing::Values(Mode{"Apart", false, false, false, 1}, Mode{"Shared", true, false, false, 1},
                                           Mode{"Forked", false, true, false, 1}, Mode{"Bypass", false, false, true, 1},
                                           Mode{"Threads", false, false, false, 4},
                                           Mode{"SharedOnThreads", true, true, false, 4}),
                         [](const auto& info) { return std::string(info.param.name); });

// Work that asks for other scratch at each call has it elsewhere at each call. The message says whose the pointer is.
TEST_F(Serving, AGraphThatStaysForItsScratchSaysSo) {
  Create(Options());
  void* kv = Alloc(kKvBytes);
  const gcap_graph_buffer_t item = {"kv", kv, kKvBytes, 256};
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = &item;
  buffers.count = 1;
  int calls = 0;
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = 7;
  run.user = &calls;
  run.buffers = &buffers;
  run.work = [](void* user, const gcap_run_resources_t* resources) -> gcap_status_t {
    void *below = nullptr, *block = nullptr;
    const size_t bytes = 4096u * static_cast<size_t>(++*static_cast<int*>(user));
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(resources->scratch, bytes, resources->stream, &below));
    GCAP_RETURN_IF_ERROR(AllocAndFill(resources, resources->stream, 4096, &block));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(resources->addresses[0], 0, kKvBytes, resources->cuda_stream)));
    GCAP_RETURN_IF_ERROR(gcap_scratch_free(resources->scratch, block));
    return gcap_scratch_free(resources->scratch, below);
  };
  for (int i = 0; i < 8 && !gcap_runtime_is_captured(runtime_, 7); ++i)
    GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
  const Outcome why(gcap_runtime_explain(runtime_, 7, GCAP_GRAPH_WHY_NOT_MOVABLE));
  EXPECT_TRUE(why.Names("the address of scratch that graph 7 keeps")) << why.message;
  GCAP_EXPECT_OK(gcap_runtime_release(runtime_, 7));
  Free(kv);
}

// A buffer that grows is another work. The message says how to go on.
TEST_F(Serving, ABufferThatGrowsIsRefusedUntilItsIdIsReleased) {
  Create(Options());
  Step step;
  void* kv = Alloc(2 * kKvBytes);
  gcap_graph_buffer_t item = {"kv", kv, kKvBytes, 256};
  gcap_graph_buffers_t buffers;
  gcap_graph_buffers_init(&buffers);
  buffers.items = &item;
  buffers.count = 1;
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = 0;
  run.work = Decode;
  run.user = &step;
  run.buffers = &buffers;
  for (int i = 0; i < 8 && !gcap_runtime_is_captured(runtime_, 0); ++i)
    GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
  item.bytes = 2 * kKvBytes;
  GCAP_EXPECT_FAILS(gcap_runtime_run(runtime_, &run), GCAP_INVALID_ARGUMENT, "release the id");
  GCAP_EXPECT_OK(gcap_runtime_release(runtime_, 0));
  GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
  GCAP_EXPECT_OK(gcap_runtime_synchronize(runtime_));
  GCAP_EXPECT_OK(gcap_runtime_release(runtime_, 0));
  Free(kv);
}

// --- What a capture prepares -----------------------------------------------------------------------------------------

struct Use {
  size_t bytes;
  void* kept = nullptr;
  size_t keeps_bytes = 0;  // once
};

gcap_status_t UseScratch(void* user, const gcap_run_resources_t* run) {
  Use& use = *static_cast<Use*>(user);
  void* block = nullptr;
  GCAP_RETURN_IF_ERROR(AllocAndFill(run, run->stream, use.bytes, &block));
  if (use.keeps_bytes != 0 && use.kept == nullptr) {
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, use.keeps_bytes, run->stream, &use.kept));
    GCAP_RETURN_IF_ERROR(gcap_scratch_keep(run->scratch, use.kept));
  }
  return gcap_scratch_free(run->scratch, block);
}

gcap_run_outcome_t RunOnce(gcap_runtime_t* runtime, int id, Use* use) {
  gcap_run_result_t result;
  gcap_run_result_init(&result);
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = id;
  run.work = UseScratch;
  run.user = use;
  run.synchronize = true;
  run.result = &result;
  GCAP_EXPECT_OK(gcap_runtime_run(runtime, &run));
  return result.outcome;
}

// Runs an id until it is captured, which its first capture is.
void Capture(gcap_runtime_t* runtime, int id, Use* use) {
  gcap_run_outcome_t outcome = GCAP_RUN_EAGER;
  for (int i = 0; i < 8 && outcome == GCAP_RUN_EAGER; ++i) outcome = RunOnce(runtime, id, use);
  EXPECT_EQ(outcome, GCAP_RUN_CAPTURED);
  EXPECT_EQ(RunOnce(runtime, id, use), GCAP_RUN_REPLAYED);
}

// The arena's own growth goes in large steps; exact ones show what is asked for.
gcap_options_t ExactOptions(gcap_options_t options) {
  options.arena.extend_as_requested = true;
  options.arena.max_dead_bytes_per_chunk = 0;
  return options;
}

TEST_F(Serving, MemoryFromOutsideOfRunsIsNotPreparedForACapture) {
  Create(ExactOptions(Options()));
  void* kv = Alloc(64 * kMiB);
  const size_t before = HeldBytes();
  Use use{4096};
  Capture(runtime_, 0, &use);
  EXPECT_LE(HeldBytes() - before, 2 * 4096u);
  Free(kv);
}

// The run before the capture keeps it.
TEST_F(Serving, MemoryThatARunKeepsIsNotPreparedForACapture) {
  gcap_options_t options = ExactOptions(Options());
  options.graph.policy = GCAP_GRAPH_POLICY_MIN_RUNS;
  options.graph.min_num_runs_before_capture = 1;
  Create(options);
  Use use{4096};
  use.keeps_bytes = 64 * kMiB;
  Capture(runtime_, 0, &use);
  EXPECT_LE(HeldBytes(), 64 * kMiB + 2 * 4096u);
  Free(use.kept);
}

// What each run of an id keeps, its captured run keeps too, and finds room for.
TEST_F(Serving, MemoryThatEachRunKeepsIsPrepared) {
  gcap_options_t options = ExactOptions(Options());
  options.graph.min_num_runs_before_capture = 2;
  options.graph.policy = GCAP_GRAPH_POLICY_MIN_RUNS;
  Create(options);
  std::vector<void*> kept;
  for (int i = 0; i < 3; ++i) {
    Use use{4096};
    use.keeps_bytes = kMiB;
    EXPECT_EQ(RunOnce(runtime_, 0, &use), i < 2 ? GCAP_RUN_EAGER : GCAP_RUN_CAPTURED);
    kept.push_back(use.kept);
  }
  GCAP_EXPECT_OK(gcap_runtime_release(runtime_, 0));
  for (void* block : kept) Free(block);
}

// Leaving early is right where a run fails, and what it left is freed.
TEST_F(Serving, ARunThatFailsMayLeaveItsScratch) {
  Create(Options());
  const LogCatcher log;
  const auto fail = [](void*, const gcap_run_resources_t* run) -> gcap_status_t {
    void* block = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run->scratch, 4096, run->stream, &block));
    return GCAP_STATUS(GCAP_UNAVAILABLE, "no more");
  };
  for (const int id : {GCAP_GRAPH_ID_NONE, 0, 3}) {
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = id;
    run.work = fail;
    GCAP_EXPECT_FAILS(gcap_runtime_run(runtime_, &run), GCAP_UNAVAILABLE, "no more");
    EXPECT_EQ(log.text(), "");
  }
  gcap_allocator_stats_t stats;
  gcap_scratch_get_stats(gcap_runtime_scratch(runtime_), &stats);
  EXPECT_EQ(stats.in_use_bytes, 0);
}

// A prefill of another id needs much; the step needs little, and gets little.
TEST_F(Serving, AnIdPreparesWhatItsOwnRunsUsed) {
  Create(ExactOptions(Options()));
  Use large{32 * kMiB}, small{4096};
  EXPECT_EQ(RunOnce(runtime_, 0, &large), GCAP_RUN_EAGER);
  void* elsewhere = Alloc(32 * kMiB);  // the memory of the large run is another's by now
  const size_t before = HeldBytes();
  Capture(runtime_, 1, &small);
  EXPECT_LE(HeldBytes() - before, 2 * 4096u);
  Free(elsewhere);
}

// A network at some batch size: a dozen blocks, of which two are live at a time. Its first run searches for algorithms,
// in much memory.
struct Network {
  size_t bytes;
  bool has_searched = false;
};
constexpr size_t kSearchBytes = 4 * kMiB + 400 * 1024;

gcap_status_t RunNetwork(void* user, const gcap_run_resources_t* run) {
  Network& network = *static_cast<Network*>(user);
  void* input = nullptr;
  if (!network.has_searched) {
    GCAP_RETURN_IF_ERROR(AllocAndFill(run, run->stream, kSearchBytes, &input));
    GCAP_RETURN_IF_ERROR(gcap_scratch_free(run->scratch, input));
    network.has_searched = true;
  }
  GCAP_RETURN_IF_ERROR(AllocAndFill(run, run->stream, network.bytes, &input));
  for (size_t layer = 1; layer < 12; ++layer) {
    void* output = nullptr;
    GCAP_RETURN_IF_ERROR(AllocAndFill(run, run->stream, network.bytes / (layer % 3 + 1), &output));
    GCAP_RETURN_IF_ERROR(gcap_scratch_free(run->scratch, input));
    input = output;
  }
  return gcap_scratch_free(run->scratch, input);
}

// Graphs with reservations of their own, of sizes in any order: together they hold little more than what each needs,
// added up, and what one search took.
TEST_F(Serving, ThirtyTwoIdsOfDifferentSizesHoldWhatTheyUse) {
  gcap_options_t options = ExactOptions(Options());
  options.graph.policy = GCAP_GRAPH_POLICY_MIN_RUNS;
  options.graph.min_num_runs_before_capture = 2;
  Create(options);
  size_t needs = 0;
  for (int id = 0; id < 32; ++id) {
    Network network{size_t{1024} << (id * 5 % 8)};
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = id;
    run.work = RunNetwork;
    run.user = &network;
    run.synchronize = true;
    for (int i = 0; i < 3; ++i) GCAP_EXPECT_OK(gcap_runtime_run(runtime_, &run));
    EXPECT_TRUE(gcap_runtime_is_captured(runtime_, id));
    needs += network.bytes + network.bytes / 2;  // the first two layers
  }
  EXPECT_LE(HeldBytes(), 2 * needs + 2 * kSearchBytes);
}

}  // namespace
}  // namespace testing
}  // namespace gcap
