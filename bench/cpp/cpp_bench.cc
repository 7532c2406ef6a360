// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The same step by gcap's C functions and by gcap.hpp:
//   BM_Pair  an allocation of scratch and its free, by the stream that used the memory last: `c` and `cpp`
//   BM_Run   a replay by a whole run: a function pointer and its argument, or a lambda that would be the work. Both
//            ways in each iteration, timed by themselves as in bench/graph/replay_bench.cc
// Time is noise where the difference is none, so instructions are counted too; each benchmark has as many iterations as
// its number says:
//     valgrind --tool=callgrind --toggle-collect='*PairByC*' cpp_bench --benchmark_filter=BM_Pair/c/

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include "bench/graph/paired.h"
#include "gcap/gcap.hpp"

namespace {

using gcap::bench::Check;
using gcap::bench::CheckCuda;
using gcap::bench::HasDevice;
using gcap::bench::Samples;

constexpr size_t kBytes = 4096;
constexpr int kId = 0;

struct Arena {
  gcap::stream stream = gcap::own<gcap_stream_create>(0).value_or_throw();
  gcap::allocator device = gcap::own<gcap_device_allocator_create>(0).value_or_throw();
  gcap::scratch scratch = gcap::own<gcap_scratch_create>(device.get(), nullptr).value_or_throw();
};

__attribute__((noinline)) void PairByC(gcap_scratch_t* scratch, gcap_stream_t* stream) {
  void* block = nullptr;
  gcap_status_t status = gcap_scratch_alloc(scratch, kBytes, stream, &block);
  if (status != nullptr) Check(status);
  benchmark::DoNotOptimize(block);
  status = gcap_scratch_free(scratch, block);
  if (status != nullptr) Check(status);
}

__attribute__((noinline)) void PairByCpp(gcap_scratch_t* scratch, gcap_stream_t* stream) {
  auto block = gcap::own<gcap_scratch_alloc>(scratch, kBytes, stream).value_or_throw();
  benchmark::DoNotOptimize(block.get());
}

template <void (*pair)(gcap_scratch_t*, gcap_stream_t*)>
void BM_Pair(benchmark::State& state) {
  if (!HasDevice(state)) return;
  const Arena arena;
  for (auto _ : state) pair(arena.scratch.get(), arena.stream.get());
}

gcap_status_t Fill(void* memory, const gcap_run_resources_t* resources) {
  return GCAP_CUDA(cudaMemsetAsync(memory, 1, 4, resources->cuda_stream));
}

gcap_run_t RunOf(cudaStream_t stream, void* memory) {
  gcap_run_t run;
  gcap_run_init(&run);
  run.id = kId;
  run.stream = stream;
  run.work = Fill;
  run.user = memory;
  return run;
}

__attribute__((noinline)) void RunByC(gcap_graph_manager_t* graphs, cudaStream_t stream, void* memory) {
  const gcap_run_t run = RunOf(stream, memory);
  gcap_status_t status = gcap_graph_manager_run(graphs, &run);
  if (status != nullptr) Check(status);
}

__attribute__((noinline)) void RunByCpp(gcap_graph_manager_t* graphs, cudaStream_t stream, void* memory) {
  const auto work = [memory](const gcap_run_resources_t& resources) { return Fill(memory, &resources); };
  gcap::check(gcap::run(graphs, {kId, stream}, work));
}

void BM_Run(benchmark::State& state) {
  if (!HasDevice(state)) return;
  const Arena arena;
  const cudaStream_t stream = gcap_stream_handle(arena.stream.get());
  const auto memory = gcap::own<gcap_allocator_alloc>(arena.device.get(), size_t{4}).value_or_throw();
  const auto graphs = gcap::own<gcap_graph_manager_create>(nullptr).value_or_throw();
  while (!gcap_graph_manager_is_captured(graphs.get(), kId)) {
    const gcap_run_t run = RunOf(stream, memory.get());
    Check(gcap_graph_manager_run(graphs.get(), &run));
  }
  CheckCuda(cudaStreamSynchronize(stream));
  Samples c_ns, cpp_ns;
  for (auto _ : state) {
    c_ns.Time([&] { RunByC(graphs.get(), stream, memory.get()); });
    CheckCuda(cudaStreamSynchronize(stream));
    cpp_ns.Time([&] { RunByCpp(graphs.get(), stream, memory.get()); });
    CheckCuda(cudaStreamSynchronize(stream));
  }
  state.counters["c_ns"] = c_ns.Median();
  state.counters["cpp_ns"] = cpp_ns.Median();
  state.counters["cpp_ratio"] = cpp_ns.Median() / c_ns.Median();
}

BENCHMARK_TEMPLATE(BM_Pair, PairByC)->Name("BM_Pair/c")->Iterations(100000);
BENCHMARK_TEMPLATE(BM_Pair, PairByCpp)->Name("BM_Pair/cpp")->Iterations(100000);
BENCHMARK(BM_Run)->Iterations(1000);

}  // namespace

int main(int argc, char** argv) { return gcap::bench::Main(argc, argv); }
