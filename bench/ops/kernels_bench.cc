// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Kernels that are bound by memory: bytes read and written a second, beside cudaMemcpyAsync of as many bytes, in turn
// within each iteration. `of_copy` is the kernel's rate over the copy's, 1 where the kernel does no worse. Times are
// those of events on the stream, over a number of launches in a row. GCAP_BENCH_ELEMENTS sets the elements of a tensor:
// the default is small, for the test suite; on a GPU take 268435456, which no cache holds.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "gcap/kit/ops/elementwise.h"
#include "gcap/kit/ops/layout.h"
#include "gcap/kit/ops/normalize.h"
#include "gcap/kit/ops/reduce.h"
#include "gcap/stream.h"

namespace {

constexpr int64_t kColumns = 4096;
constexpr int kLaunches = 8;

void CheckCuda(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "kernels_bench: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

void Check(gcap_status_t status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "kernels_bench: %s\n", gcap_status_message(status));
  std::exit(1);
}

// Rows of kColumns elements.
int64_t Rows() {
  const char* text = std::getenv("GCAP_BENCH_ELEMENTS");
  const int64_t elements = text == nullptr ? 0 : std::atoll(text);
  return std::max<int64_t>(elements / kColumns, 16);
}

gcap_tensor_t Tensor(void* data, gcap_dtype_t dtype, std::vector<int64_t> shape) {
  gcap_tensor_t tensor = {};
  tensor.data = data;
  tensor.dtype = dtype;
  tensor.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), tensor.shape);
  return tensor;
}

// A stream, and three tensors' memory filled with zeros.
class Device {
 public:
  explicit Device(size_t tensor_bytes) {
    Check(gcap_stream_create(0, &stream_));
    CheckCuda(cudaEventCreate(&begin_));
    CheckCuda(cudaEventCreate(&end_));
    for (void*& memory : memory_) {
      CheckCuda(cudaMalloc(&memory, tensor_bytes));
      CheckCuda(cudaMemsetAsync(memory, 0, tensor_bytes, handle()));
    }
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() {
    Check(gcap_stream_synchronize(stream_));
    for (void* memory : memory_) CheckCuda(cudaFree(memory));
    CheckCuda(cudaEventDestroy(begin_));
    CheckCuda(cudaEventDestroy(end_));
    Check(gcap_stream_destroy(stream_));
  }

  gcap_stream_t* stream() const { return stream_; }
  cudaStream_t handle() const { return gcap_stream_handle(stream_); }
  void* memory(int i) const { return memory_[i]; }

  // Milliseconds of one of kLaunches calls.
  template <typename Issue>
  float Time(Issue issue) {
    CheckCuda(cudaEventRecord(begin_, handle()));
    for (int i = 0; i < kLaunches; ++i) issue();
    CheckCuda(cudaEventRecord(end_, handle()));
    CheckCuda(cudaEventSynchronize(end_));
    float milliseconds = 0.0f;
    CheckCuda(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return milliseconds / kLaunches;
  }

 private:
  gcap_stream_t* stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  void* memory_[3] = {};
};

float Median(std::vector<float> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Times `issue`, which moves `bytes`, and a copy that reads half of them and writes half.
void Compare(benchmark::State& state, Device* device, int64_t bytes, const std::function<gcap_status_t()>& issue) {
  const auto kernel = [&] { Check(issue()); };
  const auto copy = [&] {
    CheckCuda(cudaMemcpyAsync(device->memory(2), device->memory(0), static_cast<size_t>(bytes) / 2,
                              cudaMemcpyDeviceToDevice, device->handle()));
  };
  std::vector<float> kernel_ms, copy_ms;
  device->Time(kernel);  // the first one loads the kernel
  device->Time(copy);
  for (auto _ : state) {
    kernel_ms.push_back(device->Time(kernel));
    copy_ms.push_back(device->Time(copy));
  }
  state.counters["kernel_GB/s"] = static_cast<double>(bytes) / Median(kernel_ms) / 1e6;
  state.counters["copy_GB/s"] = static_cast<double>(bytes) / Median(copy_ms) / 1e6;
  state.counters["of_copy"] = Median(copy_ms) / Median(kernel_ms);
}

bool HasDevice(benchmark::State& state) {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return true;
  state.SkipWithError("no CUDA device");
  return false;
}

// A benchmark of tensors of one type: two inputs and an output, of [rows, kColumns] and of as much memory and a half.
struct Case {
  explicit Case(gcap_dtype_t dtype)
      : bytes(Rows() * kColumns * static_cast<int64_t>(gcap_dtype_bytes(dtype))),
        device(static_cast<size_t>(bytes) * 3 / 2) {
    x = Tensor(device.memory(0), dtype, {Rows(), kColumns});
    z = Tensor(device.memory(1), dtype, {Rows(), kColumns});
    y = Tensor(device.memory(2), dtype, {Rows(), kColumns});
    row = Tensor(device.memory(1), dtype, {kColumns});
    column = Tensor(device.memory(2), dtype, {Rows()});
    turned = Tensor(device.memory(2), dtype, {kColumns, Rows()});
  }

  int64_t bytes;  // of one tensor
  Device device;
  gcap_tensor_t x, z, y, row, column, turned;
};

void BM_Add(benchmark::State& state, gcap_dtype_t dtype) {
  if (!HasDevice(state)) return;
  Case c(dtype);
  Compare(state, &c.device, 3 * c.bytes,
          [&] { return gcap_binary(c.device.stream(), GCAP_BINARY_ADD, &c.x, &c.z, &c.y); });
}

void BM_AddRow(benchmark::State& state, gcap_dtype_t dtype) {
  if (!HasDevice(state)) return;
  Case c(dtype);
  Compare(state, &c.device, 2 * c.bytes,
          [&] { return gcap_binary(c.device.stream(), GCAP_BINARY_ADD, &c.x, &c.row, &c.y); });
}

void BM_Gelu(benchmark::State& state, gcap_dtype_t dtype) {
  if (!HasDevice(state)) return;
  Case c(dtype);
  Compare(state, &c.device, 2 * c.bytes, [&] { return gcap_unary(c.device.stream(), GCAP_UNARY_GELU, &c.x, &c.y); });
}

void BM_Softmax(benchmark::State& state, gcap_dtype_t dtype) {
  if (!HasDevice(state)) return;
  Case c(dtype);
  Compare(state, &c.device, 2 * c.bytes, [&] { return gcap_softmax(c.device.stream(), &c.x, 1, &c.y); });
}

void BM_LayerNorm(benchmark::State& state, gcap_dtype_t dtype) {
  if (!HasDevice(state)) return;
  Case c(dtype);
  Compare(state, &c.device, 2 * c.bytes,
          [&] { return gcap_layer_norm(c.device.stream(), &c.x, 1, 1e-5f, &c.row, &c.row, &c.y, nullptr, nullptr); });
}

void BM_ReduceRows(benchmark::State& state, gcap_dtype_t dtype) {
  if (!HasDevice(state)) return;
  Case c(dtype);
  const int64_t axis = 1;
  Compare(state, &c.device, c.bytes,
          [&] { return gcap_reduce(c.device.stream(), GCAP_REDUCE_SUM, &c.x, &axis, 1, &c.column); });
}

void BM_ReduceColumns(benchmark::State& state, gcap_dtype_t dtype) {
  if (!HasDevice(state)) return;
  Case c(dtype);
  const int64_t axis = 0;
  gcap_tensor_t sums = c.row;
  sums.data = c.y.data;
  Compare(state, &c.device, c.bytes,
          [&] { return gcap_reduce(c.device.stream(), GCAP_REDUCE_SUM, &c.x, &axis, 1, &sums); });
}

void BM_Transpose(benchmark::State& state, gcap_dtype_t dtype) {
  if (!HasDevice(state)) return;
  Case c(dtype);
  const int64_t perm[] = {1, 0};
  Compare(state, &c.device, 2 * c.bytes, [&] { return gcap_transpose(c.device.stream(), &c.x, perm, &c.turned); });
}

#define BENCHMARK_BOTH(function)                                   \
  BENCHMARK_CAPTURE(function, f32, GCAP_DTYPE_F32)->Iterations(5); \
  BENCHMARK_CAPTURE(function, f16, GCAP_DTYPE_F16)->Iterations(5)

BENCHMARK_BOTH(BM_Add);
BENCHMARK_BOTH(BM_AddRow);
BENCHMARK_BOTH(BM_Gelu);
BENCHMARK_BOTH(BM_Softmax);
BENCHMARK_BOTH(BM_LayerNorm);
BENCHMARK_BOTH(BM_ReduceRows);
BENCHMARK_BOTH(BM_ReduceColumns);
BENCHMARK_BOTH(BM_Transpose);

}  // namespace

BENCHMARK_MAIN();
