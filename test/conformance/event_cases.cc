// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Events and what waits for them.
#include "test/conformance/rig.h"

namespace conformance {

OBSERVE("event.pending", Once()) {
  Rig r(o);
  cudaStream_t busy;
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
  cudaEvent_t before, behind;
  REQUIRE_CUDA(cudaEventCreate(&before));
  REQUIRE_CUDA(cudaEventCreate(&behind));
  o.Call("record before the gate", cudaEventRecord(before, busy));
  o.Call("synchronize", cudaEventSynchronize(before));
  Gate gate;
  o.Call("gate", gate.Hold(busy));
  o.Call("record behind the gate", cudaEventRecord(behind, busy));
  cudaError_t code = cudaEventQuery(behind);
  o.Call("query pending", code, Format("peek=%d", Peek()));
  NoteLast(o, "last after a not-ready query");
  code = cudaStreamQuery(busy);
  o.Call("stream query pending", code, Format("peek=%d", Peek()));
  float ms = 0;
  code = cudaEventElapsedTime(&ms, before, behind);
  o.Call("elapsed pending", code, Format("peek=%d", Peek()));
  o.Call("other stream waits", cudaStreamWaitEvent(r.s2, behind, 0));
  o.Call("other stream query", cudaStreamQuery(r.s2));
  o.Call("legacy query while a non-blocking stream is busy", cudaStreamQuery(nullptr));
  o.Call("destroy pending event", cudaEventDestroy(behind));
  o.Call("other stream query after the destroy", cudaStreamQuery(r.s2));
  o.Call("destroy busy stream", cudaStreamDestroy(busy));
  o.Call("other stream query after the stream is gone", cudaStreamQuery(r.s2));
  gate.Open();
  o.Call("other stream sync", cudaStreamSynchronize(r.s2));
  o.Call("other stream query", cudaStreamQuery(r.s2));
  REQUIRE_CUDA(cudaEventDestroy(before));
}

OBSERVE("event.recorded_again", Once()) {
  Rig r(o);
  o.Call("record on an idle stream", cudaEventRecord(r.e, r.s));
  o.Call("wait", cudaStreamWaitEvent(r.s2, r.e, 0));
  Gate gate;
  o.Call("gate", gate.Hold(r.s));
  o.Call("record again behind the gate", cudaEventRecord(r.e, r.s));
  o.Call("the first waiter is not held", cudaStreamSynchronize(r.s2));
  o.Call("query", cudaEventQuery(r.e));
  gate.Open();
  o.Call("sync", cudaStreamSynchronize(r.s));
}

OBSERVE("event.arguments", Once()) {
  Rig r(o);
  cudaEvent_t e = nullptr;
  cudaStream_t s = nullptr;
  float ms = 0;
  o.Call("create bad flags", cudaEventCreateWithFlags(&e, 0x80));
  o.Call("create interprocess with timing", cudaEventCreateWithFlags(&e, cudaEventInterprocess));
  o.Call("create blocking sync", cudaEventCreateWithFlags(&e, cudaEventBlockingSync));
  o.Call("create NULL", cudaEventCreate(nullptr));
  o.Call("record NULL", cudaEventRecord(nullptr, r.s));
  o.Call("query NULL", cudaEventQuery(nullptr));
  o.Call("synchronize NULL", cudaEventSynchronize(nullptr));
  o.Call("destroy NULL", cudaEventDestroy(nullptr));
  o.Call("wait NULL", cudaStreamWaitEvent(r.s, nullptr, 0));
  o.Call("wait bad flags", cudaStreamWaitEvent(r.s, e, 0x80));
  o.Call("record bad flags", cudaEventRecordWithFlags(e, r.s, 0x80));
  o.Call("elapsed NULL", cudaEventElapsedTime(&ms, nullptr, nullptr));
  o.Call("destroy NULL stream", cudaStreamDestroy(nullptr));
  o.Call("destroy legacy stream", cudaStreamDestroy(cudaStreamLegacy));
  o.Call("destroy per-thread stream", cudaStreamDestroy(cudaStreamPerThread));
  o.Call("stream create NULL", cudaStreamCreate(nullptr));
  o.Call("stream create bad flags", cudaStreamCreateWithFlags(&s, 0x80));
  o.Call("host function NULL", cudaLaunchHostFunc(r.s, nullptr, nullptr));
  NoteLast(o, "last");
  REQUIRE_CUDA(cudaEventDestroy(e));
}

}  // namespace conformance
