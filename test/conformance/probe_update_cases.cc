// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Updates of executables: one kind of change each.
#include "test/conformance/rig.h"

#include <functional>

namespace conformance {

namespace {
// A graph of everything: memset -> kernel -> copy -> host -> record -> child(memset) and an empty node.
struct Whole {
  cudaGraph_t g = nullptr;
  cudaGraphNode_t fill, kernel, copy, host, record, wait, sub, empty;
};
struct Change {
  int value = 1;
  size_t width = 64;
  size_t height = 1;
  const void* func = kRelu;
  unsigned grid = 1, block = 32, shared = 0;
  int priority = 0;
  int cooperative = 0;
  void* to = nullptr;
  size_t bytes = 64;
  void (*fn)(void*) = Nothing;
  void* data = nullptr;
  cudaEvent_t event = nullptr;
  int child_value = 1;
  bool child_more = false;
  bool child_kind = false;
  bool no_empty = false;
  bool swap_edges = false;
  bool pinned = false;
  int memset_element = 1;
  void* memset_to = nullptr;
  const float* arg = nullptr;
};
void Other(void*) {}
Whole Make(Observer& o, Rig& r, const Change& c) {
  Whole w;
  REQUIRE_CUDA(cudaGraphCreate(&w.g, 0));
  auto f = r.Fill(c.value, c.width);
  f.height = c.height;
  f.elementSize = c.memset_element;
  if (c.height > 1) f.pitch = 256;
  if (c.memset_to) f.dst = c.memset_to;
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&w.fill, w.g, nullptr, 0, &f));
  const float* x = c.arg != nullptr ? c.arg : r.x;
  void* args[4] = {&x, &r.y, &r.count, &r.count};
  auto k = r.Kernel(c.func);
  k.gridDim = dim3(c.grid);
  k.blockDim = dim3(c.block);
  k.sharedMemBytes = c.shared;
  k.kernelParams = args;
  REQUIRE_CUDA(cudaGraphAddKernelNode(&w.kernel, w.g, &w.fill, 1, &k));
  if (c.priority) {
    cudaLaunchAttributeValue v = {};
    v.priority = c.priority;
    REQUIRE_CUDA(cudaGraphKernelNodeSetAttribute(w.kernel, cudaLaunchAttributePriority, &v));
  }
  if (c.cooperative) {
    cudaLaunchAttributeValue v = {};
    v.cooperative = 1;
    REQUIRE_CUDA(cudaGraphKernelNodeSetAttribute(w.kernel, cudaLaunchAttributeCooperative, &v));
  }
  REQUIRE_CUDA(cudaGraphAddMemcpyNode1D(&w.copy, w.g, c.swap_edges ? &w.fill : &w.kernel, 1,
                                        c.to != nullptr ? c.to : r.d2, c.pinned ? r.h : r.d, c.bytes,
                                        c.pinned ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice));
  cudaHostNodeParams h = {c.fn, c.data};
  REQUIRE_CUDA(cudaGraphAddHostNode(&w.host, w.g, &w.copy, 1, &h));
  REQUIRE_CUDA(cudaGraphAddEventRecordNode(&w.record, w.g, &w.host, 1, c.event != nullptr ? c.event : r.e));
  REQUIRE_CUDA(cudaGraphAddEventWaitNode(&w.wait, w.g, &w.record, 1, c.event != nullptr ? c.event : r.e));
  cudaGraph_t child;
  REQUIRE_CUDA(cudaGraphCreate(&child, 0));
  cudaGraphNode_t n;
  f = r.Fill(c.child_value);
  if (c.child_kind)
    REQUIRE_CUDA(cudaGraphAddEmptyNode(&n, child, nullptr, 0));
  else
    REQUIRE_CUDA(cudaGraphAddMemsetNode(&n, child, nullptr, 0, &f));
  if (c.child_more) REQUIRE_CUDA(cudaGraphAddEmptyNode(&n, child, nullptr, 0));
  REQUIRE_CUDA(cudaGraphAddChildGraphNode(&w.sub, w.g, &w.wait, 1, child));
  REQUIRE_CUDA(cudaGraphDestroy(child));
  if (!c.no_empty) REQUIRE_CUDA(cudaGraphAddEmptyNode(&w.empty, w.g, nullptr, 0));
  return w;
}
const char* Which(const Whole& w, cudaGraphNode_t n) {
  return n == nullptr    ? "NULL"
         : n == w.fill   ? "memset"
         : n == w.kernel ? "kernel"
         : n == w.copy   ? "copy"
         : n == w.host   ? "host"
         : n == w.record ? "record"
         : n == w.wait   ? "wait"
         : n == w.sub    ? "child"
         : n == w.empty  ? "empty"
                         : "other";
}
void Try(Observer& o, Rig& r, const char* step, const Change& to) {
  Whole a = Make(o, r, Change());
  Whole b = Make(o, r, to);
  cudaGraphExec_t e;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, a.g, 0));
  cudaGraphExecUpdateResultInfo i;
  i.result = (cudaGraphExecUpdateResult)77;
  i.errorNode = i.errorFromNode = reinterpret_cast<cudaGraphNode_t>(Untouched<void>());
  PROBE_AS_AND(step, cudaGraphExecUpdate(e, b.g, &i), "result=%d errorNode=%s errorFrom=%s", i.result,
               Which(b, i.errorNode), Which(b, i.errorFromNode));
  cudaGraphExecDestroy(e);
  cudaGraphDestroy(a.g);
  cudaGraphDestroy(b.g);
}
}  // namespace

OBSERVE("update.changes", Once().InOwnProcess()) {
  Rig r(o);
  Change c;
  auto with = [&](const char* step, const std::function<void(Change&)>& set) {
    Change ch;
    set(ch);
    Try(o, r, step, ch);
  };
  with("nothing", [](Change&) {});
  with("memset value", [](Change& x) { x.value = 9; });
  with("memset width", [](Change& x) { x.width = 32; });
  with("memset 2D", [](Change& x) { x.height = 2; });
  with("memset element size 4", [](Change& x) {
    x.memset_element = 4;
    x.width = 16;
  });
  with("memset other memory", [&](Change& x) { x.memset_to = r.d2; });
  with("memset pinned memory", [&](Change& x) { x.memset_to = r.h; });
  with("kernel function", [](Change& x) { x.func = kSoftmax; });
  with("kernel grid", [](Change& x) { x.grid = 5; });
  with("kernel block", [](Change& x) { x.block = 64; });
  with("kernel shared memory", [](Change& x) { x.shared = 1024; });
  with("kernel argument", [&](Change& x) { x.arg = r.x + 8; });
  with("kernel priority", [](Change& x) { x.priority = -2; });
  with("kernel cooperative", [](Change& x) { x.cooperative = 1; });
  with("kernel function and memset value", [](Change& x) {
    x.func = kSoftmax;
    x.value = 9;
  });
  with("copy destination", [&](Change& x) { x.to = r.d2 + 4096; });
  with("copy size", [](Change& x) { x.bytes = 32; });
  with("copy from pinned", [](Change& x) { x.pinned = true; });
  with("host function", [](Change& x) { x.fn = Other; });
  with("host data", [&](Change& x) { x.data = &r; });
  with("event", [&](Change& x) { x.event = r.e2; });
  with("child memset value", [](Change& x) { x.child_value = 9; });
  with("child with one node more", [](Change& x) { x.child_more = true; });
  with("child with another type", [](Change& x) { x.child_kind = true; });
  with("an empty node less", [](Change& x) { x.no_empty = true; });
  with("copy depends on the memset", [](Change& x) { x.swap_edges = true; });
}

OBSERVE("update.cooperative_back", Once().InOwnProcess()) {
  Rig r(o);
  Change c;
  c.cooperative = 1;
  Whole a = Make(o, r, c), b = Make(o, r, Change());
  cudaGraphExec_t e;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, a.g, 0));
  cudaGraphExecUpdateResultInfo i = {};
  PROBE_AS_AND("cooperative to plain", cudaGraphExecUpdate(e, b.g, &i), "result=%d errorNode=%s", i.result,
               Which(b, i.errorNode));
}

OBSERVE("update.priority_used", Once().InOwnProcess()) {
  Rig r(o);
  Change c;
  c.priority = -3;
  Whole a = Make(o, r, Change()), b = Make(o, r, c);
  cudaGraphExec_t e;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, a.g, cudaGraphInstantiateFlagUseNodePriority));
  cudaGraphExecUpdateResultInfo i = {};
  PROBE_AS_AND("priority with UseNodePriority", cudaGraphExecUpdate(e, b.g, &i), "result=%d errorNode=%s", i.result,
               Which(b, i.errorNode));
}

OBSERVE("update.order", Once().InOwnProcess()) {
  Rig r(o);
  auto f1 = r.Fill(1), f2 = r.Fill(2);
  f2.dst = r.d2;
  cudaGraphNode_t a, b, c;
  cudaGraphExecUpdateResultInfo i = {};
  auto make = [&](bool swapped, bool edge) {
    cudaGraph_t g;
    REQUIRE_CUDA(cudaGraphCreate(&g, 0));
    if (!swapped) {
      REQUIRE_CUDA(cudaGraphAddMemsetNode(&a, g, nullptr, 0, &f1));
      REQUIRE_CUDA(cudaGraphAddEmptyNode(&b, g, nullptr, 0));
    } else {
      REQUIRE_CUDA(cudaGraphAddEmptyNode(&b, g, nullptr, 0));
      REQUIRE_CUDA(cudaGraphAddMemsetNode(&a, g, nullptr, 0, &f1));
    }
    REQUIRE_CUDA(cudaGraphAddMemsetNode(&c, g, edge ? &a : nullptr, edge ? 1 : 0, &f2));
    return g;
  };
  cudaGraph_t g = make(false, true);
  cudaGraphExec_t e;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
  cudaGraph_t t = make(true, true);
  PROBE_AS_AND("two roots of different types in the other order", cudaGraphExecUpdate(e, t, &i),
               "result=%d errorNode=%s errorFrom=%s", i.result, PointerState(i.errorNode),
               PointerState(i.errorFromNode));
  t = make(false, false);
  PROBE_AS_AND("an edge less", cudaGraphExecUpdate(e, t, &i), "result=%d errorNode=%s errorFrom=%s", i.result,
               i.errorNode == c ? "sink" : PointerState(i.errorNode), PointerState(i.errorFromNode));
  t = make(false, true);
  REQUIRE_CUDA(cudaGraphAddDependencies(t, &b, &c, nullptr, 1));
  PROBE_AS_AND("an edge more", cudaGraphExecUpdate(e, t, &i), "result=%d errorNode=%s errorFrom=%s", i.result,
               i.errorNode == c ? "sink" : PointerState(i.errorNode),
               i.errorFromNode == b ? "second root" : PointerState(i.errorFromNode));
  REQUIRE_CUDA(cudaGraphCreate(&t, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&a, t, nullptr, 0, &f1));
  REQUIRE_CUDA(cudaGraphAddEmptyNode(&b, t, nullptr, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&c, t, &b, 1, &f2));
  PROBE_AS_AND("the sink depends on the other root", cudaGraphExecUpdate(e, t, &i),
               "result=%d errorNode=%s errorFrom=%s", i.result, i.errorNode == c ? "sink" : PointerState(i.errorNode),
               i.errorFromNode == b   ? "second root"
               : i.errorFromNode == a ? "first root"
                                      : PointerState(i.errorFromNode));
  // Dependencies of one node, given in the other order.
  cudaGraph_t u, v;
  cudaGraphNode_t x, y, z;
  REQUIRE_CUDA(cudaGraphCreate(&u, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&x, u, nullptr, 0, &f1));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&y, u, nullptr, 0, &f2));
  cudaGraphNode_t xy[2] = {x, y};
  REQUIRE_CUDA(cudaGraphAddEmptyNode(&z, u, xy, 2));
  cudaGraphExec_t ue;
  REQUIRE_CUDA(cudaGraphInstantiate(&ue, u, 0));
  REQUIRE_CUDA(cudaGraphCreate(&v, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&x, v, nullptr, 0, &f1));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&y, v, nullptr, 0, &f2));
  cudaGraphNode_t yx[2] = {y, x};
  REQUIRE_CUDA(cudaGraphAddEmptyNode(&z, v, yx, 2));
  PROBE_AS_AND("dependencies in the other order", cudaGraphExecUpdate(ue, v, &i), "result=%d errorNode=%s", i.result,
               PointerState(i.errorNode));
}

OBSERVE("update.memory_nodes", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraphExecUpdateResultInfo i = {};
  auto make = [&](size_t bytes) {
    void* p;
    cudaGraph_t g;
    REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeRelaxed));
    REQUIRE_CUDA(cudaMallocAsync(&p, bytes, r.s));
    REQUIRE_CUDA(cudaMemsetAsync(p, 1, 64, r.s));
    REQUIRE_CUDA(cudaFreeAsync(p, r.s));
    REQUIRE_CUDA(cudaStreamEndCapture(r.s, &g));
    return g;
  };
  cudaGraph_t a = make(4096), b = make(4096), c = make(8192), d = make(4096);
  cudaGraphExec_t e, f;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, a, 0));
  PROBE_AS_AND("the same graph", cudaGraphExecUpdate(e, a, &i), "result=%d errorNode=%s", i.result,
               PointerState(i.errorNode));
  PROBE_AS_AND("an equal graph", cudaGraphExecUpdate(e, b, &i), "result=%d errorNode=%s", i.result,
               PointerState(i.errorNode));
  PROBE_AS_AND("another size", cudaGraphExecUpdate(e, c, &i), "result=%d errorNode=%s", i.result,
               PointerState(i.errorNode));
  REQUIRE_CUDA(cudaGraphInstantiate(&f, d, 0));
  PROBE_AS_AND("a graph that has an executable", cudaGraphExecUpdate(e, d, &i), "result=%d errorNode=%s", i.result,
               PointerState(i.errorNode));
  PROBE_AS("instantiate the graph that was used for the update", cudaGraphInstantiate(&f, b, 0));
  PROBE_AS("launch", cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
}

OBSERVE("update.while_pending", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraphExecUpdateResultInfo i = {};
  auto make = [&](int value) {
    auto f = r.Fill(value);
    cudaGraphNode_t n;
    cudaGraph_t g;
    REQUIRE_CUDA(cudaGraphCreate(&g, 0));
    REQUIRE_CUDA(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &f));
    return g;
  };
  cudaGraph_t a = make(1), b = make(2);
  cudaGraphExec_t e;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, a, 0));
  Gate gate;
  REQUIRE_CUDA(gate.Hold(r.s));
  REQUIRE_CUDA(cudaGraphLaunch(e, r.s));
  PROBE_AS_AND("update while a launch is pending", cudaGraphExecUpdate(e, b, &i), "result=%d", i.result);
  gate.Open();
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("value of the pending launch", Format("%x", r.Value()));
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("value of the next", Format("%x", r.Value()));
}

}  // namespace conformance
