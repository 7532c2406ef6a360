// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The workloads of bench/scratch given to three resources of RMM (RAPIDS Memory Manager), of which a program uses one:
//   rmm_pool   pool_memory_resource over cudaMalloc, from 1 MiB: it has no default, and doubles by itself
//   rmm_pool_4gib  the same from 4 GiB, more than anything here needs: its time where it never grew
//   rmm_arena  arena_memory_resource over cudaMalloc, at its default of half of the free memory. It never grows, so the
//              bytes that it holds for a trace are those of the smallest arena, in whole MiB, in which the trace runs
//   rmm_async  cuda_async_memory_resource at its defaults
// RMM needs C++17 and the CUDA runtime, no compiler of NVIDIA's.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <optional>
#include <rmm/error.hpp>
#include <rmm/mr/arena_memory_resource.hpp>
#include <rmm/mr/cuda_async_memory_resource.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <vector>

#include "bench/peers/cuda_streams.h"
#include "bench/scratch/workload.h"

namespace {

using gcap::bench::Trace;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kAlignment = 256;

template <class Resource>
class Rmm {
 public:
  using Stream = gcap::bench::CudaStream;

  void* Alloc(size_t bytes, Stream& stream) {
    return resource_.allocate(cuda::stream_ref{stream.get()}, bytes, kAlignment);
  }
  void Free(void* ptr, size_t bytes, Stream& stream) {
    resource_.deallocate(cuda::stream_ref{stream.get()}, ptr, bytes, kAlignment);
  }

 protected:
  template <class... Arguments>
  explicit Rmm(Arguments&&... arguments) : resource_(std::forward<Arguments>(arguments)...) {}

  Resource resource_;
};

template <size_t kInitialBytes>
class Pool : public Rmm<rmm::mr::pool_memory_resource> {
 public:
  Pool() : Rmm(rmm::mr::cuda_memory_resource{}, kInitialBytes) {}
  // It gives nothing back.
  size_t HeldBytes() { return resource_.pool_size(); }
};

class Arena : public Rmm<rmm::mr::arena_memory_resource> {
 public:
  Arena() : Arena(std::nullopt) {}
  explicit Arena(std::optional<size_t> bytes) : Rmm(rmm::mr::cuda_memory_resource{}, bytes) {}
};

class Async : public Rmm<rmm::mr::cuda_async_memory_resource> {
 public:
  Async() : Rmm() {}
  size_t HeldBytes() { return gcap::bench::PeakReservedBytes(resource_.pool_handle()); }
};

bool RunsInArenaOf(size_t mib, const Trace& trace) {
  Arena arena(mib * kMiB);
  try {
    gcap::bench::Replay<Arena>(arena, trace).Run();
  } catch (const rmm::bad_alloc&) {
    return false;
  }
  return true;
}

}  // namespace

namespace gcap {
namespace bench {

template <>
size_t PeakHeldBytes<Arena>(const Trace& trace) {
  size_t too_small = PeakLiveBytes(trace) / kMiB, enough = too_small + 1;
  for (; !RunsInArenaOf(enough, trace); enough *= 2) too_small = enough;
  while (enough - too_small > 1) {
    const size_t middle = too_small + (enough - too_small) / 2;
    (RunsInArenaOf(middle, trace) ? enough : too_small) = middle;
  }
  return enough * kMiB;
}

}  // namespace bench
}  // namespace gcap

namespace {

void Register(const std::vector<Trace>& traces) {
  gcap::bench::RegisterAll<Pool<kMiB>>("rmm_pool", traces);
  gcap::bench::RegisterTimes<Pool<4096 * kMiB>>("rmm_pool_4gib");
  gcap::bench::RegisterAll<Arena>("rmm_arena", traces);
  gcap::bench::RegisterAll<Async>("rmm_async", traces);
}

}  // namespace

int main(int argc, char** argv) {
  gcap::bench::RequireDevice();
  return gcap::bench::Main(argc, argv, Register);
}
