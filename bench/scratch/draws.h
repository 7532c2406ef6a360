// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// draws.h: what the benchmarks of scratch ask for, drawn once and for every allocator alike: sizes, and traces made up
// after three kinds of work. Integers alone, so that every compiler and standard library draws the same.
#ifndef GCAP_BENCH_SCRATCH_DRAWS_H_
#define GCAP_BENCH_SCRATCH_DRAWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/scratch/trace.h"

namespace gcap {
namespace bench {

constexpr uint64_t kSeed = 20260101;

// splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t end) { return Next() % end; }
  // From `least` to `least` << `powers`, equally often in each power of two.
  size_t Bytes(size_t least, unsigned powers) {
    const size_t low = least << Below(powers);
    return low + Below(low);
  }

 private:
  uint64_t state_;
};

// --- Mixed sizes ----------------------------------------------------------------------------------------------------

// The block of that slot is freed and one of so many bytes allocated instead.
struct Draw {
  size_t slot, bytes;
};
constexpr size_t kDraws = 4096;
// Before a measurement, until nobody's memory grows any more.
constexpr size_t kWarmUpDraws = 4 * kDraws;

// 256 bytes to 1 MiB.
inline std::vector<Draw> MixedDraws(size_t live, uint64_t seed) {
  Random random(seed);
  std::vector<Draw> draws(kDraws);
  for (Draw& draw : draws) {
    draw.slot = random.Below(live);
    draw.bytes = random.Bytes(256, 12);
  }
  return draws;
}

// --- Traces ---------------------------------------------------------------------------------------------------------

struct Trace {
  std::string name;
  std::vector<TraceOp> ops;
};

inline size_t PeakLiveBytes(const Trace& trace) {
  std::unordered_map<uint64_t, size_t> bytes_of;
  size_t live = 0, peak = 0;
  for (const TraceOp& op : trace.ops) {
    if (op.kind == TraceOp::kTrim) continue;
    if (op.kind == TraceOp::kFree) {
      live -= bytes_of[op.block];
    } else {
      bytes_of[op.block] = op.bytes;
      peak = std::max(peak, live += op.bytes);
    }
  }
  return peak;
}

// Makes up a trace of one stream.
class TraceWriter {
 public:
  size_t live() const { return live_.size(); }
  void Alloc(size_t bytes) {
    live_.push_back(ops_.size() + 1);
    ops_.push_back({TraceOp::kAlloc, live_.back(), bytes, 1});
  }
  // The index-th oldest of the live ones.
  void Free(size_t index) {
    ops_.push_back({TraceOp::kFree, live_[index], 0, 0});
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  std::vector<TraceOp> Finish() {
    while (live() > 0) Free(0);
    return ops_;
  }

 private:
  std::vector<uint64_t> live_;
  std::vector<TraceOp> ops_;
};

// A network run: 60 layers, each with its output, a workspace, and something small; a handful lives over a few layers.
// `scale` is in sixteenths. Outputs of half a MiB to 8 MiB, so that the smallest region of an allocator decides
// nothing.
inline void WriteLayers(TraceWriter* writer, size_t scale, Random* random) {
  for (int layer = 0; layer < 60; ++layer) {
    writer->Alloc((scale << 15) << (layer / 12));
    writer->Alloc((scale << 13) * (1 + random->Below(8)));
    writer->Alloc(256 + random->Below(4096));
    writer->Free(writer->live() - 2);
    while (writer->live() > 6) writer->Free(random->Below(3));
  }
  while (writer->live() > 0) writer->Free(0);
}

inline std::vector<TraceOp> RunsOfOneShape() {
  TraceWriter writer;
  for (int run = 0; run < 20; ++run) {
    Random random(kSeed);
    WriteLayers(&writer, 16, &random);
  }
  return writer.Finish();
}

// The same with another batch each time, of half to two and a half times the size.
inline std::vector<TraceOp> RunsOfManyShapes() {
  TraceWriter writer;
  Random random(kSeed);
  for (int run = 0; run < 20; ++run) WriteLayers(&writer, 8 + random.Below(32), &random);
  return writer.Finish();
}

// A number of live blocks that goes up and down, with sizes that drift upwards, as of sequences that grow.
inline std::vector<TraceOp> DriftingSizes() {
  TraceWriter writer;
  Random random(kSeed);
  for (size_t i = 0; i < 20000; ++i) {
    const size_t wanted = 100 + i / 1000 % 2 * 400;
    while (writer.live() >= wanted) writer.Free(random.Below(writer.live()));
    writer.Alloc(random.Bytes(256, 10) * (4 + i / 1000) / 4);
  }
  return writer.Finish();
}

inline std::vector<Trace> MadeUpTraces() {
  return {{"one_shape", RunsOfOneShape()}, {"many_shapes", RunsOfManyShapes()}, {"drifting", DriftingSizes()}};
}

}  // namespace bench
}  // namespace gcap

#endif  // GCAP_BENCH_SCRATCH_DRAWS_H_
