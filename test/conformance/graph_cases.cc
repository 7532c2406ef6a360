// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Graphs by hand, clones, dumps, user objects, and external event nodes.
#include "test/conformance/rig.h"

#include <atomic>
#include <cstring>
#include <vector>

namespace conformance {

namespace {

// A graph of memsets of one buffer, each after the one before.
struct Chain {
  explicit Chain(Observer& ob, int count) : o(ob) {
    REQUIRE_CUDA(cudaMalloc((void**)&d, kBytes));
    REQUIRE_CUDA(cudaGraphCreate(&graph, 0));
    for (int i = 0; i < count; ++i) {
      const cudaMemsetParams p = Params(i + 1);
      cudaGraphNode_t node = nullptr;
      REQUIRE_CUDA(cudaGraphAddMemsetNode(&node, graph, i == 0 ? nullptr : &nodes.back(), i == 0 ? 0 : 1, &p));
      nodes.push_back(node);
    }
  }
  ~Chain() { cudaFree(d); }
  cudaMemsetParams Params(int value) const {
    cudaMemsetParams p = {};
    p.dst = d;
    p.value = static_cast<unsigned>(value);
    p.elementSize = 1;
    p.width = kBytes;
    p.height = 1;
    return p;
  }
  static constexpr size_t kBytes = 256;
  Observer& o;
  char* d = nullptr;
  cudaGraph_t graph = nullptr;
  std::vector<cudaGraphNode_t> nodes;
};

}  // namespace

OBSERVE("graph.instantiate_empty", Once()) {
  cudaGraph_t graph, unused;
  cudaGraphExec_t exec, second;
  cudaStream_t s;
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  REQUIRE_CUDA(cudaGraphCreate(&graph, 0));
  o.Call("instantiate empty", cudaGraphInstantiate(&exec, graph, 0));
  o.Call("launch", cudaGraphLaunch(exec, s));
  o.Call("launch again", cudaGraphLaunch(exec, s));
  o.Call("sync", cudaStreamSynchronize(s));
  o.Call("instantiate NULL graph", cudaGraphInstantiate(&second, nullptr, 0));
  o.Call("instantiate NULL out", cudaGraphInstantiate(nullptr, graph, 0));
  o.Call("launch NULL", cudaGraphLaunch(nullptr, s));
  o.Call("exec destroy NULL", cudaGraphExecDestroy(nullptr));
  o.Call("destroy NULL", cudaGraphDestroy(nullptr));
  o.Call("create with flags 1", cudaGraphCreate(&unused, 1));
  o.Call("create NULL out", cudaGraphCreate(nullptr, 0));
  NoteLast(o, "last");
  REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  REQUIRE_CUDA(cudaGraphDestroy(graph));
  REQUIRE_CUDA(cudaStreamDestroy(s));
}

OBSERVE("graph.build", Once()) {
  Chain c(o, 3), other(o, 1);
  cudaGraphNode_t a = c.nodes[0], b = c.nodes[1], z = c.nodes[2], n = nullptr;
  cudaGraphNode_t from[8], to[8], list[8];
  cudaGraphEdgeData data[8];
  size_t count = 0;
  auto edges = [&] { return CountEdges(c.graph); };
  auto size = [&] { return Format("nodes=%zu edges=%zu", CountNodes(c.graph), CountEdges(c.graph)); };
  o.Note("chain", size());
  count = 8;
  o.Call("GetRootNodes", cudaGraphGetRootNodes(c.graph, list, &count));
  o.Note("roots", Format("n=%zu", count));
  count = 8;
  o.Call("NodeGetDependencies", cudaGraphNodeGetDependencies(b, list, nullptr, &count));
  o.Note("deps", Format("n=%zu", count));
  count = 8;
  o.Call("NodeGetDependentNodes", cudaGraphNodeGetDependentNodes(b, list, nullptr, &count));
  o.Note("dependents", Format("n=%zu", count));
  count = 8;
  o.Call("GetEdges without edge data", cudaGraphGetEdges(c.graph, from, to, nullptr, &count));
  o.Note("edges", Format("n=%zu", count));
  count = 8;
  memset(data, 0x77, sizeof data);
  o.Call("GetEdges with edge data", cudaGraphGetEdges(c.graph, from, to, data, &count));
  o.Note("edges",
         Format("n=%zu from_port=%d to_port=%d type=%d", count, data[0].from_port, data[0].to_port, data[0].type));
  count = 1;
  o.Call("GetEdges with room for one", cudaGraphGetEdges(c.graph, from, to, nullptr, &count));
  o.Note("edges", Format("n=%zu", count));
  o.Call("GetEdges with one array NULL", cudaGraphGetEdges(c.graph, from, nullptr, nullptr, &count));
  count = 8;
  for (auto& x : list) x = a;
  o.Call("GetNodes with room for more", cudaGraphGetNodes(c.graph, list, &count));
  o.Note("nodes", Format("n=%zu rest=%s", count, list[3] == nullptr && list[7] == nullptr ? "NULL" : "kept"));
  count = 2;
  o.Call("GetNodes with room for fewer", cudaGraphGetNodes(c.graph, list, &count));
  o.Note("nodes", Format("n=%zu order_is_creation=%d", count, list[0] == a && list[1] == b));
  o.Call("duplicate dependency", cudaGraphAddDependencies(c.graph, &a, &b, nullptr, 1));
  o.Note("chain", Format("edges=%zu", edges()));
  o.Call("new dependency", cudaGraphAddDependencies(c.graph, &a, &z, nullptr, 1));
  o.Note("chain", Format("edges=%zu", edges()));
  o.Call("self dependency", cudaGraphAddDependencies(c.graph, &a, &a, nullptr, 1));
  o.Call("dependency on a node of another graph", cudaGraphAddDependencies(c.graph, &other.nodes[0], &a, nullptr, 1));
  o.Call("zero dependencies", cudaGraphAddDependencies(c.graph, &a, &z, nullptr, 0));
  o.Call("one dependency, NULL arrays", cudaGraphAddDependencies(c.graph, nullptr, nullptr, nullptr, 1));
  const cudaGraphNode_t twice[2] = {a, a};
  o.Call("add node with a duplicate dependency", cudaGraphAddEmptyNode(&n, c.graph, twice, 2));
  o.Call("add node that depends on another graph's", cudaGraphAddEmptyNode(&n, c.graph, &other.nodes[0], 1));
  o.Call("add node to NULL graph", cudaGraphAddEmptyNode(&n, nullptr, nullptr, 0));
  o.Call("add node NULL out", cudaGraphAddEmptyNode(nullptr, c.graph, nullptr, 0));
  o.Call("remove dependency", cudaGraphRemoveDependencies(c.graph, &a, &z, nullptr, 1));
  o.Call("remove dependency that is not there", cudaGraphRemoveDependencies(c.graph, &a, &z, nullptr, 1));
  o.Note("chain", size());
  o.Call("cycle: add", cudaGraphAddDependencies(c.graph, &z, &a, nullptr, 1));
  o.Note("chain", size());
  auto instantiate = [&](const char* step) {
    cudaGraphInstantiateParams p = {};
    p.result_out = static_cast<cudaGraphInstantiateResult>(77);
    cudaGraphExec_t exec = reinterpret_cast<cudaGraphExec_t>(Untouched<void>());
    const cudaError_t code = cudaGraphInstantiateWithParams(&exec, c.graph, &p);
    o.Call(
        step, code,
        Format("flags=0 result=%d errNode=%s exec=%s", p.result_out, PointerState(p.errNode_out), PointerState(exec)));
    if (code == cudaSuccess) REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  };
  instantiate("cycle: instantiate");
  cudaGraphExec_t exec = nullptr;
  o.Call("cycle: plain instantiate", cudaGraphInstantiate(&exec, c.graph, 0));
  o.Call("cycle: remove", cudaGraphRemoveDependencies(c.graph, &z, &a, nullptr, 1));
  instantiate("instantiate");
  o.Call("destroy middle node", cudaGraphDestroyNode(b));
  o.Note("chain", size());
  cudaMemsetParams p = c.Params(1);
  p.elementSize = 3;
  o.Call("memset node element size 3", cudaGraphAddMemsetNode(&n, c.graph, nullptr, 0, &p));
  p = c.Params(1);
  p.dst = nullptr;
  o.Call("memset node NULL destination", cudaGraphAddMemsetNode(&n, c.graph, nullptr, 0, &p));
  p = c.Params(1);
  p.width = 0;
  o.Call("memset node width 0", cudaGraphAddMemsetNode(&n, c.graph, nullptr, 0, &p));
  p = c.Params(1);
  p.height = 0;
  o.Call("memset node height 0", cudaGraphAddMemsetNode(&n, c.graph, nullptr, 0, &p));
  const auto d2d = cudaMemcpyDeviceToDevice;
  o.Call("memcpy node size 0", cudaGraphAddMemcpyNode1D(&n, c.graph, nullptr, 0, c.d, other.d, 0, d2d));
  o.Call("memcpy node NULL destination", cudaGraphAddMemcpyNode1D(&n, c.graph, nullptr, 0, nullptr, other.d, 64, d2d));
  o.Call("memcpy node wrong kind",
         cudaGraphAddMemcpyNode1D(&n, c.graph, nullptr, 0, c.d, other.d, 64, cudaMemcpyHostToDevice));
  const cudaHostNodeParams no_function = {nullptr, nullptr};
  o.Call("host node NULL function", cudaGraphAddHostNode(&n, c.graph, nullptr, 0, &no_function));
  // The driver does not survive a graph that is made a child of itself.
  o.Probe("process", [&] { return cudaGraphAddChildGraphNode(&n, c.graph, nullptr, 0, c.graph); });
  REQUIRE_CUDA(cudaGraphDestroy(c.graph));
  REQUIRE_CUDA(cudaGraphDestroy(other.graph));
}

OBSERVE("graph.clone", Once()) {
  Chain c(o, 2), other(o, 1);
  cudaStream_t s;
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  cudaGraph_t clone = nullptr;
  cudaGraphNode_t found = nullptr;
  cudaGraphExec_t exec = nullptr;
  o.Call("clone", cudaGraphClone(&clone, c.graph));
  o.Note("clone",
         Format("nodes=%zu edges=%zu types=%s", CountNodes(clone), CountEdges(clone), NodeTypes(clone).c_str()));
  o.Call("find in clone", cudaGraphNodeFindInClone(&found, c.nodes[0], clone));
  o.Note("clone", Format("found=%s different=%d", PointerState(found), found != c.nodes[0]));
  o.Call("find a foreign node", cudaGraphNodeFindInClone(&found, other.nodes[0], clone));
  o.Call("find in a graph that is no clone", cudaGraphNodeFindInClone(&found, c.nodes[0], other.graph));
  o.Call("destroy the original", cudaGraphDestroy(c.graph));
  o.Call("instantiate the clone", cudaGraphInstantiate(&exec, clone, 0));
  o.Call("launch", cudaGraphLaunch(exec, s));
  o.Call("sync", cudaStreamSynchronize(s));
  o.Note("value", Format("value=%s", Word(c.d).c_str()));
  o.Call("clone NULL", cudaGraphClone(&clone, nullptr));
  o.Call("clone NULL out", cudaGraphClone(nullptr, other.graph));
  REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  REQUIRE_CUDA(cudaGraphDestroy(other.graph));
  REQUIRE_CUDA(cudaStreamDestroy(s));
}

OBSERVE("graph.dot", Once()) {
  Chain c(o, 2);
  char path[] = "/tmp/gcap_conformance_XXXXXX";
  const int file = mkstemp(path);
  auto bytes = [&] { return static_cast<long>(lseek(file, 0, SEEK_END)); };
  o.Call("dot", cudaGraphDebugDotPrint(c.graph, path, 0));
  const long plain = bytes();
  o.Note("file", Format("nonempty=%d", plain > 0));
  o.Call("dot verbose", cudaGraphDebugDotPrint(c.graph, path, cudaGraphDebugDotFlagsVerbose));
  const long verbose = bytes();
  o.Note("file", Format("nonempty=%d verbose_is_longer=%d", verbose > 0, verbose > plain));
  o.Call("dot to a bad path", cudaGraphDebugDotPrint(c.graph, "/no/such/folder/graph.dot", 0));
  o.Call("dot NULL path", cudaGraphDebugDotPrint(c.graph, nullptr, 0));
  o.Call("dot NULL graph", cudaGraphDebugDotPrint(nullptr, path, 0));
  o.Call("dot unknown flag", cudaGraphDebugDotPrint(c.graph, path, 1u << 30));
  close(file);
  unlink(path);
  REQUIRE_CUDA(cudaGraphDestroy(c.graph));
}

OBSERVE("graph.user_object", Once()) {
  static std::atomic<int> ran;
  ran = 0;
  const cudaHostFn_t destroy = [](void*) { ++ran; };
  const unsigned flags = cudaUserObjectNoDestructorSync;
  // Destructors may run on a thread of the runtime's, a little later.
  auto tell = [&](int expected) {
    for (int i = 0; i < 200 && ran < expected; ++i) usleep(10000);
    o.Note("destructor ran", Format("value=%d", ran.load()));
  };
  Chain c(o, 1), second(o, 1);
  cudaStream_t s;
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  cudaUserObject_t object = nullptr;
  cudaGraph_t clone = nullptr;
  cudaGraphExec_t exec = nullptr;
  o.Call("create flags 0", cudaUserObjectCreate(&object, nullptr, destroy, 1, 0));
  o.Call("create count 0", cudaUserObjectCreate(&object, nullptr, destroy, 0, flags));
  o.Call("create NULL destructor", cudaUserObjectCreate(&object, nullptr, nullptr, 1, flags));
  o.Call("create", cudaUserObjectCreate(&object, nullptr, destroy, 1, flags));
  o.Call("retain, moved", cudaGraphRetainUserObject(c.graph, object, 1, cudaGraphUserObjectMove));
  o.Call("clone", cudaGraphClone(&clone, c.graph));
  o.Call("instantiate", cudaGraphInstantiate(&exec, c.graph, 0));
  o.Call("destroy graph", cudaGraphDestroy(c.graph));
  tell(0);
  o.Call("destroy clone", cudaGraphDestroy(clone));
  tell(0);
  o.Call("launch", cudaGraphLaunch(exec, s));
  o.Call("sync", cudaStreamSynchronize(s));
  o.Call("exec destroy", cudaGraphExecDestroy(exec));
  tell(1);
  o.Call("create count 2", cudaUserObjectCreate(&object, nullptr, destroy, 2, flags));
  o.Call("retain, not moved", cudaGraphRetainUserObject(second.graph, object, 1, 0));
  o.Call("release 2", cudaUserObjectRelease(object, 2));
  tell(1);
  o.Call("graph releases", cudaGraphReleaseUserObject(second.graph, object, 1));
  tell(2);
  o.Call("retain NULL", cudaUserObjectRetain(nullptr, 1));
  REQUIRE_CUDA(cudaUserObjectCreate(&object, nullptr, destroy, 1, flags));
  o.Call("retain on NULL graph", cudaGraphRetainUserObject(nullptr, object, 1, 0));
  REQUIRE_CUDA(cudaUserObjectRelease(object, 1));
  REQUIRE_CUDA(cudaGraphDestroy(second.graph));
  REQUIRE_CUDA(cudaStreamDestroy(s));
}

OBSERVE("graph.external_event", Once()) {
  Rig r(o);
  cudaEvent_t t0, t1, awaited;
  REQUIRE_CUDA(cudaEventCreate(&t0));
  REQUIRE_CUDA(cudaEventCreate(&t1));
  REQUIRE_CUDA(cudaEventCreate(&awaited));
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
  o.Call("external record t0", cudaEventRecordWithFlags(t0, r.s, cudaEventRecordExternal));
  REQUIRE_CUDA(cudaMemsetAsync(r.d, 1, 64, r.s));
  o.Call("external record t1", cudaEventRecordWithFlags(t1, r.s, cudaEventRecordExternal));
  o.Call("external wait", cudaStreamWaitEvent(r.s, awaited, cudaEventWaitExternal));
  cudaGraph_t graph = EndCapture(o, "end", r.s);
  o.Call("query t1 before any launch", cudaEventQuery(t1));
  cudaGraphExec_t exec = nullptr;
  o.Call("instantiate", cudaGraphInstantiate(&exec, graph, 0));
  o.Call("launch", cudaGraphLaunch(exec, r.s));
  o.Call("sync", cudaStreamSynchronize(r.s));
  o.Call("query t1 after the launch", cudaEventQuery(t1));
  float ms = -1;
  const cudaError_t elapsed = cudaEventElapsedTime(&ms, t0, t1);
  o.Call("elapsed between external events", elapsed, Format("nonnegative=%d", ms >= 0));
  Gate gate;
  o.Call("gate on another stream", gate.Hold(r.s2));
  o.Call("record the awaited event behind the gate", cudaEventRecord(awaited, r.s2));
  o.Call("launch", cudaGraphLaunch(exec, r.s));
  o.Call("query while the event is pending", cudaStreamQuery(r.s));
  gate.Open();
  o.Call("sync", cudaStreamSynchronize(r.s));
  cudaGraphNode_t node;
  o.Call("record node by hand", cudaGraphAddEventRecordNode(&node, graph, nullptr, 0, t0));
  o.Call("external record outside a capture", cudaEventRecordWithFlags(t0, r.s, cudaEventRecordExternal));
  o.Call("external wait outside a capture", cudaStreamWaitEvent(r.s, awaited, cudaEventWaitExternal));
  REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  REQUIRE_CUDA(cudaGraphDestroy(graph));
  REQUIRE_CUDA(cudaEventDestroy(t0));
  REQUIRE_CUDA(cudaEventDestroy(t1));
  REQUIRE_CUDA(cudaEventDestroy(awaited));
  cudaGetLastError();
}

}  // namespace conformance
