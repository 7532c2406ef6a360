// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A program that nvcc compiles, and that knows of CUDA alone: it captures an upload on one stream and a kernel on
// another, replays the graph and compares.
//   kernel_program         gives 2 where a number is wrong, as it is without the kernel
//   kernel_program race    the kernel does not wait for the upload
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                   \
  do {                                                                \
    const cudaError_t error_ = (call);                                \
    if (error_ != cudaSuccess) {                                      \
      fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_)); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

namespace {

constexpr int kCount = 256;
constexpr size_t kBytes = kCount * sizeof(float);
constexpr float kFactor = 3.0f;

}  // namespace

namespace engine {

__global__ void scale(const float* x, float factor, float* y) { y[threadIdx.x] = factor * x[threadIdx.x]; }

struct Engine {
  cudaStream_t main, side;
  cudaEvent_t begun, arrived;
  float *x, *y;           // device memory
  float *input, *output;  // pinned memory
};

Engine Create() {
  Engine engine = {};
  CHECK(cudaStreamCreateWithFlags(&engine.main, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&engine.side, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&engine.begun, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&engine.arrived, cudaEventDisableTiming));
  CHECK(cudaMalloc(&engine.x, kBytes));
  CHECK(cudaMalloc(&engine.y, kBytes));
  CHECK(cudaMallocHost(&engine.input, kBytes));
  CHECK(cudaMallocHost(&engine.output, kBytes));
  return engine;
}

void Destroy(const Engine& engine) {
  CHECK(cudaFreeHost(engine.output));
  CHECK(cudaFreeHost(engine.input));
  CHECK(cudaFree(engine.y));
  CHECK(cudaFree(engine.x));
  CHECK(cudaEventDestroy(engine.arrived));
  CHECK(cudaEventDestroy(engine.begun));
  CHECK(cudaStreamDestroy(engine.side));
  CHECK(cudaStreamDestroy(engine.main));
}

cudaGraph_t Capture(const Engine& engine, bool race) {
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(engine.main, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(engine.begun, engine.main));
  CHECK(cudaStreamWaitEvent(engine.side, engine.begun, 0));
  CHECK(cudaMemcpyAsync(engine.x, engine.input, kBytes, cudaMemcpyHostToDevice, engine.side));
  CHECK(cudaEventRecord(engine.arrived, engine.side));
  if (!race) CHECK(cudaStreamWaitEvent(engine.main, engine.arrived, 0));
  scale<<<1, kCount, 0, engine.main>>>(engine.x, kFactor, engine.y);
  CHECK(cudaGetLastError());
  if (race) CHECK(cudaStreamWaitEvent(engine.main, engine.arrived, 0));
  CHECK(cudaMemcpyAsync(engine.output, engine.y, kBytes, cudaMemcpyDeviceToHost, engine.main));
  CHECK(cudaStreamEndCapture(engine.main, &graph));
  return graph;
}

}  // namespace engine

int main(int argc, char**) {
  const engine::Engine engine = engine::Create();
  const cudaGraph_t graph = engine::Capture(engine, argc > 1);
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  int num_bad = 0;
  for (int replay = 0; replay < 3; ++replay) {
    for (int i = 0; i < kCount; ++i) engine.input[i] = static_cast<float>(i + replay);
    CHECK(cudaGraphLaunch(exec, engine.main));
    CHECK(cudaStreamSynchronize(engine.main));
    for (int i = 0; i < kCount; ++i) num_bad += engine.output[i] != kFactor * static_cast<float>(i + replay);
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  engine::Destroy(engine);
  printf("%d of %d numbers are wrong\n", num_bad, 3 * kCount);
  return num_bad == 0 ? 0 : 2;
}
