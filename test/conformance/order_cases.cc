// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The last error around a broken capture, and what captured work does when: not at the capture, at each launch, with
// the host memory of that moment.
#include <cstring>

#include "test/conformance/frame.h"

namespace conformance {

namespace {

// Breaks a capture on f.s, and leaves the last error as it is.
void BreakCapture(Streams& f) {
  Observer& o = f.o;
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, cudaStreamCaptureModeGlobal));
  void* memory = nullptr;
  (void)cudaMalloc(&memory, kBytes);
}

void NoteTwoErrors(Observer& o) {
  const int first = cudaGetLastError();
  o.Note("get", Format("%d %d", first, static_cast<int>(cudaGetLastError())));
}

OBSERVE("error.sticky", Once()) {
  Streams f(o);
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, cudaStreamCaptureModeGlobal));
  void* memory = nullptr;
  o.Call("cudaMalloc in capture", cudaMalloc(&memory, kBytes));
  const int first = Peek();
  o.Note("peek", Format("%d %d", first, Peek()));
  o.Call("memset after", f.Fill(f.s));
  o.Note("peek", Format("%d", Peek()));
  NoteTwoErrors(o);
  o.Call("memset after the error was read", f.Fill(f.s));
  ObserveEnd(o, "end", f.s);
  NoteTwoErrors(o);
  ObserveAfter(o, "after", f.s, f.memory);
  BreakCapture(f);
  ObserveEnd(o, "end, last error not read", f.s);
  o.Call("eager, last error not read", f.Fill(f.s));
  o.Call("eager sync, last error not read", cudaStreamSynchronize(f.s));
  NoteTwoErrors(o);
}

// One 32-bit word of device memory, in hexadecimal.
std::string Word(Observer& o, const char* memory) {
  unsigned int word = 0;
  REQUIRE_CUDA(cudaMemcpy(&word, memory, sizeof(word), cudaMemcpyDeviceToHost));
  return Format("value=%x", word);
}

// Instantiates, launches and waits; `observed` tells of the launch.
void Replay(Streams& f, cudaGraph_t graph, bool observed) {
  Observer& o = f.o;
  cudaGraphExec_t exec = nullptr;
  REQUIRE_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  const cudaError_t launch = cudaGraphLaunch(exec, f.s);
  if (observed) o.Call("launch", launch);
  REQUIRE_CUDA(launch);
  REQUIRE_CUDA(cudaStreamSynchronize(f.s));
  REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  REQUIRE_CUDA(cudaGraphDestroy(graph));
}

void FillIsNotRunAtCapture(Streams& f) {
  Observer& o = f.o;
  cudaGraph_t graph = nullptr;
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, cudaStreamCaptureModeThreadLocal));
  REQUIRE_CUDA(cudaMemsetAsync(f.memory, 7, kBytes, f.s));
  ObserveEnd(o, "end", f.s, &graph);
  o.Note("captured work ran at capture", Word(o, f.memory));
  Replay(f, graph, false);
  o.Note("after a launch", Word(o, f.memory));
}

OBSERVE("order.capture_and_eager", Once()) {
  Streams f(o);
  FillIsNotRunAtCapture(f);
  cudaGraph_t graph = nullptr;
  void* pinned = nullptr;
  static char pageable[kBytes];
  REQUIRE_CUDA(cudaMallocHost(&pinned, kBytes));

  std::memset(pinned, 1, kBytes);
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, cudaStreamCaptureModeThreadLocal));
  REQUIRE_CUDA(cudaMemcpyAsync(f.memory, pinned, kBytes, cudaMemcpyHostToDevice, f.s));
  ObserveEnd(o, "end h2d", f.s, &graph);
  std::memset(pinned, 2, kBytes);
  Replay(f, graph, false);
  o.Note("pinned h2d: host changed before the launch", Word(o, f.memory));

  std::memset(pageable, 3, kBytes);
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, cudaStreamCaptureModeThreadLocal));
  o.Call("pageable h2d in capture (R38)", cudaMemcpyAsync(f.memory, pageable, kBytes, cudaMemcpyHostToDevice, f.s));
  ObserveEnd(o, "end pageable h2d", f.s, &graph);
  std::memset(pageable, 4, kBytes);
  Replay(f, graph, true);
  o.Note("pageable h2d: host changed before the launch", Word(o, f.memory));

  REQUIRE_CUDA(cudaMemset(f.memory, 9, kBytes));
  REQUIRE_CUDA(cudaDeviceSynchronize());
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, cudaStreamCaptureModeThreadLocal));
  o.Call("pageable d2h in capture (R38)", cudaMemcpyAsync(pageable, f.memory, kBytes, cudaMemcpyDeviceToHost, f.s));
  ObserveEnd(o, "end pageable d2h", f.s, &graph);
  Replay(f, graph, true);
  unsigned int word = 0;
  std::memcpy(&word, pageable, sizeof(word));
  o.Note("pageable d2h after sync", Format("value=%x", word));
  REQUIRE_CUDA(cudaFreeHost(pinned));
}

}  // namespace

}  // namespace conformance
