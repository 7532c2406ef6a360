// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// How a capture begins: on which streams, with which modes, beside which work; and the ids that captures get.
#include "test/conformance/frame.h"

namespace conformance {

namespace {

// Begins, captures a fill, ends, and looks at what is left.
void BeginFillEnd(Streams& f, cudaStream_t stream) {
  Observer& o = f.o;
  const cudaError_t begin = cudaStreamBeginCapture(stream, o.mode());
  const std::string status = Status(stream);
  o.Call("begin", begin, Format("status=%s peek=%d", status.c_str(), Peek()));
  o.Call("memset", f.Fill(stream));
  ObserveEnd(o, "end", stream);
  ObserveAfter(o, "after", stream, f.memory, o.mode());
}

// The capture's id, and what cudaStreamGetCaptureInfo answered.
cudaError_t CaptureId(cudaStream_t stream, unsigned long long* id) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamGetCaptureInfo(stream, &status, id);
}

// A whole capture, for its id.
unsigned long long IdOfEmptyCapture(Streams& f) {
  Observer& o = f.o;
  unsigned long long id = 0;
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, cudaStreamCaptureModeGlobal));
  REQUIRE_CUDA(CaptureId(f.s, &id));
  ObserveEnd(o, "end", f.s);
  return id;
}

OBSERVE("begin.legacy", EachMode()) {
  Streams f(o);
  BeginFillEnd(f, cudaStreamLegacy);
}

OBSERVE("begin.per_thread", EachMode()) {
  Streams f(o);
  BeginFillEnd(f, cudaStreamPerThread);
}

OBSERVE("begin.blocking", EachMode()) {
  Streams f(o, cudaStreamDefault);
  BeginFillEnd(f, f.s);
}

OBSERVE("begin.nonblocking", EachMode()) {
  Streams f(o);
  BeginFillEnd(f, f.s);
}

OBSERVE("begin.invalid_mode", Once()) {
  Streams f(o);
  for (int mode : {3, 99, -1}) {
    const cudaError_t code = cudaStreamBeginCapture(f.s, static_cast<cudaStreamCaptureMode>(mode));
    const std::string status = Status(f.s);
    o.Call("begin", code, Format("mode=%d status=%s peek=%d", mode, status.c_str(), Peek()));
    (void)cudaGetLastError();
  }
  ObserveAfter(o, "after", f.s, f.memory);
}

OBSERVE("begin.busy_stream", Once()) {
  Streams f(o);
  Gate gate;
  o.Call("blocked host function", gate.Hold(f.s));
  const cudaError_t begin = cudaStreamBeginCapture(f.s, cudaStreamCaptureModeGlobal);
  o.Call("begin while work is pending", begin, "status=" + Status(f.s));
  REQUIRE_CUDA(f.Fill(f.s));
  ObserveEnd(o, "end while work is pending", f.s);
  const cudaError_t query = cudaStreamQuery(f.s);
  o.Call("query: eager work still pending", query, Format("peek=%d", Peek()));
  gate.Open();
  o.Call("sync", cudaStreamSynchronize(f.s));
  ObserveAfter(o, "after", f.s, f.memory);
}

OBSERVE("begin.thread_then_dies_global", Blocks({"GLOBAL"})) {
  Streams f(o);
  OnThread([&] {
    const cudaError_t begin = cudaStreamBeginCapture(f.s, o.mode());
    o.Call("other thread: begin", begin, "status=" + Status(f.s));
  });
  o.Note("state after the thread died", "status=" + Status(f.s));
  const cudaError_t fill = f.Fill(f.s);
  o.Call("memset from main", fill, "status=" + Status(f.s));
  void* memory = nullptr;
  const cudaError_t code = cudaMalloc(&memory, kBytes);
  o.Call("cudaMalloc from main", code, "status=" + Status(f.s));
  ObserveEnd(o, "end from main", f.s);
  (void)cudaGetLastError();
  ObserveAfter(o, "after", f.s, f.memory);
}

OBSERVE("info.ids", Once()) {
  Streams f(o);
  const unsigned long long first = IdOfEmptyCapture(f);
  const unsigned long long second = IdOfEmptyCapture(f);
  cudaStream_t s3 = nullptr;
  unsigned long long origin = 0, joined = 0, nested = 0, invalidated = 0;
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&s3, cudaStreamNonBlocking));
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, cudaStreamCaptureModeGlobal));
  REQUIRE_CUDA(CaptureId(f.s, &origin));
  f.Fork();
  o.Call("info on joined", CaptureId(f.s2, &joined));
  o.Call("nested begin", cudaStreamBeginCapture(s3, cudaStreamCaptureModeGlobal));
  o.Call("info on nested", CaptureId(s3, &nested));
  ObserveEnd(o, "end nested", s3);
  const bool distinct = first != second && second != origin && first != origin;
  o.Note("ids",
         Format("distinct=%d increasing=%d nonzero=%d joined_same=%d nested_differs=%d step=%llu", distinct,
                first < second && second < origin, first != 0, joined == origin, nested != origin, second - first));
  (void)cudaStreamSynchronize(f.s);  // invalidates
  (void)cudaGetLastError();
  o.Call("info on invalidated", CaptureId(f.s, &invalidated));
  o.Note("ids", Format("same_after_invalidation=%d", invalidated == origin));
  ObserveEnd(o, "end", f.s);
  (void)cudaGetLastError();
  REQUIRE_CUDA(cudaStreamDestroy(s3));
}

}  // namespace

}  // namespace conformance
