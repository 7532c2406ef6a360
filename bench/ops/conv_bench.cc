// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Convolutions by cuDNN and by gcap's kernel, in turn within each iteration: where one overtakes the other decides what
// the option `direct` of conv2d.h does by default. Microseconds, medians, of one convolution:
//   host    to issue it
//   device  on the GPU, as a node of a graph of many
//   done    from before it is issued until its result is there
// `auto` is 1 where gcap's kernel is the default.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gcap/kit/ops/conv2d.h"
#include "gcap/stream.h"

namespace {

constexpr int kCalls = 16;  // between two waits, and in a graph

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "conv_bench: %s\n", what);
  std::exit(1);
}
void Check(gcap_status_t status) {
  if (status != nullptr) Fail(gcap_status_message(status));
}
void Check(cudaError_t error) {
  if (error != cudaSuccess) Fail(cudaGetErrorString(error));
}

// Images of c channels of side x side, and k maps of a window of kernel x kernel with padding; F32.
struct Shape {
  int n, c, side, k, kernel;
  int groups = 1;
  gcap_dtype_t dtype = GCAP_DTYPE_F32;
  gcap_image_layout_t layout = GCAP_IMAGE_NCHW;
};

// The digits network at several batches, then ladders: terms of an output, outputs, what has a type and a layout.
const Shape kLadder[] = {
    {1, 1, 8, 16, 3},
    {1, 16, 8, 32, 3},
    {8, 16, 8, 32, 3},
    {32, 16, 8, 32, 3},
    {128, 16, 8, 32, 3},
    {1, 16, 8, 32, 1},
    {1, 64, 8, 32, 1},
    {1, 256, 8, 32, 1},
    {1, 1024, 8, 32, 1},
    {1, 32, 8, 32, 3},
    {1, 64, 8, 64, 3},
    {1, 128, 8, 64, 3},
    {1, 8, 16, 16, 3},
    {1, 8, 32, 16, 3},
    {1, 8, 64, 16, 3},
    {1, 8, 128, 16, 3},
    {1, 3, 32, 16, 5},
    {1, 3, 224, 32, 3},
    {1, 128, 14, 128, 3, 128},
    {1, 128, 56, 128, 3, 128},
    {1, 16, 8, 32, 3, 1, GCAP_DTYPE_F16},
    {1, 16, 8, 32, 3, 1, GCAP_DTYPE_F16, GCAP_IMAGE_NHWC},
    {32, 16, 8, 32, 3, 1, GCAP_DTYPE_F16, GCAP_IMAGE_NHWC},
};

std::string Name(const Shape& s) {
  std::string name = "n" + std::to_string(s.n) + "_c" + std::to_string(s.c) + "_" + std::to_string(s.side) + "x" +
                     std::to_string(s.side) + "_k" + std::to_string(s.k) + "_" + std::to_string(s.kernel) + "x" +
                     std::to_string(s.kernel);
  if (s.groups > 1) name += "_g" + std::to_string(s.groups);
  return name + "_" + gcap_dtype_name(s.dtype) + (s.layout == GCAP_IMAGE_NHWC ? "_nhwc" : "");
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

using Clock = std::chrono::steady_clock;
double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// A stream and memory for the operands of a shape.
class Device {
 public:
  explicit Device(const Shape& s) {
    Check(gcap_stream_create(0, &stream_));
    Check(cudaEventCreate(&begin_));
    Check(cudaEventCreate(&end_));
    const size_t pixels = static_cast<size_t>(s.n) * s.side * s.side, element = gcap_dtype_bytes(s.dtype);
    const size_t sizes[] = {pixels * s.c, static_cast<size_t>(s.k) * (s.c / s.groups) * s.kernel * s.kernel,
                            static_cast<size_t>(s.k), pixels * s.k};
    for (int i = 0; i < 4; ++i) {
      Check(cudaMalloc(&memory_[i], sizes[i] * element));
      Check(cudaMemsetAsync(memory_[i], 0, sizes[i] * element, handle()));
    }
    Check(gcap_stream_synchronize(stream_));
  }
  ~Device() {
    for (void* memory : memory_) Check(cudaFree(memory));
    Check(cudaEventDestroy(begin_));
    Check(cudaEventDestroy(end_));
    Check(gcap_stream_destroy(stream_));
  }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  gcap_stream_t* stream() const { return stream_; }
  cudaStream_t handle() const { return gcap_stream_handle(stream_); }
  void* memory(int i) const { return memory_[i]; }
  double GraphMicroseconds(cudaGraphExec_t exec) const {
    Check(cudaEventRecord(begin_, handle()));
    Check(cudaGraphLaunch(exec, handle()));
    Check(cudaEventRecord(end_, handle()));
    Check(cudaEventSynchronize(end_));
    float milliseconds = 0.0f;
    Check(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return milliseconds * 1e3 / kCalls;
  }

 private:
  gcap_stream_t* stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  void* memory_[4] = {};
};

// One plan, its graph, and its times.
class Runner {
 public:
  Runner(const Device& device, const Shape& s, gcap_conv2d_direct_t direct) : device_(device) {
    gcap_conv2d_options_t options;
    gcap_conv2d_options_init(&options);
    Check(gcap_stream_cudnn_handle(device.stream(), &options.handle));
    options.n = s.n, options.c = s.c, options.h = options.w = s.side, options.k = s.k;
    options.kernel_h = options.kernel_w = s.kernel, options.pad_h = options.pad_w = s.kernel / 2;
    options.groups = s.groups, options.dtype = s.dtype, options.layout = s.layout;
    options.relu = true;
    options.max_workspace_bytes = 32 << 20;
    options.direct = direct;
    gcap_status_t status = gcap_conv2d_create(&options, &conv_);
    if (status != nullptr && gcap_status_code(status) == GCAP_UNIMPLEMENTED) {
      gcap_status_ignore(status);
      return;
    }
    Check(status);
    gcap_conv2d_get_info(conv_, &info_);
    if (info_.workspace_bytes > 0) Check(cudaMalloc(&workspace_, info_.workspace_bytes));
    Issue();  // the first one loads the kernel
    Check(gcap_stream_synchronize(device.stream()));
    cudaGraph_t graph = nullptr;
    Check(cudaStreamBeginCapture(device.handle(), cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kCalls; ++i) Issue();
    Check(cudaStreamEndCapture(device.handle(), &graph));
    Check(cudaGraphInstantiate(&exec_, graph, 0));
    Check(cudaGraphDestroy(graph));
    device_.GraphMicroseconds(exec_);
  }
  ~Runner() {
    if (exec_ != nullptr) Check(cudaGraphExecDestroy(exec_));
    Check(cudaFree(workspace_));
    gcap_conv2d_destroy(conv_);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  bool exists() const { return conv_ != nullptr; }  // cuDNN may have no algorithm
  bool is_direct() const { return info_.is_direct; }

  void Measure() {
    Clock::time_point begin = Clock::now();
    for (int i = 0; i < kCalls; ++i) Issue();
    host_.push_back(MicrosecondsSince(begin) / kCalls);
    Check(gcap_stream_synchronize(device_.stream()));
    begin = Clock::now();
    Issue();
    Check(gcap_stream_synchronize(device_.stream()));
    done_.push_back(MicrosecondsSince(begin));
    on_device_.push_back(device_.GraphMicroseconds(exec_));
  }
  void Report(benchmark::State& state, const std::string& who) const {
    state.counters[who + "_host"] = Median(host_);
    state.counters[who + "_device"] = Median(on_device_);
    state.counters[who + "_done"] = Median(done_);
  }

 private:
  void Issue() const {
    Check(gcap_conv2d_run(conv_, device_.stream(), device_.memory(0), device_.memory(1), device_.memory(2),
                          device_.memory(3), workspace_));
  }

  const Device& device_;
  gcap_conv2d_t* conv_ = nullptr;
  gcap_conv2d_info_t info_ = {};
  void* workspace_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  std::vector<double> host_, done_, on_device_;
};

void BM_Conv(benchmark::State& state, const Shape& shape) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return state.SkipWithError("no CUDA device");
  const Device device(shape);
  Runner cudnn(device, shape, GCAP_CONV2D_DIRECT_NEVER), gcap(device, shape, GCAP_CONV2D_DIRECT_ALWAYS);
  const Runner chosen(device, shape, GCAP_CONV2D_DIRECT_AUTO);
  for (auto _ : state) {
    if (cudnn.exists()) cudnn.Measure();
    gcap.Measure();
  }
  if (cudnn.exists()) cudnn.Report(state, "cudnn");
  gcap.Report(state, "gcap");
  state.counters["auto"] = chosen.exists() && chosen.is_direct();
}

}  // namespace

// GCAP_BENCH_ROUNDS says how often each is measured; on a GPU take 200. Without it the first few run once, for the test
// suite.
int main(int argc, char** argv) {
  const char* rounds = std::getenv("GCAP_BENCH_ROUNDS");
  for (const Shape& shape : kLadder) {
    if (rounds == nullptr && &shape == kLadder + 3) break;
    benchmark::RegisterBenchmark(Name(shape).c_str(), [&shape](benchmark::State& state) {
      BM_Conv(state, shape);
    })->Iterations(rounds == nullptr ? 1 : std::max(std::atoi(rounds), 1));
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
