// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What it costs the host to issue an operator: gcap's plan, and the library's bare call with descriptors made before,
// in turn within each iteration. The shapes are those of the digits network at batch 1, where the host is what takes
// the time. Not timed: the wait that keeps the stream's queue short.

#include <benchmark/benchmark.h>
#include <cudnn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "gcap/kit/ops/conv2d.h"
#include "gcap/kit/ops/cublas.h"
#include "gcap/kit/ops/cublaslt.h"
#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/ops/matmul.h"
#include "gcap/kit/ops/normalize.h"
#include "gcap/kit/ops/pool2d.h"
#include "gcap/stream.h"

namespace {

constexpr int kCalls = 16;  // between two waits

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "issue_bench: %s\n", what);
  std::exit(1);
}
void Check(gcap_status_t status) {
  if (status != nullptr) Fail(gcap_status_message(status));
}
void Check(cudaError_t error) {
  if (error != cudaSuccess) Fail(cudaGetErrorString(error));
}
void Check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) Fail(cublasGetStatusString(status));
}
void Check(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) Fail(cudnnGetErrorString(status));
}

// A stream with its handles, and memory for operands.
struct Device {
  Device() {
    Check(gcap_stream_create(0, &stream));
    Check(gcap_stream_cudnn_handle(stream, &cudnn));
    Check(gcap_stream_cublas_handle(stream, &cublas));
    Check(gcap_stream_cublaslt_handle(stream, &cublaslt));
    Check(cudaMalloc(&memory, kBytes));
    Check(cudaMemsetAsync(memory, 0, kBytes, gcap_stream_handle(stream)));
  }
  ~Device() {
    Check(gcap_stream_destroy(stream));
    Check(cudaFree(memory));
  }
  float* At(int part) const { return reinterpret_cast<float*>(static_cast<char*>(memory) + part * kPart); }
  gcap_tensor_t Tensor(int part, std::vector<int64_t> shape) const {
    gcap_tensor_t tensor = {};
    tensor.data = At(part);
    tensor.rank = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), tensor.shape);
    return tensor;
  }

  static constexpr size_t kPart = 1 << 20, kBytes = 6 * kPart;
  gcap_stream_t* stream = nullptr;
  cudnnHandle_t cudnn = nullptr;
  cublasHandle_t cublas = nullptr;
  cublasLtHandle_t cublaslt = nullptr;
  void* memory = nullptr;
};

double Seconds(const Device& device, const std::function<void()>& call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) call();
  const auto end = std::chrono::steady_clock::now();
  Check(cudaStreamSynchronize(gcap_stream_handle(device.stream)));
  return std::chrono::duration<double>(end - begin).count() / kCalls;
}

// `bare` may be empty: then there is nothing to compare with.
void Measure(benchmark::State& state, const Device& device, const std::function<void()>& ours,
             const std::function<void()>& bare) {
  Seconds(device, ours);
  if (bare) Seconds(device, bare);
  double ours_s = 0, bare_s = 0;
  for (auto _ : state) {
    const double seconds = Seconds(device, ours);
    ours_s += seconds;
    if (bare) bare_s += Seconds(device, bare);
    state.SetIterationTime(seconds);
  }
  if (!bare) return;
  state.counters["bare_ns"] = benchmark::Counter(bare_s * 1e9, benchmark::Counter::kAvgIterations);
  state.counters["of_bare"] = ours_s / bare_s;
}

cudnnTensorDescriptor_t TensorDescriptor(int n, int c, int h, int w) {
  cudnnTensorDescriptor_t descriptor = nullptr;
  Check(cudnnCreateTensorDescriptor(&descriptor));
  Check(cudnnSetTensor4dDescriptor(descriptor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, n, c, h, w));
  return descriptor;
}

// Channels in and out, whether there is a ReLU, and who computes (gcap_conv2d_direct_t). The bare call takes cuDNN's
// first choice without a workspace.
void BM_Conv(benchmark::State& state) {
  Device device;
  const int in = static_cast<int>(state.range(0)), out = static_cast<int>(state.range(1));
  gcap_conv2d_options_t options;
  gcap_conv2d_options_init(&options);
  options.handle = device.cudnn;
  options.n = 1, options.c = in, options.h = 8, options.w = 8, options.k = out;
  options.kernel_h = options.kernel_w = 3, options.pad_h = options.pad_w = 1;
  options.relu = state.range(2) != 0;
  options.max_workspace_bytes = Device::kPart;
  options.direct = static_cast<gcap_conv2d_direct_t>(state.range(3));
  gcap_conv2d_t* conv = nullptr;
  Check(gcap_conv2d_create(&options, &conv));
  const cudnnTensorDescriptor_t x = TensorDescriptor(1, in, 8, 8), y = TensorDescriptor(1, out, 8, 8),
                                bias = TensorDescriptor(1, out, 1, 1);
  cudnnFilterDescriptor_t weight = nullptr;
  Check(cudnnCreateFilterDescriptor(&weight));
  Check(cudnnSetFilter4dDescriptor(weight, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, out, in, 3, 3));
  cudnnConvolutionDescriptor_t convolution = nullptr;
  Check(cudnnCreateConvolutionDescriptor(&convolution));
  Check(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  Check(cudnnSetConvolutionMathType(convolution, CUDNN_FMA_MATH));
  cudnnActivationDescriptor_t activation = nullptr;
  Check(cudnnCreateActivationDescriptor(&activation));
  const cudnnActivationMode_t mode = options.relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY;
  Check(cudnnSetActivationDescriptor(activation, mode, CUDNN_NOT_PROPAGATE_NAN, 0.0));
  const float one = 1.0f, zero = 0.0f;
  Measure(
      state, device,
      [&] {
        Check(
            gcap_conv2d_run(conv, device.stream, device.At(0), device.At(1), device.At(2), device.At(3), device.At(4)));
      },
      [&] {
        Check(cudnnConvolutionBiasActivationForward(device.cudnn, &one, x, device.At(0), weight, device.At(1),
                                                    convolution, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                                    device.At(4), Device::kPart, &zero, y, device.At(3), bias,
                                                    device.At(2), activation, y, device.At(3)));
      });
  gcap_conv2d_destroy(conv);
  Check(cudnnDestroyActivationDescriptor(activation));
  Check(cudnnDestroyConvolutionDescriptor(convolution));
  Check(cudnnDestroyFilterDescriptor(weight));
  for (cudnnTensorDescriptor_t tensor : {x, y, bias}) Check(cudnnDestroyTensorDescriptor(tensor));
}
BENCHMARK(BM_Conv)
    ->Args({1, 16, 1, GCAP_CONV2D_DIRECT_AUTO})
    ->Args({16, 32, 0, GCAP_CONV2D_DIRECT_AUTO})
    ->Args({1, 16, 1, GCAP_CONV2D_DIRECT_NEVER})
    ->Args({16, 32, 0, GCAP_CONV2D_DIRECT_NEVER})
    ->UseManualTime();

void BM_MaxPool(benchmark::State& state) {
  Device device;
  gcap_pool2d_options_t options;
  gcap_pool2d_options_init(&options);
  options.n = 1, options.c = 32, options.h = options.w = 8;
  options.kernel_h = options.kernel_w = options.stride_h = options.stride_w = 2;
  gcap_pool2d_t* pool = nullptr;
  Check(gcap_pool2d_create(&options, &pool));
  const cudnnTensorDescriptor_t x = TensorDescriptor(1, 32, 8, 8), y = TensorDescriptor(1, 32, 4, 4);
  cudnnPoolingDescriptor_t pooling = nullptr;
  Check(cudnnCreatePoolingDescriptor(&pooling));
  Check(cudnnSetPooling2dDescriptor(pooling, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
  const float one = 1.0f, zero = 0.0f;
  Measure(
      state, device, [&] { Check(gcap_pool2d_run(pool, device.stream, device.At(0), device.At(1))); },
      [&] { Check(cudnnPoolingForward(device.cudnn, pooling, &one, x, device.At(0), &zero, y, device.At(1))); });
  gcap_pool2d_destroy(pool);
  Check(cudnnDestroyPoolingDescriptor(pooling));
  Check(cudnnDestroyTensorDescriptor(x));
  Check(cudnnDestroyTensorDescriptor(y));
}
BENCHMARK(BM_MaxPool)->UseManualTime();

// Beside cuBLAS's product, which has neither the bias nor the ReLU: a program that calls cuBLAS issues them by kernels.
void BM_Matmul(benchmark::State& state) {
  Device device;
  gcap_matmul_options_t options;
  gcap_matmul_options_init(&options);
  options.handle = device.cublaslt;
  options.m = 1, options.k = state.range(0), options.n = state.range(1);
  options.epilogue = GCAP_MATMUL_EPILOGUE_BIAS_RELU;
  gcap_matmul_t* matmul = nullptr;
  Check(gcap_matmul_create(&options, &matmul));
  const float one = 1.0f, zero = 0.0f;
  Measure(
      state, device,
      [&] {
        Check(gcap_matmul_run(matmul, device.stream, device.At(0), device.At(1), device.At(2), /*addend=*/nullptr,
                              device.At(3), nullptr));
      },
      [&] {
        const int n = static_cast<int>(state.range(1)), k = static_cast<int>(state.range(0));  // rows are columns
        Check(cublasSgemm(device.cublas, CUBLAS_OP_N, CUBLAS_OP_N, n, 1, k, &one, device.At(1), n, device.At(0), k,
                          &zero, device.At(3), n));
      });
  gcap_matmul_destroy(matmul);
}
BENCHMARK(BM_Matmul)->Args({512, 64})->Args({64, 10})->UseManualTime();

void BM_Relu(benchmark::State& state) {
  Device device;
  const gcap_tensor_t x = device.Tensor(0, {512}), y = device.Tensor(1, {512});
  Measure(
      state, device, [&] { Check(gcap_unary(device.stream, GCAP_UNARY_RELU, &x, &y)); }, nullptr);
}
BENCHMARK(BM_Relu)->UseManualTime();

void BM_Softmax(benchmark::State& state) {
  Device device;
  const gcap_tensor_t x = device.Tensor(0, {1, 10}), y = device.Tensor(1, {1, 10});
  Measure(
      state, device, [&] { Check(gcap_softmax(device.stream, &x, 1, &y)); }, nullptr);
}
BENCHMARK(BM_Softmax)->UseManualTime();

}  // namespace

BENCHMARK_MAIN();
