// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Host time of one capture: bare cudaStreamBeginCapture and cudaStreamEndCapture around a number of kernel launches,
// and a capture scope around the same, without a ledger and with one; in turn within each iteration, as in
// replay_bench.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <memory>

#include "bench/graph/paired.h"
#include "gcap/capture.h"

namespace {

using gcap::bench::Check;
using gcap::bench::CheckCuda;
using gcap::bench::HasDevice;
using gcap::bench::Samples;
using gcap::bench::Work;

void CaptureBare(const Work& work) {
  cudaGraph_t graph = nullptr;
  CheckCuda(cudaStreamBeginCapture(work.stream(), cudaStreamCaptureModeThreadLocal));
  work.Issue();
  CheckCuda(cudaStreamEndCapture(work.stream(), &graph));
  CheckCuda(cudaGraphDestroy(graph));
}

void CaptureInScope(const Work& work, const gcap_capture_options_t& options) {
  gcap_capture_t* capture = nullptr;
  Check(gcap_capture_begin(work.stream(), &options, &capture));
  work.Issue();
  cudaGraph_t graph = nullptr;
  gcap_retained_t* retained = nullptr;
  Check(gcap_capture_end(capture, &graph, &retained));
  gcap_retained_release(retained);
  CheckCuda(cudaGraphDestroy(graph));
}

// Argument: kernels captured.
void BM_Capture(benchmark::State& state) {
  if (!HasDevice(state)) return;
  gcap_stream_t* stream = nullptr;
  Check(gcap_stream_create(0, &stream));
  const std::unique_ptr<gcap_stream_t, void (*)(gcap_stream_t*)> end(
      stream, [](gcap_stream_t* ended) { Check(gcap_stream_destroy(ended)); });
  const Work work(static_cast<int>(state.range(0)), stream);
  gcap_capture_options_t without, with;
  gcap_capture_options_init(&without);
  gcap_capture_options_init(&with);
  without.ledger_calls = 0;
  CaptureBare(work);  // the first of a process loads the kernel
  Samples bare_ns, without_ns, with_ns;
  for (auto _ : state) {
    bare_ns.Time([&] { CaptureBare(work); });
    without_ns.Time([&] { CaptureInScope(work, without); });
    with_ns.Time([&] { CaptureInScope(work, with); });
  }
  state.counters["bare_ns"] = bare_ns.Median();
  state.counters["ledger_off_ns"] = without_ns.Median();
  state.counters["ledger_on_ns"] = with_ns.Median();
  state.counters["ledger_off_ratio"] = without_ns.Median() / bare_ns.Median();
  state.counters["ledger_on_ratio"] = with_ns.Median() / bare_ns.Median();
}

BENCHMARK(BM_Capture)->ArgName("nodes")->Arg(1)->Arg(10)->Arg(100)->Iterations(200);
BENCHMARK(BM_Capture)->ArgName("nodes")->Arg(1000)->Iterations(50);

}  // namespace

int main(int argc, char** argv) { return gcap::bench::Main(argc, argv); }
