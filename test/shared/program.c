// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A program that knows of CUDA alone, linked with its shared libraries. It captures two streams, a product and a ReLU,
// replays the graph and compares.
//   program            does so, and leaves nothing behind
//   program race       the second stream does not wait for the first
//   program leak       an event is left; others go in an exit handler and in a destructor

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSide = 4, kCount = kSide * kSide, kBytes = kCount * sizeof(float) };

#define CHECK(call)                                    \
  do {                                                 \
    const int error_ = (int)(call);                    \
    if (error_ != 0) {                                 \
      fprintf(stderr, "%s gives %d\n", #call, error_); \
      exit(1);                                         \
    }                                                  \
  } while (0)

typedef struct engine {
  cudaStream_t main, side;
  cudaEvent_t begun, done;
  cublasHandle_t blas;
  cublasLtHandle_t blas_lt;
  cudnnHandle_t dnn;
  cudnnTensorDescriptor_t shape;
  cudnnActivationDescriptor_t relu;
  float *x, *ones, *y;  // device memory, kSide x kSide
} engine_t;

// --- The engine -------------------------------------------------------------------------------------------------------

static void create(engine_t* engine) {
  CHECK(cudaStreamCreateWithFlags(&engine->main, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&engine->side, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&engine->begun, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&engine->done, cudaEventDisableTiming));
  CHECK(cudaMalloc((void**)&engine->x, kBytes));
  CHECK(cudaMalloc((void**)&engine->ones, kBytes));
  CHECK(cudaMalloc((void**)&engine->y, kBytes));
  float ones[kCount];
  for (int i = 0; i < kCount; ++i) ones[i] = 1.0f;
  CHECK(cudaMemcpy(engine->ones, ones, kBytes, cudaMemcpyHostToDevice));
  CHECK(cublasCreate(&engine->blas));
  CHECK(cublasSetStream(engine->blas, engine->main));
  CHECK(cublasLtCreate(&engine->blas_lt));
  CHECK(cudnnCreate(&engine->dnn));
  CHECK(cudnnSetStream(engine->dnn, engine->main));
  CHECK(cudnnCreateTensorDescriptor(&engine->shape));
  CHECK(cudnnSetTensor4dDescriptor(engine->shape, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, kSide, kSide));
  CHECK(cudnnCreateActivationDescriptor(&engine->relu));
  CHECK(cudnnSetActivationDescriptor(engine->relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0.0));
}

static void destroy(engine_t* engine) {
  CHECK(cudnnDestroyActivationDescriptor(engine->relu));
  CHECK(cudnnDestroyTensorDescriptor(engine->shape));
  CHECK(cudnnDestroy(engine->dnn));
  CHECK(cublasLtDestroy(engine->blas_lt));
  CHECK(cublasDestroy(engine->blas));
  CHECK(cudaFree(engine->y));
  CHECK(cudaFree(engine->ones));
  CHECK(cudaFree(engine->x));
  CHECK(cudaEventDestroy(engine->done));
  CHECK(cudaEventDestroy(engine->begun));
  CHECK(cudaStreamDestroy(engine->side));
  CHECK(cudaStreamDestroy(engine->main));
}

// y = relu(x * ones): uploads x on the side stream, and waits for that before the product or, to race, after it.
static cudaGraph_t capture(const engine_t* engine, const float* input, float* output, int race) {
  const float one = 1.0f, zero = 0.0f;
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(engine->main, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(engine->begun, engine->main));
  CHECK(cudaStreamWaitEvent(engine->side, engine->begun, 0));
  CHECK(cudaMemcpyAsync(engine->x, input, kBytes, cudaMemcpyHostToDevice, engine->side));
  CHECK(cudaEventRecord(engine->done, engine->side));
  if (!race) CHECK(cudaStreamWaitEvent(engine->main, engine->done, 0));
  CHECK(cublasSgemm(engine->blas, CUBLAS_OP_N, CUBLAS_OP_N, kSide, kSide, kSide, &one, engine->x, kSide, engine->ones,
                    kSide, &zero, engine->y, kSide));
  if (race) CHECK(cudaStreamWaitEvent(engine->main, engine->done, 0));
  CHECK(cudnnActivationForward(engine->dnn, engine->relu, &one, engine->shape, engine->y, &zero, engine->shape,
                               engine->y));
  CHECK(cudaMemcpyAsync(output, engine->y, kBytes, cudaMemcpyDeviceToHost, engine->main));
  CHECK(cudaStreamEndCapture(engine->main, &graph));
  return graph;
}

// Gives how many numbers were not as expected. Each element of x is `value`, so each of the product is kSide times
// that.
static int replay(const engine_t* engine, cudaGraphExec_t exec, float value, float* input, const float* output) {
  const float expected = value > 0.0f ? kSide * value : 0.0f;
  int num_bad = 0;
  for (int i = 0; i < kCount; ++i) input[i] = value;
  CHECK(cudaGraphLaunch(exec, engine->main));
  CHECK(cudaStreamSynchronize(engine->main));
  for (int i = 0; i < kCount; ++i) num_bad += output[i] != expected;
  return num_bad;
}

static int run(int race) {
  engine_t engine;
  float *input, *output;
  cudaGraphExec_t exec;
  create(&engine);
  CHECK(cudaMallocHost((void**)&input, kBytes));
  CHECK(cudaMallocHost((void**)&output, kBytes));
  const cudaGraph_t graph = capture(&engine, input, output, race);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  const int num_bad = replay(&engine, exec, 2.0f, input, output) + replay(&engine, exec, -3.0f, input, output) +
                      replay(&engine, exec, 5.0f, input, output);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFreeHost(output));
  CHECK(cudaFreeHost(input));
  destroy(&engine);
  printf("%d of %d numbers are wrong\n", num_bad, 3 * kCount);
  return num_bad;
}

// --- What ends after main ---------------------------------------------------------------------------------------------

static cudaEvent_t of_exit_handler, of_destructor;

static void forget_one_event(void) {
  cudaEvent_t forgotten;
  CHECK(cudaEventCreate(&forgotten));
}

static void at_exit(void) { CHECK(cudaEventDestroy(of_exit_handler)); }

__attribute__((destructor)) static void at_end(void) {
  if (of_destructor != NULL) CHECK(cudaEventDestroy(of_destructor));
}

static void leave(void) {
  CHECK(cudaEventCreate(&of_exit_handler));
  CHECK(cudaEventCreate(&of_destructor));
  CHECK(atexit(at_exit));
  forget_one_event();
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "leak") == 0) leave();
  return run(strcmp(mode, "race") == 0) != 0;
}
