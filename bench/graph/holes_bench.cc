// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Host time of a replay with holes whose functions do nothing: of `holes` + 1 segments of one tiny kernel each, beside
// as many bare cudaGraphLaunch calls, one graph of all kernels through the manager, and the work issued eagerly. All
// are timed in turn in each iteration, and the stream is drained between, outside of the timed region.
//
// A repetition reports the medians of its iterations, less the clock's own cost, and the ratio to the bare launches,
// which is to be 1.02 at most. On the simulator the numbers measure the simulator.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <vector>

#include "bench/graph/paired.h"
#include "gcap/graph.h"
#include "gcap/graph_holes.h"
#include "gcap/stream.h"

namespace {

using gcap::bench::Check;
using gcap::bench::CheckCuda;
using gcap::bench::HasDevice;
using gcap::bench::Samples;
using gcap::bench::Work;

enum Ids { kWithHoles = 0, kWithoutHoles };

gcap_status_t DoNothing(void*, const gcap_run_resources_t*) { return nullptr; }

// A kernel, and a hole behind each but the last.
struct Steps {
  const Work* work;
  int holes;

  static gcap_status_t Issue(void* user, const gcap_run_resources_t* resources) {
    const Steps* steps = static_cast<const Steps*>(user);
    gcap_graph_hole_t hole;
    gcap_graph_hole_init(&hole);
    hole.work = DoNothing;
    for (int i = 0; i < steps->holes; ++i) {
      steps->work->Issue();
      GCAP_RETURN_IF_ERROR(gcap_graph_hole_issue(resources, &hole));
    }
    steps->work->Issue();
    return nullptr;
  }
};

// The same without holes: one graph.
gcap_status_t IssueAll(void* user, const gcap_run_resources_t*) {
  const Steps* steps = static_cast<const Steps*>(user);
  for (int i = 0; i <= steps->holes; ++i) steps->work->Issue();
  return nullptr;
}

class Graphs {
 public:
  explicit Graphs(Steps* steps) {
    gcap_graph_manager_options_t options;
    gcap_graph_manager_options_init(&options);
    options.min_num_runs_before_capture = 0;
    Check(gcap_graph_manager_create(&options, &manager_));
    Capture(kWithHoles, Steps::Issue, steps);
    Capture(kWithoutHoles, IssueAll, steps);
  }
  ~Graphs() { Check(gcap_graph_manager_destroy(manager_)); }
  Graphs(const Graphs&) = delete;
  Graphs& operator=(const Graphs&) = delete;
  void Replay(int id) const {
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = id;
    Check(gcap_graph_manager_replay(manager_, &run, /*out_replayed=*/nullptr));
  }

 private:
  void Capture(int id, gcap_work_t work, Steps* steps) {
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = id;
    run.stream = steps->work->stream();
    run.work = work;
    run.user = steps;
    run.synchronize = true;
    Check(gcap_graph_manager_run(manager_, &run));
  }

  gcap_graph_manager_t* manager_ = nullptr;
};

// The peer: an executable for each segment, launched with nothing around it.
class BareSegments {
 public:
  BareSegments(const Work& work, int count) : stream_(work.stream()), execs_(static_cast<size_t>(count)) {
    for (cudaGraphExec_t& exec : execs_) {
      cudaGraph_t graph = nullptr;
      CheckCuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
      work.Issue();
      CheckCuda(cudaStreamEndCapture(stream_, &graph));
      CheckCuda(cudaGraphInstantiate(&exec, graph, 0));
      CheckCuda(cudaGraphDestroy(graph));
    }
    Launch();  // the first launch uploads; the manager's was at its capture
    CheckCuda(cudaStreamSynchronize(stream_));
  }
  ~BareSegments() {
    for (cudaGraphExec_t exec : execs_) CheckCuda(cudaGraphExecDestroy(exec));
  }
  BareSegments(const BareSegments&) = delete;
  BareSegments& operator=(const BareSegments&) = delete;
  void Launch() const {
    for (cudaGraphExec_t exec : execs_) CheckCuda(cudaGraphLaunch(exec, stream_));
  }

 private:
  cudaStream_t stream_;
  std::vector<cudaGraphExec_t> execs_;
};

void BM_Holes(benchmark::State& state) {
  if (!HasDevice(state)) return;
  gcap_stream_t* stream = nullptr;
  Check(gcap_stream_create(0, &stream));
  {
    const Work work(1, stream);
    Steps steps = {&work, static_cast<int>(state.range(0))};
    CheckCuda(cudaStreamSynchronize(work.stream()));
    const Graphs graphs(&steps);
    const BareSegments bare(work, steps.holes + 1);
    Samples bare_ns, holes_ns, one_graph_ns, eager_ns;
    const auto time = [&](Samples* samples, auto way) {
      samples->Time(way);
      CheckCuda(cudaStreamSynchronize(work.stream()));
    };
    for (auto _ : state) {
      time(&bare_ns, [&] { bare.Launch(); });
      time(&holes_ns, [&] { graphs.Replay(kWithHoles); });
      time(&one_graph_ns, [&] { graphs.Replay(kWithoutHoles); });
      time(&eager_ns, [&] { Check(IssueAll(&steps, nullptr)); });
    }
    state.counters["bare_ns"] = bare_ns.Median();
    state.counters["holes_ns"] = holes_ns.Median();
    state.counters["one_graph_ns"] = one_graph_ns.Median();
    state.counters["eager_ns"] = eager_ns.Median();
    state.counters["holes_ratio"] = holes_ns.Median() / bare_ns.Median();
  }
  Check(gcap_stream_destroy(stream));
}

// Iterations are fixed, as in replay_bench.
BENCHMARK(BM_Holes)->ArgName("holes")->Arg(2)->Arg(4)->Arg(16)->Arg(64)->Iterations(100);

}  // namespace

int main(int argc, char** argv) { return gcap::bench::Main(argc, argv); }
