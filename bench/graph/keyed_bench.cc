// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Host time of the look-up of a graph: of gcap_graph_manager_is_captured by id, of gcap_graph_manager_find by a key of
// 48 bytes, and of replays by id and by key, beside each other. On the simulator the replays measure the simulator; the
// look-ups call no CUDA.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "bench/graph/paired.h"
#include "gcap/graph.h"

namespace {

using gcap::bench::Check;
using gcap::bench::CheckCuda;
using gcap::bench::HasDevice;

// A key as a decoder has one.
struct StepKey {
  uint64_t model, layout, cache, flags, mask;
  uint32_t batch, rank;
};
static_assert(sizeof(StepKey) == 48, "the size that the limit is stated for");

StepKey KeyOf(int step) { return {1, 2, 3, 4, 5, static_cast<uint32_t>(step), 7}; }

// As many graphs by id and by key, of a fill each.
class KeyedGraphs {
 public:
  explicit KeyedGraphs(int count) {
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    options.min_num_runs_before_capture = 0;
    Check(gcap_graph_manager_create(&options, &manager_));
    CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CheckCuda(cudaMalloc(&memory_, 1));
    for (int i = 0; i < count; ++i) {
      const StepKey step = KeyOf(i);
      const gcap_graph_key_t key = {&step, sizeof(step), nullptr};
      Run(i, nullptr);
      Run(GCAP_GRAPH_ID_NONE, &key);
    }
  }
  ~KeyedGraphs() {
    Check(gcap_graph_manager_destroy(manager_));
    CheckCuda(cudaFree(memory_));
    CheckCuda(cudaStreamDestroy(stream_));
  }
  KeyedGraphs(const KeyedGraphs&) = delete;
  KeyedGraphs& operator=(const KeyedGraphs&) = delete;

  gcap_graph_manager_t* manager() const { return manager_; }
  void Synchronize() const { CheckCuda(cudaStreamSynchronize(stream_)); }
  void Replay(int id, const gcap_graph_key_t* key) const {
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = id;
    run.key = key;
    Check(gcap_graph_manager_replay(manager_, &run, /*out_replayed=*/nullptr));
  }

 private:
  void Run(int id, const gcap_graph_key_t* key) {
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = id;
    run.key = key;
    run.stream = stream_;
    run.synchronize = true;
    run.user = memory_;
    run.work = [](void* memory, const gcap_run_resources_t* resources) {
      return GCAP_CUDA(cudaMemsetAsync(memory, 1, 1, resources->cuda_stream));
    };
    Check(gcap_graph_manager_run(manager_, &run));
  }

  gcap_graph_manager_t* manager_ = nullptr;
  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
};

// Arguments: graphs of each kind. The key is written anew each time, as an engine does.
void BM_FindById(benchmark::State& state) {
  if (!HasDevice(state)) return;
  const int count = static_cast<int>(state.range(0));
  const KeyedGraphs graphs(count);
  int i = 0;
  for (auto _ : state) {
    i = (i + 1) % count;
    benchmark::DoNotOptimize(gcap_graph_manager_is_captured(graphs.manager(), i));
  }
}

void BM_FindByKey(benchmark::State& state) {
  if (!HasDevice(state)) return;
  const int count = static_cast<int>(state.range(0));
  const KeyedGraphs graphs(count);
  int i = 0, id = 0;
  for (auto _ : state) {
    i = (i + 1) % count;
    const StepKey step = KeyOf(i);
    const gcap_graph_key_t key = {&step, sizeof(step), nullptr};
    Check(gcap_graph_manager_find(graphs.manager(), &key, &id));
    benchmark::DoNotOptimize(id);
  }
}

void BM_ReplayById(benchmark::State& state) {
  if (!HasDevice(state)) return;
  const int count = static_cast<int>(state.range(0));
  const KeyedGraphs graphs(count);
  int i = 0;
  gcap::bench::Samples ns;
  for (auto _ : state) {
    i = (i + 1) % count;
    ns.Time([&] { graphs.Replay(i, nullptr); });
    graphs.Synchronize();
  }
  state.counters["ns"] = ns.Median();
}

void BM_ReplayByKey(benchmark::State& state) {
  if (!HasDevice(state)) return;
  const int count = static_cast<int>(state.range(0));
  const KeyedGraphs graphs(count);
  int i = 0;
  gcap::bench::Samples ns;
  for (auto _ : state) {
    i = (i + 1) % count;
    const StepKey step = KeyOf(i);
    const gcap_graph_key_t key = {&step, sizeof(step), nullptr};
    ns.Time([&] { graphs.Replay(GCAP_GRAPH_ID_NONE, &key); });
    graphs.Synchronize();
  }
  state.counters["ns"] = ns.Median();
}

BENCHMARK(BM_FindById)->ArgName("graphs")->Arg(1)->Arg(1000);
BENCHMARK(BM_FindByKey)->ArgName("graphs")->Arg(1)->Arg(1000);
BENCHMARK(BM_ReplayById)->ArgName("graphs")->Arg(1)->Arg(1000)->Iterations(1024);
BENCHMARK(BM_ReplayByKey)->ArgName("graphs")->Arg(1)->Arg(1000)->Iterations(1024);

}  // namespace

int main(int argc, char** argv) { return gcap::bench::Main(argc, argv); }
