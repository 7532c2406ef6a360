// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
#include "bench/graph/moving_digits.h"

#include <cuda_runtime_api.h>

#include <cinttypes>
#include <cstdio>
#include <functional>
#include <vector>

#include "bench/graph/digits_network.h"
#include "bench/graph/paired.h"
#include "examples/minimal_ep/minimal_ep.h"
#include "gcap/kit/session.h"

namespace gcap {
namespace bench {
namespace {

struct Counts {
  uint64_t captures, executables, launches, eager_runs;
};

// A session of the network with two sets of tensors, of which the runs use the first alone, or both by turns.
class Session {
 public:
  Session(const DigitsNetwork& network, int64_t batch, int graph_id, gcap_bindings_t bindings, bool alternates)
      : alternates_(alternates), tensors_{MakeDigitsTensors(batch), MakeDigitsTensors(batch)} {
    gcap_options_t options;
    gcap_options_init(&options);
    options.enable_cuda_graph = true;
    Check(minimal_ep_create(&options, &ep_));
    runtime_ = gcap_ep_runtime(ep_);
    Check(gcap_runtime_graphs(runtime_, &graphs_));
    Check(gcap_session_create(network.model(), &ep_, 1, nullptr, &session_));
    gcap_run_options_init(&options_);
    options_.graph_id = graph_id;
    options_.bindings = bindings;
    for (int i = 0; i < 4; ++i) Run(true);  // two eager ones, the capture, a replay
  }
  ~Session() {
    Check(gcap_session_destroy(session_));
    Check(gcap_ep_destroy(ep_));
    for (const DigitsTensors& each : tensors_) Free(each);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Run(bool synchronize) {
    const DigitsTensors& tensors = tensors_[is_second_];
    if (alternates_) is_second_ = !is_second_;
    options_.synchronize = synchronize;
    ++num_runs_;
    Check(gcap_session_run(session_, &options_, &tensors.images, &tensors.probabilities));
  }
  CapturedRun Capture() {
    return CaptureRun(resources(), [&] { Run(false); });
  }
  cudaStream_t stream() const { return gcap_stream_handle(resources().stream); }
  Counts counts() const {
    if (options_.graph_id == GCAP_GRAPH_ID_NONE) return {0, 0, 0, num_runs_};
    gcap_graph_info_t info;
    gcap_graph_manager_get_info(graphs_, options_.graph_id, &info);
    return {info.captures, info.captures - info.updates, info.replays, info.eager_runs};
  }

 private:
  gcap_run_resources_t resources() const {
    gcap_run_resources_t resources;
    Check(gcap_runtime_get_resources(runtime_, &resources));
    return resources;
  }

  const bool alternates_;
  const DigitsTensors tensors_[2];
  gcap_ep_t* ep_ = nullptr;
  gcap_runtime_t* runtime_ = nullptr;
  gcap_graph_manager_t* graphs_ = nullptr;
  gcap_session_t* session_ = nullptr;
  gcap_run_options_t options_ = {};
  bool is_second_ = false;
  uint64_t num_runs_ = 0;
};

// An executable that is updated for each run: from a new capture, or from one of two captures made before.
class Updated {
 public:
  explicit Updated(Session* session) : session_(session), captured_{Capture(), Capture()} {}
  ~Updated() {
    if (exec_ != nullptr) CheckCuda(cudaGraphExecDestroy(exec_));
    for (const CapturedRun& each : captured_) Release(each);
  }
  Updated(const Updated&) = delete;
  Updated& operator=(const Updated&) = delete;

  void RunNewCapture(bool synchronize) {
    Release(captured_[is_second_]);  // no launch of it is left: each was waited for
    captured_[is_second_] = Capture();
    RunOldCapture(synchronize);
  }
  void RunOldCapture(bool synchronize) {
    Update(captured_[is_second_].graph);
    is_second_ = !is_second_;
    CheckCuda(cudaGraphLaunch(exec_, session_->stream()));
    ++counts_.launches;
    if (synchronize) CheckCuda(cudaStreamSynchronize(session_->stream()));
  }
  Counts counts() const { return counts_; }

 private:
  CapturedRun Capture() {
    ++counts_.captures;
    return session_->Capture();
  }
  void Update(cudaGraph_t graph) {
    cudaGraphExecUpdateResultInfo info = {};
    if (exec_ != nullptr && cudaGraphExecUpdate(exec_, graph, &info) == cudaSuccess) return;
    if (exec_ != nullptr) CheckCuda(cudaGraphExecDestroy(exec_));
    (void)cudaGetLastError();
    CheckCuda(cudaGraphInstantiate(&exec_, graph, 0));
    ++counts_.executables;
  }

  Session* const session_;
  Counts counts_ = {};
  CapturedRun captured_[2];
  cudaGraphExec_t exec_ = nullptr;
  bool is_second_ = false;
};

struct Way {
  const char* name;
  const char* tensors;
  std::function<void(bool synchronize)> run;
  std::function<Counts()> counts;
  Samples issued = {}, done = {};
};

Way WayOf(const char* name, bool alternates, Session* session) {
  return {name, alternates ? "two sets" : "one set", [=](bool synchronize) { session->Run(synchronize); },
          [=] { return session->counts(); }};
}

void Print(const Way& way) {
  const Counts counts = way.counts();
  std::printf("| %s | %s | %.2f | %.2f | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " |\n", way.name,
              way.tensors, way.issued.Median() / 1000, way.done.Median() / 1000, counts.captures, counts.executables,
              counts.launches, counts.eager_runs);
}

}  // namespace

void RunMovingDigits(int64_t batch, int rounds) {
  const DigitsNetwork network;
  Session fixed(network, batch, 0, GCAP_BINDINGS_FIXED, false);
  Session relocated_stays(network, batch, 0, GCAP_BINDINGS_RELOCATE, false);
  Session relocated(network, batch, 0, GCAP_BINDINGS_RELOCATE, true);
  Session copied_stays(network, batch, 0, GCAP_BINDINGS_COPY, false);
  Session copied(network, batch, 0, GCAP_BINDINGS_COPY, true);
  Session eager(network, batch, GCAP_GRAPH_ID_NONE, GCAP_BINDINGS_FIXED, true);
  Session captured(network, batch, GCAP_GRAPH_ID_NONE, GCAP_BINDINGS_FIXED, true);
  Updated new_captures(&captured), old_captures(&captured);
  Way ways[] = {
      WayOf("bindings=fixed", false, &fixed),
      WayOf("bindings=relocate", false, &relocated_stays),
      WayOf("bindings=relocate", true, &relocated),
      WayOf("bindings=copy", false, &copied_stays),
      WayOf("bindings=copy", true, &copied),
      WayOf("eager", true, &eager),
      {"captured again, `cudaGraphExecUpdate`, `cudaGraphLaunch`", "two sets",
       [&](bool synchronize) { new_captures.RunNewCapture(synchronize); }, [&] { return new_captures.counts(); }},
      {"`cudaGraphExecUpdate` and `cudaGraphLaunch` alone, captured before", "two sets",
       [&](bool synchronize) { old_captures.RunOldCapture(synchronize); }, [&] { return old_captures.counts(); }},
  };
  for (int i = 0; i < rounds; ++i) {
    for (Way& way : ways) {
      way.issued.Time([&] { way.run(false); });
      CheckCuda(cudaDeviceSynchronize());
      way.done.Time([&] { way.run(true); });
      CheckCuda(cudaDeviceSynchronize());
    }
  }
  std::printf("\nThe digits network, batch %" PRId64 ", %d rounds of two runs\n\n", batch, rounds);
  std::printf(
      "| run | tensors | host until issued, us | host until done, us | captures | executables | launches | eager runs "
      "|\n|---|---|---|---|---|---|---|---|\n");
  for (const Way& way : ways) Print(way);
}

}  // namespace bench
}  // namespace gcap
