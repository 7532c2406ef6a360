// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Streams and events whose work is pending: a host function holds it back.
#include "test/conformance/rig.h"

#include <atomic>
#include <cstring>
#include <string>

namespace conformance {

OBSERVE("order.implicit", Once().InOwnProcess()) {
  Rig r(o);
  cudaStream_t b2;
  REQUIRE_CUDA(cudaStreamCreate(&b2));
  Gate gate;
  PROBE(gate.Hold(r.blocking));
  PROBE(cudaMemsetAsync(r.d, 1, 64, nullptr));
  PROBE(cudaStreamQuery(nullptr));
  PROBE(cudaStreamQuery(b2));
  PROBE(cudaMemsetAsync(r.d2, 1, 64, b2));
  PROBE_AS("blocking stream behind the legacy stream", cudaStreamQuery(b2));
  PROBE(cudaMemsetAsync(r.d2, 1, 64, r.s));
  PROBE_AS("non-blocking stream", cudaStreamSynchronize(r.s));
  PROBE(cudaMemsetAsync(r.d2, 1, 64, cudaStreamPerThread));
  PROBE_AS("per-thread stream behind the legacy stream", cudaStreamQuery(cudaStreamPerThread));
  gate.Open();
  PROBE(cudaDeviceSynchronize());
}

OBSERVE("order.legacy_holds", Once().InOwnProcess()) {
  Rig r(o);
  Gate gate;
  PROBE(gate.Hold(nullptr));
  PROBE_AS("blocking stream without work", cudaStreamQuery(r.blocking));
  PROBE(cudaMemsetAsync(r.d, 1, 64, r.blocking));
  PROBE(cudaStreamQuery(r.blocking));
  PROBE(cudaStreamQuery(r.s));
  PROBE(cudaMemsetAsync(r.d, 1, 64, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  PROBE(cudaEventRecord(r.e, r.blocking));
  PROBE(cudaEventQuery(r.e));
  gate.Open();
  PROBE(cudaEventSynchronize(r.e));
  PROBE(cudaEventQuery(r.e));
}

OBSERVE("order.per_thread", Once().InOwnProcess()) {
  Rig r(o);
  Gate gate;
  PROBE(gate.Hold(cudaStreamPerThread));
  PROBE(cudaStreamQuery(cudaStreamPerThread));
  cudaError_t other = cudaSuccess;
  OnThread([&] { other = cudaStreamQuery(cudaStreamPerThread); });
  o.Note("another thread's per-thread stream", Format("%d", other));
  PROBE(cudaMemsetAsync(r.d, 1, 64, nullptr));
  PROBE_AS("legacy stream behind the per-thread stream", cudaStreamQuery(nullptr));
  gate.Open();
  PROBE(cudaDeviceSynchronize());
}

OBSERVE("event.states", Once().InOwnProcess()) {
  Rig r(o);
  Gate gate;
  PROBE(gate.Hold(r.s));
  PROBE(cudaEventRecord(r.e, r.s));
  PROBE(cudaEventQuery(r.e));
  PROBE(cudaEventRecord(r.e, r.s2));
  PROBE_AS("recorded again on an idle stream", cudaEventSynchronize(r.e));
  PROBE(cudaEventQuery(r.e));
  cudaEvent_t t1, t2;
  REQUIRE_CUDA(cudaEventCreate(&t1));
  REQUIRE_CUDA(cudaEventCreate(&t2));
  PROBE(cudaEventRecord(t1, r.s2));
  PROBE(cudaEventRecord(t2, r.s));
  float ms;
  PROBE(cudaStreamSynchronize(r.s2));
  PROBE(cudaEventElapsedTime(&ms, t1, t2));
  PROBE(cudaEventElapsedTime(&ms, t2, t1));
  PROBE(cudaEventElapsedTime(&ms, t2, t2));
  PROBE(cudaStreamWaitEvent(r.s2, t2, 0));
  PROBE(cudaStreamQuery(r.s2));
  PROBE(cudaEventDestroy(t2));
  PROBE(cudaStreamQuery(r.s2));
  gate.Open();
  PROBE(cudaStreamSynchronize(r.s2));
  PROBE(cudaStreamQuery(r.s));
}

OBSERVE("event.wait_then_record", Once().InOwnProcess()) {
  Rig r(o);
  Gate gate;
  PROBE(cudaStreamWaitEvent(r.s2, r.e, 0));
  PROBE(gate.Hold(r.s));
  PROBE(cudaEventRecord(r.e, r.s));
  PROBE_AS("the earlier wait does not see the record", cudaStreamQuery(r.s2));
  PROBE(cudaStreamWaitEvent(r.s2, r.e, 0));
  PROBE(cudaStreamQuery(r.s2));
  PROBE(cudaEventRecord(r.e, r.s2));
  PROBE(cudaEventQuery(r.e));
  PROBE(cudaStreamWaitEvent(r.s, r.e, 0));
  gate.Open();
  PROBE(cudaStreamSynchronize(r.s));
  PROBE(cudaEventQuery(r.e));
}

OBSERVE("event.self_wait", Once().InOwnProcess()) {
  Rig r(o);
  Gate gate;
  PROBE(gate.Hold(r.s));
  PROBE(cudaEventRecord(r.e, r.s));
  PROBE(cudaStreamWaitEvent(r.s, r.e, 0));
  gate.Open();
  PROBE(cudaStreamSynchronize(r.s));
}

OBSERVE("stream.destroy_pending", Once().InOwnProcess()) {
  Rig r(o);
  cudaStream_t s;
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  Gate gate;
  PROBE(gate.Hold(s));
  PROBE(cudaMemsetAsync(r.d, 1, 64, s));
  PROBE(cudaEventRecord(r.e, s));
  PROBE(cudaStreamDestroy(s));
  PROBE(cudaEventQuery(r.e));
  gate.Open();
  PROBE(cudaEventSynchronize(r.e));
  o.Note("value", Format("%x", r.Value()));
}

OBSERVE("stream.callbacks", Once().InOwnProcess()) {
  Rig r(o);
  static std::atomic<int> count{0};
  static cudaError_t status = (cudaError_t)77;
  Gate gate;
  PROBE(gate.Hold(r.s));
  PROBE_AS("callback", cudaStreamAddCallback(
                           r.s,
                           [](cudaStream_t, cudaError_t e, void*) {
                             status = e;
                             ++count;
                           },
                           nullptr, 0));
  o.Note("before", Format("%d", count.load()));
  gate.Open();
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("after", Format("%d status=%d", count.load(), status));
  static cudaError_t inside = (cudaError_t)77;
  PROBE_AS("host function that allocates", cudaLaunchHostFunc(
                                               r.s,
                                               [](void*) {
                                                 void* p;
                                                 inside = cudaMalloc(&p, 16);
                                               },
                                               nullptr));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("cudaMalloc inside a host function", Format("%d", inside));
  static cudaError_t query = (cudaError_t)77;
  PROBE_AS("host function that asks for the device", cudaLaunchHostFunc(
                                                         r.s,
                                                         [](void*) {
                                                           int d;
                                                           query = cudaGetDevice(&d);
                                                         },
                                                         nullptr));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("cudaGetDevice inside a host function", Format("%d", query));
}

OBSERVE("stream.copies_pending", Once().InOwnProcess()) {
  Rig r(o);
  memset(r.h, 1, 64);
  memset(r.pageable, 2, 64);
  Gate gate;
  PROBE(gate.Hold(r.s));
  PROBE(cudaMemcpyAsync(r.d, r.pageable, 64, cudaMemcpyHostToDevice, r.s));
  memset(r.pageable, 9, 64);
  PROBE(cudaMemcpyAsync(r.d2, r.h, 64, cudaMemcpyHostToDevice, r.s));
  memset(r.h, 8, 64);
  PROBE(cudaStreamQuery(r.s));
  gate.Open();
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("pageable source as it was at the call", Format("%x", r.Value()));
  int v;
  REQUIRE_CUDA(cudaMemcpy(&v, r.d2, 4, cudaMemcpyDeviceToHost));
  o.Note("pinned source as it was at the copy", Format("%x", v));
}

OBSERVE("stream.many_priorities", Once().InOwnProcess()) {
  Rig r(o);
  int p;
  cudaStream_t s;
  for (int want = 1; want >= -6; --want) {
    std::string n = Format("priority %d", want);
    p = 99;
    PROBE_AS(n.c_str(), cudaStreamCreateWithPriority(&s, 0, want));
    PROBE(cudaStreamGetPriority(s, &p));
    o.Note("is", Format("%d", p));
  }
}

OBSERVE("error.last", Once().InOwnProcess()) {
  Rig r(o);
  void* p;
  cudaMalloc(nullptr, 1);
  o.Note("peek keeps", Format("%d %d", cudaPeekAtLastError(), cudaPeekAtLastError()));
  (void)cudaGetLastError();
  cudaMalloc(nullptr, 1);
  cudaMalloc(&p, 16);
  o.Note("a success does not clear", Format("%d", cudaGetLastError()));
  cudaMalloc(nullptr, 1);
  cudaSetDevice(99);
  o.Note("the later error stays", Format("%d", cudaGetLastError()));
  cudaMalloc(nullptr, 1);
  OnThread([&] { o.Note("another thread", Format("%d", cudaPeekAtLastError())); });
  o.Note("this thread", Format("%d", cudaGetLastError()));
  Gate gate;
  gate.Hold(r.s);
  cudaMalloc(nullptr, 1);
  cudaStreamQuery(r.s);
  o.Note("not ready does not replace", Format("%d", cudaGetLastError()));
  gate.Open();
  cudaStreamSynchronize(r.s);
}

OBSERVE("order.device_reset", Once().InOwnProcess()) {
  Rig* r = new Rig(o);
  cudaEvent_t e = r->e;
  int v = 7;
  PROBE(cudaEventRecord(e, r->s));
  PROBE(cudaDeviceReset());
  PROBE_AND(cudaGetDevice(&v), "v=%d", v);
  void* p;
  PROBE(cudaMalloc(&p, 16));
  PROBE(cudaFree(p));
  PROBE(cudaDeviceSynchronize());
  cudaStream_t s;
  PROBE(cudaStreamCreate(&s));
  PROBE(cudaStreamSynchronize(s));
}
OBSERVE("order.after_reset_event", Once().InOwnProcess()) {
  Rig* r = new Rig(o);
  PROBE(cudaDeviceReset());
  PROBE(cudaEventQuery(r->e));
}

OBSERVE("order.after_reset_stream", Once().InOwnProcess()) {
  Rig* r = new Rig(o);
  PROBE(cudaDeviceReset());
  PROBE(cudaStreamQuery(r->s));
}

OBSERVE("order.after_reset_memory", Once().InOwnProcess()) {
  Rig* r = new Rig(o);
  PROBE(cudaDeviceReset());
  PROBE(cudaMemset(r->d, 0, 16));
  PROBE(cudaFree(r->d));
}
OBSERVE("order.reset_in_capture", Once().InOwnProcess()) {
  Rig* r = new Rig(o);
  REQUIRE_CUDA(cudaStreamBeginCapture(r->s, cudaStreamCaptureModeRelaxed));
  PROBE(cudaDeviceReset());
  cudaStreamCaptureStatus st = static_cast<cudaStreamCaptureStatus>(7);
  PROBE_AND(cudaStreamIsCapturing(r->s, &st), "status=%d", st);
}
OBSERVE("order.first_calls", Once().InOwnProcess()) {
  // Nothing has made a context yet.
  unsigned f = 77;
  PROBE_AND(cudaGetDeviceFlags(&f), "flags=%u", f);
  PROBE(cudaSetDeviceFlags(4));
  PROBE_AND(cudaGetDeviceFlags(&f), "flags=%u", f);
  cudaStreamCaptureStatus st = (cudaStreamCaptureStatus)7;
  PROBE_AND(cudaStreamIsCapturing(nullptr, &st), "status=%d", st);
  cudaPointerAttributes a;
  int v;
  PROBE_AND(cudaPointerGetAttributes(&a, &v), "type=%d", a.type);
  PROBE(cudaEventQuery(nullptr));
  PROBE(cudaGraphDestroy(nullptr));
  PROBE(cudaDeviceSynchronize());
}

}  // namespace conformance
