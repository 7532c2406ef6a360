// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Host time of one replay: a bare cudaGraphLaunch, a launch through the graph manager, and one through an EP and a
// session, in turn within each iteration and on one stream, so that whatever disturbs the machine disturbs all alike.
// Each launch is timed by itself and the stream drained after it, outside the timed region: an executable whose last
// launch still runs holds the next one up, and the device's time would be measured.
//
// A repetition reports the median of its iterations for each way, less the clock's own cost, and the ratios to the bare
// launch. bench/report.py makes the table of bench/README.md of many repetitions. On the simulator the numbers measure
// the simulator.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "bench/graph/paired.h"
#include "gcap/graph.h"
#include "gcap/kit/ep_ops.h"
#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/session.h"
#include "gcap/stream.h"

namespace {

using gcap::bench::Check;
using gcap::bench::CheckCuda;
using gcap::bench::HasDevice;
using gcap::bench::Samples;
using gcap::bench::Work;

// The peer: one executable for each id, kept in an array, launched with nothing around it.
class BareGraphs {
 public:
  BareGraphs(const Work& work, int ids) : stream_(work.stream()), execs_(static_cast<size_t>(ids)) {
    for (cudaGraphExec_t& exec : execs_) {
      cudaGraph_t graph = nullptr;
      CheckCuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
      work.Issue();
      CheckCuda(cudaStreamEndCapture(stream_, &graph));
      CheckCuda(cudaGraphInstantiate(&exec, graph, 0));
      CheckCuda(cudaGraphDestroy(graph));
      CheckCuda(cudaGraphLaunch(exec, stream_));  // the first launch uploads; the manager's was at its capture
    }
    CheckCuda(cudaStreamSynchronize(stream_));
  }
  ~BareGraphs() {
    for (cudaGraphExec_t exec : execs_) CheckCuda(cudaGraphExecDestroy(exec));
  }
  BareGraphs(const BareGraphs&) = delete;
  BareGraphs& operator=(const BareGraphs&) = delete;
  void Launch(int id) const { CheckCuda(cudaGraphLaunch(execs_[static_cast<size_t>(id)], stream_)); }

 private:
  cudaStream_t stream_;
  std::vector<cudaGraphExec_t> execs_;
};

class ManagedGraphs {
 public:
  ManagedGraphs(const Work& work, int ids) {
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    options.min_num_runs_before_capture = 0;
    Check(gcap_graph_manager_create(&options, &manager_));
    for (int id = 0; id < ids; ++id) {
      gcap_run_t run;
      gcap_run_init(&run);
      run.id = id;
      run.stream = work.stream();
      run.synchronize = true;
      gcap_graph_run_kind_t kind;
      Check(gcap_graph_manager_begin_run(manager_, &run, &kind, /*out_addresses=*/nullptr));
      work.Issue();
      Check(gcap_graph_manager_end_run(manager_, &run, nullptr));
    }
  }
  ~ManagedGraphs() { Check(gcap_graph_manager_destroy(manager_)); }
  ManagedGraphs(const ManagedGraphs&) = delete;
  ManagedGraphs& operator=(const ManagedGraphs&) = delete;
  void Launch(int id) const {
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = id;
    Check(gcap_graph_manager_replay(manager_, &run, /*out_replayed=*/nullptr));
  }

 private:
  gcap_graph_manager_t* manager_ = nullptr;
};

// The kernel of "Relus" issues as many tiny kernels over its output as `nodes` says.
gcap_status_t ComputeRelus(void* nodes, const gcap_kernel_context_t* context) {
  const gcap_tensor_t x = {context->outputs[0].data, GCAP_DTYPE_F32, 1, {1}};
  for (int i = 0; i < *static_cast<const int*>(nodes); ++i) {
    GCAP_RETURN_IF_ERROR(gcap_unary(context->resources.stream, GCAP_UNARY_RELU, &x, &x));
  }
  return nullptr;
}

// An EP with that one op.
gcap_ep_t* CreateReluEp(int* nodes) {
  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  options.graph.min_num_runs_before_capture = 1;
  gcap_ep_ops_t ops = {};
  ops.struct_size = sizeof(gcap_ep_ops_t);
  ops.name = "relus";
  ops.self = nodes;
  ops.supports = [](void*, const gcap_model_t*, const gcap_node_t*) { return true; };
  ops.create_kernel = [](void* nodes, const gcap_model_t*, const gcap_node_t*, gcap_kernel_t* out) -> gcap_status_t {
    *out = {nodes, ComputeRelus, nullptr, /*not_capturable=*/false};
    return nullptr;
  };
  Check(gcap_runtime_create(&options, &ops.runtime));
  gcap_ep_t* ep = nullptr;
  Check(gcap_ep_create(&ops, &ep));
  return ep;
}

// A model of one "Relus" node on the EP above, warmed up.
class SessionGraph {
 public:
  explicit SessionGraph(int nodes) : nodes_(nodes), ep_(CreateReluEp(&nodes_)) {
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
    const gcap_model_t model = {&value, 1, &node, 1, nullptr, 0, &out_index, 1, nullptr, 0};
    Check(gcap_session_create(&model, &ep_, 1, nullptr, &session_));
    out_.rank = 1;
    out_.shape[0] = 1;
    CheckCuda(cudaMalloc(&out_.data, sizeof(float)));
    CheckCuda(cudaMemset(out_.data, 0, sizeof(float)));
    CheckCuda(cudaDeviceSynchronize());  // a fill holds neither the host nor the session's stream
    gcap_run_options_init(&options_);
    const gcap_warm_up_run_t run = {&options_, nullptr, &out_};
    Check(gcap_session_warm_up(session_, &run, 1, nullptr, nullptr));
    options_.synchronize = false;
    gcap_run_resources_t resources;
    Check(gcap_runtime_get_resources(gcap_ep_runtime(ep_), &resources));
    stream_ = resources.stream;
  }
  ~SessionGraph() {
    Check(gcap_session_destroy(session_));
    Check(gcap_ep_destroy(ep_));
    CheckCuda(cudaFree(out_.data));
  }
  SessionGraph(const SessionGraph&) = delete;
  SessionGraph& operator=(const SessionGraph&) = delete;
  gcap_stream_t* stream() const { return stream_; }
  void Launch() const { Check(gcap_session_run(session_, &options_, nullptr, &out_)); }

 private:
  int nodes_;
  gcap_ep_t* ep_;
  gcap_session_t* session_ = nullptr;
  gcap_tensor_t out_ = {};
  gcap_run_options_t options_ = {};
  gcap_stream_t* stream_ = nullptr;
};

// Arguments: nodes of a graph, ids kept. An iteration launches the next id in each way.
void BM_Replay(benchmark::State& state) {
  if (!HasDevice(state)) return;
  const int nodes = static_cast<int>(state.range(0));
  const int ids = static_cast<int>(state.range(1));
  const SessionGraph session(nodes);
  const Work work(nodes, session.stream());
  const BareGraphs bare(work, ids);
  const ManagedGraphs managed(work, ids);
  Samples bare_ns, managed_ns, session_ns;
  int id = 0;
  for (auto _ : state) {
    id = (id + 1) % ids;
    bare_ns.Time([&] { bare.Launch(id); });
    CheckCuda(cudaStreamSynchronize(work.stream()));
    managed_ns.Time([&] { managed.Launch(id); });
    CheckCuda(cudaStreamSynchronize(work.stream()));
    session_ns.Time([&] { session.Launch(); });
    CheckCuda(cudaStreamSynchronize(work.stream()));
  }
  state.counters["bare_ns"] = bare_ns.Median();
  state.counters["manager_ns"] = managed_ns.Median();
  state.counters["session_ns"] = session_ns.Median();
  state.counters["manager_ratio"] = managed_ns.Median() / bare_ns.Median();
  state.counters["session_ratio"] = session_ns.Median() / bare_ns.Median();
}

// Iterations are fixed: by time, Google Benchmark would count the launches alone and run the device's work for hours.
BENCHMARK(BM_Replay)->ArgNames({"nodes", "ids"})->Args({1, 1})->Args({10, 1})->Args({100, 1})->Iterations(200);
BENCHMARK(BM_Replay)->ArgNames({"nodes", "ids"})->Args({1000, 1})->Iterations(50);
BENCHMARK(BM_Replay)->ArgNames({"nodes", "ids"})->Args({5000, 1})->Iterations(20);
BENCHMARK(BM_Replay)->ArgNames({"nodes", "ids"})->Args({1, 16})->Args({1, 128})->Args({1, 1024})->Iterations(1024);

}  // namespace

int main(int argc, char** argv) { return gcap::bench::Main(argc, argv); }
