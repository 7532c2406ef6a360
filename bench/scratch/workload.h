// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// workload.h: the benchmarks of scratch, for any allocator. One allocation and one free each:
//   BM_Pair     of one size
//   BM_Mixed    a random one of 16 to 4,096 live blocks is replaced by one of a random size
//   BM_Threads  as BM_Mixed with 256 live, from several threads with a stream each
//   BM_Trace    made-up and recorded traces, with the peak of bytes held from upstream beside the peak of bytes live
//
// An allocator is a class, so that nothing stands between the loop and the call:
//   struct Allocator {
//     Allocator();                                         // a new one, at its defaults
//     class Stream { public: explicit Stream(Allocator&); };  // ends before it
//     void* Alloc(size_t bytes, Stream& stream);           // exits or throws when it cannot
//     void Free(void* ptr, size_t bytes, Stream& stream);  // from any thread
//     size_t HeldBytes();                                  // the peak held from upstream; 0: it holds none
//   };
#ifndef GCAP_BENCH_SCRATCH_WORKLOAD_H_
#define GCAP_BENCH_SCRATCH_WORKLOAD_H_

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/scratch/draws.h"

namespace gcap {
namespace bench {

constexpr double kMinSeconds = 0.01;      // of each, since the test suite runs them all; repetitions make it precise
constexpr double kThreadsSeconds = 0.03;  // the same for BM_Threads
constexpr size_t kThreadsLive = 256;

// A stream's live blocks, of which each step replaces one; what is drawn by lot is drawn before.
template <class Allocator>
class Mix {
 public:
  using Stream = typename Allocator::Stream;
  Mix(Allocator& allocator, Stream& stream, size_t live, uint64_t seed)
      : allocator_(allocator), stream_(stream), live_(live), draws_(MixedDraws(live, seed)) {
    for (size_t i = 0; i < live; ++i) {
      live_[i].bytes = draws_[i % kDraws].bytes;
      live_[i].ptr = allocator_.Alloc(live_[i].bytes, stream_);
    }
    for (size_t i = 0; i < kWarmUpDraws; ++i) Step();
  }
  Mix(const Mix&) = delete;
  Mix& operator=(const Mix&) = delete;
  ~Mix() {
    for (const Block& block : live_) allocator_.Free(block.ptr, block.bytes, stream_);
  }
  void Step() {
    const Draw& draw = draws_[next_++ % kDraws];
    Block& block = live_[draw.slot];
    allocator_.Free(block.ptr, block.bytes, stream_);
    block.ptr = allocator_.Alloc(draw.bytes, stream_);
    block.bytes = draw.bytes;
  }

 private:
  struct Block {
    void* ptr;
    size_t bytes;
  };
  Allocator& allocator_;
  Stream& stream_;
  std::vector<Block> live_;
  const std::vector<Draw> draws_;
  size_t next_ = 0;
};

template <class Allocator>
void BM_Pair(benchmark::State& state) {
  Allocator allocator;
  typename Allocator::Stream stream(allocator);
  const size_t bytes = static_cast<size_t>(state.range(0));
  allocator.Free(allocator.Alloc(bytes, stream), bytes, stream);  // the memory is there from now on
  for (auto _ : state) allocator.Free(allocator.Alloc(bytes, stream), bytes, stream);
}

template <class Allocator>
void BM_Mixed(benchmark::State& state) {
  Allocator allocator;
  typename Allocator::Stream stream(allocator);
  Mix<Allocator> mix(allocator, stream, static_cast<size_t>(state.range(0)), kSeed);
  for (auto _ : state) mix.Step();
}

// --- Threads --------------------------------------------------------------------------------------------------------

// What the threads of one run share: the first in makes it, the last out ends it.
template <class Allocator>
class Shared {
 public:
  static Shared& Join() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (users++ == 0) instance = std::make_unique<Shared>();
    return *instance;
  }
  static void Leave() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (--users == 0) instance.reset();
  }

  Allocator& allocator() { return allocator_; }
  void Worked(double from, double to) {
    const std::lock_guard<std::mutex> lock(mutex);
    begin_ = std::min(begin_, from);
    end_ = std::max(end_, to);
  }
  // From the first thread's begin to the last one's end. Valid when all have said when they worked.
  double Seconds() const {
    const std::lock_guard<std::mutex> lock(mutex);
    return end_ - begin_;
  }

 private:
  static inline std::mutex mutex;
  static inline int users = 0;
  static inline std::unique_ptr<Shared> instance;

  Allocator allocator_;
  double begin_ = std::numeric_limits<double>::max(), end_ = 0;
};

inline double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Every thread goes on for the same time, so that none measures the calm after the others have finished.
// ops_per_second is what all of them did, one allocation and one free each.
template <class Allocator>
void BM_Threads(benchmark::State& state) {
  constexpr int kStepsPerLook = 256;  // at the clock
  Shared<Allocator>& shared = Shared<Allocator>::Join();
  {
    typename Allocator::Stream stream(shared.allocator());
    Mix<Allocator> mix(shared.allocator(), stream, kThreadsLive, kSeed + static_cast<uint64_t>(state.thread_index()));
    double steps = 0;
    for (auto _ : state) {  // one iteration; all threads begin it together, and go on when all have ended it
      const double begin = NowSeconds();
      double end = begin;
      for (; end - begin < kThreadsSeconds; end = NowSeconds(), steps += kStepsPerLook) {
        for (int i = 0; i < kStepsPerLook; ++i) mix.Step();
      }
      shared.Worked(begin, end);
    }
    state.counters["ops_per_second"] = steps / shared.Seconds();  // summed over the threads
  }
  Shared<Allocator>::Leave();
}

// --- Traces ---------------------------------------------------------------------------------------------------------

// Replays a trace as often as one likes: what it leaves is freed at its end. Streams are told apart, and none is one of
// them; a reserve is an allocation; a trim is left out, since others' trims do other things.
template <class Allocator>
class Replay {
 public:
  Replay(Allocator& allocator, const Trace& trace) : allocator_(allocator) {
    std::unordered_map<uint64_t, size_t> stream_of, given;  // by the trace's numbers: index in streams_, in steps_
    for (const TraceOp& op : trace.ops) {
      if (op.kind == TraceOp::kTrim) continue;
      if (op.kind == TraceOp::kFree) {
        const auto found = given.find(op.block);
        steps_.push_back(FreeOf(steps_[found->second]));
        given.erase(found);
        continue;
      }
      const auto stream = stream_of.emplace(op.stream, stream_of.size());
      if (stream.second) streams_.push_back(std::make_unique<Stream>(allocator));
      given[op.block] = steps_.size();
      steps_.push_back({true, allocations(), op.bytes, streams_[stream.first->second].get()});
      ptrs_.push_back(nullptr);
    }
    for (const auto& left : given) steps_.push_back(FreeOf(steps_[left.second]));
  }
  size_t allocations() const { return ptrs_.size(); }
  void Run() {
    for (const Step& step : steps_) {
      void*& ptr = ptrs_[step.block];
      if (step.gives) {
        ptr = allocator_.Alloc(step.bytes, *step.stream);
      } else {
        allocator_.Free(ptr, step.bytes, *step.stream);
      }
    }
  }

 private:
  using Stream = typename Allocator::Stream;
  struct Step {
    bool gives;
    size_t block, bytes;
    Stream* stream;
  };
  static Step FreeOf(const Step& step) { return {false, step.block, step.bytes, step.stream}; }

  Allocator& allocator_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<void*> ptrs_;
  std::vector<Step> steps_;
};

// What a new allocator holds at most while it replays the trace once. An allocator that does not grow has its own.
template <class Allocator>
size_t PeakHeldBytes(const Trace& trace) {
  Allocator allocator;
  Replay<Allocator>(allocator, trace).Run();
  return allocator.HeldBytes();
}

// An iteration replays the trace; an item is one of its allocations with its free.
template <class Allocator>
void BM_Trace(benchmark::State& state, const Trace* trace) {
  static std::map<const Trace*, size_t> held_of;  // it is the same each time
  if (held_of.count(trace) == 0) held_of[trace] = PeakHeldBytes<Allocator>(*trace);
  const size_t held = held_of[trace];
  Allocator allocator;
  Replay<Allocator> replay(allocator, *trace);
  replay.Run();
  for (auto _ : state) replay.Run();
  state.SetItemsProcessed(static_cast<int64_t>(replay.allocations()) * static_cast<int64_t>(state.iterations()));
  if (held == 0) return;
  state.counters["held_bytes"] = static_cast<double>(held);
  state.counters["peak_live_bytes"] = static_cast<double>(PeakLiveBytes(*trace));
}

// --- Registration ---------------------------------------------------------------------------------------------------

// The traces must live as long as the benchmarks.
template <class Allocator>
void RegisterTraces(const std::string& name, const std::vector<Trace>& traces) {
  for (const Trace& trace : traces) {
    const std::string full = "BM_Trace/" + name + "/trace:" + trace.name;
    benchmark::RegisterBenchmark(full.c_str(), BM_Trace<Allocator>, &trace)->MinTime(kMinSeconds);
  }
}

template <class Allocator>
void RegisterThreads(const std::string& name) {
  benchmark::RegisterBenchmark(("BM_Threads/" + name).c_str(), BM_Threads<Allocator>)
      ->ThreadRange(1, 16)
      ->UseRealTime()
      ->Iterations(1);
}

template <class Allocator>
void RegisterPairs(const std::string& name) {
  benchmark::RegisterBenchmark(("BM_Pair/" + name).c_str(), BM_Pair<Allocator>)
      ->ArgName("bytes")
      ->Arg(256)
      ->Arg(65536)
      ->Arg(16 << 20)
      ->MinTime(kMinSeconds);
}

// All but the traces.
template <class Allocator>
void RegisterTimes(const std::string& name) {
  RegisterPairs<Allocator>(name);
  benchmark::RegisterBenchmark(("BM_Mixed/" + name).c_str(), BM_Mixed<Allocator>)
      ->ArgName("live")
      ->Arg(16)
      ->Arg(256)
      ->Arg(4096)
      ->MinTime(kMinSeconds);
  RegisterThreads<Allocator>(name);
}

template <class Allocator>
void RegisterAll(const std::string& name, const std::vector<Trace>& traces) {
  RegisterTimes<Allocator>(name);
  RegisterTraces<Allocator>(name, traces);
}

// The recorded traces of a folder, in the order of their names; a folder that is not there has none.
inline std::vector<Trace> RecordedTraces(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".trace") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Trace> traces;
  for (const std::filesystem::path& path : paths) {
    Trace trace = {path.stem(), {}};
    std::string error;
    if (!ReadTrace(path, &trace.ops, &error)) {
      std::fprintf(stderr, "%s\n", error.c_str());
      std::exit(1);
    }
    traces.push_back(std::move(trace));
  }
  return traces;
}

// Takes the argument that begins with `flag` away; gives what follows it there, NULL: there is none.
inline const char* TakeFlag(int* argc, char** argv, const char* flag) {
  for (int i = 1; i < *argc; ++i) {
    if (std::strncmp(argv[i], flag, std::strlen(flag)) != 0) continue;
    const char* value = argv[i] + std::strlen(flag);
    std::copy(argv + i + 1, argv + *argc, argv + i);
    --*argc;
    return value;
  }
  return nullptr;
}

// The main of such a program. Beside Google Benchmark's flags: --traces=FOLDER, of recorded ones.
inline int Main(int argc, char** argv, void (*register_benchmarks)(const std::vector<Trace>& traces)) {
  const char* folder = TakeFlag(&argc, argv, "--traces=");
  if (folder == nullptr) folder = "bench/scratch/traces";
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  std::vector<Trace> traces = MadeUpTraces();
  for (Trace& trace : RecordedTraces(folder)) traces.push_back(std::move(trace));
  register_benchmarks(traces);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace bench
}  // namespace gcap

#endif  // GCAP_BENCH_SCRATCH_WORKLOAD_H_
