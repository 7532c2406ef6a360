// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs that allocate: what may be done with them, and what the device's counters of graph memory say. The numbers
// are the device's affair; whether they are zero is not.
#include "test/conformance/rig.h"

#include <string>

namespace conformance {

namespace {

std::string GraphMemory() {
  static const cudaGraphMemAttributeType kAttributes[] = {cudaGraphMemAttrUsedMemCurrent, cudaGraphMemAttrUsedMemHigh,
                                                          cudaGraphMemAttrReservedMemCurrent,
                                                          cudaGraphMemAttrReservedMemHigh};
  unsigned long long value[4] = {77, 77, 77, 77};
  cudaError_t code[4];
  for (int i = 0; i < 4; ++i) code[i] = cudaDeviceGetGraphMemAttribute(0, kAttributes[i], &value[i]);
  auto sign = [&](int i) { return value[i] > 0 ? ">0" : "0"; };
  return Format("codes=%d/%d/%d/%d used=%s used_high=%s reserved=%s reserved_high=%s", code[0], code[1], code[2],
                code[3], sign(0), sign(1), sign(2), sign(3));
}

void RunCase(Observer& o, bool freed, bool autofree) {
  Rig r(o);
  unsigned long long zero = 0, one = 1;
  o.Note("before", Format("%s", GraphMemory().c_str()));
  o.Call("begin", cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
  void* p = nullptr;
  const cudaError_t allocated = cudaMallocAsync(&p, 1 << 20, r.s);
  o.Call("cudaMallocAsync", allocated, Format("ptr=%s", PointerState(p)));
  o.Call("memset", cudaMemsetAsync(p, 1, 1 << 20, r.s));
  if (freed) o.Call("cudaFreeAsync", cudaFreeAsync(p, r.s));
  cudaGraph_t graph = EndCapture(o, "end", r.s), other = nullptr;
  o.Note("after capture", Format("%s", GraphMemory().c_str()));
  cudaGraphExec_t exec = nullptr, second = nullptr;
  o.Call("instantiate", cudaGraphInstantiate(&exec, graph, autofree ? cudaGraphInstantiateFlagAutoFreeOnLaunch : 0));
  o.Note("after instantiate", Format("%s", GraphMemory().c_str()));
  o.Call("instantiate a second time", cudaGraphInstantiate(&second, graph, 0));
  o.Call("clone", cudaGraphClone(&other, graph));
  cudaGraph_t parent;
  cudaGraphNode_t node;
  REQUIRE_CUDA(cudaGraphCreate(&parent, 0));
  o.Call("as a child graph", cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, graph));
  size_t first = 1;
  REQUIRE_CUDA(cudaGraphGetNodes(graph, &node, &first));
  o.Call("destroy alloc node", cudaGraphDestroyNode(node));
  o.Note("graph", Format("nodes=%zu", CountNodes(graph)));
  o.Call("upload", cudaGraphUpload(exec, r.s));
  o.Call("launch 1", cudaGraphLaunch(exec, r.s));
  o.Call("sync", cudaStreamSynchronize(r.s));
  o.Note("after launch 1", Format("%s", GraphMemory().c_str()));
  cudaPointerAttributes attributes;
  const cudaError_t got = cudaPointerGetAttributes(&attributes, p);
  o.Call("pointer attributes of the graph's allocation", got, Format("type=%d", attributes.type));
  cudaGetLastError();
  const cudaError_t again = cudaGraphLaunch(exec, r.s);
  o.Call("launch 2", again, Format("peek=%d", cudaPeekAtLastError()));
  o.Call("sync", cudaStreamSynchronize(r.s));
  if (!freed) {
    o.Call("cudaFreeAsync outside the graph", cudaFreeAsync(p, r.s));
    o.Call("sync", cudaStreamSynchronize(r.s));
    o.Note("after the free", Format("%s", GraphMemory().c_str()));
    o.Call("launch 3 after the free", cudaGraphLaunch(exec, r.s));
    o.Call("sync", cudaStreamSynchronize(r.s));
    o.Call("cudaFree of the graph's allocation", cudaFree(p));
    o.Call("launch 4 on another stream", cudaGraphLaunch(exec, r.s2));
    o.Call("sync", cudaStreamSynchronize(r.s2));
  }
  o.Call("trim with the exec alive", cudaDeviceGraphMemTrim(0));
  o.Note("after trim", Format("%s", GraphMemory().c_str()));
  o.Call("exec destroy", cudaGraphExecDestroy(exec));
  o.Call("graph destroy", cudaGraphDestroy(graph));
  o.Note("after destroy", Format("%s", GraphMemory().c_str()));
  o.Call("trim", cudaDeviceGraphMemTrim(0));
  o.Note("after trim 2", Format("%s", GraphMemory().c_str()));
  o.Call("reset used high", cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
  o.Call("set reserved high to 1", cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &one));
  o.Call("set used current", cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &zero));
  o.Note("after reset", Format("%s", GraphMemory().c_str()));
  NoteLast(o, "last");
  // What the last launch allocated outlives the executable: it would show in the next case's counters.
  if (!freed) REQUIRE_CUDA(cudaFree(p));
  REQUIRE_CUDA(cudaGraphDestroy(parent));
}

}  // namespace

OBSERVE("memnode.unfreed_autofree", Once().InOwnProcess()) { RunCase(o, false, true); }
OBSERVE("memnode.freed", Once().InOwnProcess()) { RunCase(o, true, false); }
OBSERVE("memnode.freed_autofree", Once().InOwnProcess()) { RunCase(o, true, true); }

OBSERVE("memnode.two_graphs", Once().InOwnProcess()) {
  Rig r(o);
  void* p = nullptr;
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
  o.Call("cudaMallocAsync", cudaMallocAsync(&p, 1 << 20, r.s));
  cudaGraph_t a = EndCapture(o, "end a", r.s);
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
  o.Call("memset in b", cudaMemsetAsync(p, 1, 1 << 20, r.s));
  o.Call("cudaFreeAsync in b", cudaFreeAsync(p, r.s));
  cudaGraph_t b = EndCapture(o, "end b", r.s);
  cudaGraphExec_t exec_a, exec_b;
  o.Call("instantiate a", cudaGraphInstantiate(&exec_a, a, 0));
  o.Call("instantiate b", cudaGraphInstantiate(&exec_b, b, 0));
  o.Call("launch a", cudaGraphLaunch(exec_a, r.s));
  o.Call("launch b", cudaGraphLaunch(exec_b, r.s));
  o.Call("launch a again", cudaGraphLaunch(exec_a, r.s));
  o.Call("launch b again", cudaGraphLaunch(exec_b, r.s));
  o.Call("sync", cudaStreamSynchronize(r.s));
  REQUIRE_CUDA(cudaGraphExecDestroy(exec_a));
  REQUIRE_CUDA(cudaGraphExecDestroy(exec_b));
  REQUIRE_CUDA(cudaGraphDestroy(a));
  REQUIRE_CUDA(cudaGraphDestroy(b));
}

}  // namespace conformance
