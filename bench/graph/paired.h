// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// paired.h: what the benchmarks of this folder share: ways of doing one thing, timed in turn, and the work to capture.
#ifndef GCAP_BENCH_GRAPH_PAIRED_H_
#define GCAP_BENCH_GRAPH_PAIRED_H_

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gcap/kit/ops/elementwise.h"
#include "gcap/stream.h"

namespace gcap {
namespace bench {

inline void CheckCuda(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "benchmark: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

inline void Check(gcap_status_t status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "benchmark: %s\n", gcap_status_message(status));
  std::exit(1);
}

// Prints the device, for programs that print tables. False: there is none.
inline bool PrintDevice() {
  int count = 0, driver = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return false;
  cudaDeviceProp properties;
  CheckCuda(cudaGetDeviceProperties(&properties, 0));
  CheckCuda(cudaDriverGetVersion(&driver));
  std::printf("device: %s, CUDA of the driver: %d\n\n", properties.name, driver);
  return true;
}

// Whether the arguments are `--small`: few and small cases, for the test suite. Ends the process on any others.
inline bool IsSmall(int argc, char** argv) {
  const bool is_small = argc == 2 && std::strcmp(argv[1], "--small") == 0;
  if (argc == 1 || is_small) return is_small;
  std::fprintf(stderr, "%s: '%s' is unknown, allowed is --small\n", argv[0], argv[1]);
  std::exit(2);
}

inline bool HasDevice(benchmark::State& state) {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return true;
  state.SkipWithError("no CUDA device");
  return false;
}

inline double MedianOf(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Times of one way, a few hundred of them.
class Samples {
 public:
  template <typename Step>
  void Time(Step step) {
    const Clock::time_point begin = Clock::now();
    step();
    const Clock::time_point middle = Clock::now();
    const Clock::time_point end = Clock::now();  // the second reading costs what the first one added
    samples_ns_.push_back(Nanoseconds(begin, middle));
    clock_ns_.push_back(Nanoseconds(middle, end));
  }
  // Less the clock's own cost.
  double Median() const { return MedianOf(samples_ns_) - MedianOf(clock_ns_); }

 private:
  using Clock = std::chrono::steady_clock;

  static double Nanoseconds(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double, std::nano>(to - from).count();
  }

  std::vector<double> samples_ns_;
  std::vector<double> clock_ns_;
};

// Ways of doing one thing on a stream, timed in turn: forward in one round, backward in the next, so that none profits
// from what comes before. Each is timed until it is issued, and until it is done. The stream is drained between, so no
// launch waits for an earlier round's.
class Ways {
 public:
  explicit Ways(cudaStream_t stream) : stream_(stream) {}
  void Add(const char* name, std::function<void()> issue) { ways_.push_back({name, std::move(issue), {}, {}}); }
  void TimeEach() {
    for (Way& way : ways_) Time(&way);
    std::reverse(ways_.begin(), ways_.end());
  }
  double IssuedNanoseconds(const char* name) const {
    for (const Way& way : ways_) {
      if (way.name == name) return way.issued.Median();
    }
    std::fprintf(stderr, "benchmark: no way is called %s\n", name);
    std::exit(1);
  }
  // The medians, as counters.
  void Report(benchmark::State* state) const {
    for (const Way& way : ways_) {
      state->counters[way.name + "_ns"] = way.issued.Median();
      state->counters[way.name + "_done_ns"] = way.done.Median();
    }
  }

 private:
  struct Way {
    std::string name;
    std::function<void()> issue;
    Samples issued, done;
  };

  void Time(Way* way) {
    way->issued.Time(way->issue);
    CheckCuda(cudaStreamSynchronize(stream_));
    way->done.Time([&] {
      way->issue();
      CheckCuda(cudaStreamSynchronize(stream_));
    });
  }

  const cudaStream_t stream_;
  std::vector<Way> ways_;
};

// Some device memory, and the work to capture on a stream: `nodes` tiny kernels in a row. Kernels, since the driver
// launches a graph of them as a whole, which it does not do for other nodes.
class Work {
 public:
  Work(int nodes, gcap_stream_t* stream) : nodes_(nodes), stream_(stream) {
    CheckCuda(cudaMalloc(reinterpret_cast<void**>(&memory_), sizeof(float)));
    CheckCuda(cudaMemsetAsync(memory_, 0, sizeof(float), this->stream()));
  }
  ~Work() { CheckCuda(cudaFree(memory_)); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  cudaStream_t stream() const { return gcap_stream_handle(stream_); }
  void Issue() const {
    const gcap_tensor_t x = {memory_, GCAP_DTYPE_F32, 1, {1}};
    for (int i = 0; i < nodes_; ++i) Check(gcap_unary(stream_, GCAP_UNARY_RELU, &x, &x));
  }

 private:
  int nodes_;
  gcap_stream_t* stream_;
  float* memory_ = nullptr;
};

// Google Benchmark's main, which also writes down the device.
inline int Main(int argc, char** argv) {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, 0) == cudaSuccess) benchmark::AddCustomContext("device", properties.name);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace bench
}  // namespace gcap

#endif  // GCAP_BENCH_GRAPH_PAIRED_H_
