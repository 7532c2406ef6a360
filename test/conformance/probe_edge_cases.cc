// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Edges, with and without data, clones and dumps.
#include "test/conformance/rig.h"

#include <cstring>
#include <string>

namespace conformance {

OBSERVE("nodes.edit", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  cudaGraphNode_t n[4];
  for (auto& x : n) REQUIRE_CUDA(cudaGraphAddEmptyNode(&x, g, nullptr, 0));
  size_t count = 0;
  cudaGraphEdgeData data[2] = {};
  PROBE(cudaGraphAddDependencies(g, &n[0], &n[1], nullptr, 1));
  PROBE(cudaGraphAddDependencies(nullptr, &n[0], &n[1], nullptr, 1));
  PROBE(cudaGraphAddDependencies(g, nullptr, &n[1], nullptr, 1));
  PROBE(cudaGraphAddDependencies(g, &n[0], &n[1], data, 1));
  PROBE(cudaGraphAddDependencies(g, &n[1], &n[2], data, 1));
  data[0].type = cudaGraphDependencyTypeProgrammatic;
  data[0].from_port = 1;
  PROBE_AS("programmatic edge between empty nodes", cudaGraphAddDependencies(g, &n[2], &n[3], data, 1));
  data[0] = {};
  data[0].type = 9;
  PROBE_AS("edge of type 9", cudaGraphAddDependencies(g, &n[2], &n[3], data, 1));
  data[0] = {};
  data[0].from_port = 9;
  PROBE_AS("edge from port 9", cudaGraphAddDependencies(g, &n[2], &n[3], data, 1));
  data[0] = {};
  data[0].to_port = 1;
  PROBE_AS("edge to port 1", cudaGraphAddDependencies(g, &n[2], &n[3], data, 1));
  data[0] = {};
  data[0].reserved[0] = 1;
  PROBE_AS("edge with reserved bytes", cudaGraphAddDependencies(g, &n[2], &n[3], data, 1));
  o.Note("graph", Format("edges=%zu", CountEdges(g)));
  cudaGraphNode_t from[2] = {n[0], n[0]}, to[2] = {n[2], n[2]};
  PROBE_AS("the same edge twice in one call", cudaGraphAddDependencies(g, from, to, nullptr, 2));
  o.Note("graph", Format("edges=%zu", CountEdges(g)));
  cudaGraphNode_t from2[2] = {n[0], n[3]}, to2[2] = {n[3], n[3]};
  PROBE_AS("a good edge and a bad one", cudaGraphAddDependencies(g, from2, to2, nullptr, 2));
  o.Note("graph", Format("edges=%zu", CountEdges(g)));
  PROBE(cudaGraphRemoveDependencies(nullptr, &n[0], &n[1], nullptr, 1));
  PROBE(cudaGraphRemoveDependencies(g, nullptr, &n[1], nullptr, 1));
  PROBE(cudaGraphRemoveDependencies(g, &n[0], &n[1], nullptr, 0));
  PROBE(cudaGraphRemoveDependencies(g, &n[1], &n[0], nullptr, 1));
  data[0] = {};
  PROBE_AS("remove with plain edge data", cudaGraphRemoveDependencies(g, &n[0], &n[1], data, 1));
  data[0].type = 1;
  PROBE_AS("remove with other edge data", cudaGraphRemoveDependencies(g, &n[1], &n[2], data, 1));
  cudaGraphNode_t from3[2] = {n[1], n[3]}, to3[2] = {n[2], n[0]};
  PROBE_AS("remove a good edge and one that is not there", cudaGraphRemoveDependencies(g, from3, to3, nullptr, 2));
  o.Note("graph", Format("edges=%zu", CountEdges(g)));
  PROBE(cudaGraphDestroyNode(nullptr));
  PROBE(cudaGraphDestroyNode(n[1]));
  o.Note("graph", Format("nodes=%zu edges=%zu", CountNodes(g), CountEdges(g)));
  PROBE(cudaGraphNodeGetDependencies(n[2], nullptr, nullptr, &count));
}

OBSERVE("nodes.programmatic", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  cudaGraphNode_t a, b, c;
  auto k = r.Kernel();
  auto f = r.Fill(1);
  REQUIRE_CUDA(cudaGraphAddKernelNode(&a, g, nullptr, 0, &k));
  REQUIRE_CUDA(cudaGraphAddKernelNode(&b, g, nullptr, 0, &k));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&c, g, nullptr, 0, &f));
  cudaGraphEdgeData data[3] = {};
  size_t count = 0;
  cudaGraphNode_t from[3], to[3];
  data[0].type = cudaGraphDependencyTypeProgrammatic;
  data[0].from_port = cudaGraphKernelNodePortDefault;
  PROBE_AS("type programmatic, port default", cudaGraphAddDependencies(g, &a, &b, data, 1));
  data[0].from_port = cudaGraphKernelNodePortProgrammatic;
  PROBE_AS("type default, port programmatic, to a memset", [&] {
    data[0].type = 0;
    return cudaGraphAddDependencies(g, &a, &c, data, 1);
  }());
  data[0].type = cudaGraphDependencyTypeProgrammatic;
  PROBE_AS("programmatic, to a memset", cudaGraphAddDependencies(g, &a, &c, data, 1));
  PROBE_AS("programmatic, from a memset", cudaGraphAddDependencies(g, &c, &b, data, 1));
  data[0].to_port = 1;
  PROBE_AS("programmatic, to port 1", cudaGraphAddDependencies(g, &a, &b, data, 1));
  data[0].to_port = 0;
  PROBE_AS("programmatic", cudaGraphAddDependencies(g, &a, &b, data, 1));
  o.Note("graph", Format("edges=%zu", CountEdges(g)));
  PROBE_AS("plain edge beside it", cudaGraphAddDependencies(g, &a, &b, nullptr, 1));
  o.Note("graph", Format("edges=%zu", CountEdges(g)));
  count = 3;
  PROBE_AS_AND("edges without room for data", cudaGraphGetEdges(g, from, to, nullptr, &count), "count=%zu", count);
  count = 0;
  PROBE_AS_AND("count of edges", cudaGraphGetEdges(g, nullptr, nullptr, nullptr, &count), "count=%zu", count);
  count = 3;
  memset(data, 0, sizeof data);
  PROBE_AS_AND("edges with room for data", cudaGraphGetEdges(g, from, to, data, &count), "count=%zu type=%d port=%d",
               count, data[0].type, data[0].from_port);
  count = 3;
  PROBE_AS_AND("dependencies without room for data", cudaGraphNodeGetDependencies(b, from, nullptr, &count),
               "count=%zu", count);
  count = 3;
  PROBE_AS_AND("dependencies with room for data", cudaGraphNodeGetDependencies(b, from, data, &count),
               "count=%zu type=%d", count, data[0].type);
  count = 3;
  PROBE_AS_AND("dependents without room for data", cudaGraphNodeGetDependentNodes(a, to, nullptr, &count), "count=%zu",
               count);
  cudaGraphExec_t e;
  PROBE(cudaGraphInstantiate(&e, g, 0));
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  PROBE(cudaGraphRemoveDependencies(g, &a, &b, nullptr, 1));
  memset(data, 0, sizeof data);
  data[0].type = cudaGraphDependencyTypeProgrammatic;
  data[0].from_port = 1;
  PROBE_AS("remove with its data", cudaGraphRemoveDependencies(g, &a, &b, data, 1));
  o.Note("graph", Format("edges=%zu", CountEdges(g)));
  cudaGraph_t clone;
  PROBE(cudaGraphClone(&clone, g));
}

OBSERVE("nodes.programmatic_capture", Once().InOwnProcess()) {
  Rig r(o);
  cudaLaunchAttribute a = {};
  a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  a.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t c = {};
  c.gridDim = dim3(1);
  c.blockDim = dim3(32);
  c.stream = r.s;
  c.attrs = &a;
  c.numAttrs = 1;
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), r.args, 0, r.s));
  PROBE_AS("second kernel, programmatic", cudaLaunchKernelExC(&c, kRelu, r.args));
  cudaStreamCaptureStatus st;
  unsigned long long id;
  cudaGraph_t g = nullptr;
  const cudaGraphNode_t* deps = nullptr;
  const cudaGraphEdgeData* data = nullptr;
  size_t n = 9;
  PROBE_AND(cudaStreamGetCaptureInfo(r.s, &st, &id, &g, &deps, nullptr, &n), "n=%zu", n);
  PROBE_AND(cudaStreamGetCaptureInfo(r.s, &st, &id, &g, &deps, &data, &n), "n=%zu type=%d", n,
            data == nullptr ? -1 : data[0].type);
  PROBE(cudaStreamEndCapture(r.s, &g));
  size_t count = 3;
  cudaGraphNode_t from[3], to[3];
  cudaGraphEdgeData edges[3] = {};
  PROBE_AS_AND("edges", cudaGraphGetEdges(g, from, to, edges, &count), "count=%zu type=%d from_port=%d", count,
               edges[0].type, edges[0].from_port);
  PROBE_AS_AND("edges without room for data", cudaGraphGetEdges(g, from, to, nullptr, &count), "count=%zu", count);
  cudaGraphExec_t e;
  PROBE(cudaGraphInstantiate(&e, g, 0));
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
}

OBSERVE("nodes.clone", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g, child, clone, clone2, other;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphCreate(&child, 0));
  REQUIRE_CUDA(cudaGraphCreate(&other, 0));
  cudaGraphNode_t a, b, sub, inner, found = reinterpret_cast<cudaGraphNode_t>(Untouched<void>());
  auto f = r.Fill(1);
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&inner, child, nullptr, 0, &f));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&a, g, nullptr, 0, &f));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&b, g, &a, 1, &f));
  REQUIRE_CUDA(cudaGraphAddChildGraphNode(&sub, g, &b, 1, child));
  PROBE(cudaGraphClone(&clone, g));
  PROBE(cudaGraphClone(&clone2, clone));
  PROBE(cudaGraphNodeFindInClone(nullptr, a, clone));
  PROBE(cudaGraphNodeFindInClone(&found, nullptr, clone));
  PROBE(cudaGraphNodeFindInClone(&found, a, nullptr));
  PROBE_AND(cudaGraphNodeFindInClone(&found, a, clone), "differs=%d", found != a);
  cudaGraphNode_t in_clone = found;
  PROBE_AS("clone of a clone: by the clone's node", cudaGraphNodeFindInClone(&found, in_clone, clone2));
  PROBE_AS("clone of a clone: by the first graph's node", cudaGraphNodeFindInClone(&found, a, clone2));
  PROBE_AS("the clone's own node", cudaGraphNodeFindInClone(&found, in_clone, clone));
  PROBE_AS("the original, by the clone's node", cudaGraphNodeFindInClone(&found, in_clone, g));
  PROBE_AS("a node of the child's source", cudaGraphNodeFindInClone(&found, inner, clone));
  PROBE(cudaGraphNodeFindInClone(&found, sub, clone));
  cudaGraph_t got = nullptr;
  PROBE(cudaGraphChildGraphNodeGetGraph(found, &got));
  o.Note("child of the clone", Format("nodes=%zu", CountNodes(got)));
  PROBE(cudaGraphNodeFindInClone(&found, b, clone));
  PROBE(cudaGraphDestroyNode(found));
  PROBE_AS("after its destruction in the clone", cudaGraphNodeFindInClone(&found, b, clone));
  cudaGraphNode_t later;
  PROBE(cudaGraphAddEmptyNode(&later, g, nullptr, 0));
  PROBE_AS("a node added after the clone", cudaGraphNodeFindInClone(&found, later, clone));
  o.Note("graphs", Format("original=%zu clone=%zu clone2=%zu", CountNodes(g), CountNodes(clone), CountNodes(clone2)));
  PROBE(cudaGraphClone(nullptr, nullptr));
  cudaGraph_t empty;
  PROBE(cudaGraphClone(&empty, other));
  o.Note("clone of an empty graph", Format("nodes=%zu", CountNodes(empty)));
}

OBSERVE("nodes.dot_flags", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  cudaGraphNode_t n;
  auto k = r.Kernel();
  REQUIRE_CUDA(cudaGraphAddKernelNode(&n, g, nullptr, 0, &k));
  char path[] = "/tmp/dotXXXXXX";
  int fd = mkstemp(path);
  close(fd);
  for (int bit = 0; bit < 17; ++bit) {
    std::string s = Format("flag bit %d", bit);
    PROBE_AS(s.c_str(), cudaGraphDebugDotPrint(g, path, 1u << bit));
  }
  PROBE_AS("all flags", cudaGraphDebugDotPrint(g, path, 0xffffffffu));
  unlink(path);
}

}  // namespace conformance
