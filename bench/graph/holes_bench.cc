// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What a replay with holes costs. First, of holes whose functions do nothing: `holes` + 1 segments of one tiny kernel
// each, beside as many bare cudaGraphLaunch calls, one graph of all kernels through the manager, and the work issued
// eagerly. Then the digits network: with a hole of nothing between each two of its nodes, and with one node issued in a
// hole; each beside the bare launches of the same segments, one graph, and the eager work.
//
// All ways are timed in turn in each iteration (paired.h). The most launches of a way are 65, each of an executable of
// its own and with the stream idle before: whether the driver holds up any shows in `launch_ns`, which must not grow
// with the holes. A repetition reports the medians of its iterations, less the clock's own cost, and ratios to the bare
// launches, which are to be 1.02 at most. On the simulator the numbers measure the simulator.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <vector>

#include "bench/graph/holed_digits.h"
#include "bench/graph/paired.h"
#include "gcap/graph.h"
#include "gcap/graph_holes.h"
#include "gcap/stream.h"

namespace {

using gcap::bench::BareDigits;
using gcap::bench::Check;
using gcap::bench::CheckCuda;
using gcap::bench::DigitsAroundNode;
using gcap::bench::DigitsAroundNothing;
using gcap::bench::DigitsNodes;
using gcap::bench::HasDevice;
using gcap::bench::HoledDigits;
using gcap::bench::Ways;
using gcap::bench::WholeDigits;
using gcap::bench::Work;

enum Ids { kWithHoles = 0, kWithoutHoles };
enum DigitsIds { kWhole = 0, kAroundNothing, kAroundPool };
constexpr int kPool = 2;  // the node between the convolutions and the products

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
    Ways ways(work.stream());
    ways.Add("bare", [&] { bare.Launch(); });
    ways.Add("holes", [&] { graphs.Replay(kWithHoles); });
    ways.Add("one_graph", [&] { graphs.Replay(kWithoutHoles); });
    ways.Add("eager", [&] { Check(IssueAll(&steps, nullptr)); });
    for (auto _ : state) ways.TimeEach();
    ways.Report(&state);
    const double bare_ns = ways.IssuedNanoseconds("bare"), holes_ns = ways.IssuedNanoseconds("holes");
    state.counters["holes_ratio"] = holes_ns / bare_ns;
    state.counters["launch_ns"] = bare_ns / (steps.holes + 1);
    state.counters["added_ns"] = (holes_ns - bare_ns) / (steps.holes + 1);
  }
  Check(gcap_stream_destroy(stream));
}

// The argument is the batch.
void BM_Digits(benchmark::State& state) {
  if (!HasDevice(state)) return;
  DigitsNodes nodes(state.range(0));
  const auto around_nothing = DigitsAroundNothing(nodes), around_pool = DigitsAroundNode(nodes, kPool);
  const HoledDigits one_graph(&nodes, kWhole, WholeDigits(nodes)), nothing(&nodes, kAroundNothing, around_nothing),
      pool(&nodes, kAroundPool, around_pool);
  const BareDigits bare_graph(nodes, WholeDigits(nodes)), bare_nothing(nodes, around_nothing),
      bare_pool(nodes, around_pool);
  Ways ways(nodes.stream());
  ways.Add("eager", [&] { Check(nodes.Issue(nodes.resources(), 0, nodes.count())); });
  ways.Add("bare_graph", [&] { bare_graph.Launch(); });
  ways.Add("one_graph", [&] { one_graph.Replay(); });
  ways.Add("bare_nothing", [&] { bare_nothing.Launch(); });
  ways.Add("nothing", [&] { nothing.Replay(); });
  ways.Add("bare_pool", [&] { bare_pool.Launch(); });
  ways.Add("pool", [&] { pool.Replay(); });
  for (auto _ : state) ways.TimeEach();
  ways.Report(&state);
  const auto ratio = [&](const char* way, const char* bare) {
    return ways.IssuedNanoseconds(way) / ways.IssuedNanoseconds(bare);
  };
  state.counters["one_graph_ratio"] = ratio("one_graph", "bare_graph");
  state.counters["nothing_ratio"] = ratio("nothing", "bare_nothing");
  state.counters["pool_ratio"] = ratio("pool", "bare_pool");
}

// Iterations are fixed, as in replay_bench.
BENCHMARK(BM_Holes)->ArgName("holes")->Arg(2)->Arg(4)->Arg(16)->Arg(64)->Iterations(200);
BENCHMARK(BM_Digits)->ArgName("batch")->Arg(1)->Arg(64)->Iterations(100);

}  // namespace

int main(int argc, char** argv) { return gcap::bench::Main(argc, argv); }
