// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Host time of one replay: a bare cudaGraphLaunch, then the same executable's launch through the graph manager and
// through an EP and a session. Each iteration times one launch and then drains the stream outside the timed region: an
// executable whose last launch still runs holds the next one up, and the device's time would be measured. The clock's
// own cost, some 20 to 40 ns, is in every figure.
//
// On a GPU the ratios are what counts (see docs/gpu_runs.md). On the simulator the numbers measure the simulator.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "gcap/ep_ops.h"
#include "gcap/graph.h"
#include "gcap/ops/kernels.h"
#include "gcap/session.h"
#include "gcap/stream.h"

namespace {

void CheckCuda(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "replay_bench: %s\n", cudaGetErrorString(error));
  exit(1);
}

void Check(gcap_status_t status) {
  if (status == nullptr) return;
  fprintf(stderr, "replay_bench: %s\n", gcap_status_message(status));
  exit(1);
}

bool HasDevice(benchmark::State& state) {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return true;
  state.SkipWithError("no CUDA device");
  return false;
}

// A stream, some device memory, and the work to capture: `nodes` tiny kernels in a row. Kernels, since the driver
// launches a graph of them as a whole, which it does not do for other nodes.
class Work {
 public:
  explicit Work(int nodes) : nodes_(nodes) {
    Check(gcap_stream_create(0, &stream_));
    CheckCuda(cudaMalloc(reinterpret_cast<void**>(&memory_), sizeof(float)));
    CheckCuda(cudaMemsetAsync(memory_, 0, sizeof(float), stream()));
  }
  ~Work() {
    Check(gcap_stream_destroy(stream_));
    CheckCuda(cudaFree(memory_));
  }
  cudaStream_t stream() const { return gcap_stream_handle(stream_); }
  void Issue() const {
    for (int i = 0; i < nodes_; ++i) Check(gcap_relu_f32(stream_, memory_, memory_, 1));
  }

 private:
  int nodes_;
  gcap_stream_t* stream_ = nullptr;
  float* memory_ = nullptr;
};

// Times `launch` once an iteration.
template <typename Launch>
void TimeLaunches(benchmark::State& state, cudaStream_t stream, Launch launch) {
  using Clock = std::chrono::steady_clock;
  for (auto _ : state) {
    const Clock::time_point begin = Clock::now();
    launch();
    state.SetIterationTime(std::chrono::duration<double>(Clock::now() - begin).count());
    CheckCuda(cudaStreamSynchronize(stream));
  }
}

void BM_BareLaunch(benchmark::State& state) {
  if (!HasDevice(state)) return;
  Work work(static_cast<int>(state.range(0)));
  CheckCuda(cudaStreamBeginCapture(work.stream(), cudaStreamCaptureModeThreadLocal));
  work.Issue();
  cudaGraph_t graph = nullptr;
  CheckCuda(cudaStreamEndCapture(work.stream(), &graph));
  cudaGraphExec_t exec = nullptr;
  CheckCuda(cudaGraphInstantiate(&exec, graph, 0));
  // The first launch uploads the graph; the manager's and the session's were at their captures.
  CheckCuda(cudaGraphLaunch(exec, work.stream()));
  CheckCuda(cudaStreamSynchronize(work.stream()));
  TimeLaunches(state, work.stream(), [&] { CheckCuda(cudaGraphLaunch(exec, work.stream())); });
  CheckCuda(cudaGraphExecDestroy(exec));
  CheckCuda(cudaGraphDestroy(graph));
}

void BM_ManagerReplay(benchmark::State& state) {
  if (!HasDevice(state)) return;
  Work work(static_cast<int>(state.range(0)));
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  gcap_graph_manager_t* manager = nullptr;
  Check(gcap_graph_manager_create(&options, &manager));
  gcap_graph_run_kind_t kind;
  Check(gcap_graph_manager_begin_run(manager, 0, work.stream(), &kind));
  work.Issue();
  Check(gcap_graph_manager_end_run(manager, nullptr, true));
  TimeLaunches(state, work.stream(), [&] { Check(gcap_graph_manager_replay(manager, 0, false)); });
  Check(gcap_graph_manager_destroy(manager));
}

// An EP with one op, "Relus", whose kernel issues `nodes` tiny kernels over its output.
struct ReluEp {
  gcap_ep_runtime_t* runtime;
  int nodes;
};

gcap_status_t ComputeRelus(void* self, const gcap_kernel_context_t* context) {
  auto* data = static_cast<float*>(context->outputs[0].data);
  for (int i = 0; i < static_cast<ReluEp*>(self)->nodes; ++i) {
    GCAP_RETURN_IF_ERROR(gcap_relu_f32(context->resources.stream, data, data, 1));
  }
  return nullptr;
}

gcap_ep_runtime_t* RuntimeOf(void* self) { return static_cast<ReluEp*>(self)->runtime; }

gcap_ep_t* CreateReluEp(ReluEp* self) {
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  options.min_num_runs_before_capture = 1;
  Check(gcap_ep_runtime_create(&options, &self->runtime));
  gcap_ep_ops_t ops = {};
  ops.struct_version = GCAP_EP_OPS_VERSION;
  ops.supports_concurrent_runs = true;
  ops.name = "relus";
  ops.self = self;
  ops.supports = [](void*, const gcap_model_t*, const gcap_node_t*) { return true; };
  ops.create_kernel = [](void* ep, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t* out) -> gcap_status_t {
    *out = {ep, ComputeRelus, [](void*) {}};
    return nullptr;
  };
  ops.get_run_resources = [](void* ep, gcap_run_resources_t* out) {
    return gcap_ep_runtime_get_run_resources(RuntimeOf(ep), out);
  };
  ops.synchronize = [](void* ep) { return gcap_ep_runtime_synchronize(RuntimeOf(ep)); };
  ops.run_start = [](void* ep, int id) { return gcap_ep_runtime_run_start(RuntimeOf(ep), id); };
  ops.run_end = [](void* ep, int, gcap_status_t run_status, bool synchronize) {
    return gcap_ep_runtime_run_end(RuntimeOf(ep), run_status, synchronize);
  };
  ops.is_graph_capture_enabled = [](const void*) { return true; };
  ops.is_graph_captured = [](void* ep, int id) { return gcap_ep_runtime_is_graph_captured(RuntimeOf(ep), id); };
  ops.replay_graph = [](void* ep, int id, bool synchronize, bool* out_replayed) {
    return gcap_ep_runtime_replay_graph(RuntimeOf(ep), id, synchronize, out_replayed);
  };
  ops.destroy = [](void* ep) { return gcap_ep_runtime_destroy(RuntimeOf(ep)); };
  gcap_ep_t* ep = nullptr;
  Check(gcap_ep_create(&ops, &ep));
  return ep;
}

void BM_SessionReplay(benchmark::State& state) {
  if (!HasDevice(state)) return;
  ReluEp self = {nullptr, static_cast<int>(state.range(0))};
  gcap_ep_t* ep = CreateReluEp(&self);
  gcap_value_t value = {};
  value.name = "out";
  value.rank = 1;
  value.shape[0] = 1;
  const int out_index = 0;
  gcap_node_t node = {};
  node.op_type = "Relus";
  node.name = "relus";
  node.outputs = &out_index;
  node.num_outputs = 1;
  gcap_model_t model = {&value, 1, &node, 1, nullptr, 0, &out_index, 1};
  gcap_session_t* session = nullptr;
  Check(gcap_session_create(&model, &ep, 1, &session));
  gcap_tensor_t out = {};
  out.rank = 1;
  out.shape[0] = 1;
  CheckCuda(cudaMalloc(&out.data, sizeof(float)));
  CheckCuda(cudaMemset(out.data, 0, sizeof(float)));
  CheckCuda(cudaDeviceSynchronize());  // a fill holds neither the host nor the session's stream
  gcap_run_options_t options;
  gcap_run_options_init(&options);
  Check(gcap_session_warm_up(session, &options, nullptr, &out));
  options.synchronize = false;
  gcap_run_resources_t resources;
  Check(gcap_ep_get_run_resources(ep, &resources));
  TimeLaunches(state, gcap_stream_handle(resources.stream),
               [&] { Check(gcap_session_run(session, &options, nullptr, &out)); });
  Check(gcap_ep_synchronize(ep));
  Check(gcap_session_destroy(session));
  Check(gcap_ep_destroy(ep));
  CheckCuda(cudaFree(out.data));
}

// Fixed iterations: by time, Google Benchmark would count the launches alone and run the undone device work for hours.
BENCHMARK(BM_BareLaunch)->Arg(1)->Arg(100)->Arg(1000)->Iterations(200)->UseManualTime();
BENCHMARK(BM_ManagerReplay)->Arg(1)->Arg(100)->Arg(1000)->Iterations(200)->UseManualTime();
BENCHMARK(BM_SessionReplay)->Arg(1)->Arg(100)->Arg(1000)->Iterations(200)->UseManualTime();

}  // namespace

BENCHMARK_MAIN();
