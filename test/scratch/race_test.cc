// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A million random operations on eight streams under the simulator's race detector: kernels that tell what they read
// and write, frees while they may still run, waits, synchronisations, trims, captures whose graphs are replayed. Every
// block is scratch, so a block that is given too early is a race between two kernels, and no such race may be reported.
// Each kernel also writes or expects a value of its own, by which memory that was shared shows too.
//
// The detector is only worth something if it would have seen the damage: with the question about tags taken away from
// the arena, or its keeping of graphs' memory, the same program must be reported.
//
// GCAP_TEST_SEED=n runs another seed; GCAP_SIM_STACKS=8 adds call stacks to the reports, at a price.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "gcap/capture.h"
#include "gcap/scratch.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/scratch/test_hooks.h"
#include "test/support/expect_status.h"
#include "test/support/log_catcher.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kStreams = 8;
#if defined(__SANITIZE_THREAD__)
constexpr int kOperations = 20000;  // one thread's: they are not what this sanitizer is for
constexpr int kStepsOfAThread = 500;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kOperations = 100000;  // it looks at the code, which takes no more; the arena needs the million
constexpr int kStepsOfAThread = 1000;
#else
constexpr int kOperations = 1000000;
constexpr int kStepsOfAThread = 20000;
#endif
constexpr int kOperationsWithoutSafety = 20000;
constexpr int kOperationsWithDebugOptions = 50000;
constexpr int kOperationsPerLook = 1000;  // at the reports, each of which is told once between two looks

// The simulator reads it at its first use, which is after this.
[[maybe_unused]] const int kNoStacks = setenv("GCAP_SIM_STACKS", "0", /*overwrite=*/0);

unsigned Seed() {
  const char* seed = std::getenv("GCAP_TEST_SEED");
  return seed == nullptr ? 1 : static_cast<unsigned>(std::strtoul(seed, nullptr, 10));
}

// --- The kernel -----------------------------------------------------------------------------------------------------

char g_touch_stub;
std::atomic<uint64_t> g_wrong_values{0};

// Writes a whole block, or reads it; the value is in its first and its last word.
struct Touch {
  char* memory;
  size_t bytes;
  uint64_t value;
  bool writes;
};

void RunTouch(const gcap_sim_launch_t*, void* const* args) {
  Touch touch;
  std::memcpy(&touch, args[0], sizeof(touch));
  for (char* word : {touch.memory, touch.memory + touch.bytes - sizeof(touch.value)}) {
    if (touch.writes) {
      std::memcpy(word, &touch.value, sizeof(touch.value));
    } else if (std::memcmp(word, &touch.value, sizeof(touch.value)) != 0) {
      ++g_wrong_values;
    }
  }
}

size_t TouchAccesses(const gcap_sim_launch_t*, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  Touch touch;
  std::memcpy(&touch, args[0], sizeof(touch));
  if (capacity > 0) out[0] = {touch.memory, touch.bytes, touch.writes ? 1 : 0};
  return 1;
}

[[maybe_unused]] const bool kRegistered = [] {
  static const size_t arg_bytes[] = {sizeof(Touch)};
  const gcap_sim_kernel_t kernel = {&g_touch_stub, "touch", arg_bytes, 1, RunTouch, TouchAccesses};
  gcap_sim_register_kernel(&kernel);
  return true;
}();

struct Block {
  void* ptr;
  size_t bytes;
  int stream;               // that uses it
  bool for_nobody = false;  // allocated for no stream
  uint64_t value = 0;       // written last
};

void Launch(Block* block, uint64_t value, bool writes, gcap_stream_t* stream) {
  if (writes) block->value = value;
  Touch touch = {static_cast<char*>(block->ptr), block->bytes, block->value, writes};
  void* args[] = {&touch};
  ASSERT_EQ(cudaLaunchKernel(&g_touch_stub, dim3(1), dim3(1), args, 0, gcap_stream_handle(stream)), cudaSuccess);
}

// --- What all tests have --------------------------------------------------------------------------------------------

class ScratchRaces : public ::testing::Test {
 protected:
  void SetUp() override {
    std::cout << "GCAP_TEST_SEED=" << Seed() << "\n";
    gcap_sim_set_seed(Seed());
    gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_RECORD);
    gcap_sim_set_action(GCAP_SIM_CHECK_LEAK, GCAP_SIM_ACTION_OFF);  // until the end nothing is one
    g_wrong_values = 0;
    GCAP_ASSERT_OK(gcap_device_allocator_create(0, &device_));
    for (int i = 0; i < kStreams; ++i) {
      GCAP_ASSERT_OK(gcap_stream_create(0, &streams_[i]));
      GCAP_ASSERT_OK(gcap_notification_create(streams_[i], &notifications_[i]));
    }
  }
  // Little memory, so that it goes round.
  void CreateScratch(const gcap_scratch_test_hooks_t& hooks) {
    gcap_scratch_options_t options;
    gcap_scratch_options_init(&options);
    options.initial_chunk_bytes = 64 << 10;
    options.max_extend_bytes = 128 << 10;
    options.memory_limit_bytes = 448 << 10;
    options.red_zones = options.poison_on_free = debugs_;
    options.recorded_operations = debugs_ ? 100 : 0;
    GCAP_ASSERT_OK(gcap_scratch_create(device_, &options, &scratch_));
    gcap_scratch_set_test_hooks(scratch_, &hooks);
  }
  void TearDown() override {
    for (gcap_stream_t* stream : streams_) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    GCAP_EXPECT_OK(gcap_scratch_destroy(scratch_));
    for (int i = 0; i < kStreams; ++i) {
      gcap_notification_destroy(notifications_[i]);
      GCAP_EXPECT_OK(gcap_stream_destroy(streams_[i]));
    }
    gcap_allocator_destroy(device_);
    EXPECT_EQ(gcap_sim_live(nullptr), 0u);
    gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, GCAP_SIM_ACTION_DEFAULT);
  }

  // Counts the reports since the last look.
  void Look() {
    const size_t count = gcap_sim_check();
    num_reports_ += count;
    for (size_t i = 0; i < count; ++i) num_races_ += std::strstr(gcap_sim_report(i), "race on ") != nullptr;
  }
  static size_t RandomBytes(std::mt19937* random) {
    const size_t most = (*random)() % 16 == 0 ? 32 << 10 : 4 << 10;
    return 2 * sizeof(uint64_t) + (*random)() % most;
  }

  bool debugs_ = false;  // with all debug options
  gcap_allocator_t* device_ = nullptr;
  gcap_scratch_t* scratch_ = nullptr;
  std::array<gcap_stream_t*, kStreams> streams_ = {};
  std::array<gcap_notification_t*, kStreams> notifications_ = {};
  uint64_t num_reports_ = 0, num_races_ = 0;
};

// --- One thread, all operations -------------------------------------------------------------------------------------

struct Graph {
  int stream;
  gcap_scratch_reservation_t* reservation;
  cudaGraphExec_t exec;
  gcap_retained_t* retained;
};

class RandomOperations : public ScratchRaces {
 protected:
  void Run(int num_operations, const gcap_scratch_test_hooks_t& hooks) {
    CreateScratch(hooks);
    for (num_done_ = 0; num_done_ < num_operations && !HasFailure(); ++num_done_) {
      Step();
      if (num_done_ % kOperationsPerLook == 0) Look();
    }
    while (!graphs_.empty()) ReleaseGraph(0);
    while (!blocks_.empty()) Free(0);
    for (gcap_stream_t* stream : streams_) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    Look();
    std::cout << num_operations << " operations: " << num_allocs_ << " blocks, " << num_passed_on_
              << " of them another stream's before, " << num_refusals_ << " times no memory, " << num_captures_
              << " captures, " << num_shared_ << " of them into another graph's memory, " << num_failed_captures_
              << " in vain, " << num_replays_ << " replays, " << num_reports_ << " reports, " << num_races_
              << " of them races\n";
  }

  int Random(size_t end) { return static_cast<int>(random_() % end); }
  uint64_t NewValue() { return ++last_value_; }

  // No memory, here and in captures, is an answer like any other.
  bool TryAlloc(size_t bytes, int stream, bool for_nobody, Block* out_block) {
    void* ptr = nullptr;
    const Outcome outcome(for_nobody ? gcap_allocator_alloc(gcap_scratch_allocator(scratch_), bytes, &ptr)
                                     : gcap_scratch_alloc(scratch_, bytes, streams_[stream], &ptr));
    EXPECT_TRUE(outcome.ok() || outcome.code == GCAP_RESOURCE_EXHAUSTED) << outcome.message;
    *out_block = {ptr, bytes, stream, for_nobody};
    num_refusals_ += !outcome.ok();
    if (!outcome.ok()) return false;
    ++num_allocs_;
    const auto [user, is_new] = last_users_.insert({ptr, stream});
    num_passed_on_ += !is_new && user->second != stream;
    user->second = stream;
    return true;
  }
  void Alloc(int stream) {
    Block block;
    if (!TryAlloc(RandomBytes(&random_), stream, /*for_nobody=*/Random(16) == 0, &block)) return;
    Launch(&block, NewValue(), /*writes=*/true, streams_[stream]);
    blocks_.push_back(block);
  }
  void Use() {
    if (blocks_.empty()) return;
    Block* block = &blocks_[Random(blocks_.size())];
    Launch(block, NewValue(), /*writes=*/Random(3) == 0, streams_[block->stream]);
  }
  void Free(size_t index) {
    std::swap(blocks_[index], blocks_.back());
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, blocks_.back().ptr));
    blocks_.pop_back();
  }
  void Record(int stream) {
    GCAP_ASSERT_OK(gcap_notification_record(notifications_[stream]));
    recorded_[stream] = true;
  }
  void Wait(int consumer, int producer) {
    if (!recorded_[producer]) return;
    GCAP_ASSERT_OK(gcap_notification_wait(notifications_[producer], streams_[consumer]));
  }
  void WaitOnHost(int stream) {
    if (recorded_[stream]) GCAP_ASSERT_OK(gcap_notification_wait_on_host(notifications_[stream]));
  }
  // Its blocks freed, so that it can be forgotten.
  void Forget(int stream) {
    for (size_t i = blocks_.size(); i > 0; --i) {
      if (blocks_[i - 1].stream == stream) Free(i - 1);
    }
    GCAP_ASSERT_OK(gcap_stream_synchronize(streams_[stream]));
    const bool has_graph =
        std::any_of(graphs_.begin(), graphs_.end(), [stream](const Graph& graph) { return graph.stream == stream; });
    const Outcome outcome(gcap_scratch_forget_stream(scratch_, streams_[stream]));
    ASSERT_EQ(outcome.code, has_graph ? GCAP_FAILED_PRECONDITION : GCAP_OK) << outcome.message;
  }
  void CheckCounters() {
    size_t requested_bytes = 0;
    for (const Block& block : blocks_) requested_bytes += block.bytes;
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(scratch_, &stats);
    ASSERT_EQ(stats.requested_in_use_bytes, requested_bytes);
  }

  // --- Graphs

  // Kernels on blocks of the graph, of which some are freed before the next is asked for.
  bool CaptureKernels(int stream) {
    std::vector<Block> blocks;
    bool ok = true;
    for (int i = Random(4); i >= 0 && ok; --i) {
      Block block;
      ok = TryAlloc(RandomBytes(&random_), stream, /*for_nobody=*/false, &block);
      if (!ok) break;
      blocks.push_back(block);
      Launch(&blocks.back(), NewValue(), /*writes=*/true, streams_[stream]);
      Block* read = &blocks[Random(blocks.size())];
      Launch(read, 0, /*writes=*/false, streams_[stream]);
      if (Random(2) != 0) continue;
      GCAP_EXPECT_OK(gcap_scratch_free(scratch_, read->ptr));
      blocks.erase(blocks.begin() + (read - blocks.data()));
    }
    for (const Block& block : blocks) GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block.ptr));
    return ok;
  }
  // A block from before that captured kernels use before it is freed is the graph's too.
  void CaptureUseOfOlderBlock(int stream) {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].stream != stream || blocks_[i].for_nobody) continue;
      Launch(&blocks_[i], NewValue(), /*writes=*/true, streams_[stream]);
      Free(i);
      return;
    }
  }
  void Prepare(int stream) {
    const Outcome outcome(gcap_scratch_reservation_prepare(scratch_, streams_[stream]));
    ASSERT_TRUE(outcome.ok() || outcome.code == GCAP_RESOURCE_EXHAUSTED) << outcome.message;
  }
  // Some share the memory of an earlier graph of their stream.
  void OpenFor(Graph* graph) {
    for (const Graph& other : graphs_) {
      if (other.stream != graph->stream || Random(2) == 0) continue;
      graph->reservation = other.reservation;
      ++num_shared_;
      GCAP_ASSERT_OK(gcap_scratch_reservation_reopen(graph->reservation));
      return;
    }
    GCAP_ASSERT_OK(gcap_scratch_reservation_open(scratch_, streams_[graph->stream], &graph->reservation));
  }
  void Capture(int stream) {
    if (graphs_.size() == kMostGraphs) return ReleaseGraph(Random(graphs_.size()));
    if (!graphs_.empty() && Random(2) == 0) stream = graphs_[Random(graphs_.size())].stream;
    if (Random(2) == 0) Prepare(stream);
    Graph graph = {stream, nullptr, nullptr, nullptr};
    gcap_capture_t* capture = nullptr;
    GCAP_ASSERT_OK(gcap_capture_begin(gcap_stream_handle(streams_[stream]), nullptr, &capture));
    OpenFor(&graph);
    if (Random(3) == 0) CaptureUseOfOlderBlock(stream);
    const bool ok = CaptureKernels(stream);
    gcap_scratch_reservation_close(graph.reservation);
    cudaGraph_t captured = nullptr;
    const Outcome outcome(gcap_capture_end(capture, &captured, &graph.retained));
    ASSERT_EQ(outcome.code, ok ? GCAP_OK : GCAP_CAPTURE_INVALIDATED) << outcome.message;
    ++num_captures_;
    num_failed_captures_ += !ok;
    if (!ok) return gcap_scratch_reservation_release(graph.reservation);
    ASSERT_EQ(cudaGraphInstantiate(&graph.exec, captured, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphDestroy(captured), cudaSuccess);
    graphs_.push_back(graph);
  }
  void Replay() {
    if (graphs_.empty()) return;
    const Graph& graph = graphs_[Random(graphs_.size())];
    ASSERT_EQ(cudaGraphLaunch(graph.exec, gcap_stream_handle(streams_[graph.stream])), cudaSuccess);
    ++num_replays_;
  }
  void ReleaseGraph(size_t index) {
    std::swap(graphs_[index], graphs_.back());
    const Graph graph = graphs_.back();
    graphs_.pop_back();
    GCAP_EXPECT_OK(gcap_stream_synchronize(streams_[graph.stream]));
    EXPECT_EQ(cudaGraphExecDestroy(graph.exec), cudaSuccess);
    gcap_retained_release(graph.retained);
    gcap_scratch_reservation_release(graph.reservation);
  }

  void Step() {
    const int stream = Random(kStreams);
    const int dice = Random(1000);
    if (dice < 300) {
      if (blocks_.size() < kMostBlocks) Alloc(stream);
    } else if (dice < 590) {
      if (!blocks_.empty()) Free(Random(blocks_.size()));
    } else if (dice < 800) {
      Use();
    } else if (dice < 860) {
      Record(stream);
    } else if (dice < 930) {
      Wait(stream, Random(kStreams));
    } else if (dice < 945) {
      GCAP_EXPECT_OK(gcap_stream_synchronize(streams_[stream]));
    } else if (dice < 950) {
      WaitOnHost(stream);
    } else if (dice < 980) {
      Replay();
    } else if (dice < 983) {
      Capture(stream);
    } else if (dice < 988) {
      GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
    } else if (dice < 997) {
      CheckCounters();
    } else if (dice < 998) {
      Forget(stream);
    } else {
      GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
    }
  }

  static constexpr size_t kMostBlocks = 120;
  static constexpr size_t kMostGraphs = 6;

  std::mt19937 random_{Seed()};
  const LogCatcher log_;  // a capture's deficit that cannot be made up is no news here
  std::vector<Block> blocks_;
  std::vector<Graph> graphs_;
  std::array<bool, kStreams> recorded_ = {};
  std::unordered_map<const void*, int> last_users_;  // by address: the stream it was last given to
  uint64_t last_value_ = 0;
  int num_done_ = 0;
  uint64_t num_allocs_ = 0, num_passed_on_ = 0, num_refusals_ = 0, num_captures_ = 0, num_shared_ = 0,
           num_failed_captures_ = 0, num_replays_ = 0;
};

TEST_F(RandomOperations, OfAMillionNoneRaces) {
  Run(kOperations, {});
  EXPECT_FALSE(HasFailure()) << "operation " << num_done_;
  EXPECT_EQ(num_reports_, 0u);
  EXPECT_EQ(g_wrong_values, 0u);
  EXPECT_GT(num_passed_on_, 0u) << "nothing was at stake";
  EXPECT_GT(num_replays_, 0u);
  EXPECT_GT(num_shared_, 0u);
  EXPECT_GT(num_refusals_, 0u);
}

// What the debug options write and read is in order with the blocks' own work, in graphs too, and never wrong.
TEST_F(RandomOperations, WithDebugOptionsNoneRaces) {
  debugs_ = true;
  Run(kOperationsWithDebugOptions, {});
  EXPECT_FALSE(HasFailure()) << "operation " << num_done_;
  EXPECT_EQ(num_reports_, 0u);
  EXPECT_EQ(g_wrong_values, 0u);
  EXPECT_GT(num_passed_on_, 0u) << "nothing was at stake";
  EXPECT_GT(num_replays_, 0u);
}

TEST_F(RandomOperations, WithoutTagsRace) {
  ::testing::internal::CaptureStderr();
  gcap_scratch_test_hooks_t hooks = {};
  hooks.ignore_tags = true;
  Run(kOperationsWithoutSafety, hooks);
  ::testing::internal::GetCapturedStderr();
  EXPECT_GT(num_races_, 0u);
}

TEST_F(RandomOperations, WithoutReservationsRace) {
  ::testing::internal::CaptureStderr();
  gcap_scratch_test_hooks_t hooks = {};
  hooks.ignore_reservations = true;
  Run(kOperationsWithoutSafety, hooks);
  ::testing::internal::GetCapturedStderr();
  EXPECT_GT(num_races_, 0u);
}

// --- Eight threads --------------------------------------------------------------------------------------------------

// Each thread has a stream, waits for what the others recorded, and may free some of the others' blocks, whereupon the
// arena takes another way to its lock. Now and then one forgets its stream, looks at everything, or gives memory back.
class ThreadsRace : public ScratchRaces {
 protected:
  void Work(int index, bool exchanges) {
    std::mt19937 random(Seed() + static_cast<unsigned>(index));
    gcap_stream_t* stream = streams_[index];
    std::vector<Block> blocks;
    uint64_t value = static_cast<uint64_t>(index) << 32;
    for (int step = 0; step < kStepsOfAThread; ++step) {
      const unsigned dice = random() % 1000;
      if (dice < 400 && blocks.size() < 12) {
        Block block = {nullptr, RandomBytes(&random), index};
        if (!Outcome(gcap_scratch_alloc(scratch_, block.bytes, stream, &block.ptr)).ok()) continue;
        Launch(&block, ++value, /*writes=*/true, stream);
        blocks.push_back(block);
      } else if (dice < 780 && !blocks.empty()) {
        std::swap(blocks[random() % blocks.size()], blocks.back());
        Launch(&blocks.back(), 0, /*writes=*/false, stream);
        void* ptr = blocks.back().ptr;
        GCAP_EXPECT_OK(gcap_scratch_free(scratch_, exchanges && dice >= 700 ? Exchange(ptr) : ptr));
        blocks.pop_back();
      } else if (dice < 880) {
        const std::lock_guard<std::mutex> lock(mutexes_[index]);
        GCAP_EXPECT_OK(gcap_notification_record(notifications_[index]));
      } else if (dice < 970) {
        const size_t other = random() % kStreams;
        const std::lock_guard<std::mutex> lock(mutexes_[other]);
        GCAP_EXPECT_OK(gcap_notification_wait(notifications_[other], stream));
      } else {
        Seldom(dice, stream, &blocks);
      }
    }
    for (const Block& block : blocks) GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block.ptr));
  }
  void Seldom(unsigned dice, gcap_stream_t* stream, std::vector<Block>* blocks) {
    gcap_allocator_stats_t stats;
    if (dice < 980) {
      GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    } else if (dice < 985) {
      GCAP_EXPECT_OK(gcap_scratch_trim(scratch_));
    } else if (dice < 990) {
      gcap_scratch_get_stats(scratch_, &stats);
    } else if (dice < 995) {
      GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
    } else {
      for (const Block& block : *blocks) GCAP_EXPECT_OK(gcap_scratch_free(scratch_, block.ptr));
      blocks->clear();
      GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
      // Refused while a block of it waits to be freed by another thread, or was freed by one since.
      const Outcome outcome(gcap_scratch_forget_stream(scratch_, stream));
      EXPECT_TRUE(outcome.ok() || outcome.code == GCAP_FAILED_PRECONDITION) << outcome.message;
    }
  }
  // Leaves a block for another thread to free, and gives one that was left; the first time none.
  void* Exchange(void* ptr) {
    const std::lock_guard<std::mutex> lock(left_mutex_);
    std::swap(ptr, left_);
    return ptr;
  }

  void Run(bool exchanges) {
    CreateScratch({});
    for (gcap_notification_t* notification : notifications_) GCAP_ASSERT_OK(gcap_notification_record(notification));
    std::vector<std::thread> threads;
    for (int i = 0; i < kStreams; ++i) threads.emplace_back([=] { Work(i, exchanges); });
    for (std::thread& thread : threads) thread.join();
    GCAP_EXPECT_OK(gcap_scratch_free(scratch_, left_));
    for (gcap_stream_t* stream : streams_) GCAP_EXPECT_OK(gcap_stream_synchronize(stream));
    GCAP_EXPECT_OK(gcap_scratch_validate(scratch_));
    Look();
    EXPECT_EQ(num_reports_, 0u);
    EXPECT_EQ(g_wrong_values, 0u);
  }

  std::array<std::mutex, kStreams> mutexes_;  // a notification is used by one thread at a time
  std::mutex left_mutex_;
  void* left_ = nullptr;
};

TEST_F(ThreadsRace, NeverWhereEachFreesItsOwn) { Run(/*exchanges=*/false); }

TEST_F(ThreadsRace, NeverWhereTheyFreeOneAnothers) { Run(/*exchanges=*/true); }

}  // namespace
}  // namespace testing
}  // namespace gcap
