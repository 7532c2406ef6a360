// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Streams and events that are destroyed during a capture, and two captures that meet.
#include "test/conformance/frame.h"

namespace conformance {

namespace {

// The origin stream goes away while it captures.
void DestroyOrigin(Streams& f, const std::string& state) {
  Observer& o = f.o;
  const cudaError_t code = cudaStreamDestroy(f.s);
  f.s = nullptr;
  const int peek = Peek();
  o.Call("destroy origin", code,
         state.empty() ? Format("peek=%d", peek) : Format("%s=%s peek=%d", state.c_str(), Status(f.s2).c_str(), peek));
}

// Is anything left of the capture that would refuse an unsafe or a forbidden call?
void ObserveUnsafeCalls(Observer& o) {
  void* memory = nullptr;
  o.Call("cudaMalloc afterwards", cudaMalloc(&memory, kBytes));
  o.Call("device sync afterwards", cudaDeviceSynchronize());
  REQUIRE_CUDA(cudaFree(memory));
}

void DestroyOriginWithFork(Observer& o) {
  Streams f(o);
  f.Begin(o.mode());
  f.Fork();
  DestroyOrigin(f, "fork");
  o.Call("memset on fork", f.Fill(f.s2));
  o.Note("state", "fork=" + Status(f.s2));
  ObserveEnd(o, "end on fork", f.s2);
  (void)cudaGetLastError();
  ObserveUnsafeCalls(o);
  ObserveAfter(o, "after fork", f.s2, f.memory);
}

OBSERVE("destroy.origin_with_fork_global", Blocks({"GLOBAL"})) { DestroyOriginWithFork(o); }

OBSERVE("destroy.origin_with_fork_threadlocal", Blocks({"THREAD_LOCAL"})) { DestroyOriginWithFork(o); }

OBSERVE("destroy.origin_with_fork_relaxed", Blocks({"RELAXED"})) { DestroyOriginWithFork(o); }

void DestroyOriginAlone(Observer& o) {
  Streams f(o);
  f.Begin(o.mode());
  DestroyOrigin(f, "");
  ObserveUnsafeCalls(o);
  ObserveAfter(o, "after", f.s2, f.memory);
}

OBSERVE("destroy.origin_alone_threadlocal", Blocks({"THREAD_LOCAL"})) { DestroyOriginAlone(o); }

OBSERVE("destroy.origin_alone_relaxed", Blocks({"RELAXED"})) { DestroyOriginAlone(o); }

OBSERVE("destroy.event", EachMode()) {
  Streams f(o);
  f.Begin(o.mode());
  f.Fork();
  const cudaError_t code = cudaEventDestroy(f.fork);
  f.fork = nullptr;
  o.Call("destroy event", code, Format("origin=%s fork=%s", Status(f.s).c_str(), Status(f.s2).c_str()));
  o.Call("fork work", cudaMemsetAsync(f.memory2, 2, kBytes, f.s2));
  REQUIRE_CUDA(cudaEventRecord(f.join, f.s2));
  REQUIRE_CUDA(cudaStreamWaitEvent(f.s, f.join, 0));
  o.Call("destroy join event", cudaEventDestroy(f.join));
  f.join = nullptr;
  ObserveEnd(o, "end", f.s);
  ObserveAfter(o, "after", f.s, f.memory);
}

OBSERVE("merge.two_captures", EachMode()) {
  Streams f(o);
  const auto states = [&] { return Format("s=%s s2=%s", Status(f.s).c_str(), Status(f.s2).c_str()); };
  o.Call("begin 1", cudaStreamBeginCapture(f.s, o.mode()));
  const cudaError_t begin = cudaStreamBeginCapture(f.s2, o.mode());
  o.Call("begin 2", begin, states());
  REQUIRE_CUDA(f.Fill(f.s));
  REQUIRE_CUDA(cudaMemsetAsync(f.memory2, 2, kBytes, f.s2));
  REQUIRE_CUDA(cudaEventRecord(f.fork, f.s2));
  const cudaError_t wait = cudaStreamWaitEvent(f.s, f.fork, 0);
  const int peek = Peek();
  o.Call("wait on event of the other capture", wait, Format("%s peek=%d", states().c_str(), peek));
  ObserveEnd(o, "end 1", f.s);
  o.Note("state", states());
  ObserveEnd(o, "end 2", f.s2);
  ObserveAfter(o, "after 1", f.s, f.memory);
  ObserveAfter(o, "after 2", f.s2, f.memory);
}

}  // namespace

}  // namespace conformance
