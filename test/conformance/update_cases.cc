// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Updates of executables by graphs made by hand and by captures.
#include "test/conformance/rig.h"

namespace conformance {

namespace {

void Update(Observer& o, const char* step, cudaGraphExec_t exec, cudaGraph_t graph) {
  cudaGraphExecUpdateResultInfo info;
  info.result = static_cast<cudaGraphExecUpdateResult>(77);
  info.errorNode = info.errorFromNode = reinterpret_cast<cudaGraphNode_t>(Untouched<void>());
  const cudaError_t code = cudaGraphExecUpdate(exec, graph, &info);
  o.Call(step, code,
         Format("result=%d errorNode=%s errorFrom=%s peek=%d", info.result, PointerState(info.errorNode),
                PointerState(info.errorFromNode), cudaGetLastError()));
}

struct Copy {
  void* dst;
  const void* src;
  size_t bytes;
  cudaMemcpyKind kind;
};

// A memset, and a copy after it.
cudaGraph_t Make(Observer& o, const cudaMemsetParams& fill, const Copy& copy, bool with_edge = true) {
  cudaGraph_t graph;
  cudaGraphNode_t first, second;
  REQUIRE_CUDA(cudaGraphCreate(&graph, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&first, graph, nullptr, 0, &fill));
  REQUIRE_CUDA(
      cudaGraphAddMemcpyNode1D(&second, graph, &first, with_edge ? 1 : 0, copy.dst, copy.src, copy.bytes, copy.kind));
  return graph;
}

}  // namespace

OBSERVE("update.by_hand", Once()) {
  Rig r(o);
  const size_t n = 1024;
  const Copy copy = {r.d2, r.d, n, cudaMemcpyDeviceToDevice};
  cudaGraph_t graph;
  cudaGraphNode_t node, second;
  const cudaMemsetParams fill = r.Fill(1, n);
  REQUIRE_CUDA(cudaGraphCreate(&graph, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
  o.Call("memcpy node", cudaGraphAddMemcpyNode1D(&second, graph, &node, 1, r.d2, r.d, n, cudaMemcpyDeviceToDevice));
  cudaGraphExec_t exec;
  o.Call("instantiate", cudaGraphInstantiate(&exec, graph, 0));
  auto with = [&](const char* step, cudaGraph_t to) {
    Update(o, step, exec, to);
    REQUIRE_CUDA(cudaGraphDestroy(to));
  };
  Update(o, "same graph", exec, graph);
  with("same topology, other graph", Make(o, fill, copy));
  with("memset value changed", Make(o, r.Fill(2, n), copy));
  REQUIRE_CUDA(cudaGraphLaunch(exec, r.s));
  REQUIRE_CUDA(cudaStreamSynchronize(r.s));
  o.Note("value after update", Format("value=%s copy=%s", Word(r.d).c_str(), Word(r.d2).c_str()));
  with("memcpy destination changed", Make(o, fill, {r.d2 + n, r.d, n, cudaMemcpyDeviceToDevice}));
  with("memcpy size changed", Make(o, fill, {r.d2, r.d, n / 2, cudaMemcpyDeviceToDevice}));
  with("memcpy kind d2d to pinned h2d", Make(o, fill, {r.d2, r.h, n, cudaMemcpyHostToDevice}));
  with("memcpy kind to pageable h2d", Make(o, fill, {r.d2, r.pageable, n, cudaMemcpyHostToDevice}));
  with("memcpy kind to d2h", Make(o, fill, {r.h, r.d, n, cudaMemcpyDeviceToHost}));
  with("memcpy kind default", Make(o, fill, {r.d2, r.d, n, cudaMemcpyDefault}));
  cudaGraph_t more = Make(o, fill, copy);
  REQUIRE_CUDA(cudaGraphAddEmptyNode(&node, more, nullptr, 0));
  with("one node more", more);
  cudaGraph_t less;
  REQUIRE_CUDA(cudaGraphCreate(&less, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&node, less, nullptr, 0, &fill));
  with("one node less", less);
  cudaGraph_t empty;
  REQUIRE_CUDA(cudaGraphCreate(&empty, 0));
  with("empty graph", empty);
  cudaGraph_t reversed;
  REQUIRE_CUDA(cudaGraphCreate(&reversed, 0));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode1D(&node, reversed, nullptr, 0, r.d2, r.d, n, cudaMemcpyDeviceToDevice));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&second, reversed, &node, 1, &fill));
  with("order reversed", reversed);
  cudaGraph_t memsets;
  REQUIRE_CUDA(cudaGraphCreate(&memsets, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&node, memsets, nullptr, 0, &fill));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&second, memsets, &node, 1, &fill));
  with("second node another type", memsets);
  with("edge removed", Make(o, fill, copy, false));
  with("memset width changed", Make(o, r.Fill(1, n / 2), copy));
  cudaMemsetParams other = r.Fill(1, n / 4);
  other.elementSize = 4;
  with("memset element size changed", Make(o, other, copy));
  other = r.Fill(1, 64);
  other.height = 4;
  other.pitch = 256;
  with("memset 1D to 2D", Make(o, other, copy));
  Update(o, "NULL graph", exec, nullptr);
  Update(o, "NULL exec", nullptr, graph);
  o.Call("NULL result info", cudaGraphExecUpdate(exec, graph, nullptr));
  with("good update after the failures", Make(o, r.Fill(5, n), copy));
  o.Call("launch after the failures", cudaGraphLaunch(exec, r.s));
  o.Call("sync", cudaStreamSynchronize(r.s));
  o.Note("value", Format("value=%s", Word(r.d).c_str()));
  REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  REQUIRE_CUDA(cudaGraphDestroy(graph));
}

OBSERVE("update.by_capture", Once()) {
  Rig r(o);
  cudaEvent_t join;
  REQUIRE_CUDA(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  // A memset, two branches of one each, a memset after both, and perhaps one more.
  auto capture = [&](bool other_first, bool more) {
    cudaGraph_t graph;
    REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
    REQUIRE_CUDA(cudaMemsetAsync(r.d, 1, 64, r.s));
    REQUIRE_CUDA(cudaEventRecord(r.e2, r.s));
    REQUIRE_CUDA(cudaStreamWaitEvent(r.s2, r.e2, 0));
    if (other_first) REQUIRE_CUDA(cudaMemsetAsync(r.d + 128, 1, 64, r.s2));
    REQUIRE_CUDA(cudaMemsetAsync(r.d + 64, 1, 64, r.s));
    if (!other_first) REQUIRE_CUDA(cudaMemsetAsync(r.d + 128, 1, 64, r.s2));
    REQUIRE_CUDA(cudaEventRecord(join, r.s2));
    REQUIRE_CUDA(cudaStreamWaitEvent(r.s, join, 0));
    REQUIRE_CUDA(cudaMemsetAsync(r.d, 2, 256, r.s));
    if (more) REQUIRE_CUDA(cudaMemsetAsync(r.d, 3, 64, r.s));
    REQUIRE_CUDA(cudaStreamEndCapture(r.s, &graph));
    o.Note("captured", Format("nodes=%zu edges=%zu", CountNodes(graph), CountEdges(graph)));
    return graph;
  };
  cudaGraph_t first = capture(false, false), again = capture(false, false), swapped = capture(true, false),
              longer = capture(false, true);
  cudaGraphExec_t exec;
  REQUIRE_CUDA(cudaGraphInstantiate(&exec, first, 0));
  Update(o, "same calls again", exec, again);
  Update(o, "the two branches in the other call order", exec, swapped);
  Update(o, "one more call", exec, longer);
  REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  REQUIRE_CUDA(cudaEventDestroy(join));
  for (cudaGraph_t graph : {first, again, swapped, longer}) REQUIRE_CUDA(cudaGraphDestroy(graph));
}

}  // namespace conformance
