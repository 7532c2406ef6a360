// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Look-ups that take no lock: the wrapper of a raw handle among 1 to 1,024 streams, by 1 and by 4 threads, and whether
// a stream has waited for one of 1 to 256 others.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "gcap/stream.h"
#include "lib/stream/inner.h"

namespace {

void Check(gcap_status_t status) {
  if (status == nullptr) return;
  fprintf(stderr, "lookup_bench: %s\n", gcap_status_message(status));
  exit(1);
}

class Streams {
 public:
  explicit Streams(size_t count) : streams_(count) {
    for (gcap_stream_t*& stream : streams_) Check(gcap_stream_create(0, &stream));
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  ~Streams() {
    for (gcap_stream_t* stream : streams_) Check(gcap_stream_destroy(stream));
  }

  gcap_stream_t* at(size_t i) const { return streams_[i % streams_.size()]; }

 private:
  std::vector<gcap_stream_t*> streams_;
};

Streams* shared_streams = nullptr;

void SetUpStreams(const benchmark::State& state) { shared_streams = new Streams(static_cast<size_t>(state.range(0))); }

void TearDownStreams(const benchmark::State&) {
  delete shared_streams;
  shared_streams = nullptr;
}

void FromHandle(benchmark::State& state) {
  std::vector<cudaStream_t> handles;
  for (int64_t i = 0; i < state.range(0); ++i) handles.push_back(gcap_stream_handle(shared_streams->at(i)));
  size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(gcap_stream_from_handle(handles[i]));
    if (++i == handles.size()) i = 0;
  }
}
BENCHMARK(FromHandle)
    ->ArgName("streams")
    ->Arg(1)
    ->Arg(32)
    ->Arg(1024)
    ->ThreadRange(1, 4)
    ->UseRealTime()
    ->Setup(SetUpStreams)
    ->Teardown(TearDownStreams)
    ->MinTime(0.01);

void HasWaited(benchmark::State& state) {
  const Streams producers(static_cast<size_t>(state.range(0)));
  const Streams consumer(1);
  for (int64_t i = 0; i < state.range(0); ++i) {
    gcap_notification_t* notification = nullptr;
    Check(gcap_notification_create(producers.at(i), &notification));
    Check(gcap_notification_record(notification));
    Check(gcap_notification_wait(notification, consumer.at(0)));
    gcap_notification_destroy(notification);
  }
  size_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(gcap_stream_has_waited(consumer.at(0), producers.at(++i), 0));
}
BENCHMARK(HasWaited)->ArgName("producers")->Arg(1)->Arg(16)->Arg(256)->MinTime(0.01);

}  // namespace

BENCHMARK_MAIN();
