// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The workloads of bench/scratch given to bare cudaMallocAsync and cudaFreeAsync, as "cuda_async": the device's default
// pool, told to keep what is freed, as all who use it for speed do. Their own default gives it back whenever a stream
// is synchronised, which happens here only between benchmarks.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "bench/peers/cuda_streams.h"
#include "bench/scratch/workload.h"

namespace {

using gcap::bench::CheckCuda;

class CudaAsync {
 public:
  using Stream = gcap::bench::CudaStream;

  CudaAsync() {
    CheckCuda(cudaDeviceGetDefaultMemPool(&pool_, 0));
    uint64_t value = UINT64_MAX;
    CheckCuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &value));
    CheckCuda(cudaMemPoolTrimTo(pool_, 0));
    value = 0;
    CheckCuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &value));
  }
  CudaAsync(const CudaAsync&) = delete;
  CudaAsync& operator=(const CudaAsync&) = delete;
  ~CudaAsync() {
    CheckCuda(cudaDeviceSynchronize());
    CheckCuda(cudaMemPoolTrimTo(pool_, 0));
  }

  void* Alloc(size_t bytes, Stream& stream) {
    void* ptr = nullptr;
    CheckCuda(cudaMallocAsync(&ptr, bytes, stream.get()));
    return ptr;
  }
  void Free(void* ptr, size_t /*bytes*/, Stream& stream) { CheckCuda(cudaFreeAsync(ptr, stream.get())); }
  size_t HeldBytes() { return gcap::bench::PeakReservedBytes(pool_); }

 private:
  cudaMemPool_t pool_ = nullptr;
};

void Register(const std::vector<gcap::bench::Trace>& traces) {
  gcap::bench::RegisterAll<CudaAsync>("cuda_async", traces);
}

}  // namespace

int main(int argc, char** argv) {
  gcap::bench::RequireDevice();
  return gcap::bench::Main(argc, argv, Register);
}
