// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The workloads of bench/scratch given to PyTorch's caching allocator, as "torch", from C++: what its own tensors call,
// without Python. The allocator is one for the process: a new one is the same, emptied.

#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <vector>

#include "bench/peers/cuda_streams.h"
#include "bench/scratch/workload.h"

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

class Torch {
 public:
  using Stream = gcap::bench::CudaStream;

  Torch() {
    caching::emptyCache();
    caching::resetPeakStats(0);
  }
  Torch(const Torch&) = delete;
  Torch& operator=(const Torch&) = delete;
  ~Torch() { caching::emptyCache(); }

  void* Alloc(size_t bytes, Stream& stream) { return caching::raw_alloc_with_stream(bytes, stream.get()); }
  void Free(void* ptr, size_t /*bytes*/, Stream& /*stream*/) { caching::raw_delete(ptr); }
  // The first of its statistics is the aggregate over small and large blocks.
  size_t HeldBytes() { return static_cast<size_t>(caching::getDeviceStats(0).reserved_bytes[0].peak); }
};

void Register(const std::vector<gcap::bench::Trace>& traces) { gcap::bench::RegisterAll<Torch>("torch", traces); }

}  // namespace

int main(int argc, char** argv) {
  gcap::bench::RequireDevice();
  gcap::bench::CheckCuda(cudaSetDevice(0));
  caching::init(1);
  return gcap::bench::Main(argc, argv, Register);
}
