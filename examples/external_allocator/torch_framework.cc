// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// PyTorch's caching allocator as a framework: the one that its tensors use, here without Python. It gives a block again
// to the stream that it was allocated for, at once, and to no other.

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include "examples/external_allocator/framework.h"

// Of libc10_cuda.so, and in no header: what the rest of PyTorch calls when it is loaded.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(DeviceIndex device));
}  // namespace c10::cuda::_internal

namespace {

namespace caching = c10::cuda::CUDACachingAllocator;

class TorchFramework : public Framework {
 public:
  const char* name() const override { return "PyTorch's caching allocator"; }
  cudaStream_t Stream() override { return stream_.stream(); }

  void* Alloc(size_t bytes, cudaStream_t stream) override { return caching::raw_alloc_with_stream(bytes, stream); }
  void Free(void* ptr, cudaStream_t /*stream*/) override { caching::raw_delete(ptr); }  // it remembers the stream
  void EmptyCache() override { caching::emptyCache(); }

  // The first of its counters is the sum over small and large blocks.
  size_t HeldBytes() override {
    int device = 0;
    (void)cudaGetDevice(&device);  // it has a current device, since it has allocated there
    return static_cast<size_t>(
        caching::getDeviceStats(static_cast<c10::DeviceIndex>(device)).reserved_bytes[0].current);
  }

 private:
  c10::cuda::CUDAStream stream_ = c10::cuda::getStreamFromPool();
};

}  // namespace

// In a program that has the whole of PyTorch, such as an extension of it, its first tensor has done this.
std::unique_ptr<Framework> MakeFramework() {
  if (caching::get()->initialized()) return std::make_unique<TorchFramework>();
  // A stream of the pool asks whether the device has a context, which libc10_cuda alone cannot tell.
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  int num_devices = 0;
  if (cudaGetDeviceCount(&num_devices) == cudaSuccess) caching::init(num_devices);
  return std::make_unique<TorchFramework>();
}
