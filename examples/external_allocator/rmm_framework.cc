// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// RMM's pool (RAPIDS Memory Manager 26.10) as a framework. Its pool takes blocks that another stream freed too, and has
// the requesting stream wait for that one: whoever uses such a block on a third stream must see to the rest. It gives
// nothing back to the driver before it ends.

#include <cstdlib>
#include <mutex>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include <unordered_map>

#include "examples/external_allocator/framework.h"

namespace {

constexpr size_t kFirstPoolBytes = size_t{1} << 20;
constexpr size_t kAlignment = 256;

class RmmFramework : public Framework {
 public:
  RmmFramework() {
    if (cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) != cudaSuccess) std::abort();
  }
  ~RmmFramework() override { (void)cudaStreamDestroy(stream_); }

  const char* name() const override { return "RMM's pool_memory_resource"; }
  cudaStream_t Stream() override { return stream_; }

  void* Alloc(size_t bytes, cudaStream_t stream) override {
    void* const ptr = pool_.allocate(cuda::stream_ref{stream}, bytes, kAlignment);
    const std::lock_guard<std::mutex> lock(mutex_);
    block_bytes_[ptr] = bytes;
    return ptr;
  }

  // RMM wants to be told the size.
  void Free(void* ptr, cudaStream_t stream) override {
    size_t bytes = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto block = block_bytes_.find(ptr);
      bytes = block->second;
      block_bytes_.erase(block);
    }
    pool_.deallocate(cuda::stream_ref{stream}, ptr, bytes, kAlignment);
  }

  void EmptyCache() override {}

  size_t HeldBytes() override { return pool_.pool_size(); }

 private:
  cudaStream_t stream_ = nullptr;
  rmm::mr::pool_memory_resource pool_{rmm::mr::cuda_memory_resource{}, kFirstPoolBytes};
  std::mutex mutex_;
  std::unordered_map<void*, size_t> block_bytes_;
};

}  // namespace

std::unique_ptr<Framework> MakeFramework() { return std::make_unique<RmmFramework>(); }
