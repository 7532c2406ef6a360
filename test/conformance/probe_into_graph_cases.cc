// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Captures into graphs that exist, changed dependencies of captures, user objects.
#include "test/conformance/rig.h"

namespace conformance {

OBSERVE("to_graph.arguments", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g, other, out = nullptr;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphCreate(&other, 0));
  cudaGraphNode_t a, b, foreign;
  REQUIRE_CUDA(cudaGraphAddEmptyNode(&a, g, nullptr, 0));
  REQUIRE_CUDA(cudaGraphAddEmptyNode(&b, g, nullptr, 0));
  REQUIRE_CUDA(cudaGraphAddEmptyNode(&foreign, other, nullptr, 0));
  const auto relaxed = cudaStreamCaptureModeRelaxed;
  PROBE(cudaStreamBeginCaptureToGraph(r.s, nullptr, nullptr, nullptr, 0, relaxed));
  PROBE(cudaStreamBeginCaptureToGraph(nullptr, g, nullptr, nullptr, 0, relaxed));
  PROBE(cudaStreamBeginCaptureToGraph(r.s, g, nullptr, nullptr, 1, relaxed));
  PROBE(cudaStreamBeginCaptureToGraph(r.s, g, &foreign, nullptr, 1, relaxed));
  PROBE(cudaStreamBeginCaptureToGraph(r.s, g, nullptr, nullptr, 0, (cudaStreamCaptureMode)9));
  cudaStreamCaptureStatus st;
  PROBE_AND(cudaStreamIsCapturing(r.s, &st), "status=%d", st);
  cudaGraphNode_t both[2] = {a, b};
  cudaGraphNode_t twice[2] = {a, a};
  PROBE(cudaStreamBeginCaptureToGraph(r.s, g, both, nullptr, 2, relaxed));
  PROBE_AS("begin again", cudaStreamBeginCaptureToGraph(r.s, g, both, nullptr, 2, relaxed));
  PROBE_AS("another stream to the same graph", cudaStreamBeginCaptureToGraph(r.s2, g, nullptr, nullptr, 0, relaxed));
  unsigned long long id = 0;
  cudaGraph_t ig = nullptr;
  const cudaGraphNode_t* deps = nullptr;
  const cudaGraphEdgeData* data = nullptr;
  size_t n = 9;
  PROBE_AND(cudaStreamGetCaptureInfo(r.s, &st, &id, &ig, &deps, &data, &n), "status=%d same_graph=%d n=%zu", st,
            ig == g, n);
  PROBE(cudaMemsetAsync(r.d, 1, 64, r.s));
  PROBE(cudaGraphDestroy(g));
  cudaGraphExec_t e = nullptr;
  PROBE_AS("instantiate while capturing to it", cudaGraphInstantiate(&e, g, 0));
  PROBE_AS("clone while capturing to it", cudaGraphClone(&out, g));
  PROBE_AS("add a node while capturing to it", cudaGraphAddEmptyNode(&foreign, g, nullptr, 0));
  PROBE_AND(cudaStreamEndCapture(r.s, &out), "same=%d nodes=%zu edges=%zu", out == g, CountNodes(g), CountEdges(g));
  PROBE_AS("second capture to the graph", cudaStreamBeginCaptureToGraph(r.s, g, nullptr, nullptr, 0, relaxed));
  PROBE(cudaMemsetAsync(r.d, 1, 64, r.s));
  PROBE_AND(cudaStreamEndCapture(r.s, &out), "same=%d nodes=%zu edges=%zu", out == g, CountNodes(g), CountEdges(g));
  PROBE_AS("the same dependency twice", cudaStreamBeginCaptureToGraph(r.s, g, twice, nullptr, 2, relaxed));
  PROBE(cudaMemsetAsync(r.d, 1, 64, r.s));
  PROBE_AND(cudaStreamEndCapture(r.s, &out), "nodes=%zu edges=%zu", CountNodes(g), CountEdges(g));
  PROBE_AS("third capture, failed", cudaStreamBeginCaptureToGraph(r.s, g, nullptr, nullptr, 0, relaxed));
  PROBE(cudaMemsetAsync(r.d, 1, 64, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  out = reinterpret_cast<cudaGraph_t>(Untouched<void>());
  PROBE_AND(cudaStreamEndCapture(r.s, &out), "graph=%s", PointerState(out));
}

OBSERVE("to_graph.after_failure", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g, out;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  cudaGraphNode_t a;
  REQUIRE_CUDA(cudaGraphAddEmptyNode(&a, g, nullptr, 0));
  REQUIRE_CUDA(cudaStreamBeginCaptureToGraph(r.s, g, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
  REQUIRE_CUDA(cudaMemsetAsync(r.d, 1, 64, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  PROBE(cudaStreamEndCapture(r.s, &out));
  size_t count = 77;
  PROBE_AND(cudaGraphGetNodes(g, nullptr, &count), "n=%zu", count);
  cudaGraphExec_t e;
  PROBE(cudaGraphInstantiate(&e, g, 0));
  PROBE(cudaGraphDestroy(g));
}

OBSERVE("capture.dependencies", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g = nullptr, out;
  cudaStreamCaptureStatus st;
  unsigned long long id;
  const cudaGraphNode_t* deps = nullptr;
  const cudaGraphEdgeData* data = nullptr;
  size_t n = 9;
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeRelaxed));
  REQUIRE_CUDA(cudaMemsetAsync(r.d, 1, 64, r.s));
  REQUIRE_CUDA(cudaMemsetAsync(r.d, 1, 64, r.s));
  REQUIRE_CUDA(cudaStreamGetCaptureInfo(r.s, &st, &id, &g, &deps, &data, &n));
  o.Note("info", Format("n=%zu data=%s", n, PointerState(data)));
  cudaGraphNode_t nodes[3];
  size_t two = 2;
  REQUIRE_CUDA(cudaGraphGetNodes(g, nodes, &two));
  PROBE(cudaStreamUpdateCaptureDependencies(r.s, nodes, nullptr, 1, cudaStreamAddCaptureDependencies));
  REQUIRE_CUDA(cudaStreamGetCaptureInfo(r.s, &st, &id, &g, &deps, &data, &n));
  o.Note("info", Format("n=%zu", n));
  PROBE_AS("add one that is there",
           cudaStreamUpdateCaptureDependencies(r.s, nodes, nullptr, 1, cudaStreamAddCaptureDependencies));
  REQUIRE_CUDA(cudaStreamGetCaptureInfo(r.s, &st, &id, &g, &deps, &data, &n));
  o.Note("info", Format("n=%zu", n));
  cudaGraphNode_t pair[2] = {nodes[0], nodes[0]};
  PROBE_AS("set the same twice",
           cudaStreamUpdateCaptureDependencies(r.s, pair, nullptr, 2, cudaStreamSetCaptureDependencies));
  REQUIRE_CUDA(cudaStreamGetCaptureInfo(r.s, &st, &id, &g, &deps, &data, &n));
  o.Note("info", Format("n=%zu", n));
  PROBE_AS("set to a NULL node", [&] {
    cudaGraphNode_t t[1] = {nullptr};
    return cudaStreamUpdateCaptureDependencies(r.s, t, nullptr, 1, cudaStreamSetCaptureDependencies);
  }());
  PROBE_AS("flags 2", cudaStreamUpdateCaptureDependencies(r.s, nodes, nullptr, 1, 2));
  cudaGraphNode_t manual;
  auto f = r.Fill(1);
  PROBE_AS("add a node by hand", cudaGraphAddMemsetNode(&manual, g, nullptr, 0, &f));
  PROBE_AS("depend on it",
           cudaStreamUpdateCaptureDependencies(r.s, &manual, nullptr, 1, cudaStreamSetCaptureDependencies));
  cudaGraphEdgeData bad = {};
  bad.type = 1;
  bad.from_port = 1;
  PROBE_AS("programmatic dependency on a memset",
           cudaStreamUpdateCaptureDependencies(r.s, &manual, &bad, 1, cudaStreamSetCaptureDependencies));
  PROBE_AND(cudaStreamIsCapturing(r.s, &st), "status=%d", st);
  PROBE(cudaMemsetAsync(r.d, 1, 64, r.s));
  cudaGraphNode_t from = nullptr;
  cudaGraphNode_t to = nullptr;
  size_t c = 1;
  PROBE(cudaGraphGetEdges(g, &from, &to, nullptr, &c));
  PROBE_AS("an edge removed while capturing", cudaGraphRemoveDependencies(g, &from, &to, nullptr, 1));
  PROBE_AND(cudaStreamEndCapture(r.s, &out), "nodes=%zu edges=%zu", CountNodes(out), CountEdges(out));
}

OBSERVE("capture.joined_updates", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t out = nullptr;
  cudaStreamCaptureStatus st;
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeRelaxed));
  REQUIRE_CUDA(cudaMemsetAsync(r.d, 1, 64, r.s));
  REQUIRE_CUDA(cudaEventRecord(r.e2, r.s));
  REQUIRE_CUDA(cudaStreamWaitEvent(r.s2, r.e2, 0));
  REQUIRE_CUDA(cudaMemsetAsync(r.d, 1, 64, r.s2));
  PROBE_AS("drop the fork's dependencies",
           cudaStreamUpdateCaptureDependencies(r.s2, nullptr, nullptr, 0, cudaStreamSetCaptureDependencies));
  PROBE_AND(cudaStreamIsCapturing(r.s2, &st), "status=%d", st);
  PROBE_AND(cudaStreamEndCapture(r.s, &out), "nodes=%zu", CountNodes(out));
  PROBE_AND(cudaStreamIsCapturing(r.s2, &st), "status=%d", st);
}

OBSERVE("user_object.arguments", Once().InOwnProcess()) {
  Rig r(o);
  cudaUserObject_t u = nullptr;
  cudaGraph_t g;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  PROBE(cudaUserObjectCreate(nullptr, nullptr, Nothing, 1, cudaUserObjectNoDestructorSync));
  PROBE(cudaUserObjectCreate(&u, nullptr, Nothing, 1, 2));
  PROBE(cudaUserObjectCreate(&u, nullptr, Nothing, 0x80000000u, cudaUserObjectNoDestructorSync));
  PROBE(cudaUserObjectCreate(&u, nullptr, Nothing, 1, cudaUserObjectNoDestructorSync));
  PROBE(cudaUserObjectRetain(u, 0));
  PROBE(cudaUserObjectRetain(u, 2));
  PROBE(cudaUserObjectRelease(nullptr, 1));
  PROBE(cudaUserObjectRelease(u, 0));
  PROBE(cudaUserObjectRetain(u, 0x80000000u));
  PROBE(cudaGraphRetainUserObject(g, u, 0, 0));
  PROBE(cudaGraphRetainUserObject(g, u, 1, 2));
  PROBE(cudaGraphRetainUserObject(g, nullptr, 1, 0));
  PROBE(cudaGraphRetainUserObject(g, u, 1, 0));
  PROBE(cudaGraphReleaseUserObject(g, u, 0));
  PROBE(cudaGraphReleaseUserObject(nullptr, u, 1));
  PROBE(cudaGraphReleaseUserObject(g, nullptr, 1));
  PROBE(cudaGraphReleaseUserObject(g, u, 1));
  PROBE_AS("release what the graph no longer holds", cudaGraphReleaseUserObject(g, u, 1));
  PROBE(cudaUserObjectRelease(u, 3));
}

OBSERVE("user_object.over_release", Once().InOwnProcess()) {
  cudaUserObject_t u = nullptr;
  REQUIRE_CUDA(cudaUserObjectCreate(&u, nullptr, Nothing, 1, cudaUserObjectNoDestructorSync));
  PROBE(cudaUserObjectRelease(u, 2));
}

OBSERVE("user_object.graph_over_release", Once().InOwnProcess()) {
  cudaUserObject_t u = nullptr;
  cudaGraph_t g;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaUserObjectCreate(&u, nullptr, Nothing, 1, cudaUserObjectNoDestructorSync));
  REQUIRE_CUDA(cudaGraphRetainUserObject(g, u, 1, 0));
  PROBE(cudaGraphReleaseUserObject(g, u, 2));
}

}  // namespace conformance
