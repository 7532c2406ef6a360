// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// framework.h: another framework's pool of device memory, as its own tensors use it. Each *_framework.cc is one; a
// program links one of them.
#ifndef GCAP_EXAMPLES_EXTERNAL_ALLOCATOR_FRAMEWORK_H_
#define GCAP_EXAMPLES_EXTERNAL_ALLOCATOR_FRAMEWORK_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

// Thread-safe.
class Framework {
 public:
  virtual ~Framework() = default;
  virtual const char* name() const = 0;
  // The stream that the framework works on; it makes the stream and ends it.
  virtual cudaStream_t Stream() = 0;
  // Memory in the order of `stream`: it may have been freed there, or by a stream that `stream` now waits for, and work
  // given to those before may still use it. Throws, or gives NULL, when there is none.
  virtual void* Alloc(size_t bytes, cudaStream_t stream) = 0;
  // In the order of `stream`, which is that of the alloc: work given to it before may still use the memory.
  virtual void Free(void* ptr, cudaStream_t stream) = 0;
  // Gives what nobody uses back to the driver, as far as it ever does.
  virtual void EmptyCache() = 0;
  virtual size_t HeldBytes() = 0;  // from the driver
};

// On the current device.
std::unique_ptr<Framework> MakeFramework();

#endif  // GCAP_EXAMPLES_EXTERNAL_ALLOCATOR_FRAMEWORK_H_
