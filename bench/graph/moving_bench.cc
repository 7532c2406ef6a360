// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What it costs the host to give a captured graph other buffers: gcap_graph_manager_bind of a buffer that some nodes of
// a graph of 1,000 kernels have a pointer into, beside the driver's own calls for as many nodes, a new capture, an
// update of the whole executable, and copies. Then the same of the digits network (moving_digits.h). First, what a
// capture with buffers costs beside a plain one of the same work.
//
// All ways are timed in turn in each round, and the device is idle before each: the figures are medians of the rounds.

#include <cuda_runtime_api.h>

#include <cinttypes>
#include <cstdio>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "bench/graph/moving_digits.h"
#include "bench/graph/moving_graph.h"
#include "bench/graph/paired.h"
#include "gcap/graph_buffers.h"

namespace {

using gcap::bench::BareGraph;
using gcap::bench::CapturedRun;
using gcap::bench::CheckCuda;
using gcap::bench::kBuffers;
using gcap::bench::MovingGraph;
using gcap::bench::MovingShape;
using gcap::bench::MovingWork;
using gcap::bench::RecapturedGraph;
using gcap::bench::Samples;

using Step = std::function<void()>;

// A way to give the graph other buffers.
struct Way {
  std::string name;
  int nodes;         // that it sets
  Step set, launch;  // without `set` the way is `set_and_launch` alone
  Step set_and_launch;
  Samples set_time = {}, set_and_launch_time = {};

  void Time() {
    set_and_launch();  // so that no figure depends on which way came before
    CheckCuda(cudaDeviceSynchronize());
    if (set) {
      set_time.Time(set);
      launch();
      CheckCuda(cudaDeviceSynchronize());
    }
    set_and_launch_time.Time(set_and_launch);
    CheckCuda(cudaDeviceSynchronize());
  }
  void Print() const {
    std::printf("| %s | %d | ", name.c_str(), nodes);
    if (set) std::printf("%.2f", set_time.Median() / 1000);
    std::printf(" | ");
    if (set && nodes > 0) std::printf("%.3f", set_time.Median() / 1000 / nodes);
    std::printf(" | %.2f |\n", set_and_launch_time.Median() / 1000);
  }
};

// A copy of so many bytes from device to device. 0: none, so what the events take.
class Copy {
 public:
  Copy(size_t bytes, cudaStream_t stream) : bytes_(bytes), stream_(stream) {
    for (void** each : {&from_, &to_}) {
      CheckCuda(cudaMalloc(each, bytes + 1));
      CheckCuda(cudaMemset(*each, 0, bytes + 1));
    }
    CheckCuda(cudaDeviceSynchronize());
    CheckCuda(cudaEventCreate(&begin_));
    CheckCuda(cudaEventCreate(&end_));
  }
  ~Copy() {
    for (void* each : {from_, to_}) CheckCuda(cudaFree(each));
    for (cudaEvent_t each : {begin_, end_}) CheckCuda(cudaEventDestroy(each));
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  void Time() {
    issue_time_.Time([&] { Issue(); });
    CheckCuda(cudaStreamSynchronize(stream_));
    CheckCuda(cudaEventRecord(begin_, stream_));
    Issue();
    CheckCuda(cudaEventRecord(end_, stream_));
    CheckCuda(cudaStreamSynchronize(stream_));
    float ms = 0;
    CheckCuda(cudaEventElapsedTime(&ms, begin_, end_));
    device_ms_.push_back(static_cast<double>(ms));
    done_time_.Time([&] {
      Issue();
      CheckCuda(cudaStreamSynchronize(stream_));
    });
  }
  void Print() const {
    std::printf("| %.0f | %.2f | %.2f | %.2f |\n", static_cast<double>(bytes_) / 1024, issue_time_.Median() / 1000,
                1000 * gcap::bench::MedianOf(device_ms_), done_time_.Median() / 1000);
  }

 private:
  void Issue() const {
    if (bytes_ > 0) CheckCuda(cudaMemcpyAsync(to_, from_, bytes_, cudaMemcpyDeviceToDevice, stream_));
  }

  const size_t bytes_;
  const cudaStream_t stream_;
  void* from_ = nullptr;
  void* to_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  Samples issue_time_, done_time_;
  std::vector<double> device_ms_;
};

void AddBinds(const MovingShape& shape, MovingGraph* moving, BareGraph* bare, std::vector<Way>* ways) {
  const Step replay = [=] { moving->Launch(); }, launch = [=] { bare->Launch(); };
  ways->push_back({"replay", 0, nullptr, nullptr, replay});
  ways->push_back({"`cudaGraphLaunch`", 0, nullptr, nullptr, launch});
  ways->push_back({"bind to the same address", 0, [=] { moving->Bind(0, false); }, replay,
                   [=] { moving->BindAndLaunch(0, false); }});
  for (int buffer = 0; buffer < kBuffers; ++buffer) {
    const int nodes = shape.nodes_of[buffer];
    ways->push_back(
        {"bind", nodes, [=] { moving->Bind(buffer, true); }, replay, [=] { moving->BindAndLaunch(buffer, true); }});
    ways->push_back({"`cuGraphExecKernelNodeSetParams`", nodes, [=] { bare->SetNodes(buffer); }, launch,
                     [=] {
                       bare->SetNodes(buffer);
                       bare->Launch();
                     }});
  }
}

void AddUpdates(const MovingShape& shape, BareGraph* bare, RecapturedGraph* recaptured, std::vector<Way>* ways) {
  const Step launch = [=] { bare->Launch(); };
  ways->push_back({"`cudaGraphExecUpdate` alone, captured before", shape.nodes(), [=] { bare->Update(); }, launch,
                   [=] {
                     bare->Update();
                     bare->Launch();
                   }});
  ways->push_back({"bare capture and `cudaGraphExecUpdate`", shape.nodes(), [=] { bare->CaptureAndUpdate(); }, launch,
                   [=] {
                     bare->CaptureAndUpdate();
                     bare->Launch();
                   }});
  ways->push_back(
      {"recapture, updated in place", shape.nodes(), nullptr, nullptr, [=] { recaptured->RecaptureAndLaunch(); }});
}

void RunGraph(const MovingShape& shape, const std::vector<size_t>& copied_bytes) {
  const MovingWork work(shape);
  MovingGraph moving(work);
  RecapturedGraph recaptured(work);
  BareGraph bare_set(work), bare_updated(work);
  std::vector<Way> ways;
  AddBinds(shape, &moving, &bare_set, &ways);
  AddUpdates(shape, &bare_updated, &recaptured, &ways);
  std::deque<Copy> copies;
  for (size_t bytes : copied_bytes) copies.emplace_back(bytes, work.stream());
  for (int i = 0; i < shape.rounds; ++i) {
    for (Way& way : ways) way.Time();
    for (Copy& copy : copies) copy.Time();
  }
  std::printf("A graph of %d kernels, %d rounds\n\n", shape.nodes(), shape.rounds);
  std::printf("| way | nodes set | host, us | us a node | host with the launch, us |\n|---|---|---|---|---|\n");
  for (const Way& way : ways) way.Print();
  const gcap_graph_info_t info = recaptured.info();
  std::printf("\nOf %" PRIu64 " recaptures %" PRIu64 " updated the executable in place.\n", info.captures - 1,
              info.updates);
  std::printf("\n| copy, KiB | host until issued, us | device, us | host until done, us |\n|---|---|---|---|\n");
  for (const Copy& copy : copies) copy.Print();
}

// The work's capture, instantiation and launch without gcap.
class BareCapture {
 public:
  explicit BareCapture(const MovingWork& work) : work_(work) {}
  void Time() {
    cudaGraphExec_t exec = nullptr;
    time_.Time([&] {
      cudaGraph_t graph = work_.Capture(0);
      CheckCuda(cudaGraphInstantiate(&exec, graph, 0));
      CheckCuda(cudaGraphLaunch(exec, work_.stream()));
      CheckCuda(cudaGraphDestroy(graph));
    });
    CheckCuda(cudaDeviceSynchronize());
    CheckCuda(cudaGraphExecDestroy(exec));
  }
  double Nanoseconds() const { return time_.Median(); }

 private:
  const MovingWork& work_;
  Samples time_;
};

// Of one size: bare, by a plain run, and by a run with buffers, whose work is captured up to three times.
void RunCaptures(const MovingShape& shape) {
  const MovingWork work(shape);
  BareCapture bare(work);
  CapturedRun plain(work, false), moving(work, true);
  for (int i = 0; i < shape.rounds; ++i) {
    bare.Time();
    plain.Time();
    moving.Time();
  }
  const double plain_ns = plain.Nanoseconds(), moving_ns = moving.Nanoseconds();
  const double plain_alone_ns = plain_ns - plain.InstantiateNanoseconds();
  const double moving_alone_ns = moving_ns - moving.InstantiateNanoseconds();
  std::printf("| %d | %.1f | %.1f | %.1f | %.2f | %.1f | %.1f | %.2f |\n", shape.nodes(), bare.Nanoseconds() / 1000,
              plain_ns / 1000, moving_ns / 1000, moving_ns / plain_ns, plain_alone_ns / 1000, moving_alone_ns / 1000,
              moving_alone_ns / plain_alone_ns);
}

constexpr MovingShape kCaptured[] = {{{1, 0, 0, 1}, 201}, {{1, 9, 90, 100}, 201}, {{1, 10, 100, 1000}, 101}};
constexpr MovingShape kWhole = {{1, 10, 100, 1000}, 201};
constexpr MovingShape kSmall = {{1, 2, 4, 20}, 3};

}  // namespace

int main(int argc, char** argv) {
  const bool is_small = gcap::bench::IsSmall(argc, argv);
  if (!gcap::bench::PrintDevice()) {
    std::printf("no CUDA device\n");
    return 0;
  }
  std::printf("A run that captures, until the graph is launched, in us\n\n");
  std::printf(
      "| nodes | bare | plain | with buffers | over plain | plain, without the instantiation | with buffers | ");
  std::printf("over plain |\n|---|---|---|---|---|---|---|---|\n");
  for (MovingShape shape : kCaptured) {
    if (is_small) shape.rounds = 1;
    RunCaptures(shape);
  }
  std::printf("\n");
  std::vector<size_t> copied_bytes = {0, 1 << 10, 64 << 10};
  if (!is_small) copied_bytes.insert(copied_bytes.end(), {1 << 20, 16 << 20, 64 << 20});
  RunGraph(is_small ? kSmall : kWhole, copied_bytes);
  for (const int batch : {1, is_small ? 2 : 1024}) {
    std::fflush(stdout);
    gcap::bench::RunMovingDigits(batch, is_small ? 3 : 501);
  }
  return 0;
}
