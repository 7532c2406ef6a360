// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Copies and fills of all kinds of memory, and what the runtime knows of an address.
#include "test/conformance/rig.h"

#include <vector>

namespace conformance {

OBSERVE("memory.copy_kinds", Once()) {
  Rig r(o);
  const size_t n = 4096;
  o.Call("host to device called device to host", cudaMemcpy(r.d, r.pageable, n, cudaMemcpyDeviceToHost));
  o.Call("device to host called host to device", cudaMemcpy(r.pageable, r.d, n, cudaMemcpyHostToDevice));
  o.Call("pinned to device called device to device", cudaMemcpy(r.d, r.h, n, cudaMemcpyDeviceToDevice));
  o.Call("host to host", cudaMemcpy(r.pageable, r.pageable + n, n, cudaMemcpyHostToHost));
  o.Call("default pageable to device", cudaMemcpy(r.d, r.pageable, n, cudaMemcpyDefault));
  o.Call("default device to pageable", cudaMemcpy(r.pageable, r.d, n, cudaMemcpyDefault));
  o.Call("default pinned to pageable", cudaMemcpy(r.pageable, r.h, n, cudaMemcpyDefault));
  const auto none = static_cast<cudaMemcpyKind>(9);
  o.Call("kind 9", cudaMemcpy(r.d, r.h, n, none));
  o.Call("kind 9 size 0", cudaMemcpy(r.d, r.h, 0, none));
  o.Call("NULL size 0", cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  o.Call("NULL destination", cudaMemcpy(nullptr, r.h, n, cudaMemcpyHostToDevice));
  o.Call("NULL source", cudaMemcpy(r.d, nullptr, n, cudaMemcpyHostToDevice));
  o.Call("onto itself", cudaMemcpy(r.d, r.d, n, cudaMemcpyDeviceToDevice));
  o.Call("overlapping", cudaMemcpy(r.d + 16, r.d, n, cudaMemcpyDeviceToDevice));
  o.Call("async wrong kind", cudaMemcpyAsync(r.d, r.pageable, n, cudaMemcpyDeviceToHost, r.s));
  NoteLast(o, "last");
  o.Call("memset NULL", cudaMemset(nullptr, 1, n));
  o.Call("memset NULL size 0", cudaMemset(nullptr, 1, 0));
  o.Call("memset pinned host memory", cudaMemset(r.h, 1, n));
  REQUIRE_CUDA(cudaDeviceSynchronize());
  o.Note("value", Format("%d", r.h[0]));
  o.Call("pageable to device called device to device", cudaMemcpy(r.d, r.pageable, n, cudaMemcpyDeviceToDevice));
  o.Call("memset pageable host memory", cudaMemset(r.pageable, 1, n));
  NoteLast(o, "last");
  o.Call("sync", cudaDeviceSynchronize());
  o.Call("device called host to host", cudaMemcpy(r.d, r.d2, n, cudaMemcpyHostToHost));
  o.Call("sync", cudaDeviceSynchronize());
}

OBSERVE("memory.types", Once()) {
  Rig r(o);
  auto tell = [&](const char* what, const void* p) {
    cudaPointerAttributes a;
    const cudaError_t code = cudaPointerGetAttributes(&a, p);
    o.Note(what, Format("%d:type=%d", code, a.type));
  };
  char *device, *pinned, *async;
  REQUIRE_CUDA(cudaMalloc((void**)&device, 4096));
  REQUIRE_CUDA(cudaMallocHost((void**)&pinned, 4096));
  REQUIRE_CUDA(cudaMallocAsync((void**)&async, 4096, r.s));
  REQUIRE_CUDA(cudaStreamSynchronize(r.s));
  tell("device", device);
  tell("device interior", device + 100);
  tell("pinned", pinned);
  tell("pageable", r.pageable);
  tell("async", async);
  REQUIRE_CUDA(cudaHostRegister(r.pageable, 4096, cudaHostRegisterDefault));
  tell("registered", r.pageable);
  tell("NULL", nullptr);
  tell("bogus", reinterpret_cast<const void*>(0x1234));
  REQUIRE_CUDA(cudaFree(device));
  REQUIRE_CUDA(cudaFreeHost(pinned));
  REQUIRE_CUDA(cudaHostUnregister(r.pageable));
  REQUIRE_CUDA(cudaFreeAsync(async, r.s));
  REQUIRE_CUDA(cudaStreamSynchronize(r.s));
  tell("freed device", device);
  tell("freed pinned", pinned);
  tell("unregistered", r.pageable);
  tell("freed async", async);
  NoteLast(o, "last");
  o.Call("NULL out", cudaPointerGetAttributes(nullptr, r.d));
}

// Ends a case that went out of bounds: nothing is poisoned.
static void Afterwards(Observer& o) {
  void* p = nullptr;
  o.Call("sync", cudaDeviceSynchronize());
  NoteLast(o, "last");
  o.Call("cudaMalloc afterwards", cudaMalloc(&p, 4096));
  NoteLast(o, "last");
  REQUIRE_CUDA(cudaFree(p));
}

OBSERVE("memory.range_memset_512", Once()) {
  Rig r(o);
  o.Call("memset 512 bytes beyond", cudaMemset(r.d, 1, Rig::kBytes + 512));
  Afterwards(o);
}

OBSERVE("memory.range_h2d_8M", Once()) {
  Rig r(o);
  std::vector<char> source(8 << 20);
  o.Call("h2d 8 MiB into 8 KiB", cudaMemcpy(r.d, source.data(), source.size(), cudaMemcpyHostToDevice));
  Afterwards(o);
}

}  // namespace conformance
