// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Rules of capture that the first record does not show: waits on what was recorded before, threads that die, joined
// streams that are destroyed, the capturing graph's handle, and what eager work waits for.
#include "test/conformance/capture_frame.h"

namespace conformance {

namespace {

const std::vector<CaptureRow> kRules = {
    {"cudaStreamWaitEvent_pre", [](CaptureFrame& f) { return cudaStreamWaitEvent(f.s, f.before, 0); }},
    {"cudaStreamAttachMemAsync_capturing",
     [](CaptureFrame& f) { return cudaStreamAttachMemAsync(f.s, f.device, 0, cudaMemAttachSingle); }},
};
const CaptureCases rules("probe.cap.", kRules);

// R23: the fork's stream goes away during the capture, with or without work, joined or not.
void DestroyJoinedStream(Observer& o, bool work, bool joined) {
  Streams f(o);
  f.Begin(o.mode());
  f.Fork();
  if (work) REQUIRE_CUDA(cudaMemsetAsync(f.memory2, 2, kBytes, f.s2));
  REQUIRE_CUDA(cudaEventRecord(f.join, f.s2));
  if (joined) REQUIRE_CUDA(cudaStreamWaitEvent(f.s, f.join, 0));
  const cudaError_t code = cudaStreamDestroy(f.s2);
  f.s2 = nullptr;
  const int peek = Peek();
  o.Call("destroy fork", code, Format("origin=%s peek=%d", Status(f.s).c_str(), peek));
  ObserveEnd(o, "end", f.s);
  ObserveAfter(o, "after", f.s, f.memory);
}

OBSERVE("probe.destroy.fork_unjoined", EachMode()) { DestroyJoinedStream(o, true, false); }

OBSERVE("probe.destroy.fork_without_work", EachMode()) { DestroyJoinedStream(o, false, false); }

OBSERVE("probe.destroy.fork_joined", EachMode()) { DestroyJoinedStream(o, true, true); }

// The stream is gone, its event joins what it did.
OBSERVE("probe.destroy.fork_joined_later", EachMode()) {
  Streams f(o);
  f.Begin(o.mode());
  f.Fork();
  REQUIRE_CUDA(cudaMemsetAsync(f.memory2, 2, kBytes, f.s2));
  REQUIRE_CUDA(cudaEventRecord(f.join, f.s2));
  REQUIRE_CUDA(cudaStreamDestroy(f.s2));
  f.s2 = nullptr;
  o.Call("join", cudaStreamWaitEvent(f.s, f.join, 0));
  ObserveEnd(o, "end", f.s);
  ObserveAfter(o, "after", f.s, f.memory);
}

OBSERVE("probe.begin.thread_then_dies", EachMode()) {
  Streams f(o);
  OnThread([&] { o.Call("other thread: begin", cudaStreamBeginCapture(f.s, o.mode())); });
  o.Note("state after the thread died", "status=" + Status(f.s));
  o.Call("memset from main", f.Fill(f.s));
  ObserveEnd(o, "end from main", f.s);
  ObserveEnd(o, "second end from main", f.s);
  ObserveAfter(o, "after", f.s, f.memory);
}

// R10: the handle that cudaStreamGetCaptureInfo gave, after the capture was broken and ended.
OBSERVE("probe.capture.dead_graph_handle", Once().InOwnProcess()) {
  Streams f(o);
  f.Begin(cudaStreamCaptureModeThreadLocal);
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
  size_t nodes = 0;
  REQUIRE_CUDA(cudaStreamGetCaptureInfo(f.s, &status, nullptr, &graph, nullptr, nullptr, nullptr));
  o.Probe("nodes while capturing", [&] { return cudaGraphGetNodes(graph, nullptr, &nodes); });
  (void)cudaStreamSynchronize(f.s);  // invalidates
  (void)cudaGetLastError();
  cudaGraph_t none = nullptr;
  (void)cudaStreamEndCapture(f.s, &none);
  (void)cudaGetLastError();
  o.Probe("nodes after the end", [&] { return cudaGraphGetNodes(graph, nullptr, &nodes); });
  o.Probe("destroy after the end", [&] { return cudaGraphDestroy(graph); });
}

// Nowhere to put the old mode.
OBSERVE("probe.mode.exchange_null", Once().InOwnProcess()) {
  Streams f(o);
  o.Probe("exchange", [] { return cudaThreadExchangeStreamCaptureMode(nullptr); });
}

// R25: neither the capture nor a launch of its graph elsewhere comes between eager work of the capturing stream.
OBSERVE("probe.order.severed", Once()) {
  Streams f(o);
  Gate gate;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, cudaStreamCaptureModeThreadLocal));
  REQUIRE_CUDA(gate.Hold(f.s));
  ObserveEnd(o, "end", f.s, &graph);
  o.Call("query of the stream that captured", cudaStreamQuery(f.s));
  REQUIRE_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  o.Call("launch on another stream", cudaGraphLaunch(exec, f.s2));
  o.Call("eager work", f.Fill(f.s));
  o.Call("eager work is done", cudaStreamSynchronize(f.s));
  o.Call("query of the launch", cudaStreamQuery(f.s2));
  gate.Open();
  o.Call("launch is done", cudaStreamSynchronize(f.s2));
  REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  REQUIRE_CUDA(cudaGraphDestroy(graph));
}

// R27, R39: memory that relaxed mode allocated beside the capture is no node, and the graph uses it all the same.
OBSERVE("probe.memory.relaxed_allocation", Once()) {
  Streams f(o);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  void* memory = nullptr;
  unsigned int word = 0;
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, cudaStreamCaptureModeRelaxed));
  o.Call("allocate", cudaMalloc(&memory, kBytes));
  o.Call("memset", cudaMemsetAsync(memory, 5, kBytes, f.s));
  ObserveEnd(o, "end", f.s, &graph);
  REQUIRE_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  o.Call("launch", cudaGraphLaunch(exec, f.s));
  REQUIRE_CUDA(cudaStreamSynchronize(f.s));
  REQUIRE_CUDA(cudaMemcpy(&word, memory, sizeof(word), cudaMemcpyDeviceToHost));
  o.Note("after the launch", Format("value=%x", word));
  REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  REQUIRE_CUDA(cudaGraphDestroy(graph));
  REQUIRE_CUDA(cudaFree(memory));
}

}  // namespace

}  // namespace conformance
