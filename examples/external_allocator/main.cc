// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A host that shares one pool between another framework and gcap. The framework goes on with its own tensors, on its
// stream, and leaves its freed blocks full of rubbish; gcap runs a computation, captures it as a graph and replays it,
// and all its memory, weights, scratch and what the graph keeps, is the framework's. Prints what the callbacks did;
// exits with 0 when every result was right and all memory went back.
//   external_allocator [--careless | --on-its-stream]
// With --careless the callbacks pay no heed to the order of streams: on the simulator the first race ends the program.
// With --on-its-stream gcap works on the framework's own stream (user_compute_stream), with the framework's memory.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "examples/external_allocator/callbacks.h"
#include "examples/external_allocator/framework.h"
#include "gcap/runtime.h"

namespace {

constexpr size_t kFloats = size_t{1} << 18;
constexpr size_t kBytes = kFloats * sizeof(float);
constexpr int kRuns = 12;
constexpr int kGraphId = 0;

void Check(gcap_status_t status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "%s\n", gcap_status_message(status));
  std::exit(1);
}

void CheckCuda(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

// Memory of the framework, for its own work.
struct Tensor {
  Tensor(Framework* framework, cudaStream_t stream)
      : framework(framework), stream(stream), data(framework->Alloc(kBytes, stream)) {
    if (data == nullptr) CheckCuda(cudaErrorMemoryAllocation);
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() { framework->Free(data, stream); }

  void Set(const std::vector<float>& values) {
    CheckCuda(cudaMemcpyAsync(data, values.data(), kBytes, cudaMemcpyHostToDevice, stream));
    CheckCuda(cudaStreamSynchronize(stream));
  }
  std::vector<float> Get() const {
    std::vector<float> values(kFloats);
    CheckCuda(cudaMemcpyAsync(values.data(), data, kBytes, cudaMemcpyDeviceToHost, stream));
    CheckCuda(cudaStreamSynchronize(stream));
    return values;
  }

  Framework* const framework;
  const cudaStream_t stream;
  void* const data;
};

// The framework's own work: tensors that come and go while the device is still at them.
void WorkOfTheFramework(Framework* framework, cudaStream_t stream) {
  for (int i = 0; i < 4; ++i) {
    const Tensor temporary(framework, stream);
    CheckCuda(cudaMemsetAsync(temporary.data, 0xEE, kBytes, stream));
  }
}

// gcap's: y's first half is x's, by way of scratch; its second half is the weights'.
gcap_status_t Compute(const gcap_run_resources_t& run, const Tensor& x, const void* weights, const Tensor& y) {
  const cudaStream_t stream = gcap_stream_handle(run.stream);
  void* scratch = nullptr;
  GCAP_RETURN_IF_ERROR(gcap_scratch_alloc(run.scratch, kBytes, run.stream, &scratch));
  gcap_status_t status = GCAP_CUDA(cudaMemcpyAsync(scratch, x.data, kBytes, cudaMemcpyDeviceToDevice, stream));
  if (status == nullptr) {
    status = GCAP_CUDA(cudaMemcpyAsync(y.data, scratch, kBytes / 2, cudaMemcpyDeviceToDevice, stream));
  }
  if (status == nullptr) {
    status = GCAP_CUDA(cudaMemcpyAsync(static_cast<char*>(y.data) + kBytes / 2, weights, kBytes / 2,
                                       cudaMemcpyDeviceToDevice, stream));
  }
  return gcap_status_join(status, gcap_scratch_free(run.scratch, scratch));
}

// A replay where there is a graph, else a run, which may be the one that is captured.
void Run(gcap_runtime_t* runtime, const Tensor& x, const void* weights, const Tensor& y, bool synchronize) {
  const auto work = [&](const gcap_run_resources_t& run) { return Compute(run, x, weights, y); };
  gcap_run_t how;
  gcap_run_init(&how);
  how.id = kGraphId;
  how.work = [](void* user, const gcap_run_resources_t* run) { return (*static_cast<decltype(work)*>(user))(*run); };
  how.user = const_cast<void*>(static_cast<const void*>(&work));
  how.synchronize = synchronize;
  Check(gcap_runtime_run(runtime, &how));
}

// What not to do: these are blocks that the framework's stream, and nobody else, may use at once.
Framework* careless_framework;
cudaStream_t careless_stream;
void* CarelessAlloc(size_t bytes) { return careless_framework->Alloc(bytes, careless_stream); }
void CarelessFree(void* ptr) { careless_framework->Free(ptr, careless_stream); }

void SetCarelessCallbacks(Framework* framework, cudaStream_t stream, gcap_options_t* options) {
  careless_framework = framework;
  careless_stream = stream;
  options->external_alloc = CarelessAlloc;
  options->external_free = CarelessFree;
}

// Weights in the allocator's memory; they live as long as the session of a host would.
void* MakeWeights(gcap_runtime_t* runtime, const std::vector<float>& values, cudaStream_t stream) {
  gcap_run_resources_t run;
  Check(gcap_runtime_get_resources(runtime, &run));
  void* weights = nullptr;
  Check(gcap_allocator_reserve(run.allocator, kBytes / 2, &weights));
  CheckCuda(cudaMemcpyAsync(weights, values.data(), kBytes / 2, cudaMemcpyHostToDevice, stream));
  CheckCuda(cudaStreamSynchronize(stream));
  return weights;
}

// On one stream with the framework, no run need be waited for.
int CountWrongRuns(Framework* framework, cudaStream_t stream, gcap_runtime_t* runtime, bool synchronize) {
  Tensor x(framework, stream), y(framework, stream);
  std::vector<float> values(kFloats), expected(kFloats);
  for (size_t i = kFloats / 2; i < kFloats; ++i) expected[i] = -static_cast<float>(i);
  void* const weights = MakeWeights(runtime, {expected.begin() + kFloats / 2, expected.end()}, stream);
  int num_wrong = 0;
  for (int i = 0; i < kRuns; ++i) {
    std::iota(values.begin(), values.end(), static_cast<float>(i));
    std::copy(values.begin(), values.begin() + kFloats / 2, expected.begin());
    x.Set(values);
    WorkOfTheFramework(framework, stream);
    Run(runtime, x, weights, y, synchronize);
    num_wrong += y.Get() != expected;
  }
  gcap_run_resources_t run;
  Check(gcap_runtime_get_resources(runtime, &run));
  Check(gcap_allocator_free(run.allocator, weights));
  return num_wrong;
}

}  // namespace

int main(int argc, char** argv) {
  const bool careless = argc == 2 && std::strcmp(argv[1], "--careless") == 0;
  const bool on_its_stream = argc == 2 && std::strcmp(argv[1], "--on-its-stream") == 0;
  if (argc > 1 && !careless && !on_its_stream) {
    std::fprintf(stderr, "usage: external_allocator [--careless | --on-its-stream]\n");
    return 2;
  }
  CheckCuda(cudaSetDevice(0));
  const std::unique_ptr<Framework> framework = MakeFramework();
  const cudaStream_t stream = framework->Stream();
  WorkOfTheFramework(framework.get(), stream);

  gcap_options_t options;
  gcap_options_init(&options);
  options.enable_cuda_graph = true;
  if (!SetCallbacks(framework.get(), &options)) return 1;
  if (careless) SetCarelessCallbacks(framework.get(), stream, &options);
  options.has_user_stream = on_its_stream;
  options.user_stream = on_its_stream ? stream : nullptr;
  gcap_runtime_t* runtime = nullptr;
  Check(gcap_runtime_create(&options, &runtime));
  const int num_wrong = CountWrongRuns(framework.get(), stream, runtime, !on_its_stream);
  gcap_graph_info_t graph;
  gcap_graph_manager_t* graphs = nullptr;
  Check(gcap_runtime_graphs(runtime, &graphs));
  gcap_graph_manager_get_info(graphs, kGraphId, &graph);
  const size_t held_bytes = framework->HeldBytes();
  Check(gcap_runtime_destroy(runtime));

  const CallbackCounts counts = GetCallbackCounts();
  std::printf("gcap over %s, which held %zu KiB%s\n", framework->name(), held_bytes / 1024,
              on_its_stream ? ", on its stream" : "");
  std::printf("%d runs: %d wrong; %d captures, %d replays\n", kRuns, num_wrong, static_cast<int>(graph.captures),
              static_cast<int>(graph.replays));
  std::printf("%d allocs, %d frees, %d times the cache was emptied; %d of these calls in a capture\n", counts.allocs,
              counts.frees, counts.empty_caches, counts.in_captures);
  EndCallbacks();
  const bool all_back = counts.allocs == counts.frees && counts.in_captures == 0;
  return num_wrong == 0 && graph.replays > 0 && all_back ? 0 : 1;
}
