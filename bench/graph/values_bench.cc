// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What it costs the host to give a captured graph four other values, that one node reads or 32: a replay with the
// values of its run, beside a replay with the values that are there, the bare launch, the driver's own calls for as
// many nodes, a copy of the values into device memory before the launch or as its first node, and llama.cpp's way.
//
// All ways are timed in turn in each round, and the device is idle before each: the figures are medians of the rounds.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "bench/graph/moving_graph.h"
#include "bench/graph/paired.h"
#include "bench/graph/values_kernel.h"
#include "gcap/graph.h"

namespace {

using gcap::bench::Check;
using gcap::bench::CheckCuda;
using gcap::bench::CheckDriver;
using gcap::bench::DriverFunction;
using gcap::bench::DriverKernel;
using gcap::bench::Samples;

struct Values {
  uint32_t position, length;
  uint64_t seed;
  float temperature;
};
constexpr Values kLow = {0, 1, 0, 0}, kHigh = {4095, 4096, UINT64_MAX, 2};
constexpr size_t kCount = 4;

// Those of a step.
Values ValuesOf(uint32_t step) {
  return {step % 4096, step % 4096 + 1, step * 7919ull, static_cast<float>(step % 200) / 100};
}

// A kernel, `nodes` times in a row.
void IssueKernel(cudaStream_t stream, int nodes, const void* kernel, void** args) {
  for (int i = 0; i < nodes; ++i) CheckCuda(cudaLaunchKernel(kernel, dim3(1), dim3(1), args, 0, stream));
}
void Issue(cudaStream_t stream, int nodes, float* out, Values v) {
  void* args[] = {&out, &v.position, &v.length, &v.seed, &v.temperature};
  IssueKernel(stream, nodes, reinterpret_cast<const void*>(gcap_bench_step), args);
}

// A graph of gcap's, which each replay gives values.
class Graph {
 public:
  Graph(cudaStream_t stream, int nodes, float* out, bool in_memory)
      : stream_(stream), nodes_(nodes), out_(out), in_memory_(in_memory), manager_(gcap::bench::CreateManager()) {
    Do(1, [](gcap_graph_manager_t* manager, const gcap_run_t* run) { return gcap_graph_manager_run(manager, run); });
    Check(gcap_graph_manager_explain(manager_, 0, GCAP_GRAPH_WHY_NOT_MOVABLE));
  }
  ~Graph() { Check(gcap_graph_manager_destroy(manager_)); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void Replay(uint32_t step) {
    Do(step, [](gcap_graph_manager_t* manager, const gcap_run_t* run) {
      return gcap_graph_manager_replay(manager, run, nullptr);
    });
  }

 private:
  template <typename Call>
  void Do(uint32_t step, Call call) {
    const Values now = ValuesOf(step);
    const gcap_graph_value_t values[kCount] = {
        {"position", &now.position, 4, GCAP_GRAPH_VALUE_UNSIGNED, &kLow.position, &kHigh.position, false, in_memory_},
        {"length", &now.length, 4, GCAP_GRAPH_VALUE_UNSIGNED, &kLow.length, &kHigh.length, false, in_memory_},
        {"seed", &now.seed, 8, GCAP_GRAPH_VALUE_UNSIGNED, &kLow.seed, &kHigh.seed, false, in_memory_},
        {"temperature", &now.temperature, 4, GCAP_GRAPH_VALUE_FLOAT, &kLow.temperature, &kHigh.temperature, false,
         in_memory_}};
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.values = values;
    buffers.num_values = kCount;
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = 0;
    run.stream = stream_;
    run.work = Work;
    run.user = this;
    run.buffers = &buffers;
    Check(call(manager_, &run));
  }
  static gcap_status_t Work(void* user, const gcap_run_resources_t* resources) {
    const Graph* self = static_cast<const Graph*>(user);
    if (self->in_memory_) {
      void* args[kCount + 1] = {const_cast<float**>(&self->out_)};
      for (size_t i = 0; i < kCount; ++i) args[1 + i] = const_cast<const void**>(&resources->values[i]);
      IssueKernel(resources->cuda_stream, self->nodes_, reinterpret_cast<const void*>(gcap_bench_step_in_memory), args);
      return nullptr;
    }
    Values v = {};
    std::memcpy(&v.position, resources->values[0], sizeof(v.position));
    std::memcpy(&v.length, resources->values[1], sizeof(v.length));
    std::memcpy(&v.seed, resources->values[2], sizeof(v.seed));
    std::memcpy(&v.temperature, resources->values[3], sizeof(v.temperature));
    Issue(resources->cuda_stream, self->nodes_, self->out_, v);
    return nullptr;
  }

  const cudaStream_t stream_;
  const int nodes_;
  float* const out_;
  const bool in_memory_;
  gcap_graph_manager_t* const manager_;
};

// The same without gcap.
class Bare {
 public:
  Bare(cudaStream_t stream, int nodes, float* out) : stream_(stream), nodes_(static_cast<size_t>(nodes)) {
    CheckCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    Issue(stream, nodes, out, ValuesOf(1));
    CheckCuda(cudaStreamEndCapture(stream, &graph_));
    size_t count = nodes_.size();
    CheckCuda(cudaGraphGetNodes(graph_, nodes_.data(), &count));
    CheckDriver(
        DriverFunction<int (*)(cudaGraphNode_t, DriverKernel*)>("cuGraphKernelNodeGetParams")(nodes_[0], &kernel_));
    CheckCuda(cudaGraphInstantiate(&exec_, graph_, 0));
    CheckCuda(cudaMalloc(&block_, sizeof(Values)));
    CheckCuda(cudaMallocHost(&pinned_, sizeof(Values)));
    out_ = out;
  }
  ~Bare() {
    CheckCuda(cudaFree(block_));
    CheckCuda(cudaFreeHost(pinned_));
    CheckCuda(cudaGraphExecDestroy(exec_));
    CheckCuda(cudaGraphDestroy(graph_));
  }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  void Launch() const { CheckCuda(cudaGraphLaunch(exec_, stream_)); }
  void SetAndLaunch(uint32_t step) {
    Values v = ValuesOf(step);
    void* args[] = {&out_, &v.position, &v.length, &v.seed, &v.temperature};
    DriverKernel kernel = kernel_;
    kernel.params = args;
    for (cudaGraphNode_t node : nodes_) CheckDriver(set_(exec_, node, &kernel));
    Launch();
  }
  void CopyAndLaunch(uint32_t step) {
    const Values v = ValuesOf(step);
    std::memcpy(pinned_, &v, sizeof(v));
    CheckCuda(cudaMemcpyAsync(block_, pinned_, sizeof(v), cudaMemcpyHostToDevice, stream_));
    Launch();
  }
  void CopyPageableAndLaunch(uint32_t step) {
    const Values v = ValuesOf(step);
    CheckCuda(cudaMemcpyAsync(block_, &v, sizeof(v), cudaMemcpyHostToDevice, stream_));
    Launch();
  }

 private:
  const cudaStream_t stream_;
  std::vector<cudaGraphNode_t> nodes_;
  DriverKernel kernel_ = {};
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  void *block_ = nullptr, *pinned_ = nullptr;
  float* out_ = nullptr;
  int (*const set_)(cudaGraphExec_t, cudaGraphNode_t, const DriverKernel*) =
      DriverFunction<int (*)(cudaGraphExec_t, cudaGraphNode_t, const DriverKernel*)>("cuGraphExecKernelNodeSetParams");
};

// The copy is the first node of the graph instead, which is set to another slot of pinned memory before each launch.
class BareWithCopy {
 public:
  BareWithCopy(cudaStream_t stream, int nodes, float* out) : stream_(stream) {
    CheckCuda(cudaMalloc(&block_, sizeof(Values)));
    CheckCuda(cudaMallocHost(reinterpret_cast<void**>(&pinned_), kSlots * sizeof(Values)));
    CheckCuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CheckCuda(cudaMemcpyAsync(block_, pinned_, sizeof(Values), cudaMemcpyHostToDevice, stream));
    Issue(stream, nodes, out, ValuesOf(1));
    CheckCuda(cudaStreamEndCapture(stream, &graph_));
    size_t count = 1;
    CheckCuda(cudaGraphGetRootNodes(graph_, &copy_, &count));
    CheckCuda(cudaGraphMemcpyNodeGetParams(copy_, &params_));
    CheckCuda(cudaGraphInstantiate(&exec_, graph_, 0));
  }
  ~BareWithCopy() {
    CheckCuda(cudaFree(block_));
    CheckCuda(cudaFreeHost(pinned_));
    CheckCuda(cudaGraphExecDestroy(exec_));
    CheckCuda(cudaGraphDestroy(graph_));
  }
  BareWithCopy(const BareWithCopy&) = delete;
  BareWithCopy& operator=(const BareWithCopy&) = delete;

  void SetAndLaunch(uint32_t step) {
    Values* const slot = &pinned_[step % kSlots];
    *slot = ValuesOf(step);
    params_.srcPtr.ptr = slot;
    CheckCuda(cudaGraphExecMemcpyNodeSetParams(exec_, copy_, &params_));
    CheckCuda(cudaGraphLaunch(exec_, stream_));
  }

 private:
  static constexpr uint32_t kSlots = 64;
  const cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphNode_t copy_ = nullptr;
  cudaMemcpy3DParms params_ = {};
  cudaGraphExec_t exec_ = nullptr;
  void* block_ = nullptr;
  Values* pinned_ = nullptr;
};

// llama.cpp's way, written anew against plain CUDA: what is known of each node is compared with that of the last step,
// of all nodes in each step. If it is the same, the executable is launched as it is. Else the work is captured again,
// and the executable is updated, or made anew if the driver refuses the update. llama.cpp gives graphs up after four
// such steps in a row; here they go on.
class Compared {
 public:
  Compared(cudaStream_t stream, int nodes, float* out)
      : stream_(stream), out_(out), nodes_(static_cast<size_t>(nodes)), known_(nodes_.size()) {
    for (Node& node : nodes_) {
      node.address = node.sources[0] = out;
      node.shape[0] = node.strides[0] = 1;
    }
  }
  ~Compared() {
    CheckCuda(cudaGraphExecDestroy(exec_));
    CheckCuda(cudaGraphDestroy(graph_));
  }
  Compared(const Compared&) = delete;
  Compared& operator=(const Compared&) = delete;

  void Step(uint32_t step) {
    const Values v = ValuesOf(step);
    for (Node& node : nodes_) {  // the engine builds its step
      std::memcpy(node.parameters, &v.seed, sizeof(v.seed));
      std::memcpy(node.parameters + 8, &v.position, sizeof(v.position));
      std::memcpy(node.parameters + 12, &v.length, sizeof(v.length));
      std::memcpy(node.parameters + 16, &v.temperature, sizeof(v.temperature));
    }
    bool differs = exec_ == nullptr;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!differs) differs = std::memcmp(&nodes_[i], &known_[i], sizeof(Node)) != 0;
      known_[i] = nodes_[i];
    }
    if (differs) CaptureAndUpdate(v);
    CheckCuda(cudaGraphLaunch(exec_, stream_));
  }
  int captures() const { return captures_; }

 private:
  // What llama.cpp keeps of a node, of the same sizes.
  struct Node {
    const void* address;
    int64_t operation;
    int64_t shape[4];
    size_t strides[4];
    const void* sources[10];
    char parameters[64];
  };

  void CaptureAndUpdate(const Values& v) {
    ++captures_;
    if (graph_ != nullptr) CheckCuda(cudaGraphDestroy(graph_));
    CheckCuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
    Issue(stream_, static_cast<int>(nodes_.size()), out_, v);
    CheckCuda(cudaStreamEndCapture(stream_, &graph_));
    cudaGraphExecUpdateResultInfo info = {};
    if (exec_ != nullptr && cudaGraphExecUpdate(exec_, graph_, &info) == cudaSuccess) return;
    (void)cudaGetLastError();
    if (exec_ != nullptr) CheckCuda(cudaGraphExecDestroy(exec_));
    CheckCuda(cudaGraphInstantiate(&exec_, graph_, 0));
  }

  const cudaStream_t stream_;
  float* const out_;
  std::vector<Node> nodes_, known_;  // all zeros, so that no padding differs
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  int captures_ = 0;
};

struct Way {
  const char* name;
  std::function<void(uint32_t)> step;
  Samples time = {};
};

void Time(std::vector<Way>* ways, uint32_t rounds) {
  for (uint32_t i = 0; i < rounds; ++i) {
    for (Way& way : *ways) {
      way.step(2 * i + 100);  // so that no figure depends on which way came before
      CheckCuda(cudaDeviceSynchronize());
      way.time.Time([&] { way.step(2 * i + 101); });
      CheckCuda(cudaDeviceSynchronize());
    }
  }
}

void CheckCaptures(const char* what, int captures, int expected) {
  if (captures == expected) return;
  std::fprintf(stderr, "benchmark: %d captures %s, and %d are right\n", captures, what, expected);
  std::exit(1);
}

void RunValues(int nodes, int rounds) {
  cudaStream_t stream = nullptr;
  float* out = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CheckCuda(cudaMalloc(reinterpret_cast<void**>(&out), sizeof(*out)));
  {
    Graph graph(stream, nodes, out, /*in_memory=*/false), in_memory(stream, nodes, out, /*in_memory=*/true);
    Bare bare(stream, nodes, out);
    BareWithCopy with_copy(stream, nodes, out);
    Compared compared(stream, nodes, out), changed(stream, nodes, out);
    std::vector<Way> ways;
    ways.push_back({"`cudaGraphLaunch`", [&](uint32_t) { bare.Launch(); }});
    ways.push_back({"replay with the values that are there", [&](uint32_t) { graph.Replay(7); }});
    ways.push_back({"replay with 4 other values", [&](uint32_t step) { graph.Replay(step); }});
    ways.push_back({"replay with 4 other values in memory", [&](uint32_t step) { in_memory.Replay(step); }});
    ways.push_back({"`cuGraphExecKernelNodeSetParams`, launch", [&](uint32_t step) { bare.SetAndLaunch(step); }});
    ways.push_back({"a copy from pinned memory, launch", [&](uint32_t step) { bare.CopyAndLaunch(step); }});
    ways.push_back({"a copy from pageable memory, launch", [&](uint32_t step) { bare.CopyPageableAndLaunch(step); }});
    ways.push_back(
        {"a memcpy node set to pinned memory, launch", [&](uint32_t step) { with_copy.SetAndLaunch(step); }});
    ways.push_back({"nodes compared, launch: none changed", [&](uint32_t) { compared.Step(7); }});
    ways.push_back({"nodes compared, captured again, updated, launch", [&](uint32_t step) { changed.Step(step); }});
    Time(&ways, static_cast<uint32_t>(rounds));
    CheckCaptures("of unchanged nodes", compared.captures(), 1);
    CheckCaptures("of changed nodes", changed.captures(), 2 * rounds);
    std::printf("4 values that %d nodes read, %d rounds\n\n| way | host, us |\n|---|---|\n", nodes, rounds);
    for (const Way& way : ways) std::printf("| %s | %.2f |\n", way.name, way.time.Median() / 1000);
    std::printf("\n");
  }
  CheckCuda(cudaFree(out));
  CheckCuda(cudaStreamDestroy(stream));
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_small = gcap::bench::IsSmall(argc, argv);
  if (!gcap::bench::PrintDevice()) {
    std::printf("no CUDA device\n");
    return 0;
  }
  for (const int nodes : {1, 32}) RunValues(nodes, is_small ? 3 : 1001);
  return 0;
}
