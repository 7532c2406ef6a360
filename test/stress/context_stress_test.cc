// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Contexts under load: 32 threads warm up, capture, replay, release and exit, sometimes inside a run, while EPs are
// destroyed and created and a few CUDA calls fail by chance. Every result is right, every failure is an injected one,
// and at the end there is as much of everything as at the start.
//
// The seed decides what each thread does, not how the threads interleave. GCAP_STRESS_SEED runs another one, or one
// again; GCAP_STRESS_STEPS another number of steps.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gcap/options.h"
#include "gcap/runtime.h"
#include "gcap/stream.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/internal/capture_gate.h"
#include "lib/stream/inner.h"
#include "test/stress/stress.h"
#include "test/support/expect_status.h"
#include "test/support/replays.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kChairs = 32;  // threads at once
constexpr int kEps = 3;
constexpr int kIds = 2;
constexpr int kMostSteps = 80;  // of one thread
constexpr int kBytes = 64;

// Calls that fail by chance. None is one that ends something: those keep handles for ever when they fail, as they say.
// Nor is cudaStreamEndCapture: it is tried twice, and when chance hits both the stream stays in its capture.
const gcap_sim_fault_t kFaults[] = {
    {"cudaGraphInstantiateWithParams", 0, 0.05, kFault, 0},
    {"cudaGraphLaunch", 0, 0.01, kFault, 0},
    {"cudaMalloc", 0, 0.05, kFault, 0},
    {"cudaMemsetAsync", 0, 0.02, kFault, 0},
    {"cudaStreamBeginCapture", 0, 0.05, kFault, 0},
    {"cudaStreamCreateWithFlags", 0, 0.05, kFault, 0},
};

using ReplacedEp = Replaced<gcap_runtime_t>;

gcap_status_t CreateEp(gcap_runtime_t** out_runtime) {
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  options.graph.min_num_runs_before_capture = 1;
  options.arena.initial_chunk_bytes = 16 << 10;
  return gcap_runtime_create(&options, out_runtime);
}

struct World {
  Tally tally;
  gcap_stream_pool_t* pool = nullptr;  // for what the threads copy to and from the host
  std::vector<std::unique_ptr<ReplacedEp>> eps;
  std::atomic<int64_t> steps_left{0};
};

// Device memory of one chair: it outlives the threads that sit there, and with them all graphs that know it.
struct Buffers {
  unsigned char* input = nullptr;
  unsigned char* output = nullptr;
};

// One thread's steps.
class Sitter {
 public:
  Sitter(World* world, const Buffers& buffers, uint64_t seed) : world_(world), buffers_(buffers), random_(seed) {}

  // Gives the EP that it has left a run open in, or NULL.
  ReplacedEp* Run() {
    ++world_->tally.threads;
    for (int steps = 1 + Below(kMostSteps); steps > 0 && --world_->steps_left >= 0; --steps) {
      ReplacedEp* ep = world_->eps[Below(kEps)].get();
      const int id = Below(kIds);
      const int what = Below(1000);
      if (what < 5) {
        ep->Replace();
        continue;
      }
      gcap_runtime_t* runtime = ep->Enter();
      if (what < 15 && Outcome(BeginRun(runtime, GCAP_GRAPH_ID_NONE + Below(kIds + 1))).ok()) {
        Outcome(Issue(runtime, id));  // whatever becomes of it
        ++world_->tally.abandoned;
        return ep;
      }
      if (what < 65) {
        Release(runtime, id);
      } else {
        Compute(runtime, id);
      }
      ep->Leave();
      if (world_->tally.wrong) break;
    }
    return nullptr;
  }

 private:
  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint64_t>(limit)); }

  // Output = input by way of scratch.
  gcap_status_t Issue(gcap_runtime_t* runtime, int id) {
    gcap_run_resources_t run;
    GCAP_RETURN_IF_ERROR(gcap_runtime_get_resources(runtime, &run));
    const cudaStream_t stream = gcap_stream_handle(run.stream);
    void* block = nullptr;
    GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run.scratch, kBytes << id, run.stream, &block));
    gcap_status_t status = GCAP_CUDA(cudaMemsetAsync(block, 0, kBytes << id, stream));
    if (status == nullptr) {
      status = GCAP_CUDA(cudaMemcpyAsync(block, buffers_.input, kBytes, cudaMemcpyDeviceToDevice, stream));
    }
    if (status == nullptr) {
      status = GCAP_CUDA(cudaMemcpyAsync(buffers_.output, block, kBytes, cudaMemcpyDeviceToDevice, stream));
    }
    return gcap_status_join(status, gcap_scratch_free(run.scratch, block));
  }

  gcap_status_t RunOnce(gcap_runtime_t* runtime, int id) {
    bool replayed = false;
    GCAP_RETURN_IF_ERROR(TryReplay(runtime, id, /*synchronize=*/true, &replayed));
    if (replayed) {
      ++world_->tally.replays;
      return nullptr;
    }
    GCAP_RETURN_IF_ERROR(BeginRun(runtime, id));
    return EndRun(runtime, Issue(runtime, id), /*synchronize=*/true);
  }

  void Copy(void* to, const void* from, cudaMemcpyKind kind) {
    CopyOnPool(&world_->tally, world_->pool, to, from, kBytes, kind);
  }

  void Compute(gcap_runtime_t* runtime, int id) {
    const unsigned char value = static_cast<unsigned char>(Below(255));
    const std::vector<unsigned char> input(kBytes, value), poison(kBytes, 255);
    Copy(buffers_.input, input.data(), cudaMemcpyHostToDevice);
    Copy(buffers_.output, poison.data(), cudaMemcpyHostToDevice);
    Insist(&world_->tally, [&] { return RunOnce(runtime, id); });
    std::vector<unsigned char> output(kBytes);
    Copy(output.data(), buffers_.output, cudaMemcpyDeviceToHost);
    world_->tally.Expect(output == input, "graph id " + std::to_string(id) + ": byte 0 is " +
                                              std::to_string(output[0]) + ", expected " + std::to_string(value));
    ++world_->tally.runs;
  }

  void Release(gcap_runtime_t* runtime, int id) {
    const bool captured = gcap_runtime_is_captured(runtime, id);
    const Outcome outcome(gcap_runtime_release(runtime, id));
    if (captured) {
      world_->tally.Expect(outcome.ok(), outcome.message);
      ++world_->tally.releases;
    }
  }

  World* const world_;
  const Buffers buffers_;
  std::mt19937_64 random_;
};

// One thread after the other until no step is left.
void Chair(World* world, const Buffers& buffers, uint64_t seed) {
  std::mt19937_64 random(seed);
  while (world->steps_left > 0 && !world->tally.wrong) {
    ReplacedEp* left_in = nullptr;
    std::thread([&, thread_seed = random()] { left_in = Sitter(world, buffers, thread_seed).Run(); }).join();
    if (left_in != nullptr) left_in->Leave();
  }
}

TEST(ContextStress, NothingIsWrongAndNothingRemainsOfThreadsAndEpsThatComeAndGo) {
  const uint64_t seed = BeginWithSeed(20);
  const Silence silence;
  std::mt19937_64 random(seed);
  const std::map<std::string, size_t> before = Live();

  World world;
  world.steps_left = static_cast<int64_t>(FromEnvironment("GCAP_STRESS_STEPS", 10000));
  std::vector<Buffers> buffers(kChairs);
  for (Buffers& of_chair : buffers) {
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&of_chair.input), kBytes), cudaSuccess);
    ASSERT_EQ(cudaMalloc(reinterpret_cast<void**>(&of_chair.output), kBytes), cudaSuccess);
  }
  GCAP_ASSERT_OK(gcap_stream_pool_create(0, &world.pool));
  for (const gcap_sim_fault_t& fault : kFaults) gcap_sim_inject(&fault);
  for (int i = 0; i < kEps; ++i) {
    world.eps.push_back(std::make_unique<ReplacedEp>(&world.tally, CreateEp, gcap_runtime_destroy));
  }

  std::vector<std::thread> chairs;
  for (const Buffers& of_chair : buffers) chairs.emplace_back(Chair, &world, of_chair, random());
  for (std::thread& chair : chairs) chair.join();

  gcap_sim_clear_faults();
  world.eps.clear();
  GCAP_EXPECT_OK(gcap_stream_pool_destroy(world.pool));
  for (const Buffers& of_chair : buffers) {
    EXPECT_EQ(cudaFree(of_chair.input), cudaSuccess);
    EXPECT_EQ(cudaFree(of_chair.output), cudaSuccess);
  }
  EXPECT_EQ(Live(), before);
  EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
  const Tally& tally = world.tally;
  std::printf("%d threads, %d runs, %d replays, %d releases, %d runs left open, %d EPs ended, %d failures\n",
              tally.threads.load(), tally.runs.load(), tally.replays.load(), tally.releases.load(),
              tally.abandoned.load(), tally.ends.load(), tally.failures.load());
  for (const std::atomic<int>* happened :
       {&tally.runs, &tally.replays, &tally.releases, &tally.abandoned, &tally.ends, &tally.failures}) {
    EXPECT_GT(*happened, 0);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
