// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// moving_graph.h: a graph of kernels on buffers that move, by gcap and by the bare runtime.
#ifndef GCAP_BENCH_GRAPH_MOVING_GRAPH_H_
#define GCAP_BENCH_GRAPH_MOVING_GRAPH_H_

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/graph/paired.h"
#include "gcap/graph.h"
#include "gcap/graph_buffers.h"

namespace gcap {
namespace bench {

constexpr int kBuffers = 4;
constexpr size_t kBytes = 256;

// How many nodes have a pointer into each buffer: each of the first three is the input of so many nodes, the last is
// the output of all.
struct MovingShape {
  int nodes_of[kBuffers];
  int rounds;
  int nodes() const { return nodes_of[kBuffers - 1]; }
  // The nodes of a buffer lie side by side, from this one.
  int FirstOf(int buffer) const {
    if (buffer == kBuffers - 1) return 0;
    int first = 0;
    for (int i = 0; i < buffer; ++i) first += nodes_of[i];
    return first;
  }
};

// Two places for each buffer, and kernels in a row that work on the buffers.
class MovingWork {
 public:
  explicit MovingWork(const MovingShape& shape) : shape_(shape) {
    Check(gcap_stream_create(0, &stream_));
    for (auto& place : places_) {
      for (void*& buffer : place) buffer = Zeros();
    }
    own_ = Zeros();
    Issue(places_[0]);  // loads the kernel
    CheckCuda(cudaDeviceSynchronize());
  }
  ~MovingWork() {
    for (auto& place : places_) {
      for (void* buffer : place) CheckCuda(cudaFree(buffer));
    }
    CheckCuda(cudaFree(own_));
    Check(gcap_stream_destroy(stream_));
  }
  MovingWork(const MovingWork&) = delete;
  MovingWork& operator=(const MovingWork&) = delete;
  const MovingShape& shape() const { return shape_; }
  cudaStream_t stream() const { return gcap_stream_handle(stream_); }
  void* const* place(int side) const { return places_[side]; }
  void Issue(void* const* addresses) const {
    for (int i = 0; i < shape_.nodes(); ++i) {
      const gcap_tensor_t x = {InputOf(i, addresses), GCAP_DTYPE_F32, 1, {1}};
      const gcap_tensor_t y = {addresses[kBuffers - 1], GCAP_DTYPE_F32, 1, {1}};
      Check(gcap_unary(stream_, GCAP_UNARY_RELU, &x, &y));
    }
  }
  // Without gcap.
  cudaGraph_t Capture(int side) const {
    cudaGraph_t graph = nullptr;
    CheckCuda(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal));
    Issue(places_[side]);
    CheckCuda(cudaStreamEndCapture(stream(), &graph));
    return graph;
  }

 private:
  static void* Zeros() {
    void* memory = nullptr;
    CheckCuda(cudaMalloc(&memory, kBytes));
    CheckCuda(cudaMemset(memory, 0, kBytes));
    CheckCuda(cudaDeviceSynchronize());
    return memory;
  }
  void* InputOf(int node, void* const* addresses) const {
    for (int buffer = 0; buffer < kBuffers - 1; ++buffer) {
      const int first = shape_.FirstOf(buffer);
      if (node >= first && node < first + shape_.nodes_of[buffer]) return addresses[buffer];
    }
    return own_;
  }

  const MovingShape shape_;
  gcap_stream_t* stream_ = nullptr;
  void* places_[2][kBuffers];
  void* own_ = nullptr;
};

inline gcap_graph_manager_t* CreateManager() {
  gcap_graph_manager_options_t options;
  gcap_graph_manager_options_init(&options);
  options.min_num_runs_before_capture = 0;
  gcap_graph_manager_t* manager = nullptr;
  Check(gcap_graph_manager_create(&options, &manager));
  return manager;
}

// gcap's graph with buffers that move.
class MovingGraph {
 public:
  explicit MovingGraph(const MovingWork& work) : work_(work), manager_(CreateManager()) {
    gcap_graph_buffer_t items[kBuffers];
    for (int i = 0; i < kBuffers; ++i) items[i] = {nullptr, work.place(0)[i], kBytes, 0};
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.items = items;
    buffers.count = kBuffers;
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = kId;
    run.stream = work.stream();
    run.work = [](void* user, const gcap_run_resources_t* resources) -> gcap_status_t {
      static_cast<const MovingWork*>(user)->Issue(resources->addresses);
      return nullptr;
    };
    run.user = const_cast<MovingWork*>(&work);
    run.buffers = &buffers;
    run.synchronize = true;
    Check(gcap_graph_manager_run(manager_, &run));
    Check(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHY_NOT_MOVABLE));
  }
  ~MovingGraph() { Check(gcap_graph_manager_destroy(manager_)); }
  MovingGraph(const MovingGraph&) = delete;
  MovingGraph& operator=(const MovingGraph&) = delete;

  void Bind(int buffer, bool elsewhere) {
    Check(gcap_graph_manager_bind(manager_, kId, static_cast<size_t>(buffer), Next(buffer, elsewhere)));
  }
  void Launch() const {
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = kId;
    Check(gcap_graph_manager_replay(manager_, &run, nullptr));
  }
  void BindAndLaunch(int buffer, bool elsewhere) {
    Next(buffer, elsewhere);
    gcap_graph_buffer_t items[kBuffers];
    for (int i = 0; i < kBuffers; ++i) items[i] = {nullptr, work_.place(sides_[i])[i], kBytes, 0};
    gcap_graph_buffers_t buffers;
    gcap_graph_buffers_init(&buffers);
    buffers.items = items;
    buffers.count = kBuffers;
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = kId;
    run.buffers = &buffers;
    Check(gcap_graph_manager_replay(manager_, &run, nullptr));
  }

 private:
  static constexpr int kId = 0;

  void* Next(int buffer, bool elsewhere) {
    if (elsewhere) sides_[buffer] = 1 - sides_[buffer];
    return work_.place(sides_[buffer])[buffer];
  }

  const MovingWork& work_;
  gcap_graph_manager_t* const manager_;
  int sides_[kBuffers] = {};
};

// A graph manager's run that captures, each time anew: with buffers that move, so with rehearsals, or plain.
class CapturedRun {
 public:
  CapturedRun(const MovingWork& work, bool moves) : work_(work), manager_(CreateManager()) {
    for (int i = 0; i < kBuffers; ++i) {
      items_[i] = {nullptr, work.place(0)[i], kBytes, 0};
      is_unused_[i] = work.shape().nodes_of[i] == 0;
    }
    gcap_graph_buffers_init(&buffers_);
    buffers_.items = items_;
    buffers_.count = kBuffers;
    buffers_.may_be_unused = is_unused_;
    gcap_run_init(&run_);
    run_.id = kId;
    run_.stream = work.stream();
    run_.work = [](void* user, const gcap_run_resources_t*) -> gcap_status_t {
      const CapturedRun* self = static_cast<const CapturedRun*>(user);
      self->work_.Issue(self->work_.place(0));
      return nullptr;
    };
    run_.user = this;
    if (!moves) return;
    run_.work = [](void* user, const gcap_run_resources_t* resources) -> gcap_status_t {
      static_cast<const CapturedRun*>(user)->work_.Issue(resources->addresses);
      return nullptr;
    };
    run_.buffers = &buffers_;
  }
  ~CapturedRun() { Check(gcap_graph_manager_destroy(manager_)); }
  CapturedRun(const CapturedRun&) = delete;
  CapturedRun& operator=(const CapturedRun&) = delete;

  void Time() {
    time_.Time([&] { Check(gcap_graph_manager_run(manager_, &run_)); });
    CheckCuda(cudaDeviceSynchronize());
    Check(gcap_graph_manager_explain(manager_, kId, GCAP_GRAPH_WHY_NOT_MOVABLE));
    gcap_graph_info_t info;
    gcap_graph_manager_get_info(manager_, kId, &info);
    instantiate_ns_.push_back(static_cast<double>(info.instantiate_ns));
    Check(gcap_graph_manager_release(manager_, kId));
  }
  // Until the graph is launched.
  double Nanoseconds() const { return time_.Median(); }
  double InstantiateNanoseconds() const { return MedianOf(instantiate_ns_); }

 private:
  static constexpr int kId = 0;

  const MovingWork& work_;
  gcap_graph_manager_t* const manager_;
  gcap_graph_buffer_t items_[kBuffers];
  bool is_unused_[kBuffers];
  gcap_graph_buffers_t buffers_;
  gcap_run_t run_;
  Samples time_;
  std::vector<double> instantiate_ns_;
};

// gcap's graph that is captured again for other buffers, and updated in place.
class RecapturedGraph {
 public:
  explicit RecapturedGraph(const MovingWork& work) : work_(work), manager_(CreateManager()) { Run(); }
  ~RecapturedGraph() { Check(gcap_graph_manager_destroy(manager_)); }
  RecapturedGraph(const RecapturedGraph&) = delete;
  RecapturedGraph& operator=(const RecapturedGraph&) = delete;

  void RecaptureAndLaunch() {
    Check(gcap_graph_manager_recapture(manager_, kId));
    side_ = 1 - side_;
    Run();
  }
  gcap_graph_info_t info() const {
    gcap_graph_info_t info;
    gcap_graph_manager_get_info(manager_, kId, &info);
    return info;
  }

 private:
  static constexpr int kId = 0;

  void Run() {
    gcap_run_t run;
    gcap_run_init(&run);
    run.id = kId;
    run.stream = work_.stream();
    run.work = [](void* user, const gcap_run_resources_t*) -> gcap_status_t {
      const RecapturedGraph* self = static_cast<const RecapturedGraph*>(user);
      self->work_.Issue(self->work_.place(self->side_));
      return nullptr;
    };
    run.user = this;
    Check(gcap_graph_manager_run(manager_, &run));
  }

  const MovingWork& work_;
  gcap_graph_manager_t* const manager_;
  int side_ = 0;
};

// CUDA_KERNEL_NODE_PARAMS_v2. A build against the simulator has no cuda.h.
struct DriverKernel {
  void* function;
  unsigned grid[3], block[3], shared_bytes;
  void** params;
  void** extra;
  void* kernel;
  void* context;
};
static_assert(sizeof(DriverKernel) == 72, "as in cuda.h");

template <typename Function>
Function DriverFunction(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  CheckCuda(cudaGetDriverEntryPointByVersion(name, &function, 12040, cudaEnableDefault, &result));
  if (result == cudaDriverEntryPointSuccess) return reinterpret_cast<Function>(function);
  std::fprintf(stderr, "benchmark: the driver has no %s\n", name);
  std::exit(1);
}

inline void CheckDriver(int result) { CheckCuda(static_cast<cudaError_t>(result)); }  // the numbers are the same

// An executable of the bare runtime, of a graph captured at both places.
class BareGraph {
 public:
  explicit BareGraph(const MovingWork& work) : work_(work), graphs_{work.Capture(0), work.Capture(1)} {
    const auto get = DriverFunction<int (*)(cudaGraphNode_t, DriverKernel*)>("cuGraphKernelNodeGetParams");
    for (int side = 0; side < 2; ++side) {
      nodes_[side].resize(static_cast<size_t>(work.shape().nodes()));
      size_t count = nodes_[side].size();
      CheckCuda(cudaGraphGetNodes(graphs_[side], nodes_[side].data(), &count));
      for (cudaGraphNode_t node : nodes_[side]) {
        kernels_[side].emplace_back();
        CheckDriver(get(node, &kernels_[side].back()));
      }
    }
    CheckCuda(cudaGraphInstantiate(&exec_, graphs_[0], 0));
  }
  ~BareGraph() {
    CheckCuda(cudaGraphExecDestroy(exec_));
    for (cudaGraph_t graph : graphs_) CheckCuda(cudaGraphDestroy(graph));
  }
  BareGraph(const BareGraph&) = delete;
  BareGraph& operator=(const BareGraph&) = delete;

  void Launch() const { CheckCuda(cudaGraphLaunch(exec_, work_.stream())); }
  // As many nodes as the buffer has, each with all its arguments of the other place.
  void SetNodes(int buffer) {
    const int side = sides_[buffer] = 1 - sides_[buffer];
    const int first = work_.shape().FirstOf(buffer);
    for (int i = first; i < first + work_.shape().nodes_of[buffer]; ++i) {
      CheckDriver(set_(exec_, nodes_[0][static_cast<size_t>(i)], &kernels_[side][static_cast<size_t>(i)]));
    }
  }
  void Update() {
    side_ = 1 - side_;
    UpdateTo(graphs_[side_]);
  }
  void CaptureAndUpdate() {
    side_ = 1 - side_;
    cudaGraph_t graph = work_.Capture(side_);
    UpdateTo(graph);
    CheckCuda(cudaGraphDestroy(graph));
  }

 private:
  void UpdateTo(cudaGraph_t graph) const {
    cudaGraphExecUpdateResultInfo info = {};
    CheckCuda(cudaGraphExecUpdate(exec_, graph, &info));
  }

  const MovingWork& work_;
  const cudaGraph_t graphs_[2];
  std::vector<cudaGraphNode_t> nodes_[2];
  std::vector<DriverKernel> kernels_[2];
  int (*const set_)(cudaGraphExec_t, cudaGraphNode_t, const DriverKernel*) =
      DriverFunction<int (*)(cudaGraphExec_t, cudaGraphNode_t, const DriverKernel*)>("cuGraphExecKernelNodeSetParams");
  cudaGraphExec_t exec_ = nullptr;
  int sides_[kBuffers] = {};
  int side_ = 0;
};

}  // namespace bench
}  // namespace gcap

#endif  // GCAP_BENCH_GRAPH_MOVING_GRAPH_H_
