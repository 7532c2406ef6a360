// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// A framework of fifty lines, for machines that have no other: a pool that caches in stream order, as PyTorch's does.
// What a stream frees is given to it again at once, since what it does next comes after what it did before.

#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "examples/external_allocator/framework.h"

namespace {

class SmallFramework : public Framework {
 public:
  SmallFramework() {
    if (cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) != cudaSuccess) std::abort();
  }
  ~SmallFramework() override {
    SmallFramework::EmptyCache();
    (void)cudaStreamDestroy(stream_);
  }

  const char* name() const override { return "a small pool"; }
  cudaStream_t Stream() override { return stream_; }

  void* Alloc(size_t bytes, cudaStream_t stream) override {
    size_t rounded = 512;
    while (rounded < bytes) rounded *= 2;
    const std::lock_guard<std::mutex> lock(mutex_);
    void* ptr = nullptr;
    const auto cached = cache_.find({stream, rounded});
    if (cached != cache_.end()) {
      ptr = cached->second;
      cache_.erase(cached);
    } else if (cudaMalloc(&ptr, rounded) != cudaSuccess) {
      return nullptr;
    } else {
      held_bytes_ += rounded;
    }
    block_bytes_[ptr] = rounded;
    return ptr;
  }

  void Free(void* ptr, cudaStream_t stream) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto block = block_bytes_.find(ptr);
    cache_.insert({{stream, block->second}, ptr});
    block_bytes_.erase(block);
  }

  // cudaFree waits for the device, so streams may still be at work on the blocks.
  void EmptyCache() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [stream_and_bytes, ptr] : cache_) {
      if (cudaFree(ptr) == cudaSuccess) held_bytes_ -= stream_and_bytes.second;
    }
    cache_.clear();
  }

  size_t HeldBytes() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return held_bytes_;
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::mutex mutex_;
  std::multimap<std::pair<cudaStream_t, size_t>, void*> cache_;  // by stream and size
  std::unordered_map<void*, size_t> block_bytes_;                // handed out
  size_t held_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Framework> MakeFramework() { return std::make_unique<SmallFramework>(); }
