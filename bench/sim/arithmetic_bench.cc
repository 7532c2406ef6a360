// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// How long the simulated libraries calculate: square matrix products by cuBLASLt and layers of real networks by cuDNN,
// printed as items_per_second, which are multiplications with their additions. The checks are on, as they are in tests.
//
//     ./bazelw run //bench/sim:arithmetic_bench

#include <benchmark/benchmark.h>
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void Check(int code, const char* call) {
  if (code == 0) return;
  fprintf(stderr, "arithmetic_bench: %s: %d\n", call, code);
  exit(1);
}
#define CHECK(call) Check(static_cast<int>(call), #call)

// Zeroed device memory. What is calculated takes no longer with other numbers.
class Memory {
 public:
  explicit Memory(size_t bytes) {
    CHECK(cudaMalloc(&data_, bytes));
    CHECK(cudaMemset(data_, 0, bytes));
  }
  ~Memory() { CHECK(cudaFree(data_)); }
  void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

size_t BytesOf(cudaDataType type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

void Matmul(benchmark::State& state, cudaDataType type, cublasComputeType_t compute) {
  const uint64_t side = static_cast<uint64_t>(state.range(0));
  const size_t bytes = side * side * BytesOf(type);
  const Memory a(bytes), b(bytes), d(bytes);
  const cudaDataType scale_type = type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
  const float one = 1.0f;
  const double one_f64 = 1.0, beta = 0.0;  // as a float, 0 too
  const void* alpha = scale_type == CUDA_R_64F ? static_cast<const void*>(&one_f64) : &one;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;
  CHECK(cublasLtCreate(&handle));
  CHECK(cublasLtMatmulDescCreate(&operation, compute, scale_type));
  CHECK(cublasLtMatrixLayoutCreate(&layout, type, side, side, static_cast<int64_t>(side)));
  for (auto _ : state) {
    CHECK(cublasLtMatmul(handle, operation, alpha, a.get(), layout, b.get(), layout, &beta, d.get(), layout, d.get(),
                         layout, nullptr, nullptr, 0, nullptr));
    CHECK(cudaDeviceSynchronize());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(side * side * side));
  CHECK(cublasLtMatrixLayoutDestroy(layout));
  CHECK(cublasLtMatmulDescDestroy(operation));
  CHECK(cublasLtDestroy(handle));
}
BENCHMARK_CAPTURE(Matmul, f32, CUDA_R_32F, CUBLAS_COMPUTE_32F)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Matmul, f64, CUDA_R_64F, CUBLAS_COMPUTE_64F)->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Matmul, tf32, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Matmul, f16, CUDA_R_16F, CUBLAS_COMPUTE_32F)->Arg(256)->Unit(benchmark::kMillisecond);

// A layer: `channels` of side x side pixels, a 3 x 3 kernel for each of the groups' channels, as many output channels.
void Convolution(benchmark::State& state, cudnnTensorFormat_t format, int channels, int side, int groups) {
  const int depth = channels / groups;
  const size_t bytes = static_cast<size_t>(channels) * side * side * sizeof(float);
  const Memory x(bytes), y(bytes), weight(static_cast<size_t>(channels) * depth * 9 * sizeof(float));
  const float alpha = 1.0f, beta = 0.0f;
  cudnnHandle_t handle = nullptr;
  cudnnTensorDescriptor_t tensor = nullptr;
  cudnnFilterDescriptor_t filter = nullptr;
  cudnnConvolutionDescriptor_t convolution = nullptr;
  CHECK(cudnnCreate(&handle));
  CHECK(cudnnCreateTensorDescriptor(&tensor));
  CHECK(cudnnSetTensor4dDescriptor(tensor, format, CUDNN_DATA_FLOAT, 1, channels, side, side));
  CHECK(cudnnCreateFilterDescriptor(&filter));
  CHECK(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, format, channels, depth, 3, 3));
  CHECK(cudnnCreateConvolutionDescriptor(&convolution));
  CHECK(cudnnSetConvolution2dDescriptor(convolution, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CHECK(cudnnSetConvolutionGroupCount(convolution, groups));
  for (auto _ : state) {
    CHECK(cudnnConvolutionForward(handle, &alpha, tensor, x.get(), filter, weight.get(), convolution,
                                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &beta, tensor, y.get()));
    CHECK(cudaDeviceSynchronize());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(channels) * depth * 9 * side * side);
  CHECK(cudnnDestroyConvolutionDescriptor(convolution));
  CHECK(cudnnDestroyFilterDescriptor(filter));
  CHECK(cudnnDestroyTensorDescriptor(tensor));
  CHECK(cudnnDestroy(handle));
}
BENCHMARK_CAPTURE(Convolution, nchw_64x56x56, CUDNN_TENSOR_NCHW, 64, 56, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Convolution, nhwc_64x56x56, CUDNN_TENSOR_NHWC, 64, 56, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Convolution, nchw_512x7x7, CUDNN_TENSOR_NCHW, 512, 7, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Convolution, depthwise_96x56x56, CUDNN_TENSOR_NCHW, 96, 56, 96)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
