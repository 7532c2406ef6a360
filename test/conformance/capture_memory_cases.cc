// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// During a capture: allocation, copies, fills, pools.
#include "test/conformance/capture_frame.h"

namespace conformance {

namespace {

// Frees what the frame would free later.
cudaError_t FreeNow(char** memory, cudaError_t (*free)(void*)) {
  const cudaError_t code = free(*memory);
  if (code == cudaSuccess) *memory = nullptr;
  return code;
}

cudaError_t CopyOn(CaptureFrame& f, cudaStream_t stream) {
  return cudaMemcpyAsync(f.device2, f.device, 16, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t MallocAsync(CaptureFrame& f, size_t bytes, cudaStream_t stream, void** memory) {
  Observer& o = f.o;
  const cudaError_t code = cudaMallocAsync(memory, bytes, stream);
  void* const made = *memory;
  const bool eager = code == cudaSuccess && stream != f.s;
  if (eager) f.cleanup.push_back([&o, made] { REQUIRE_CUDA(cudaFree(made)); });
  return code;
}

cudaError_t MallocPitch(CaptureFrame& f) {
  Observer& o = f.o;
  void* memory = nullptr;
  size_t pitch;
  const cudaError_t code = cudaMallocPitch(&memory, &pitch, 100, 4);
  f.cleanup.push_back([&o, memory] { REQUIRE_CUDA(cudaFree(memory)); });
  return code;
}

const std::vector<CaptureRow> kAllocation = {
    {"cudaFree", [](CaptureFrame& f) { return FreeNow(&f.device2, cudaFree); }},
    {"cudaFree_null", [](CaptureFrame&) { return cudaFree(nullptr); }},
    {"cudaFreeHost", [](CaptureFrame& f) { return FreeNow(&f.pinned, cudaFreeHost); }},
    {"cudaMallocPitch", MallocPitch},
    {"cudaHostGetDevicePointer",
     [](CaptureFrame& f) {
       void* memory;
       return cudaHostGetDevicePointer(&memory, f.pinned, 0);
     }},
    {"cudaMallocAsync_capturing",
     [](CaptureFrame& f) {
       void* memory = nullptr;
       return MallocAsync(f, kBytes, f.s, &memory);
     }},
    {"cudaMallocAsync_zero_capturing",
     [](CaptureFrame& f) {
       void* memory = nullptr;
       return MallocAsync(f, 0, f.s, &memory);
     }},
    {"cudaMallocAsync_other",
     [](CaptureFrame& f) {
       void* memory = nullptr;
       return MallocAsync(f, kBytes, f.s2, &memory);
     }},
    {"cudaFreeAsync_pre_capturing", [](CaptureFrame& f) { return cudaFreeAsync(f.pooled, f.s); }},
    {"cudaFreeAsync_cudaMalloced_capturing", [](CaptureFrame& f) { return cudaFreeAsync(f.device2, f.s); }},
    {"cudaFreeAsync_pre_other",
     [](CaptureFrame& f) {
       const cudaError_t code = cudaFreeAsync(f.pooled, f.s2);
       if (code == cudaSuccess) f.pooled = nullptr;
       return code;
     }},
    {"cudaMallocAsync_FreeAsync_capturing",
     [](CaptureFrame& f) {
       void* memory = nullptr;
       const cudaError_t code = MallocAsync(f, kBytes, f.s, &memory);
       return code == cudaSuccess ? cudaFreeAsync(memory, f.s) : code;
     }},
    {"cudaMallocAsync_capturing_FreeAsync_other",
     [](CaptureFrame& f) {
       void* memory = nullptr;
       const cudaError_t code = MallocAsync(f, kBytes, f.s, &memory);
       return code == cudaSuccess ? cudaFreeAsync(memory, f.s2) : code;
     }},
};
const CaptureCases allocation("cap.", kAllocation);

const std::vector<CaptureRow> kCopies = {
    {"cudaMemcpy_d2d", [](CaptureFrame& f) { return cudaMemcpy(f.device2, f.device, 16, cudaMemcpyDeviceToDevice); },
     true},
    {"cudaMemcpy_zero", [](CaptureFrame& f) { return cudaMemcpy(f.device2, f.device, 0, cudaMemcpyDeviceToDevice); },
     true},
    {"cudaMemcpyAsync_h2d_pinned",
     [](CaptureFrame& f) { return cudaMemcpyAsync(f.device, f.pinned, 16, cudaMemcpyHostToDevice, f.s); }},
    {"cudaMemcpyAsync_h2d_pageable",
     [](CaptureFrame& f) { return cudaMemcpyAsync(f.device, f.pageable, 16, cudaMemcpyHostToDevice, f.s); }},
    {"cudaMemcpyAsync_d2h_pageable",
     [](CaptureFrame& f) { return cudaMemcpyAsync(f.pageable, f.device, 16, cudaMemcpyDeviceToHost, f.s); }},
    {"cudaMemcpyAsync_d2d", [](CaptureFrame& f) { return CopyOn(f, f.s); }},
    {"cudaMemcpyAsync_h2h_pinned",
     [](CaptureFrame& f) { return cudaMemcpyAsync(f.pinned, f.pinned + 64, 16, cudaMemcpyHostToHost, f.s); }},
    {"cudaMemcpyAsync_badkind",
     [](CaptureFrame& f) { return cudaMemcpyAsync(f.device2, f.device, 16, static_cast<cudaMemcpyKind>(7), f.s); }},
    {"cudaMemcpyAsync_wrongkind",
     [](CaptureFrame& f) { return cudaMemcpyAsync(f.device2, f.device, 16, cudaMemcpyHostToDevice, f.s); }},
    {"cudaMemcpyAsync_nulldst",
     [](CaptureFrame& f) { return cudaMemcpyAsync(nullptr, f.device, 16, cudaMemcpyDeviceToDevice, f.s); }},
    {"cudaMemcpyAsync_legacy", [](CaptureFrame& f) { return CopyOn(f, cudaStreamLegacy); }, true},
    {"cudaMemcpyAsync_perthread", [](CaptureFrame& f) { return CopyOn(f, cudaStreamPerThread); }},
    {"cudaMemcpyPeerAsync_samedev",
     [](CaptureFrame& f) { return cudaMemcpyPeerAsync(f.device2, 0, f.device, 0, 16, f.s); }},
    {"cudaMemcpy2DAsync",
     [](CaptureFrame& f) {
       return cudaMemcpy2DAsync(f.device2, 64, f.device, 64, 16, 4, cudaMemcpyDeviceToDevice, f.s);
     }},
    {"cudaMemsetAsync", [](CaptureFrame& f) { return cudaMemsetAsync(f.device, 1, 16, f.s); }},
    {"cudaMemsetAsync_zero", [](CaptureFrame& f) { return cudaMemsetAsync(f.device, 1, 0, f.s); }},
};
const CaptureCases copies("cap.", kCopies);

cudaError_t SetPool(CaptureFrame& f) {
  Observer& o = f.o;
  const cudaError_t code = cudaDeviceSetMemPool(0, f.pool);
  f.cleanup.push_back([&o] {
    cudaMemPool_t own = nullptr;
    REQUIRE_CUDA(cudaDeviceGetDefaultMemPool(&own, 0));
    REQUIRE_CUDA(cudaDeviceSetMemPool(0, own));
  });
  return code;
}

const std::vector<CaptureRow> kPools = {
    {"cudaDeviceGetDefaultMemPool",
     [](CaptureFrame&) {
       cudaMemPool_t pool;
       return cudaDeviceGetDefaultMemPool(&pool, 0);
     }},
    {"cudaDeviceSetMemPool", SetPool},
    {"cudaMemPoolDestroy",
     [](CaptureFrame& f) {
       const cudaError_t code = cudaMemPoolDestroy(f.pool);
       if (code == cudaSuccess) f.pool = nullptr;
       return code;
     }},
    {"cudaMemPoolGetAttribute_reuse",
     [](CaptureFrame& f) {
       int value;
       return cudaMemPoolGetAttribute(f.pool, cudaMemPoolReuseFollowEventDependencies, &value);
     }},
    {"cudaMemPoolSetAttribute",
     [](CaptureFrame& f) {
       unsigned long long threshold = 0;
       return cudaMemPoolSetAttribute(f.pool, cudaMemPoolAttrReleaseThreshold, &threshold);
     }},
    {"cudaMemPoolSetAccess",
     [](CaptureFrame& f) {
       cudaMemAccessDesc access = {};
       access.location.type = cudaMemLocationTypeDevice;
       access.flags = cudaMemAccessFlagsProtReadWrite;
       return cudaMemPoolSetAccess(f.pool, &access, 1);
     }},
    {"cudaMemPoolGetAccess",
     [](CaptureFrame& f) {
       cudaMemLocation location = {};
       location.type = cudaMemLocationTypeDevice;
       cudaMemAccessFlags flags;
       return cudaMemPoolGetAccess(&flags, f.pool, &location);
     }},
    {"cudaDeviceGetGraphMemAttribute",
     [](CaptureFrame&) {
       unsigned long long bytes;
       return cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes);
     }},
    {"cudaDeviceGraphMemTrim", [](CaptureFrame&) { return cudaDeviceGraphMemTrim(0); }},
};
const CaptureCases pools("cap.", kPools);

}  // namespace

}  // namespace conformance
