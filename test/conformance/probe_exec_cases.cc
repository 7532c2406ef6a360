// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Executables: instantiation, new parameters, nodes switched off, launches.
#include "test/conformance/rig.h"

#include <functional>

#include <string>

namespace conformance {

OBSERVE("exec.set", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g, child, child2, child3;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphCreate(&child, 0));
  REQUIRE_CUDA(cudaGraphCreate(&child2, 0));
  REQUIRE_CUDA(cudaGraphCreate(&child3, 0));
  cudaGraphNode_t kernel, fill, copy, copyd, host, record, wait, sub, n, late, foreign;
  auto k = r.Kernel();
  auto f = r.Fill(7, 32);
  auto c = r.Copy(r.d, r.h, 64, cudaMemcpyHostToDevice);
  cudaHostNodeParams h = {Nothing, &r};
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&foreign, child, nullptr, 0, &f));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&n, child2, nullptr, 0, &f));
  REQUIRE_CUDA(cudaGraphAddEmptyNode(&n, child3, nullptr, 0));
  REQUIRE_CUDA(cudaGraphAddKernelNode(&kernel, g, nullptr, 0, &k));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&fill, g, &kernel, 1, &f));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode(&copy, g, &fill, 1, &c));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode1D(&copyd, g, &copy, 1, r.d, r.d2, 64, cudaMemcpyDeviceToDevice));
  REQUIRE_CUDA(cudaGraphAddHostNode(&host, g, &copyd, 1, &h));
  REQUIRE_CUDA(cudaGraphAddEventRecordNode(&record, g, &host, 1, r.e));
  REQUIRE_CUDA(cudaGraphAddEventWaitNode(&wait, g, &record, 1, r.e2));
  REQUIRE_CUDA(cudaGraphAddChildGraphNode(&sub, g, &wait, 1, child));
  cudaGraphExec_t e;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&late, g, nullptr, 0, &f));
  PROBE(cudaGraphExecKernelNodeSetParams(nullptr, kernel, &k));
  PROBE(cudaGraphExecKernelNodeSetParams(e, nullptr, &k));
  PROBE(cudaGraphExecKernelNodeSetParams(e, kernel, nullptr));
  PROBE(cudaGraphExecKernelNodeSetParams(e, fill, &k));
  PROBE(cudaGraphExecKernelNodeSetParams(e, kernel, &k));
  k.gridDim = dim3(2);
  k.blockDim = dim3(64);
  PROBE_AS("kernel grid and block", cudaGraphExecKernelNodeSetParams(e, kernel, &k));
  k.gridDim = dim3(0);
  PROBE_AS("kernel grid 0", cudaGraphExecKernelNodeSetParams(e, kernel, &k));
  k = r.Kernel();
  k.blockDim = dim3(2048);
  PROBE_AS("kernel block 2048", cudaGraphExecKernelNodeSetParams(e, kernel, &k));
  k = r.Kernel();
  k.sharedMemBytes = 1024;
  PROBE_AS("kernel shared memory", cudaGraphExecKernelNodeSetParams(e, kernel, &k));
  k = r.Kernel();
  k.func = nullptr;
  PROBE_AS("kernel func NULL", cudaGraphExecKernelNodeSetParams(e, kernel, &k));
  int64_t rows = 1, cols = 32;
  void* args[4] = {&r.x, &r.y, &rows, &cols};
  k = r.Kernel(kSoftmax);
  k.kernelParams = args;
  PROBE_AS("kernel another func", cudaGraphExecKernelNodeSetParams(e, kernel, &k));
  PROBE(cudaGraphExecMemsetNodeSetParams(nullptr, fill, &f));
  PROBE(cudaGraphExecMemsetNodeSetParams(e, fill, nullptr));
  PROBE(cudaGraphExecMemsetNodeSetParams(e, kernel, &f));
  PROBE(cudaGraphExecMemsetNodeSetParams(e, late, &f));
  PROBE(cudaGraphExecMemsetNodeSetParams(e, foreign, &f));
  f.value = 9;
  PROBE_AS("memset value", cudaGraphExecMemsetNodeSetParams(e, fill, &f));
  f.width = 16;
  PROBE_AS("memset width", cudaGraphExecMemsetNodeSetParams(e, fill, &f));
  f.elementSize = 4;
  PROBE_AS("memset element size", cudaGraphExecMemsetNodeSetParams(e, fill, &f));
  f.dst = r.d2;
  PROBE_AS("memset destination", cudaGraphExecMemsetNodeSetParams(e, fill, &f));
  f.height = 2;
  f.pitch = 128;
  PROBE_AS("memset 2D", cudaGraphExecMemsetNodeSetParams(e, fill, &f));
  f = r.Fill(1);
  f.dst = r.h;
  PROBE_AS("memset pinned", cudaGraphExecMemsetNodeSetParams(e, fill, &f));
  f = r.Fill(1, 0);
  PROBE_AS("memset width 0", cudaGraphExecMemsetNodeSetParams(e, fill, &f));
  PROBE(cudaGraphExecMemcpyNodeSetParams(nullptr, copy, &c));
  PROBE(cudaGraphExecMemcpyNodeSetParams(e, copy, nullptr));
  PROBE(cudaGraphExecMemcpyNodeSetParams(e, fill, &c));
  c = r.Copy(r.d2, r.h, 64, cudaMemcpyHostToDevice);
  PROBE_AS("memcpy destination", cudaGraphExecMemcpyNodeSetParams(e, copy, &c));
  c = r.Copy(r.d, r.h, 32, cudaMemcpyHostToDevice);
  PROBE_AS("memcpy size", cudaGraphExecMemcpyNodeSetParams(e, copy, &c));
  c = r.Copy(r.d, r.pageable, 64, cudaMemcpyHostToDevice);
  PROBE_AS("memcpy from pageable", cudaGraphExecMemcpyNodeSetParams(e, copy, &c));
  c = r.Copy(r.d, r.d2, 64, cudaMemcpyDeviceToDevice);
  PROBE_AS("memcpy kind", cudaGraphExecMemcpyNodeSetParams(e, copy, &c));
  c = r.Copy(r.d, r.h, 64, cudaMemcpyDefault);
  PROBE_AS("memcpy default, same memory", cudaGraphExecMemcpyNodeSetParams(e, copy, &c));
  c = r.Copy(r.d, r.h, 32, cudaMemcpyHostToDevice);
  c.extent.height = 2;
  c.srcPtr.ysize = c.dstPtr.ysize = 2;
  PROBE_AS("memcpy 2D", cudaGraphExecMemcpyNodeSetParams(e, copy, &c));
  PROBE(cudaGraphExecMemcpyNodeSetParams1D(e, copy, r.d2, r.h, 64, cudaMemcpyHostToDevice));
  PROBE(cudaGraphExecMemcpyNodeSetParams1D(e, copyd, r.d2, r.d, 64, cudaMemcpyDeviceToDevice));
  PROBE(cudaGraphExecMemcpyNodeSetParams1D(e, copyd, r.d2, r.d, 128, cudaMemcpyDeviceToDevice));
  PROBE(cudaGraphExecMemcpyNodeSetParams1D(e, copyd, r.d2, r.h, 64, cudaMemcpyHostToDevice));
  PROBE(cudaGraphExecMemcpyNodeSetParams1D(e, copyd, r.d2, r.d, 0, cudaMemcpyDeviceToDevice));
  PROBE(cudaGraphExecMemcpyNodeSetParams1D(e, copyd, nullptr, r.d, 64, cudaMemcpyDeviceToDevice));
  PROBE(cudaGraphExecHostNodeSetParams(nullptr, host, &h));
  PROBE(cudaGraphExecHostNodeSetParams(e, host, nullptr));
  PROBE(cudaGraphExecHostNodeSetParams(e, fill, &h));
  PROBE(cudaGraphExecHostNodeSetParams(e, host, &h));
  h.fn = nullptr;
  PROBE_AS("host NULL function", cudaGraphExecHostNodeSetParams(e, host, &h));
  PROBE(cudaGraphExecEventRecordNodeSetEvent(e, record, r.e2));
  PROBE(cudaGraphExecEventRecordNodeSetEvent(e, record, nullptr));
  PROBE(cudaGraphExecEventRecordNodeSetEvent(e, wait, r.e2));
  PROBE(cudaGraphExecEventRecordNodeSetEvent(nullptr, record, r.e2));
  PROBE(cudaGraphExecEventWaitNodeSetEvent(e, wait, r.e));
  PROBE(cudaGraphExecEventWaitNodeSetEvent(e, wait, nullptr));
  PROBE(cudaGraphExecEventWaitNodeSetEvent(e, record, r.e));
  PROBE(cudaGraphExecChildGraphNodeSetParams(e, sub, child2));
  PROBE(cudaGraphExecChildGraphNodeSetParams(e, sub, child3));
  PROBE(cudaGraphExecChildGraphNodeSetParams(e, sub, nullptr));
  PROBE(cudaGraphExecChildGraphNodeSetParams(e, fill, child2));
  PROBE(cudaGraphExecChildGraphNodeSetParams(nullptr, sub, child2));
  PROBE(cudaEventRecord(r.e, r.s2));
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
}

OBSERVE("exec.enable", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g, child;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphCreate(&child, 0));
  cudaGraphNode_t kernel, fill, copy, host, empty, record, wait, sub, late;
  auto k = r.Kernel();
  auto f = r.Fill(7, 32);
  cudaHostNodeParams h = {Nothing, &r};
  REQUIRE_CUDA(cudaGraphAddEmptyNode(&late, child, nullptr, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&fill, g, nullptr, 0, &f));
  k.gridDim = dim3(1);
  r.count = 0;
  REQUIRE_CUDA(cudaGraphAddKernelNode(&kernel, g, &fill, 1, &k));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode1D(&copy, g, nullptr, 0, r.d2, r.d2 + 4096, 64, cudaMemcpyDeviceToDevice));
  REQUIRE_CUDA(cudaGraphAddHostNode(&host, g, nullptr, 0, &h));
  REQUIRE_CUDA(cudaGraphAddEmptyNode(&empty, g, nullptr, 0));
  REQUIRE_CUDA(cudaGraphAddEventRecordNode(&record, g, nullptr, 0, r.e));
  REQUIRE_CUDA(cudaGraphAddEventWaitNode(&wait, g, nullptr, 0, r.e2));
  REQUIRE_CUDA(cudaGraphAddChildGraphNode(&sub, g, nullptr, 0, child));
  cudaGraphExec_t e;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&late, g, nullptr, 0, &f));
  unsigned on = 9;
  PROBE_AND(cudaGraphNodeGetEnabled(e, fill, &on), "on=%u", on);
  PROBE(cudaGraphNodeGetEnabled(nullptr, fill, &on));
  PROBE(cudaGraphNodeGetEnabled(e, nullptr, &on));
  PROBE(cudaGraphNodeGetEnabled(e, fill, nullptr));
  PROBE_AND(cudaGraphNodeGetEnabled(e, kernel, &on), "on=%u", on);
  PROBE(cudaGraphNodeGetEnabled(e, host, &on));
  PROBE(cudaGraphNodeGetEnabled(e, empty, &on));
  PROBE(cudaGraphNodeGetEnabled(e, record, &on));
  PROBE(cudaGraphNodeGetEnabled(e, sub, &on));
  PROBE(cudaGraphNodeGetEnabled(e, late, &on));
  PROBE(cudaGraphNodeSetEnabled(e, fill, 0));
  PROBE_AND(cudaGraphNodeGetEnabled(e, fill, &on), "on=%u", on);
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("value with the memset disabled", Format("%d", r.Value()));
  PROBE(cudaGraphNodeSetEnabled(e, fill, 2));
  PROBE_AND(cudaGraphNodeGetEnabled(e, fill, &on), "on=%u", on);
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("value with the memset enabled", Format("%x", r.Value()));
  PROBE(cudaGraphNodeSetEnabled(e, kernel, 0));
  PROBE(cudaGraphNodeSetEnabled(e, copy, 0));
  PROBE(cudaGraphNodeSetEnabled(e, host, 0));
  PROBE(cudaGraphNodeSetEnabled(e, empty, 0));
  PROBE(cudaGraphNodeSetEnabled(e, record, 0));
  PROBE(cudaGraphNodeSetEnabled(e, wait, 0));
  PROBE(cudaGraphNodeSetEnabled(e, sub, 0));
  PROBE(cudaGraphNodeSetEnabled(e, late, 0));
  PROBE(cudaGraphNodeSetEnabled(nullptr, fill, 0));
  PROBE(cudaGraphNodeSetEnabled(e, nullptr, 0));
  PROBE(cudaGraphDestroyNode(late));
  cudaGraphExecUpdateResultInfo info = {};
  PROBE_AND(cudaGraphExecUpdate(e, g, &info), "result=%d", info.result);
  PROBE_AND(cudaGraphNodeGetEnabled(e, kernel, &on), "on=%u", on);
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
}

OBSERVE("instantiate.flags", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g, kernels;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphCreate(&kernels, 0));
  cudaGraphNode_t n;
  auto f = r.Fill(1);
  auto k = r.Kernel();
  cudaHostNodeParams h = {Nothing, nullptr};
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &f));
  REQUIRE_CUDA(cudaGraphAddHostNode(&n, g, nullptr, 0, &h));
  REQUIRE_CUDA(cudaGraphAddKernelNode(&n, kernels, nullptr, 0, &k));
  for (unsigned flags = 0; flags <= 16; ++flags) {
    cudaGraphExec_t e = reinterpret_cast<cudaGraphExec_t>(Untouched<void>());
    unsigned long long got = 99;
    cudaGraphInstantiateParams p = {};
    p.flags = flags;
    p.result_out = (cudaGraphInstantiateResult)77;
    std::string s = Format("instantiate memset+host flags=%u", flags);
    PROBE_AS_AND(s.c_str(), cudaGraphInstantiate(&e, g, flags), "exec=%s", PointerState(e));
    if (e == Untouched<void>()) e = nullptr;
    if (e != nullptr) {
      s = Format("flags of it %u", flags);
      PROBE_AS_AND(s.c_str(), cudaGraphExecGetFlags(e, &got), "flags=%llu", got);
      cudaGraphExecDestroy(e);
    }
    e = reinterpret_cast<cudaGraphExec_t>(Untouched<void>());
    s = Format("with params memset+host flags=%u", flags);
    PROBE_AS_AND(s.c_str(), cudaGraphInstantiateWithParams(&e, g, &p), "exec=%s result=%d errNode=%s", PointerState(e),
                 p.result_out, PointerState(p.errNode_out));
    e = reinterpret_cast<cudaGraphExec_t>(Untouched<void>());
    p = {};
    p.flags = flags;
    s = Format("with params kernel flags=%u", flags);
    PROBE_AS_AND(s.c_str(), cudaGraphInstantiateWithParams(&e, kernels, &p), "exec=%s result=%d errNode=%s",
                 PointerState(e), p.result_out, PointerState(p.errNode_out));
  }
  cudaGraphExec_t e = nullptr;
  cudaGraphInstantiateParams p = {};
  unsigned long long got;
  PROBE(cudaGraphInstantiateWithParams(nullptr, g, &p));
  PROBE(cudaGraphInstantiateWithParams(&e, nullptr, &p));
  PROBE(cudaGraphInstantiateWithParams(&e, g, nullptr));
  PROBE(cudaGraphInstantiateWithFlags(&e, g, 0));
  PROBE(cudaGraphExecGetFlags(nullptr, &got));
  PROBE(cudaGraphExecGetFlags(e, nullptr));
  p = {};
  p.flags = cudaGraphInstantiateFlagUpload;
  p.uploadStream = r.s;
  PROBE_AS_AND("upload on a stream", cudaGraphInstantiateWithParams(&e, g, &p), "result=%d", p.result_out);
  PROBE(cudaGraphUpload(e, r.s));
  PROBE(cudaGraphUpload(nullptr, r.s));
  PROBE(cudaGraphUpload(e, nullptr));
  PROBE(cudaGraphLaunch(e, nullptr));
  PROBE(cudaGraphLaunch(e, cudaStreamPerThread));
  PROBE(cudaGraphLaunch(e, cudaStreamLegacy));
  PROBE(cudaDeviceSynchronize());
}

OBSERVE("instantiate.bad_nodes", Once().InOwnProcess()) {
  Rig r(o);
  auto attempt = [&](const char* what, const std::function<cudaError_t(cudaGraph_t)>& add) {
    cudaGraph_t g;
    REQUIRE_CUDA(cudaGraphCreate(&g, 0));
    cudaError_t added = add(g);
    cudaGetLastError();
    cudaGraphInstantiateParams p = {};
    p.result_out = (cudaGraphInstantiateResult)77;
    cudaGraphExec_t e = reinterpret_cast<cudaGraphExec_t>(Untouched<void>());
    PROBE_AS_AND(what, cudaGraphInstantiateWithParams(&e, g, &p), "added=%d exec=%s result=%d errNode=%s", added,
                 PointerState(e), p.result_out, PointerState(p.errNode_out));
    if (e != nullptr && e != Untouched<void>()) {
      std::string s = std::string(what) + ": launch";
      PROBE_AS(s.c_str(), cudaGraphLaunch(e, r.s));
      s = std::string(what) + ": sync";
      PROBE_AS(s.c_str(), cudaStreamSynchronize(r.s));
    }
    cudaGraphDestroy(g);
  };
  cudaGraphNode_t n, m;
  attempt("memcpy of the wrong kind", [&](cudaGraph_t g) {
    return cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, r.d, r.h, 64, cudaMemcpyDeviceToHost);
  });
  attempt("memcpy d2d from pinned", [&](cudaGraph_t g) {
    return cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, r.d, r.h, 64, cudaMemcpyDeviceToDevice);
  });
  attempt("memcpy beyond the allocation", [&](cudaGraph_t g) {
    return cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, r.d, r.d2, 16 << 20, cudaMemcpyDeviceToDevice);
  });
  attempt("memset of pageable memory", [&](cudaGraph_t g) {
    auto f = r.Fill(1);
    f.dst = r.pageable;
    return cudaGraphAddMemsetNode(&n, g, nullptr, 0, &f);
  });
  attempt("kernel with block 2048", [&](cudaGraph_t g) {
    auto k = r.Kernel();
    k.blockDim = dim3(2048);
    return cudaGraphAddKernelNode(&n, g, nullptr, 0, &k);
  });
  attempt("kernel with too much shared memory", [&](cudaGraph_t g) {
    auto k = r.Kernel();
    k.sharedMemBytes = 1 << 20;
    return cudaGraphAddKernelNode(&n, g, nullptr, 0, &k);
  });
  attempt("event wait never recorded",
          [&](cudaGraph_t g) { return cudaGraphAddEventWaitNode(&n, g, nullptr, 0, r.e); });
  attempt("cycle of two", [&](cudaGraph_t g) {
    cudaGraphAddEmptyNode(&n, g, nullptr, 0);
    cudaGraphAddEmptyNode(&m, g, &n, 1);
    return cudaGraphAddDependencies(g, &m, &n, nullptr, 1);
  });
  attempt("cooperative kernel too large", [&](cudaGraph_t g) {
    auto k = r.Kernel();
    k.gridDim = dim3(100000);
    k.blockDim = dim3(1024);
    cudaGraphAddKernelNode(&n, g, nullptr, 0, &k);
    cudaLaunchAttributeValue v = {};
    v.cooperative = 1;
    return cudaGraphKernelNodeSetAttribute(n, cudaLaunchAttributeCooperative, &v);
  });
  attempt("child with a cycle", [&](cudaGraph_t g) {
    cudaGraph_t c;
    cudaGraphCreate(&c, 0);
    cudaGraphAddEmptyNode(&n, c, nullptr, 0);
    cudaGraphAddEmptyNode(&m, c, &n, 1);
    cudaGraphAddDependencies(c, &m, &n, nullptr, 1);
    cudaGraphNode_t s;
    return cudaGraphAddChildGraphNode(&s, g, nullptr, 0, c);
  });
}

OBSERVE("instantiate.freed_memory", Once().InOwnProcess()) {
  Rig r(o);
  char* p;
  REQUIRE_CUDA(cudaMalloc((void**)&p, 4096));
  cudaGraph_t g;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  cudaGraphNode_t n;
  auto f = r.Fill(1);
  f.dst = p;
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &f));
  REQUIRE_CUDA(cudaFree(p));
  cudaGraphInstantiateParams ip = {};
  cudaGraphExec_t e = nullptr;
  PROBE_AS_AND("instantiate a memset of freed memory", cudaGraphInstantiateWithParams(&e, g, &ip),
               "result=%d errNode=%s", ip.result_out, PointerState(ip.errNode_out));
}

OBSERVE("launch.states", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  cudaGraphNode_t n;
  auto f = r.Fill(1);
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &f));
  cudaGraphExec_t e;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
  PROBE(cudaGraphDestroy(g));
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  Gate gate;
  PROBE(gate.Hold(r.s));
  PROBE_AS("launch behind the gate", cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamQuery(r.s));
  PROBE_AS("launch the same on another stream", cudaGraphLaunch(e, r.s2));
  PROBE_AS("query the other stream", cudaStreamQuery(r.s2));
  PROBE_AS("destroy the executable while it is pending", cudaGraphExecDestroy(e));
  PROBE_AS("query the other stream again", cudaStreamQuery(r.s2));
  gate.Open();
  PROBE(cudaStreamSynchronize(r.s));
  PROBE(cudaStreamSynchronize(r.s2));
  o.Note("value", Format("%x", r.Value()));
}

OBSERVE("launch.blocking_and_legacy", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  cudaGraphNode_t n;
  auto f = r.Fill(1);
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &f));
  cudaGraphExec_t e;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
  Gate gate;
  PROBE(gate.Hold(r.blocking));
  PROBE_AS("legacy stream behind a busy blocking stream", cudaGraphLaunch(e, nullptr));
  PROBE(cudaStreamQuery(nullptr));
  PROBE_AS("non-blocking stream is free", cudaStreamQuery(r.s));
  gate.Open();
  PROBE(cudaDeviceSynchronize());
}

}  // namespace conformance
