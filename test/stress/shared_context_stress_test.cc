// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Shared contexts under load: threads take turns on one stream and one graph manager with a budget, while others
// release its graphs, have them captured again, exit inside a run, or replace the whole set, and a few CUDA calls fail
// by chance. Every result is right, every failure is an injected one or the open run of a thread that is about to exit,
// and at the end there is as much of everything as at the start.
//
// GCAP_STRESS_SEED and GCAP_STRESS_STEPS as in context_stress_test.cc.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gcap/capture.h"
#include "gcap/graph.h"
#include "gcap/stream.h"
#include "gcap_sim.h"
#include "gtest/gtest.h"
#include "lib/internal/capture_gate.h"
#include "lib/runtime/thread_context.h"
#include "lib/stream/inner.h"
#include "test/stress/stress.h"
#include "test/support/expect_status.h"
#include "test/support/plain_runs.h"

namespace gcap {
namespace testing {
namespace {

constexpr int kChairs = 16;  // threads at once
constexpr int kSets = 2;
constexpr int kIds = 4;
constexpr size_t kMostGraphs = 3;  // of a set: the budget takes one now and then
constexpr int kMostSteps = 60;     // of one thread
constexpr int kBytes = 64;

// As in context_stress_test.cc: none that ends something.
const gcap_sim_fault_t kFaults[] = {
    {"cudaGraphExecUpdate", 0, 0.1, kFault, 0},     {"cudaGraphInstantiateWithParams", 0, 0.05, kFault, 0},
    {"cudaGraphLaunch", 0, 0.01, kFault, 0},        {"cudaMemsetAsync", 0, 0.02, kFault, 0},
    {"cudaStreamBeginCapture", 0, 0.05, kFault, 0}, {"cudaStreamCreateWithFlags", 0, 0.05, kFault, 0},
};

struct World {
  Tally tally;
  std::atomic<int> leaving{0};  // threads that have a run open and are about to exit
  gcap_stream_pool_t* pool = nullptr;
  std::atomic<int64_t> steps_left{0};
};

// One set and the device memory of its graphs, which outlives them. Whoever has the turn uses the context and the
// memory.
struct Place {
  explicit Place(World* world) {
    for (unsigned char** memory : {&input, &middle, &output}) {
      EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(memory), kBytes), cudaSuccess);
    }
    set = std::make_unique<Replaced<gcap_thread_contexts_t>>(
        &world->tally,
        [world](gcap_thread_contexts_t** out_set) {
          gcap_thread_contexts_options_t options;
          gcap_thread_contexts_options_init(&options);
          options.shared = true;
          options.graph.policy = GCAP_GRAPH_POLICY_STABLE;
          options.graph.max_graphs = kMostGraphs;
          options.graph.upload = true;
          options.graph.on_evict = [](void* user, int, const gcap_graph_info_t*) {
            ++static_cast<World*>(user)->tally.evictions;
          };
          options.graph.user = world;
          return gcap_thread_contexts_create(&options, out_set);
        },
        gcap_thread_contexts_destroy);
  }
  ~Place() {
    set = nullptr;
    for (unsigned char* memory : {input, middle, output}) EXPECT_EQ(cudaFree(memory), cudaSuccess);
  }

  // Output = input, by way of the middle; a graph of three nodes.
  gcap_status_t Issue(cudaStream_t stream) const {
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemsetAsync(middle, 0, kBytes, stream)));
    GCAP_RETURN_IF_ERROR(GCAP_CUDA(cudaMemcpyAsync(middle, input, kBytes, cudaMemcpyDeviceToDevice, stream)));
    return GCAP_CUDA(cudaMemcpyAsync(output, middle, kBytes, cudaMemcpyDeviceToDevice, stream));
  }

  unsigned char *input = nullptr, *middle = nullptr, *output = nullptr;
  std::unique_ptr<Replaced<gcap_thread_contexts_t>> set;
  std::mutex turns;
};

// One thread's steps.
class Sitter {
 public:
  Sitter(World* world, std::vector<std::unique_ptr<Place>>* places, uint64_t seed)
      : world_(world), places_(places), random_(seed) {}

  // Gives the place where it has left a run open, or NULL.
  Place* Run() {
    ++world_->tally.threads;
    for (int steps = 1 + Below(kMostSteps); steps > 0 && --world_->steps_left >= 0; --steps) {
      Place* place = (*places_)[Below(kSets)].get();
      const int what = Below(1000);
      if (what < 3) {
        place->set->Replace();
        continue;
      }
      gcap_thread_contexts_t* set = place->set->Enter();
      gcap_thread_context_t* context = nullptr;
      Insist(&world_->tally, [&] { return gcap_thread_contexts_get(set, &context); });
      if (context == nullptr) break;  // it has been told
      if (what < 10) {
        Abandon(place, context);
        return place;
      }
      Disturb(what, context);
      if (what >= 100) Compute(place, context);
      place->set->Leave();
      if (world_->tally.wrong) break;
    }
    return nullptr;
  }

 private:
  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint64_t>(limit)); }

  void Abandon(Place* place, gcap_thread_context_t* context) {
    place->turns.lock();
    ++world_->leaving;
    const cudaStream_t stream = gcap_stream_handle(gcap_thread_context_stream(context));
    gcap_graph_run_kind_t kind;
    const Outcome begun(BeginPlain(gcap_thread_context_graphs(context), Below(kIds), stream, &kind));
    if (begun.ok()) {
      Outcome(place->Issue(stream));  // whatever becomes of it
      // What an eager run has issued is waited for: the next one copies on another stream.
      if (kind == GCAP_GRAPH_RUN_EAGER) GCAP_EXPECT_OK(gcap_stream_synchronize(gcap_thread_context_stream(context)));
      ++world_->tally.abandoned;
    }
    place->turns.unlock();
  }

  // What needs no turn: others may be inside a run.
  void Disturb(int what, gcap_thread_context_t* context) {
    gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
    if (what < 50) {
      const Outcome outcome(gcap_graph_manager_release(graphs, Below(kIds)));
      world_->tally.Expect(outcome.ok() || outcome.code == GCAP_NOT_FOUND || outcome.code == GCAP_FAILED_PRECONDITION,
                           outcome.message);
      if (outcome.ok()) ++world_->tally.releases;
    } else if (what < 100) {
      const Outcome outcome(gcap_graph_manager_recapture(graphs, Below(kIds)));
      world_->tally.Expect(outcome.ok() || outcome.code == GCAP_NOT_FOUND, outcome.message);
    }
  }

  void Compute(Place* place, gcap_thread_context_t* context) {
    const unsigned char value = static_cast<unsigned char>(Below(255));
    const std::vector<unsigned char> input(kBytes, value), poison(kBytes, 255);
    std::vector<unsigned char> output(kBytes);
    const int id = Below(kIds);
    gcap_graph_manager_t* graphs = gcap_thread_context_graphs(context);
    const cudaStream_t stream = gcap_stream_handle(gcap_thread_context_stream(context));
    place->turns.lock();
    Copy(place->input, input.data(), cudaMemcpyHostToDevice);
    Copy(place->output, poison.data(), cudaMemcpyHostToDevice);
    const bool captured = gcap_graph_manager_is_captured(graphs, id);
    // A thread that left a run open here had the turn before.
    const bool someone_leaves = world_->leaving > 0;
    Insist(
        &world_->tally,
        [&] {
          return RunPlain(
              graphs, id, stream,
              [](void* user, cudaStream_t on) { return static_cast<const Place*>(user)->Issue(on); }, place,
              /*synchronize=*/true);
        },
        [&](const Outcome& outcome) { return someone_leaves && outcome.code == GCAP_FAILED_PRECONDITION; });
    Copy(output.data(), place->output, cudaMemcpyDeviceToHost);
    place->turns.unlock();
    world_->tally.Expect(output == input, "graph id " + std::to_string(id) + ": byte 0 is " +
                                              std::to_string(output[0]) + ", expected " + std::to_string(value));
    ++world_->tally.runs;
    if (captured) ++world_->tally.replays;
  }

  void Copy(void* to, const void* from, cudaMemcpyKind kind) {
    CopyOnPool(&world_->tally, world_->pool, to, from, kBytes, kind);
  }

  World* const world_;
  std::vector<std::unique_ptr<Place>>* const places_;
  std::mt19937_64 random_;
};

// One thread after the other until no step is left.
void Chair(World* world, std::vector<std::unique_ptr<Place>>* places, uint64_t seed) {
  std::mt19937_64 random(seed);
  while (world->steps_left > 0 && !world->tally.wrong) {
    Place* left_in = nullptr;
    std::thread([&, thread_seed = random()] { left_in = Sitter(world, places, thread_seed).Run(); }).join();
    if (left_in == nullptr) continue;
    --world->leaving;
    left_in->set->Leave();
  }
}

TEST(SharedContextStress, RunsTakeTurnsWhileGraphsThreadsAndSetsComeAndGo) {
  const uint64_t seed = BeginWithSeed(30);
  const Silence silence;
  std::mt19937_64 random(seed);
  const std::map<std::string, size_t> before = Live();
  World world;
  world.steps_left = static_cast<int64_t>(FromEnvironment("GCAP_STRESS_STEPS", 5000));
  GCAP_ASSERT_OK(gcap_stream_pool_create(0, &world.pool));
  std::vector<std::unique_ptr<Place>> places;
  for (int i = 0; i < kSets; ++i) places.push_back(std::make_unique<Place>(&world));
  for (const gcap_sim_fault_t& fault : kFaults) gcap_sim_inject(&fault);

  std::vector<std::thread> chairs;
  for (int i = 0; i < kChairs; ++i) chairs.emplace_back(Chair, &world, &places, random());
  for (std::thread& chair : chairs) chair.join();

  gcap_sim_clear_faults();
  places.clear();
  GCAP_EXPECT_OK(gcap_stream_pool_destroy(world.pool));
  EXPECT_EQ(Live(), before);
  EXPECT_EQ(gcap_capture_gate_num_inside(), 0u);
  const Tally& tally = world.tally;
  std::printf(
      "%d threads, %d runs, %d replays, %d releases, %d evictions, %d runs left open, %d sets ended, "
      "%d failures\n",
      tally.threads.load(), tally.runs.load(), tally.replays.load(), tally.releases.load(), tally.evictions.load(),
      tally.abandoned.load(), tally.ends.load(), tally.failures.load());
  for (const std::atomic<int>* happened : {&tally.runs, &tally.replays, &tally.releases, &tally.evictions,
                                           &tally.abandoned, &tally.ends, &tally.failures}) {
    EXPECT_GT(*happened, 0);
  }
}

}  // namespace
}  // namespace testing
}  // namespace gcap
