// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What executable graphs cost the device's memory and the host's time, of the bare CUDA runtime: from here come the
// numbers in lib/graph/cost.h. Then what a plan says of the digits network under 32 ids beside what the captures took
// (digits_ids.h). Each case runs in a process of its own, since a driver keeps what executables had. Memory is
// cudaMemGetInfo's, so nothing else may use the device.

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/graph/digits_ids.h"
#include "bench/graph/paired.h"
#include "gcap/capture.h"

namespace {

using gcap::bench::Check;
using gcap::bench::CheckCuda;
using gcap::bench::FreeBytes;
using gcap::bench::Samples;

enum class Kind { kKernel, kWideKernel, kCopy, kLargeCopy, kUpload, kDownload, kMemset, kHost };

struct KindName {
  Kind kind;
  const char* name;
};
constexpr KindName kKinds[] = {
    {Kind::kKernel, "kernel"},
    {Kind::kWideKernel, "kernel, wide"},
    {Kind::kCopy, "memcpy on the device, 64 B"},
    {Kind::kLargeCopy, "memcpy on the device, 1 MiB"},
    {Kind::kUpload, "memcpy from the host"},
    {Kind::kDownload, "memcpy to the host"},
    {Kind::kMemset, "memset"},
    {Kind::kHost, "host function"},
};

// A graph of nodes of one kind, in a row.
class Source {
 public:
  Source(Kind kind, int nodes) {
    Check(gcap_stream_create(0, &stream_));
    CheckCuda(cudaMalloc(reinterpret_cast<void**>(&memory_), 2 * kFloats * sizeof(float)));
    CheckCuda(cudaHostAlloc(reinterpret_cast<void**>(&host_), 64, 0));
    std::memset(host_, 0, 64);
    CheckCuda(cudaMemsetAsync(memory_, 0, 2 * kFloats * sizeof(float), stream()));
    Issue(kind);  // loads the kernel
    CheckCuda(cudaDeviceSynchronize());
    gcap_capture_t* capture = nullptr;
    gcap_capture_options_t options;
    gcap_capture_options_init(&options);
    options.ledger_calls = 0;
    Check(gcap_capture_begin(stream(), &options, &capture));
    for (int i = 0; i < nodes; ++i) Issue(kind);
    gcap_retained_t* retained = nullptr;
    Check(gcap_capture_end(capture, &graph_, &retained));
  }
  cudaGraph_t graph() const { return graph_; }
  cudaStream_t stream() const { return gcap_stream_handle(stream_); }

 private:
  static constexpr int64_t kFloats = 1 << 18;

  void Issue(Kind kind) const {
    const gcap_tensor_t x = {memory_, GCAP_DTYPE_F32, 1, {1}};
    // Eight axes, of which no two can be read as one: the kernel's arguments have the strides of each.
    const gcap_tensor_t a = {memory_, GCAP_DTYPE_F32, 8, {2, 1, 2, 1, 2, 1, 2, 1}};
    const gcap_tensor_t b = {memory_ + 16, GCAP_DTYPE_F32, 8, {1, 2, 1, 2, 1, 2, 1, 2}};
    const gcap_tensor_t y = {memory_ + kFloats, GCAP_DTYPE_F32, 8, {2, 2, 2, 2, 2, 2, 2, 2}};
    switch (kind) {
      case Kind::kKernel: Check(gcap_unary(stream_, GCAP_UNARY_RELU, &x, &x)); break;
      case Kind::kWideKernel: Check(gcap_binary(stream_, GCAP_BINARY_ADD, &a, &b, &y)); break;
      case Kind::kCopy: Copy(memory_ + kFloats, memory_, 64); break;
      case Kind::kLargeCopy: Copy(memory_ + kFloats, memory_, kFloats * sizeof(float)); break;
      case Kind::kUpload: Copy(memory_, host_, 64); break;
      case Kind::kDownload: Copy(host_, memory_, 64); break;
      case Kind::kMemset: CheckCuda(cudaMemsetAsync(memory_, 0, 64, stream())); break;
      case Kind::kHost:
        CheckCuda(cudaLaunchHostFunc(
            stream(), [](void*) {}, nullptr));
        break;
    }
  }
  void Copy(void* to, const void* from, size_t bytes) const {
    CheckCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream()));
  }

  gcap_stream_t* stream_ = nullptr;
  float* memory_ = nullptr;
  float* host_ = nullptr;  // page-locked
  cudaGraph_t graph_ = nullptr;
};

double Kib(size_t before, size_t after) { return (static_cast<double>(before) - static_cast<double>(after)) / 1024.0; }

// Device memory that `graphs` executables take: at which call, and what as many take after these were destroyed.
void Memory(const KindName& kind, int graphs, int nodes) {
  const Source source(kind.kind, nodes);
  std::vector<cudaGraphExec_t> execs(static_cast<size_t>(graphs));
  auto each = [&](const std::function<void(cudaGraphExec_t*)>& step) {
    for (cudaGraphExec_t& exec : execs) step(&exec);
    CheckCuda(cudaStreamSynchronize(source.stream()));
    return FreeBytes();
  };
  const size_t before = FreeBytes();
  const size_t instantiated =
      each([&](cudaGraphExec_t* exec) { CheckCuda(cudaGraphInstantiate(exec, source.graph(), 0)); });
  const size_t uploaded = each([&](cudaGraphExec_t* exec) { CheckCuda(cudaGraphUpload(*exec, source.stream())); });
  const size_t launched = each([&](cudaGraphExec_t* exec) { CheckCuda(cudaGraphLaunch(*exec, source.stream())); });
  const size_t destroyed = each([&](cudaGraphExec_t* exec) { CheckCuda(cudaGraphExecDestroy(*exec)); });
  const size_t again = each([&](cudaGraphExec_t* exec) {
    CheckCuda(cudaGraphInstantiate(exec, source.graph(), 0));
    CheckCuda(cudaGraphLaunch(*exec, source.stream()));
  });
  std::printf("| %s | %d | %d | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f |\n", kind.name, graphs, nodes,
              Kib(before, instantiated), Kib(instantiated, uploaded), Kib(uploaded, launched), Kib(destroyed, launched),
              Kib(destroyed, again), Kib(before, launched) / graphs);
}

// Host time a node.
void Time(const KindName& kind, int nodes, int rounds) {
  const Source source(kind.kind, nodes);
  Samples instantiate, upload, launch, update, clone, destroy;
  for (int i = 0; i < rounds; ++i) {
    cudaGraphExec_t exec = nullptr;
    cudaGraph_t copy = nullptr;
    instantiate.Time([&] { CheckCuda(cudaGraphInstantiate(&exec, source.graph(), 0)); });
    upload.Time([&] { CheckCuda(cudaGraphUpload(exec, source.stream())); });
    CheckCuda(cudaStreamSynchronize(source.stream()));
    launch.Time([&] { CheckCuda(cudaGraphLaunch(exec, source.stream())); });
    CheckCuda(cudaStreamSynchronize(source.stream()));
    cudaGraphExecUpdateResultInfo info = {};
    update.Time([&] { CheckCuda(cudaGraphExecUpdate(exec, source.graph(), &info)); });
    clone.Time([&] { CheckCuda(cudaGraphClone(&copy, source.graph())); });
    CheckCuda(cudaGraphDestroy(copy));
    destroy.Time([&] { CheckCuda(cudaGraphExecDestroy(exec)); });
  }
  auto us = [&](const Samples& samples) { return samples.Median() / 1000.0 / nodes; };
  std::printf("| %s | %d | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f |\n", kind.name, nodes, us(instantiate), us(upload),
              us(launch), us(update), us(clone), us(destroy));
}

int Failed(const char* what) {
  std::perror(what);
  return 1;
}

// Runs a case in a process of its own. 0, or the first failure.
int InChild(int failed_before, const std::function<void()>& run) {
  if (failed_before != 0) return failed_before;
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) return Failed("fork");
  if (child == 0) {
    run();
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) < 0) return Failed("waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

struct Shape {
  int graphs, nodes;
};
constexpr Shape kAll[] = {{1000, 0}, {1000, 1}, {1000, 10}, {400, 100}, {64, 100}, {40, 1000}, {8, 10000}, {1, 1}};
constexpr Shape kFew[] = {{2, 0}, {2, 8}, {4, 100}};

}  // namespace

int main(int argc, char** argv) {
  const bool is_small = gcap::bench::IsSmall(argc, argv);
  int failed = InChild(0, [] {
    if (!gcap::bench::PrintDevice()) _exit(2);
  });
  if (failed == 2) std::printf("no CUDA device\n");
  if (failed != 0) return failed == 2 ? 0 : failed;
  std::printf(
      "| nodes of kind | graphs | nodes each | instantiate, KiB | upload | launch | destroy gives | as many again | "
      "KiB "
      "a graph |\n|---|---|---|---|---|---|---|---|---|\n");
  const std::vector<Shape> shapes = is_small ? std::vector<Shape>(std::begin(kFew), std::end(kFew))
                                             : std::vector<Shape>(std::begin(kAll), std::end(kAll));
  for (const KindName& kind : kKinds) {
    for (const Shape& shape : shapes) {
      if (shape.nodes == 0 && kind.kind != kKinds[0].kind) continue;
      failed = InChild(failed, [&] { Memory(kind, shape.graphs, shape.nodes); });
    }
  }
  std::printf(
      "\n| nodes of kind | nodes | instantiate, us a node | upload | launch | update | clone | destroy |\n"
      "|---|---|---|---|---|---|---|---|\n");
  for (const KindName& kind : kKinds) {
    failed = InChild(failed, [&] { Time(kind, is_small ? 10 : 1000, is_small ? 3 : 51); });
  }
  for (const gcap::bench::DigitsCase& c : gcap::bench::DigitsCases(is_small)) {
    failed = InChild(failed, [&] { gcap::bench::RunDigits(c); });
  }
  return failed;
}
