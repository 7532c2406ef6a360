// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#include "bench/graph/digits_ids.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <deque>

#include "bench/graph/digits_network.h"
#include "bench/graph/paired.h"
#include "examples/minimal_ep/minimal_ep.h"
#include "gcap/graph_plan.h"
#include "gcap/kit/session.h"

namespace gcap {
namespace bench {

size_t FreeBytes() {
  size_t free_bytes = 0, total_bytes = 0;
  CheckCuda(cudaMemGetInfo(&free_bytes, &total_bytes));
  return free_bytes;
}

std::vector<DigitsCase> DigitsCases(bool is_small) {
  if (is_small) return {{3, 1, 1, false, false, 100}, {3, 1, 1, true, true, 100}};
  std::vector<DigitsCase> cases;
  for (const bool extend : {false, true}) {
    for (const bool share : {false, true}) {
      for (const int batch : {1, 64}) cases.push_back({32, batch, batch, share, extend, 200});
    }
  }
  return cases;
}

namespace {

size_t ScratchBytes(gcap_runtime_t* runtime) {
  gcap_allocator_stats_t stats;
  gcap_scratch_get_stats(gcap_runtime_scratch(runtime), &stats);
  return static_cast<size_t>(stats.total_allocated_bytes);
}

double Kib(size_t bytes) { return static_cast<double>(bytes) / 1024.0; }

// A session of the network, and tensors for each id.
class Ids {
 public:
  explicit Ids(const DigitsCase& digits_case) : case_(digits_case) {
    gcap_options_t options;
    gcap_options_init(&options);
    options.enable_cuda_graph = true;
    options.share_graph_memory = case_.share_graph_memory;
    options.arena.extend_as_requested = case_.extend_as_requested;
    Check(minimal_ep_create(&options, &ep_));
    runtime_ = gcap_ep_runtime(ep_);
    Check(gcap_runtime_graphs(runtime_, &graphs_));
    Check(gcap_session_create(network_.model(), &ep_, 1, nullptr, &session_));
    for (int id = 0; id < case_.ids; ++id) {
      tensors_.push_back(MakeDigitsTensors(case_.first_batch + id * case_.more_batch));
      options_.emplace_back();
      gcap_run_options_init(&options_.back());
      options_.back().graph_id = id;
    }
    for (size_t i = 0; i < tensors_.size(); ++i) {
      runs_.push_back({&options_[i], &tensors_[i].images, &tensors_[i].probabilities});
    }
  }
  ~Ids() {
    Check(gcap_session_destroy(session_));
    Check(gcap_ep_destroy(ep_));
    for (const DigitsTensors& each : tensors_) Free(each);
  }
  Ids(const Ids&) = delete;
  Ids& operator=(const Ids&) = delete;

  gcap_runtime_t* runtime() const { return runtime_; }
  const std::vector<gcap_warm_up_run_t>& runs() const { return runs_; }
  void Run(const gcap_warm_up_run_t& run) const {
    Check(gcap_session_run(session_, run.options, run.inputs, run.outputs));
  }
  // Each id once, the largest first.
  void RunAll() const {
    for (size_t i = runs_.size(); i-- > 0;) Run(runs_[i]);
    CheckCuda(cudaDeviceSynchronize());
  }
  void Trim() const { Check(gcap_scratch_trim(gcap_runtime_scratch(runtime_))); }
  gcap_graph_plan_t Plan() const {
    gcap_graph_plan_t plan;
    gcap_graph_plan_init(&plan);
    Check(gcap_session_plan(session_, runs_.data(), runs_.size(), &plan));
    return plan;
  }
  // The same of the graphs that there are.
  gcap_graph_plan_t Held() const {
    gcap_graph_plan_t held = {};
    for (int id = 0; id < case_.ids; ++id) {
      gcap_graph_info_t info;
      gcap_graph_manager_get_info(graphs_, id, &info);
      held.graphs += info.state == GCAP_GRAPH_CAPTURED;
      held.nodes += info.nodes;
      held.kernel_nodes += info.kernel_nodes;
      held.retained_bytes += info.bytes - info.exec_bytes;
      held.exec_bytes += info.exec_bytes;
      held.bytes += info.bytes;
    }
    return held;
  }
  gcap_run_resources_t resources() const {
    gcap_run_resources_t resources;
    Check(gcap_runtime_get_resources(runtime_, &resources));
    return resources;
  }

 private:
  const DigitsCase case_;
  const DigitsNetwork network_;
  gcap_ep_t* ep_ = nullptr;
  gcap_runtime_t* runtime_ = nullptr;
  gcap_graph_manager_t* graphs_ = nullptr;
  gcap_session_t* session_ = nullptr;
  std::vector<DigitsTensors> tensors_;
  std::deque<gcap_run_options_t> options_;
  std::vector<gcap_warm_up_run_t> runs_;
};

void PrintPlan(const char* name, const gcap_graph_plan_t& plan) {
  std::printf("| %s | %zu | %zu | %zu | %.1f | %.1f | %.1f |\n", name, plan.graphs, plan.nodes, plan.kernel_nodes,
              Kib(plan.retained_bytes), Kib(plan.exec_bytes), Kib(plan.bytes));
}

// What the executables of all ids take, by the device: of so many of each that its steps do not matter.
double ExecutableBytes(const Ids& ids, int copies) {
  const gcap_run_resources_t resources = ids.resources();
  const cudaStream_t stream = gcap_stream_handle(resources.stream);
  std::vector<CapturedRun> captured;
  for (const gcap_warm_up_run_t& run : ids.runs()) captured.push_back(CaptureRun(resources, [&] { ids.Run(run); }));
  std::vector<cudaGraphExec_t> execs;
  const size_t before = FreeBytes();
  for (int i = 0; i < copies; ++i) {
    for (const CapturedRun& each : captured) {
      execs.push_back(nullptr);
      CheckCuda(cudaGraphInstantiate(&execs.back(), each.graph, 0));
      CheckCuda(cudaGraphLaunch(execs.back(), stream));
    }
  }
  CheckCuda(cudaStreamSynchronize(stream));
  const size_t after = FreeBytes();
  for (cudaGraphExec_t exec : execs) CheckCuda(cudaGraphExecDestroy(exec));
  for (const CapturedRun& each : captured) Release(each);
  return static_cast<double>(before - after) / copies;
}

}  // namespace

void RunDigits(const DigitsCase& digits_case) {
  const Ids ids(digits_case);
  ids.RunAll();
  const gcap_graph_plan_t plan = ids.Plan();
  ids.RunAll();
  const size_t scratch_warm = ScratchBytes(ids.runtime());
  ids.Trim();
  const size_t free_before = FreeBytes(), scratch_before = ScratchBytes(ids.runtime());
  ids.RunAll();
  const size_t free_captured = FreeBytes(), scratch_captured = ScratchBytes(ids.runtime());
  ids.Trim();
  const size_t free_after = FreeBytes(), scratch_after = ScratchBytes(ids.runtime());
  const gcap_graph_plan_t held = ids.Held();
  const double exec_bytes = ExecutableBytes(ids, digits_case.copies);
  std::printf(
      "\n%d ids of the digits network, batches of %d to %d, reservations %s, %s\n\n| | graphs | nodes | kernel nodes | "
      "retained, KiB | executables, KiB | all, KiB |\n"
      "|---|---|---|---|---|---|---|\n",
      digits_case.ids, digits_case.first_batch,
      digits_case.first_batch + (digits_case.ids - 1) * digits_case.more_batch,
      digits_case.share_graph_memory ? "shared" : "apart",
      digits_case.extend_as_requested ? "regions as requested" : "regions as by default");
  PrintPlan("planned after one eager run", plan);
  PrintPlan("gcap_graph_info_t after the captures", held);
  std::printf("| of %d executables each, by the device | | | | | %.1f | %.1f |\n", digits_case.copies,
              exec_bytes / 1024.0, exec_bytes / 1024.0 + Kib(held.retained_bytes));
  std::printf(
      "\nScratch held %.0f KiB after the warm-up, %.0f trimmed, %.0f after the captures, %.0f trimmed. The captures "
      "took %.0f KiB of the device, of which %.0f were left after the trim: %.0f but for scratch.\n",
      Kib(scratch_warm), Kib(scratch_before), Kib(scratch_captured), Kib(scratch_after),
      Kib(free_before) - Kib(free_captured), Kib(free_before) - Kib(free_after),
      Kib(free_before) - Kib(free_after) - Kib(scratch_after) + Kib(scratch_before));
}

}  // namespace bench
}  // namespace gcap
