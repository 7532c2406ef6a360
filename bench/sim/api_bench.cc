// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// How fast the simulator is: API calls a second, printed as items_per_second, with all checks on and with all off
// (checks:1 and checks:0), and with 1, 100 and 10,000 live streams, events or allocations, whose number should not
// matter. Every call counts as one item, whatever it does; the device's work is as small as it can be, so that the
// calls are what is measured.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gcap_sim.h"

namespace {

constexpr size_t kBytes = 256;
// Iterations between two synchronisations, so that queues stay short, as they do in a program.
constexpr int kBatch = 64;

void Check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "api_bench: %s\n", cudaGetErrorString(error));
  exit(1);
}

// --- A kernel: y[0] = x[0] ------------------------------------------------------------------------------------------

void CopyOne(const float*, float*) { abort(); }  // its address is the kernel's handle

void RunCopyOne(const gcap_sim_launch_t*, void* const* args) {
  **static_cast<float**>(args[1]) = **static_cast<const float**>(args[0]);
}

size_t CopyOneAccesses(const gcap_sim_launch_t*, void* const* args, gcap_sim_access_t* out, size_t capacity) {
  const gcap_sim_access_t all[] = {{*static_cast<const float**>(args[0]), sizeof(float), 0},
                                   {*static_cast<float**>(args[1]), sizeof(float), 1}};
  for (size_t i = 0; i < 2 && i < capacity; ++i) out[i] = all[i];
  return 2;
}

const void* CopyOneHandle() { return reinterpret_cast<const void*>(&CopyOne); }

void RegisterCopyOne() {
  static const size_t arg_bytes[] = {sizeof(float*), sizeof(float*)};
  const gcap_sim_kernel_t kernel = {CopyOneHandle(), "copy_one", arg_bytes, 2, RunCopyOne, CopyOneAccesses};
  gcap_sim_register_kernel(&kernel);
}

void Launch(float* x, float* y, cudaStream_t stream) {
  void* args[] = {&x, &y};
  Check(cudaLaunchKernel(CopyOneHandle(), {1, 1, 1}, {1, 1, 1}, args, 0, stream));
}

// --- What is alive --------------------------------------------------------------------------------------------------

// Two allocations, a stream and an event that work goes round in; a benchmark asks for many of one of them.
class World {
 public:
  World(benchmark::State& state, size_t streams, size_t events, size_t pairs)
      : streams_(streams), events_(events), pairs_(pairs) {
    gcap_sim_set_action(GCAP_SIM_CHECK_COUNT, state.range(0) ? GCAP_SIM_ACTION_DEFAULT : GCAP_SIM_ACTION_OFF);
    for (cudaStream_t& stream : streams_) Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (cudaEvent_t& event : events_) Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (Pair& pair : pairs_) {
      Check(cudaMalloc(reinterpret_cast<void**>(&pair.x), kBytes));
      Check(cudaMalloc(reinterpret_cast<void**>(&pair.y), kBytes));
      Check(cudaMemset(pair.x, 0, kBytes));
      Check(cudaMemset(pair.y, 0, kBytes));
    }
    Check(cudaDeviceSynchronize());
    calls_ = gcap_sim_calls(nullptr);
  }
  // Ends the measurement: counts the calls since the constructor.
  void Count(benchmark::State& state) const {
    state.SetItemsProcessed(static_cast<int64_t>(gcap_sim_calls(nullptr) - calls_));
  }
  ~World() {
    for (const Pair& pair : pairs_) {
      Check(cudaFree(pair.x));
      Check(cudaFree(pair.y));
    }
    for (cudaEvent_t event : events_) Check(cudaEventDestroy(event));
    for (cudaStream_t stream : streams_) Check(cudaStreamDestroy(stream));
  }

  struct Pair {
    float* x = nullptr;
    float* y = nullptr;
  };
  cudaStream_t stream(size_t i) const { return streams_[i % streams_.size()]; }
  cudaEvent_t event(size_t i) const { return events_[i % events_.size()]; }
  const Pair& pair(size_t i) const { return pairs_[i % pairs_.size()]; }

 private:
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::vector<Pair> pairs_;
  uint64_t calls_ = 0;
};

// One iteration: fill, copy and compute on one stream, then an event that the next stream waits for.
void IssueWork(benchmark::State& state, const World& world) {
  size_t i = 0;
  for (auto _ : state) {
    const World::Pair& pair = world.pair(i);
    cudaStream_t stream = world.stream(i);
    Check(cudaMemsetAsync(pair.x, 1, kBytes, stream));
    Check(cudaMemcpyAsync(pair.y, pair.x, kBytes, cudaMemcpyDeviceToDevice, stream));
    Launch(pair.x, pair.y, stream);
    Check(cudaEventRecord(world.event(i), stream));
    Check(cudaStreamWaitEvent(world.stream(i + 1), world.event(i), 0));
    if (++i % kBatch == 0) Check(cudaDeviceSynchronize());
  }
  Check(cudaDeviceSynchronize());
  world.Count(state);
}

void BM_Work(benchmark::State& state) {
  const World world(state, 1, 1, 1);
  IssueWork(state, world);
}

void BM_WorkOfManyStreams(benchmark::State& state) {
  const World world(state, static_cast<size_t>(state.range(1)), 1, 1);
  IssueWork(state, world);
}

void BM_WorkOfManyEvents(benchmark::State& state) {
  const World world(state, 1, static_cast<size_t>(state.range(1)), 1);
  IssueWork(state, world);
}

void BM_WorkOfManyAllocations(benchmark::State& state) {
  const World world(state, 1, 1, static_cast<size_t>(state.range(1)) / 2 + 1);
  IssueWork(state, world);
}

// One iteration: scratch from the stream's pool, used and given back.
void BM_ScratchFromPool(benchmark::State& state) {
  const World world(state, 1, 1, static_cast<size_t>(state.range(1)) / 2 + 1);
  int i = 0;
  for (auto _ : state) {
    void* scratch = nullptr;
    Check(cudaMallocAsync(&scratch, kBytes, world.stream(0)));
    Check(cudaMemsetAsync(scratch, 1, kBytes, world.stream(0)));
    Check(cudaFreeAsync(scratch, world.stream(0)));
    if (++i % kBatch == 0) Check(cudaStreamSynchronize(world.stream(0)));
  }
  Check(cudaDeviceSynchronize());
  world.Count(state);
}

// One iteration: a capture of ten kernels and what a replay needs, thrown away after one launch.
void BM_CaptureInstantiateLaunch(benchmark::State& state) {
  const World world(state, 1, 1, 1);
  const World::Pair& pair = world.pair(0);
  cudaStream_t stream = world.stream(0);
  for (auto _ : state) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int node = 0; node < 10; ++node) Launch(pair.x, pair.y, stream);
    Check(cudaStreamEndCapture(stream, &graph));
    Check(cudaGraphInstantiate(&exec, graph, 0));
    Check(cudaGraphLaunch(exec, stream));
    Check(cudaStreamSynchronize(stream));
    Check(cudaGraphExecDestroy(exec));
    Check(cudaGraphDestroy(graph));
  }
  world.Count(state);
}

// One iteration: a launch of a graph of `nodes` kernels; the items are kernels, since the call is one.
void BM_ReplayedKernels(benchmark::State& state) {
  const World world(state, 1, 1, 1);
  const int64_t nodes = state.range(1);
  cudaStream_t stream = world.stream(0);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int64_t node = 0; node < nodes; ++node) Launch(world.pair(0).x, world.pair(0).y, stream);
  Check(cudaStreamEndCapture(stream, &graph));
  Check(cudaGraphInstantiate(&exec, graph, 0));
  for (auto _ : state) {
    Check(cudaGraphLaunch(exec, stream));
    Check(cudaStreamSynchronize(stream));
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * nodes);
  Check(cudaGraphExecDestroy(exec));
  Check(cudaGraphDestroy(graph));
}

void Checks(benchmark::internal::Benchmark* bench) { bench->ArgName("checks")->Arg(0)->Arg(1); }

void ChecksAndLive(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"checks", "live"})->ArgsProduct({{0, 1}, {1, 100, 10000}});
}

BENCHMARK(BM_Work)->Apply(Checks);
BENCHMARK(BM_WorkOfManyStreams)->Apply(ChecksAndLive);
BENCHMARK(BM_WorkOfManyEvents)->Apply(ChecksAndLive);
BENCHMARK(BM_WorkOfManyAllocations)->Apply(ChecksAndLive);
BENCHMARK(BM_ScratchFromPool)->Apply(ChecksAndLive);
BENCHMARK(BM_CaptureInstantiateLaunch)->Apply(Checks);
BENCHMARK(BM_ReplayedKernels)->ArgNames({"checks", "nodes"})->ArgsProduct({{0, 1}, {100}});

}  // namespace

int main(int argc, char** argv) {
  RegisterCopyOne();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
