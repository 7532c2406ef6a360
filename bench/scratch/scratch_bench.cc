// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What scratch costs on the CPU. Upstream hands out address space that nobody touches and makes no CUDA call, so the
// time is scratch's own on any machine: an iteration is one allocation and one free.
//
// BM_Pair: one size. BM_Mixed: 16 to 4,096 live blocks, of which a random one is replaced by one of a random size.
// BM_Threads: as BM_Mixed with 256 live, from several threads with a stream each; items_per_second should grow with
// them. BM_Held: no time, but the peak of bytes held from upstream over the peak of bytes live, for three made-up runs.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <vector>

#include "gcap/allocator_ops.h"
#include "gcap/scratch.h"

namespace {

constexpr uint64_t kSeed = 20260101;
constexpr int kIterationsOfThreads = 50000;  // fixed, or each try for a number would warm up anew
constexpr double kMinSeconds = 0.01;         // of each, since the test suite runs them all; repetitions make it precise

void Check(gcap_status_t status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "scratch_bench: %s\n", gcap_status_message(status));
  std::exit(1);
}

// Address space without memory behind it.
class Upstream {
 public:
  Upstream() {
    gcap_allocator_ops_t ops = {};
    ops.struct_version = GCAP_ALLOCATOR_OPS_VERSION;
    ops.alignment = 256;
    ops.self = this;
    ops.alloc = [](void* self, size_t bytes, void** out) { return static_cast<Upstream*>(self)->Alloc(bytes, out); };
    ops.free = [](void* self, void* ptr) { return static_cast<Upstream*>(self)->Free(ptr); };
    Check(gcap_allocator_create(&ops, &allocator_));
  }
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;
  ~Upstream() { gcap_allocator_destroy(allocator_); }
  gcap_allocator_t* get() const { return allocator_; }

 private:
  gcap_status_t Alloc(size_t bytes, void** out_ptr) {
    void* base = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return GCAP_STATUS(GCAP_RESOURCE_EXHAUSTED, "no address space for %zu bytes", bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    sizes_[base] = bytes;
    *out_ptr = base;
    return nullptr;
  }
  gcap_status_t Free(void* ptr) {
    const std::lock_guard<std::mutex> lock(mutex_);
    munmap(ptr, sizes_[ptr]);
    sizes_.erase(ptr);
    return nullptr;
  }

  gcap_allocator_t* allocator_ = nullptr;
  std::mutex mutex_;
  std::map<void*, size_t> sizes_;
};

class Arena {
 public:
  explicit Arena(const gcap_scratch_options_t* options = nullptr) {
    Check(gcap_scratch_create(upstream_.get(), options, &scratch_));
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() { Check(gcap_scratch_destroy(scratch_)); }
  gcap_scratch_t* get() const { return scratch_; }

  void* Alloc(size_t bytes, gcap_stream_t* stream) const {
    void* ptr = nullptr;
    Check(gcap_scratch_alloc(scratch_, bytes, stream, &ptr));
    return ptr;
  }
  void Free(void* ptr) const { Check(gcap_scratch_free(scratch_, ptr)); }

 private:
  Upstream upstream_;
  gcap_scratch_t* scratch_ = nullptr;
};

class Stream {
 public:
  Stream() { Check(gcap_stream_create(0, &stream_)); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { Check(gcap_stream_destroy(stream_)); }
  gcap_stream_t* get() const { return stream_; }

 private:
  gcap_stream_t* stream_ = nullptr;
};

// Equally often in each power of two.
size_t RandomSize(std::mt19937_64& random, double least, double most) {
  return static_cast<size_t>(std::exp(std::uniform_real_distribution<double>(std::log(least), std::log(most))(random)));
}

// A stream's live blocks, of which each step replaces one; what is drawn by lot is drawn before.
class Mix {
 public:
  Mix(const Arena& arena, gcap_stream_t* stream, size_t live, uint64_t seed)
      : arena_(arena), stream_(stream), live_(live) {
    std::mt19937_64 random(seed);
    for (Draw& draw : draws_) draw = {random() % live, RandomSize(random, 256, 1 << 20)};
    for (size_t i = 0; i < live; ++i) live_[i] = arena_.Alloc(draws_[i % draws_.size()].bytes, stream_);
    for (size_t i = 0; i < 4 * draws_.size(); ++i) Step();  // until the arena grows no more
  }
  Mix(const Mix&) = delete;
  Mix& operator=(const Mix&) = delete;
  ~Mix() {
    for (void* ptr : live_) arena_.Free(ptr);
  }
  void Step() {
    const Draw& draw = draws_[next_++ % draws_.size()];
    arena_.Free(live_[draw.slot]);
    live_[draw.slot] = arena_.Alloc(draw.bytes, stream_);
  }

 private:
  struct Draw {
    size_t slot, bytes;
  };
  const Arena& arena_;
  gcap_stream_t* stream_;
  std::vector<void*> live_;
  std::vector<Draw> draws_ = std::vector<Draw>(4096);
  size_t next_ = 0;
};

void BM_Pair(benchmark::State& state) {
  const Arena arena;
  const Stream stream;
  const size_t bytes = static_cast<size_t>(state.range(0));
  for (auto _ : state) arena.Free(arena.Alloc(bytes, stream.get()));
}

void BM_Mixed(benchmark::State& state) {
  const Arena arena;
  const Stream stream;
  Mix mix(arena, stream.get(), static_cast<size_t>(state.range(0)), kSeed);
  for (auto _ : state) mix.Step();
}

// All threads of one run share it; the first in makes it, the last out ends it.
class SharedArena {
 public:
  static const Arena& Join() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (users++ == 0) arena = new Arena;
    return *arena;
  }
  static void Leave() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (--users == 0) delete arena;
  }

 private:
  static std::mutex mutex;
  static int users;
  static Arena* arena;
};
std::mutex SharedArena::mutex;
int SharedArena::users = 0;
Arena* SharedArena::arena = nullptr;

void BM_Threads(benchmark::State& state) {
  const Arena& arena = SharedArena::Join();
  const Stream stream;
  {
    Mix mix(arena, stream.get(), 256, kSeed + static_cast<uint64_t>(state.thread_index()));
    for (auto _ : state) mix.Step();
    state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
  }
  Check(gcap_stream_synchronize(stream.get()));
  Check(gcap_scratch_forget_stream(arena.get(), stream.get()));
  SharedArena::Leave();
}

// --- Bytes held -----------------------------------------------------------------------------------------------------

// One stream's allocations, with the peaks beside them.
class Run {
 public:
  Run() : arena_(Options()) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() {
    for (const Block& block : blocks_) arena_.Free(block.ptr);
  }

  size_t count() const { return blocks_.size(); }
  void Alloc(size_t bytes) {
    blocks_.push_back({arena_.Alloc(bytes, stream_.get()), bytes});
    live_bytes_ += bytes;
    peak_live_bytes_ = std::max(peak_live_bytes_, live_bytes_);
  }
  void Free(size_t index) {
    arena_.Free(blocks_[index].ptr);
    live_bytes_ -= blocks_[index].bytes;
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  // Nothing is given back meanwhile, so what is held at the end is the peak.
  void Report(benchmark::State& state) const {
    gcap_allocator_stats_t stats;
    gcap_scratch_get_stats(arena_.get(), &stats);
    state.counters["peak_live_bytes"] = static_cast<double>(peak_live_bytes_);
    state.counters["held_over_live"] =
        static_cast<double>(stats.total_allocated_bytes) / static_cast<double>(peak_live_bytes_);
  }

 private:
  struct Block {
    void* ptr;
    size_t bytes;
  };
  // Regions of 2 MiB, so that doubling does not hide what fragments.
  static const gcap_scratch_options_t* Options() {
    static gcap_scratch_options_t options;
    gcap_scratch_options_init(&options);
    options.initial_chunk_bytes = options.max_extend_bytes = size_t{2} << 20;
    return &options;
  }

  Stream stream_;
  Arena arena_;
  std::vector<Block> blocks_;
  size_t live_bytes_ = 0, peak_live_bytes_ = 0;
};

// A network run with one shape: 60 layers, each with its output and a workspace, an input kept over a few layers.
void Layers(Run* run, double scale, std::mt19937_64& random) {
  for (int layer = 0; layer < 60; ++layer) {
    const double width = 1 << (layer / 12);
    run->Alloc(static_cast<size_t>(scale * 65536 * width));
    run->Alloc(static_cast<size_t>(scale * 8192 * (1 + random() % 8)));
    run->Alloc(static_cast<size_t>(256 + random() % 4096));
    run->Free(run->count() - 2);
    if (run->count() > 6) run->Free(random() % 3);
  }
  while (run->count() > 0) run->Free(0);
}

void BM_HeldByRunsOfOneShape(benchmark::State& state) {
  for (auto _ : state) {
    Run run;
    for (int i = 0; i < 20; ++i) {
      std::mt19937_64 random(kSeed);
      Layers(&run, 1, random);
    }
    run.Report(state);
  }
}

// The same with another batch each time.
void BM_HeldByRunsOfManyShapes(benchmark::State& state) {
  for (auto _ : state) {
    Run run;
    std::mt19937_64 random(kSeed);
    for (int i = 0; i < 20; ++i) Layers(&run, 0.5 + static_cast<double>(random() % 32) / 16, random);
    run.Report(state);
  }
}

// A number of live blocks that goes up and down, with sizes that drift upwards, as of sequences that grow.
void BM_HeldByDriftingSizes(benchmark::State& state) {
  for (auto _ : state) {
    Run run;
    std::mt19937_64 random(kSeed);
    for (int i = 0; i < 20000; ++i) {
      const size_t wanted = 100 + static_cast<size_t>(i / 1000 % 2) * 400;
      while (run.count() >= wanted) run.Free(random() % run.count());
      run.Alloc(RandomSize(random, 256, 65536 * (1 + i / 4000)));
    }
    run.Report(state);
  }
}

BENCHMARK(BM_Pair)->ArgName("bytes")->Arg(256)->Arg(65536)->Arg(16 << 20)->MinTime(kMinSeconds);
BENCHMARK(BM_Mixed)->ArgName("live")->Arg(16)->Arg(256)->Arg(4096)->MinTime(kMinSeconds);
BENCHMARK(BM_Threads)->ThreadRange(1, 16)->UseRealTime()->Iterations(kIterationsOfThreads);
BENCHMARK(BM_HeldByRunsOfOneShape)->Iterations(1);
BENCHMARK(BM_HeldByRunsOfManyShapes)->Iterations(1);
BENCHMARK(BM_HeldByDriftingSizes)->Iterations(1);

}  // namespace

int main(int argc, char** argv) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::fprintf(stderr, "scratch_bench: no CUDA device, so no streams\n");
    return std::getenv("GCAP_REQUIRE_GPU") != nullptr ? 1 : 0;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
