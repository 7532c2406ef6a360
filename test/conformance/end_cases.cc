// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// How a capture ends: where, from which thread, with forks open, after it was invalidated; and what its events are
// worth afterwards.
#include "test/conformance/frame.h"

namespace conformance {

namespace {

void NoteStates(Streams& f) {
  f.o.Note("state", Format("origin=%s fork=%s", Status(f.s).c_str(), Status(f.s2).c_str()));
}

OBSERVE("end.never_begun", Once()) {
  Streams f(o);
  ObserveEnd(o, "end nonblocking", f.s);
  ObserveAfter(o, "after", f.s, f.memory);
  ObserveEnd(o, "end NULL stream", nullptr);
  ObserveEnd(o, "end legacy", cudaStreamLegacy);
  ObserveEnd(o, "end per-thread", cudaStreamPerThread);
  o.Call("end(NULL graph) never begun", cudaStreamEndCapture(f.s, nullptr));
}

OBSERVE("end.twice", EachMode()) {
  Streams f(o);
  f.Begin(o.mode());
  ObserveEnd(o, "end", f.s);
  ObserveEnd(o, "second end", f.s);
  ObserveAfter(o, "after", f.s, f.memory);
}

OBSERVE("end.empty", EachMode()) {
  Streams f(o);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, o.mode()));
  ObserveEnd(o, "end", f.s, &graph);
  o.Call("instantiate", cudaGraphInstantiate(&exec, graph, 0));
  o.Call("launch", cudaGraphLaunch(exec, f.s));
  o.Call("sync", cudaStreamSynchronize(f.s));
  ObserveAfter(o, "after", f.s, f.memory);
  REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  REQUIRE_CUDA(cudaGraphDestroy(graph));
}

// Another thread may submit work, and ends the capture.
void EndOnOtherThread(Observer& o, bool submits) {
  Streams f(o);
  f.Begin(o.mode());
  OnThread([&] {
    if (submits) o.Call("other thread: memset", f.Fill(f.s));
    ObserveEnd(o, "other thread: end", f.s);
    const int last = cudaGetLastError();
    o.Note("other thread", Format("last=%d %d", last, static_cast<int>(cudaGetLastError())));
  });
  const std::string status = Status(f.s);
  o.Note("state", Format("status=%s peek=%d", status.c_str(), Peek()));
  ObserveEnd(o, "origin thread: end", f.s);
  ObserveAfter(o, "after", f.s, f.memory);
}

OBSERVE("end.other_thread", EachMode()) { EndOnOtherThread(o, false); }

OBSERVE("end.other_thread_submits", EachMode()) { EndOnOtherThread(o, true); }

OBSERVE("end.other_thread_only_submits", EachMode()) {
  Streams f(o);
  f.Begin(o.mode());
  OnThread([&] {
    o.Call("other thread: memset", f.Fill(f.s));
    o.Note("state", "status=" + Status(f.s));
  });
  const std::string status = Status(f.s);
  o.Note("state", Format("status=%s peek=%d", status.c_str(), Peek()));
  ObserveEnd(o, "origin thread: end", f.s);
  ObserveAfter(o, "after", f.s, f.memory);
}

OBSERVE("end.wrong_stream", EachMode()) {
  Streams f(o);
  const auto note_states = [&] {
    o.Note("state", Format("origin=%s joined=%s", Status(f.s).c_str(), Status(f.s2).c_str()));
  };
  f.Begin(o.mode());
  ObserveEnd(o, "end on an idle stream", f.s2);
  o.Note("state", "origin=" + Status(f.s));
  f.Fork();
  ObserveEnd(o, "end on a joined stream", f.s2);
  note_states();
  ObserveEnd(o, "end on the origin", f.s);
  note_states();
  ObserveAfter(o, "after origin", f.s, f.memory);
  ObserveAfter(o, "after joined", f.s2, f.memory);
}

void EndUnjoined(Observer& o, bool work) {
  Streams f(o);
  f.Begin(o.mode());
  f.Fork();
  if (work) o.Call("fork work", cudaMemsetAsync(f.memory2, 2, kBytes, f.s2));
  NoteStates(f);
  ObserveEnd(o, "end", f.s);
  NoteStates(f);
  (void)cudaGetLastError();
  const cudaError_t query = cudaEventQuery(f.fork);
  o.Call("query event of the failed capture", query, Format("peek=%d", Peek()));
  o.Call("idle stream waits on event of the failed capture", cudaStreamWaitEvent(f.s2, f.fork, 0));
  NoteStates(f);
  (void)cudaGetLastError();
  ObserveAfter(o, "after origin", f.s, f.memory);
  ObserveAfter(o, "after fork", f.s2, f.memory);
  o.Call("event recorded again", cudaEventRecord(f.fork, f.s));
  o.Call("event synchronized", cudaEventSynchronize(f.fork));
}

OBSERVE("end.unjoined_nowork", EachMode()) { EndUnjoined(o, false); }

OBSERVE("end.unjoined_work", EachMode()) { EndUnjoined(o, true); }

OBSERVE("end.events_of_ended", EachMode()) {
  Streams f(o);
  cudaGraph_t graph = nullptr;
  f.Begin(o.mode());
  REQUIRE_CUDA(cudaEventRecord(f.fork, f.s));
  ObserveEnd(o, "end", f.s, &graph);
  const cudaError_t query = cudaEventQuery(f.fork);
  o.Call("query event of an ended capture", query, Format("peek=%d", Peek()));
  o.Call("synchronize event of an ended capture", cudaEventSynchronize(f.fork));
  cudaError_t wait = cudaStreamWaitEvent(f.s2, f.fork, 0);
  o.Call("idle stream waits on event of an ended capture", wait, "status=" + Status(f.s2));
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, o.mode()));
  wait = cudaStreamWaitEvent(f.s, f.fork, 0);
  o.Call("next capture waits on event of an ended capture", wait, "status=" + Status(f.s));
  ObserveEnd(o, "end 2", f.s);
  REQUIRE_CUDA(cudaGraphDestroy(graph));
  o.Call("idle stream waits on event after its graph was destroyed", cudaStreamWaitEvent(f.s2, f.fork, 0));
}

// What each call answers on the streams of an invalidated capture.
void UseInvalidated(Streams& f) {
  Observer& o = f.o;
  o.Call("memset on invalidated origin", f.Fill(f.s));
  o.Call("memset on invalidated fork", f.Fill(f.s2));
  o.Call("record on invalidated", cudaEventRecord(f.join, f.s));
  o.Call("wait on invalidated", cudaStreamWaitEvent(f.s, f.join, 0));
  o.Call("host function on invalidated", cudaLaunchHostFunc(f.s, Nothing, nullptr));
  o.Call("sync on invalidated", cudaStreamSynchronize(f.s));
  o.Call("query on invalidated", cudaStreamQuery(f.s));
  o.Call("begin on invalidated", cudaStreamBeginCapture(f.s, o.mode()));
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  const cudaGraph_t untouched = reinterpret_cast<cudaGraph_t>(&id);
  cudaGraph_t graph = untouched;
  size_t dependencies = 99;
  const cudaError_t code = cudaStreamGetCaptureInfo(f.s, &status, &id, &graph, nullptr, nullptr, &dependencies);
  o.Call("GetCaptureInfo on invalidated", code,
         Format("status=%d id=%s graph=%s deps=%zu", static_cast<int>(status), id == 0 ? "zero" : "set",
                graph == untouched ? "untouched" : "changed", dependencies));
}

OBSERVE("end.after_invalidation", EachMode()) {
  Streams f(o);
  cudaStream_t idle = nullptr;
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&idle, cudaStreamNonBlocking));
  f.Begin(o.mode());
  f.Fork();
  const cudaError_t code = cudaStreamSynchronize(f.s);
  const int peek = Peek();
  o.Call("sync of the capturing stream", code,
         Format("origin=%s fork=%s peek=%d", Status(f.s).c_str(), Status(f.s2).c_str(), peek));
  UseInvalidated(f);
  o.Call("idle stream waits on event of invalidated capture (R19)", cudaStreamWaitEvent(idle, f.fork, 0));
  o.Note("state", "idle=" + Status(idle));
  o.Call("query event of invalidated capture", cudaEventQuery(f.fork));
  ObserveEnd(o, "end", f.s);
  NoteStates(f);
  o.Call("query event after the end", cudaEventQuery(f.fork));
  o.Call("idle stream waits on event after the end", cudaStreamWaitEvent(idle, f.fork, 0));
  ObserveEnd(o, "second end", f.s);
  ObserveAfter(o, "after origin", f.s, f.memory);
  ObserveAfter(o, "after fork", f.s2, f.memory);
  REQUIRE_CUDA(cudaStreamDestroy(idle));
}

OBSERVE("end.unsafe_while_invalidated", EachMode()) {
  Streams f(o);
  void* memory = nullptr;
  f.Begin(o.mode());
  (void)cudaStreamSynchronize(f.s);  // invalidates
  cudaError_t code = cudaMalloc(&memory, kBytes);
  o.Call("cudaMalloc while a capture is invalidated", code, "status=" + Status(f.s));
  o.Call("cudaDeviceSynchronize while a capture is invalidated", cudaDeviceSynchronize());
  ObserveEnd(o, "end", f.s);
  void* later = nullptr;
  code = cudaMalloc(&later, kBytes);
  o.Call("cudaMalloc after the end", code, Format("ptr=%s", SetOrNull(later)));
  ObserveAfter(o, "after", f.s, f.memory);
  REQUIRE_CUDA(cudaFree(memory));
  REQUIRE_CUDA(cudaFree(later));
}

}  // namespace

}  // namespace conformance
