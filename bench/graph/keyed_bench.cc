// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Host time of the look-up of a graph: of gcap_graph_manager_is_captured by id, of gcap_graph_manager_find by a key of
// 48 bytes, and of replays by id and by key, beside each other; and of replays of a graph with guards, one of several
// variants, beside one without. On the simulator the replays measure the simulator; the look-ups call no CUDA.

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

// A manager that captures each graph at its first run, a stream, and the byte that the graphs fill.
class Graphs {
 public:
  ~Graphs() {
    Check(gcap_graph_manager_destroy(manager_));
    CheckCuda(cudaFree(memory_));
    CheckCuda(cudaStreamDestroy(stream_));
  }
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;

  void Synchronize() const { CheckCuda(cudaStreamSynchronize(stream_)); }

 protected:
  Graphs() {
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    options.min_num_runs_before_capture = 0;
    Check(gcap_graph_manager_create(&options, &manager_));
    CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CheckCuda(cudaMalloc(&memory_, 1));
  }
  void RunWhole(gcap_run_t run) const {
    run.stream = stream_;
    run.synchronize = true;
    Check(gcap_graph_manager_run(manager_, &run));
  }

  gcap_graph_manager_t* manager_ = nullptr;
  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
};

// As many graphs by id and by key, of a fill each.
class KeyedGraphs : public Graphs {
 public:
  explicit KeyedGraphs(int count) {
    for (int i = 0; i < count; ++i) {
      const StepKey step = KeyOf(i);
      const gcap_graph_key_t key = {&step, sizeof(step), nullptr};
      Run(i, nullptr);
      Run(GCAP_GRAPH_ID_NONE, &key);
    }
  }
  gcap_graph_manager_t* manager() const { return manager_; }
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
    run.user = memory_;
    run.work = [](void* memory, const gcap_run_resources_t* resources) {
      return GCAP_CUDA(cudaMemsetAsync(memory, 1, 1, resources->cuda_stream));
    };
    RunWhole(run);
  }
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

// A step that depends on as many integers. Its variants differ by the last of them.
class GuardedGraphs : public Graphs {
 public:
  GuardedGraphs(int guards, int variants) : values_(static_cast<size_t>(guards)) {
    for (int variant = 0; variant < variants; ++variant) {
      Choose(variant);
      Run();
    }
  }
  void Choose(int variant) {
    if (!values_.empty()) values_.back() = variant;
  }
  void Replay() const {
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = 0;
    Check(gcap_graph_manager_replay(manager_, &run, /*out_replayed=*/nullptr));
  }
  uint64_t Captures() const {
    gcap_graph_info_t info;
    gcap_graph_manager_get_info(manager_, 0, &info);
    return info.captures;
  }

 private:
  gcap_status_t Issue(cudaStream_t stream) const {
    for (const int32_t& value : values_) {
      gcap_graph_guard_t guard;
      gcap_graph_guard_init(&guard);
      guard.address = &value;
      guard.bytes = sizeof(value);
      guard.low = guard.high = value;
      GCAP_RETURN_IF_ERROR(GCAP_GRAPH_GUARD(&guard));
    }
    return GCAP_CUDA(cudaMemsetAsync(memory_, 1, 1, stream));
  }
  void Run() {
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = 0;
    run.user = this;
    run.work = [](void* graphs, const gcap_run_resources_t* resources) {
      return static_cast<const GuardedGraphs*>(graphs)->Issue(resources->cuda_stream);
    };
    RunWhole(run);
  }

  std::vector<int32_t> values_;
};

// Arguments: guards, and variants that take turns.
void BM_ReplayGuarded(benchmark::State& state) {
  if (!HasDevice(state)) return;
  const int variants = static_cast<int>(state.range(1));
  const GuardedGraphs bare(0, 1);
  GuardedGraphs guarded(static_cast<int>(state.range(0)), variants);
  const uint64_t captures = guarded.Captures();
  gcap::bench::Samples bare_ns, guarded_ns;
  int turn = 0;
  for (auto _ : state) {
    bare_ns.Time([&] { bare.Replay(); });
    bare.Synchronize();
    turn = (turn + 1) % variants;
    guarded.Choose(turn);
    guarded_ns.Time([&] { guarded.Replay(); });
    guarded.Synchronize();
  }
  if (guarded.Captures() != captures) state.SkipWithError("a variant was captured again");
  state.counters["bare_ns"] = bare_ns.Median();
  state.counters["guarded_ns"] = guarded_ns.Median();
  state.counters["guards_ns"] = guarded_ns.Median() - bare_ns.Median();
}

BENCHMARK(BM_FindById)->ArgName("graphs")->Arg(1)->Arg(1000);
BENCHMARK(BM_FindByKey)->ArgName("graphs")->Arg(1)->Arg(1000);
BENCHMARK(BM_ReplayById)->ArgName("graphs")->Arg(1)->Arg(1000)->Iterations(1024);
BENCHMARK(BM_ReplayByKey)->ArgName("graphs")->Arg(1)->Arg(1000)->Iterations(1024);
BENCHMARK(BM_ReplayGuarded)
    ->ArgNames({"guards", "variants"})
    ->Args({1, 1})
    ->Args({8, 1})
    ->Args({8, 3})
    ->Iterations(1024);

}  // namespace

int main(int argc, char** argv) { return gcap::bench::Main(argc, argv); }
