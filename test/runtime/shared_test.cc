// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Runtimes whose threads share one stream and one set of graphs: by graph.scope, by a unified stream, and by what
// forces one: a user stream, external memory, or both.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gcap/runtime.h"
#include "gtest/gtest.h"
#include "lib/stream/inner.h"
#include "test/base/device_work.h"
#include "test/runtime/runtime_fixture.h"
#include "test/support/runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr size_t kCount = 64;

using SharedRuntime = RuntimeTest;

gcap_options_t Parsed(gcap_options_t options, const std::vector<std::pair<std::string, std::string>>& pairs) {
  for (const auto& pair : pairs) {
    const char *const key = pair.first.c_str(), *const value = pair.second.c_str();
    GCAP_EXPECT_OK(gcap_options_parse(&options, &key, &value, 1));
  }
  return options;
}

std::string Number(const void* pointer) { return std::to_string(reinterpret_cast<uintptr_t>(pointer)); }
std::vector<std::pair<std::string, std::string>> ExternalMemory() {
  return {{"gpu_external_alloc", Number(reinterpret_cast<void*>(Memory::Alloc))},
          {"gpu_external_free", Number(reinterpret_cast<void*>(Memory::Free))}};
}

TEST_F(SharedRuntime, ConcurrentRunsAreOfferedWhereThreadsShareNothing) {
  struct Row {
    std::vector<std::pair<std::string, std::string>> given;
    bool shared;
  };
  const Row rows[] = {{{}, false},
                      {{{"graph.scope", "thread"}}, false},
                      {{{"graph.scope", "session"}}, true},
                      {{{"use_ep_level_unified_stream", "1"}}, true},
                      {{{"use_ep_level_unified_stream", "1"}, {"graph.scope", "thread"}}, true},
                      {ExternalMemory(), true}};
  for (const Row& row : rows) {
    Create(Parsed(GraphOptions(1), row.given));
    EXPECT_EQ(RuntimeInfo(runtime_).supports_concurrent_runs, !row.shared);
    const gcap_run_resources_t mine = Resources();
    EXPECT_EQ(gcap_stream_ownership(mine.stream), GCAP_STREAM_OWNED);
    std::thread([&] { EXPECT_EQ(Resources().stream == mine.stream, row.shared); }).join();
  }
}

// A run that the work of another one begins would end the scratch of that one, whose later kernels write there.
TEST_F(SharedRuntime, WorkBeginsNoRunOfItsRuntimeAndMayReplay) {
  for (const bool is_shared : {false, true}) {
    SCOPED_TRACE(is_shared ? "shared" : "of each thread");
    gcap_options_t options = GraphOptions(0);
    options.use_unified_stream = is_shared;
    Create(options);
    DeviceFloats x{Floats(kCount, 3)}, y{Floats(kCount)}, z{Floats(kCount)};
    const DeviceFloats replayed{Floats(kCount)};
    ASSERT_TRUE(RunWhole(1, Copier(x, replayed)).ok());
    z.Set(Floats(kCount, 7));
    const Outcome outer = RunWhole(GCAP_GRAPH_ID_NONE, [&](const gcap_run_resources_t& run) -> gcap_status_t {
      void* block = nullptr;
      GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run.scratch, x.Bytes(), run.stream, &block));
      GCAP_RETURN_IF_ERROR(
          GCAP_CUDA(cudaMemcpyAsync(block, x.get(), x.Bytes(), cudaMemcpyDeviceToDevice, run.cuda_stream)));
      for (const int id : {GCAP_GRAPH_ID_NONE, 2}) {
        void* inner_block = nullptr;
        const Outcome inner = RunWhole(
            id, [&](const gcap_run_resources_t& own) { return CopyByScratch(own, z, z, z.Bytes(), &inner_block); });
        EXPECT_STREQ(gcap_code_name(inner.code), "FAILED_PRECONDITION");
        EXPECT_TRUE(inner.Names("begun by the work of another one")) << inner.message;
      }
      EXPECT_TRUE(RunWhole(1, Copier(x, replayed)).ok());
      return GCAP_CUDA(cudaMemcpyAsync(y.get(), block, x.Bytes(), cudaMemcpyDeviceToDevice, run.cuda_stream));
    });
    EXPECT_TRUE(outer.ok()) << outer.message;
    EXPECT_EQ(y.Get(), x.Get());
    EXPECT_TRUE(RunWhole(2, Copier(x, z)).ok()) << "behind the work";
    Destroy();
  }
}

// Threads that run the same ids over and over, each id a copy by way of scratch; gives how often the work was called,
// which a replay does not. Threads that do not take turns have memory of their own.
class ScopeOfGraphs : public SharedRuntime {
 protected:
  static constexpr int kThreads = 8, kIds = 20, kRuns = 4;

  int CallsOfAll(bool take_turns = true) {
    struct Buffers {
      explicit Buffers(int id) { from.Set(Floats(4, static_cast<float>(id + 1))); }
      DeviceFloats from{Floats(4, 0.0f)}, to{Floats(4, 0.0f)};
    };
    std::atomic<int> calls{0};
    std::vector<std::unique_ptr<Buffers>> memory;
    for (int i = 0; i < (take_turns ? 1 : kThreads) * kIds; ++i) memory.push_back(std::make_unique<Buffers>(i % kIds));
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int run = 0; run < kRuns; ++run) {
          for (int i = 0; i < kIds; ++i) {
            const int id = (i + 3 * t) % kIds;
            const Buffers* const mine = memory[take_turns ? id : t * kIds + id].get();
            const auto work = [&calls, mine](const gcap_run_resources_t& resources) {
              ++calls;
              void* scratch = nullptr;
              return CopyByScratch(resources, mine->from, mine->to, 1024, &scratch);
            };
            EXPECT_TRUE(RunWhole(id, work, /*synchronize=*/run == 3).ok());
          }
        }
        GCAP_EXPECT_OK(gcap_runtime_synchronize(runtime_));
        for (int id = 0; id < kIds; ++id) EXPECT_EQ(Info(id).captures, 1u) << id;
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < memory.size(); ++i) {
      EXPECT_EQ(memory[i]->to.Get(), Floats(4, static_cast<float>(i % kIds + 1))) << i;
    }
    return calls;
  }
};

TEST_F(ScopeOfGraphs, InASessionEachIdIsCapturedOnceForAllThreads) {
  Create(Parsed(GraphOptions(1), {{"graph.scope", "session"}}));
  EXPECT_EQ(CallsOfAll(), 2 * kIds) << "a warm-up and a capture of each id";
  for (int id = 0; id < kIds; ++id) EXPECT_EQ(Info(id).replays, static_cast<uint64_t>(kThreads * kRuns - 1)) << id;
}

TEST_F(ScopeOfGraphs, InAThreadEachThreadCapturesEachId) {
  Create(GraphOptions(1));
  EXPECT_EQ(CallsOfAll(/*take_turns=*/false), 2 * kIds * kThreads);
}

// Callbacks for one call at a time are called so, though the threads run at once.
TEST_F(ScopeOfGraphs, WithExternalMemoryThreadsTakeTurns) {
  Create(Parsed(GraphOptions(1), ExternalMemory()));
  EXPECT_EQ(CallsOfAll(), 2 * kIds);
  EXPECT_EQ(Memory::overlaps, 0);
  EXPECT_GT(Memory::live, 0);
  Destroy();
  EXPECT_EQ(Memory::live, 0);
}

// PyTorch's stream with PyTorch's memory, which ONNX Runtime refuses.
TEST_F(ScopeOfGraphs, AUserStreamWithExternalMemoryCapturesAndReplays) {
  const RawStream stream;
  auto pairs = ExternalMemory();
  pairs.emplace_back("user_compute_stream", Number(stream.get()));
  Create(Parsed(GraphOptions(1), pairs));
  EXPECT_FALSE(RuntimeInfo(runtime_).supports_concurrent_runs);
  EXPECT_EQ(gcap_stream_handle(Resources().stream), stream.get());
  EXPECT_EQ(CallsOfAll(), 2 * kIds);
  EXPECT_EQ(Memory::overlaps, 0);
  EXPECT_GT(Memory::live, 0);
  Destroy();
  EXPECT_EQ(Memory::live, 0);
  stream.Synchronize();  // the stream is the application's
}

// Without an arena over it each eager run asks anew and gives back, and graphs keep what they use.
TEST_F(SharedRuntime, ExternalMemoryWithABypassIsAskedByEachEagerRunAndKeptByGraphs) {
  auto pairs = ExternalMemory();
  pairs.emplace_back("arena.bypass", "1");
  Create(Parsed(GraphOptions(2), pairs));
  DeviceFloats x(Floats(2)), y(Floats(2));
  void* scratch = nullptr;
  const auto copy = [&](const gcap_run_resources_t& run) { return CopyByScratch(run, x, y, 4096, &scratch); };
  const auto expect_copied = [&](int id, float value) {
    const int before = Memory::calls;
    x.Set(Floats(2, value));
    EXPECT_TRUE(RunWhole(id, copy).ok());
    EXPECT_EQ(y.Get(), Floats(2, value));
    return Memory::calls - before;
  };
  for (int run = 0; run < 5; ++run) {
    EXPECT_EQ(expect_copied(GCAP_GRAPH_ID_NONE, static_cast<float>(run)), 1) << "one allocation, one request";
    EXPECT_EQ(Memory::live, 1) << "what the last run freed goes back at the next call";
  }
  GCAP_EXPECT_OK(gcap_scratch_trim(gcap_runtime_scratch(runtime_)));
  EXPECT_EQ(Memory::live, 0);
  for (int run = 0; run < 6; ++run) {
    for (int id : {0, 1}) {
      const int calls = expect_copied(id, static_cast<float>(10 * id + run));
      EXPECT_TRUE(run < 3 || calls == 0) << "a replay asks for nothing";
    }
  }
  for (int id : {0, 1}) EXPECT_EQ(Info(id).failures, 0u);
  EXPECT_EQ(Memory::live, 2) << "one region for each graph";
  expect_copied(GCAP_GRAPH_ID_NONE, 7);
  GCAP_EXPECT_OK(gcap_runtime_release(runtime_, 0));
  GCAP_EXPECT_OK(gcap_runtime_synchronize(runtime_));
  expect_copied(GCAP_GRAPH_ID_NONE, 8);
  EXPECT_EQ(Memory::live, 2) << "the other graph's, and the last run's";
}

}  // namespace
}  // namespace testing
}  // namespace gcap
