// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// cuda_streams.h: what the programs of other allocators share: a bare stream, and a pool of the CUDA runtime.
#ifndef GCAP_BENCH_PEERS_CUDA_STREAMS_H_
#define GCAP_BENCH_PEERS_CUDA_STREAMS_H_

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace gcap {
namespace bench {

inline void CheckCuda(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "benchmark: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

// Writes the device down, too.
inline void RequireDevice() {
  cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, 0) == cudaSuccess) {
    benchmark::AddCustomContext("device", properties.name);
    return;
  }
  std::fprintf(stderr, "benchmark: no CUDA device\n");
  std::exit(std::getenv("GCAP_REQUIRE_GPU") != nullptr ? 1 : 0);
}

// A non-blocking one, as gcap's own.
class CudaStream {
 public:
  template <class Allocator>
  explicit CudaStream(Allocator& /*allocator*/) {
    CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() {
    CheckCuda(cudaStreamSynchronize(stream_));
    CheckCuda(cudaStreamDestroy(stream_));
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

inline size_t PeakReservedBytes(cudaMemPool_t pool) {
  uint64_t bytes = 0;
  CheckCuda(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &bytes));
  return bytes;
}

}  // namespace bench
}  // namespace gcap

#endif  // GCAP_BENCH_PEERS_CUDA_STREAMS_H_
