// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Managed memory: one address for host and device.
#include "test/conformance/rig.h"

namespace conformance {

namespace {

constexpr cudaMemLocation kDevice = {cudaMemLocationTypeDevice, 0};
constexpr cudaMemLocation kHost = {cudaMemLocationTypeHost, 0};

char* Managed(Observer& o, unsigned int flags = cudaMemAttachGlobal) {
  void* p = nullptr;
  REQUIRE_CUDA(cudaMallocManaged(&p, Rig::kBytes, flags));
  return static_cast<char*>(p);
}

}  // namespace

OBSERVE("probe.managed.memory", Once().InOwnProcess()) {
  Rig r(o);
  int v = 7;
  for (auto attribute : {cudaDevAttrManagedMemory, cudaDevAttrConcurrentManagedAccess, cudaDevAttrPageableMemoryAccess})
    PROBE_AS_AND(Format("attribute %d", attribute), cudaDeviceGetAttribute(&v, attribute, 0), "v=%d", v);
  char* const m = Managed(o);
  char* const host = Managed(o, cudaMemAttachHost);
  cudaPointerAttributes a = {};
  PROBE_AND(cudaPointerGetAttributes(&a, m), "type=%d device=%d devicePointer=%d hostPointer=%d", a.type, a.device,
            a.devicePointer == m, a.hostPointer == m);
  PROBE_AND(cudaPointerGetAttributes(&a, m + 9), "type=%d device=%d devicePointer=%d hostPointer=%d", a.type, a.device,
            a.devicePointer == m + 9, a.hostPointer == m + 9);
  PROBE_AND(cudaPointerGetAttributes(&a, host), "type=%d device=%d", a.type, a.device);
  unsigned int flags = 0;
  void* p = nullptr;
  PROBE(cudaHostGetFlags(&flags, m));
  PROBE(cudaHostGetDevicePointer(&p, m, 0));
  PROBE(cudaHostRegister(m, 4096, 0));
  m[0] = 1;
  PROBE(cudaMemset(m, 2, 64));
  REQUIRE_CUDA(cudaDeviceSynchronize());
  o.Note("the host sees", Format("%d", m[63]));
  m[0] = 3;
  PROBE(cudaMemcpy(r.h, m, 64, cudaMemcpyDefault));
  o.Note("copied", Format("%d", r.h[0]));
  float* const x = reinterpret_cast<float*>(m);
  x[0] = -1.0f;
  x[1] = 2.0f;
  int64_t count = 2;
  void* args[] = {const_cast<float**>(&x), &r.y, &count};
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), args, 0, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  PROBE(cudaMemcpy(r.h, r.y, 8, cudaMemcpyDeviceToHost));
  o.Note("the kernel read", Format("%g %g", reinterpret_cast<float*>(r.h)[0], reinterpret_cast<float*>(r.h)[1]));
  PROBE(cudaFreeHost(m));
  PROBE(cudaFreeAsync(m, r.s));
  PROBE(cudaFree(m + 4));
  PROBE(cudaFree(m));
  PROBE(cudaFree(m));
  PROBE(cudaFree(host));
  PROBE(cudaMallocManaged(&p, size_t{1} << 45, cudaMemAttachGlobal));
  REQUIRE_CUDA(cudaDeviceSynchronize());
}

OBSERVE("probe.managed.copies", Once().InOwnProcess()) {
  Rig r(o);
  char* const m = Managed(o);
  char* const n = Managed(o);
  REQUIRE_CUDA(cudaMemset(m, 0, Rig::kBytes));
  REQUIRE_CUDA(cudaMemset(n, 0, Rig::kBytes));
  for (int kind = 0; kind <= 4; ++kind) {
    const auto k = static_cast<cudaMemcpyKind>(kind);
    PROBE_AS(Format("to managed from device, kind %d", kind), cudaMemcpyAsync(m, r.d, 64, k, r.s));
    PROBE_AS(Format("to managed from pinned, kind %d", kind), cudaMemcpyAsync(m, r.h, 64, k, r.s));
    PROBE_AS(Format("to managed from pageable, kind %d", kind), cudaMemcpyAsync(m, r.pageable, 64, k, r.s));
    PROBE_AS(Format("from managed to device, kind %d", kind), cudaMemcpyAsync(r.d, m, 64, k, r.s));
    PROBE_AS(Format("from managed to pinned, kind %d", kind), cudaMemcpyAsync(r.h, m, 64, k, r.s));
    PROBE_AS(Format("from managed to managed, kind %d", kind), cudaMemcpyAsync(n, m, 64, k, r.s));
  }
  PROBE(cudaMemsetAsync(m, 1, 64, r.s));
  PROBE(cudaMemsetAsync(m + Rig::kBytes - 4, 1, 64, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  cudaGraph_t g;
  cudaGraphNode_t node;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  const cudaMemcpyKind kinds[] = {cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                                  cudaMemcpyDeviceToDevice, cudaMemcpyDefault};
  for (auto kind : kinds) {
    PROBE_AS(Format("node to managed from device, kind %d", kind),
             cudaGraphAddMemcpyNode1D(&node, g, nullptr, 0, m, r.d, 64, kind));
    PROBE_AS(Format("node to managed from pinned, kind %d", kind),
             cudaGraphAddMemcpyNode1D(&node, g, nullptr, 0, m, r.h, 64, kind));
    PROBE_AS(Format("node from managed to device, kind %d", kind),
             cudaGraphAddMemcpyNode1D(&node, g, nullptr, 0, r.d, m, 64, kind));
  }
  auto fill = r.Fill(3);
  fill.dst = m;
  PROBE(cudaGraphAddMemsetNode(&node, g, nullptr, 0, &fill));
  cudaGraphExec_t e = nullptr;
  PROBE(cudaGraphInstantiate(&e, g, 0));
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  // From one kind of memory to another in an executable.
  const auto other = [&](const char* step, void* to, const void* from, void* new_to, const void* new_from,
                         cudaMemcpyKind kind) {
    cudaGraph_t a;
    cudaGraphNode_t copy;
    cudaGraphExec_t exec = nullptr;
    REQUIRE_CUDA(cudaGraphCreate(&a, 0));
    REQUIRE_CUDA(cudaGraphAddMemcpyNode1D(&copy, a, nullptr, 0, to, from, 64, kind));
    REQUIRE_CUDA(cudaGraphInstantiate(&exec, a, 0));
    PROBE_AS(step, cudaGraphExecMemcpyNodeSetParams1D(exec, copy, new_to, new_from, 64, kind));
  };
  const auto any = cudaMemcpyDefault, h2d = cudaMemcpyHostToDevice, d2d = cudaMemcpyDeviceToDevice;
  other("device to managed target, default", r.d, r.h, m, r.h, any);
  other("device to managed target, to device", r.d, r.h, m, r.h, h2d);
  other("managed to device target, to device", m, r.h, r.d, r.h, h2d);
  other("pinned to managed source, default", r.d, r.h, r.d, m, any);
  other("pinned to managed source, to device", r.d, r.h, r.d, m, h2d);
  other("device to managed source, device to device", r.d, r.d2, r.d, m, d2d);
  other("managed to other managed, default", m, r.d, n, r.d, any);
}

OBSERVE("probe.managed.hints", Once().InOwnProcess()) {
  Rig r(o);
  char* const m = Managed(o);
  const cudaMemLocation none = {cudaMemLocationTypeInvalid, 0}, far = {cudaMemLocationTypeDevice, 99};
  const cudaMemLocation numa = {cudaMemLocationTypeHostNuma, 0};
  PROBE(cudaMemPrefetchAsync(m, 4096, kDevice, 0, r.s));
  PROBE(cudaMemPrefetchAsync(m, 4096, kHost, 0, r.s));
  PROBE(cudaMemPrefetchAsync(m, 4096, numa, 0, r.s));
  PROBE(cudaMemPrefetchAsync(m, 4096, none, 0, r.s));
  PROBE(cudaMemPrefetchAsync(m, 4096, far, 0, r.s));
  PROBE(cudaMemPrefetchAsync(m, 4096, kDevice, 1, r.s));
  PROBE(cudaMemPrefetchAsync(m, 0, kDevice, 0, r.s));
  PROBE(cudaMemPrefetchAsync(m + 5, 7, kDevice, 0, r.s));
  PROBE(cudaMemPrefetchAsync(m, 1 << 30, kDevice, 0, r.s));
  PROBE(cudaMemPrefetchAsync(nullptr, 4096, kDevice, 0, r.s));
  PROBE(cudaMemPrefetchAsync(r.d, 4096, kDevice, 0, r.s));
  PROBE(cudaMemPrefetchAsync(r.h, 4096, kDevice, 0, r.s));
  PROBE(cudaMemPrefetchAsync(r.pageable, 4096, kDevice, 0, r.s));
  PROBE(cudaMemPrefetchAsync(m, 4096, kDevice, 0, nullptr));
  for (int advice = 0; advice <= 7; ++advice) {
    PROBE_AS(Format("advice %d", advice), cudaMemAdvise(m, 4096, static_cast<cudaMemoryAdvise>(advice), kDevice));
    PROBE_AS(Format("advice %d for the host", advice),
             cudaMemAdvise(m, 4096, static_cast<cudaMemoryAdvise>(advice), kHost));
  }
  PROBE(cudaMemAdvise(m, 0, cudaMemAdviseSetReadMostly, kDevice));
  PROBE(cudaMemAdvise(nullptr, 4096, cudaMemAdviseSetReadMostly, kDevice));
  PROBE(cudaMemAdvise(r.d, 4096, cudaMemAdviseSetReadMostly, kDevice));
  PROBE(cudaMemAdvise(r.pageable, 4096, cudaMemAdviseSetReadMostly, kDevice));
  PROBE(cudaMemAdvise(m, 4096, cudaMemAdviseSetPreferredLocation, far));
  PROBE(cudaMemAdvise(m, 4096, cudaMemAdviseSetReadMostly, far));
  PROBE(cudaStreamAttachMemAsync(r.s, m, 0, cudaMemAttachSingle));
  PROBE(cudaStreamAttachMemAsync(r.s, m, 0, cudaMemAttachGlobal));
  PROBE(cudaStreamAttachMemAsync(r.s, m, 0, cudaMemAttachHost));
  PROBE(cudaStreamAttachMemAsync(r.s, m, 0, 0));
  PROBE(cudaStreamAttachMemAsync(r.s, m, Rig::kBytes, cudaMemAttachSingle));
  PROBE(cudaStreamAttachMemAsync(r.s, m, 64, cudaMemAttachSingle));
  PROBE(cudaStreamAttachMemAsync(r.s, m + 64, 0, cudaMemAttachSingle));
  PROBE(cudaStreamAttachMemAsync(r.s, r.d, 0, cudaMemAttachSingle));
  PROBE(cudaStreamAttachMemAsync(r.s, r.pageable, 0, cudaMemAttachSingle));
  PROBE(cudaStreamAttachMemAsync(r.s, nullptr, 0, cudaMemAttachSingle));
  PROBE(cudaStreamAttachMemAsync(nullptr, m, 0, cudaMemAttachSingle));
  PROBE(cudaStreamSynchronize(r.s));
}

OBSERVE("probe.managed.capture", EachMode().InOwnProcess()) {
  Rig r(o);
  char* const m = Managed(o);
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, o.mode()));
  PROBE_AND(cudaMemcpyAsync(r.d, m, 64, cudaMemcpyDefault, r.s), "status=%s", Status(r.s).c_str());
  PROBE_AND(cudaMemsetAsync(m, 1, 64, r.s), "status=%s", Status(r.s).c_str());
  PROBE_AND(cudaMemAdvise(m, 4096, cudaMemAdviseSetReadMostly, kDevice), "status=%s", Status(r.s).c_str());
  PROBE_AND(cudaMemPrefetchAsync(m, 4096, kDevice, 0, r.s2), "status=%s", Status(r.s).c_str());
  PROBE_AND(cudaMemPrefetchAsync(m, 4096, kDevice, 0, r.s), "status=%s", Status(r.s).c_str());
  cudaGraph_t g = EndCapture(o, "end", r.s);
  if (g != nullptr) REQUIRE_CUDA(cudaGraphDestroy(g));
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, o.mode()));
  PROBE_AS_AND("attach on another stream", cudaStreamAttachMemAsync(r.s2, m, 0, cudaMemAttachSingle), "status=%s",
               Status(r.s).c_str());
  g = EndCapture(o, "end again", r.s);
  if (g != nullptr) REQUIRE_CUDA(cudaGraphDestroy(g));
}

}  // namespace conformance
