// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Captures with two devices.
#include "test/conformance/rig.h"

namespace conformance {

namespace {

void State(Observer& o, cudaStream_t s) { o.Note("state", "status=" + Status(s)); }

}  // namespace

OBSERVE("multi.begin_on_other_device", Once().InOwnProcess().OnDevices(2)) {
  Two t(o);
  REQUIRE_CUDA(cudaSetDevice(1));
  o.Call("begin on device 0's stream, current 1", cudaStreamBeginCapture(t.s[0], cudaStreamCaptureModeThreadLocal));
  o.Call("memset of 0's memory", cudaMemsetAsync(t.d[0], 1, 64, t.s[0]));
  State(o, t.s[0]);
  o.Call("memset of 1's memory on 0's stream", cudaMemsetAsync(t.d[1], 1, 64, t.s[0]));
  State(o, t.s[0]);
  cudaGraph_t graph = EndCapture(o, "end", t.s[0]);
  cudaGraphExec_t exec = nullptr;
  o.Call("instantiate, current 1", cudaGraphInstantiate(&exec, graph, 0));
  o.Call("launch on 0's stream, current 1", cudaGraphLaunch(exec, t.s[0]));
  o.Call("sync", cudaStreamSynchronize(t.s[0]));
  o.Call("launch on 1's stream", cudaGraphLaunch(exec, t.s[1]));
  o.Call("sync", cudaStreamSynchronize(t.s[1]));
  REQUIRE_CUDA(cudaSetDevice(0));
  o.Call("launch on 1's stream, current 0", cudaGraphLaunch(exec, t.s[1]));
  o.Call("sync", cudaStreamSynchronize(t.s[1]));
  int device = 9;
  o.Call("stream device", cudaStreamGetDevice(t.s[1], &device));
  o.Note("device", Format("value=%d", device));
  o.Call("eager memset on 1's stream, current 0", cudaMemsetAsync(t.d[1], 1, 64, t.s[1]));
  o.Call("set device 99", cudaSetDevice(99));
  o.Call("set device -1", cudaSetDevice(-1));
  NoteLast(o, "last");
  REQUIRE_CUDA(cudaGraphDestroy(graph));
}

OBSERVE("multi.peer_copy", Once().InOwnProcess().OnDevices(2)) {
  Two t(o);
  auto capture = [&] {
    o.Call("begin", cudaStreamBeginCapture(t.s[0], cudaStreamCaptureModeThreadLocal));
    o.Call("cudaMemcpyPeerAsync", cudaMemcpyPeerAsync(t.d[1], 1, t.d[0], 0, 64, t.s[0]));
    State(o, t.s[0]);
    o.Call("cudaMemcpyAsync default", cudaMemcpyAsync(t.d[1], t.d[0], 64, cudaMemcpyDefault, t.s[0]));
    o.Call("cudaMemcpyAsync d2d", cudaMemcpyAsync(t.d[1], t.d[0], 64, cudaMemcpyDeviceToDevice, t.s[0]));
    cudaGraph_t graph = EndCapture(o, "end", t.s[0]);
    cudaGraphExec_t exec = nullptr;
    o.Call("instantiate", cudaGraphInstantiate(&exec, graph, 0));
    o.Call("launch", cudaGraphLaunch(exec, t.s[0]));
    o.Call("sync", cudaStreamSynchronize(t.s[0]));
  };
  capture();
  int can = 9;
  o.Call("can access peer", cudaDeviceCanAccessPeer(&can, 0, 1));
  o.Note("peer", Format("can=%d", can));
  o.Call("enable peer access", cudaDeviceEnablePeerAccess(1, 0));
  o.Call("enable peer access again", cudaDeviceEnablePeerAccess(1, 0));
  capture();
  o.Call("begin", cudaStreamBeginCapture(t.s[0], cudaStreamCaptureModeThreadLocal));
  o.Call("disable peer access in capture", cudaDeviceDisablePeerAccess(1));
  State(o, t.s[0]);
  o.Call("enable peer access in capture (R49)", cudaDeviceEnablePeerAccess(1, 0));
  State(o, t.s[0]);
  EndCapture(o, "end", t.s[0]);
}

OBSERVE("multi.join_across_devices", Once().InOwnProcess().OnDevices(2)) {
  Two t(o);
  o.Call("begin", cudaStreamBeginCapture(t.s[0], cudaStreamCaptureModeThreadLocal));
  o.Call("record 1's event on 0's stream", cudaEventRecord(t.e[1], t.s[0]));
  State(o, t.s[0]);
  REQUIRE_CUDA(cudaMemsetAsync(t.d[0], 1, 64, t.s[0]));
  o.Call("record 0's event", cudaEventRecord(t.e[0], t.s[0]));
  o.Call("1's stream waits", cudaStreamWaitEvent(t.s[1], t.e[0], 0));
  o.Note("state", "s1=" + Status(t.s[1]));
  o.Call("memset on 1's stream, current 0", cudaMemsetAsync(t.d[1], 2, 64, t.s[1]));
  o.Call("record 1's event on 1's stream", cudaEventRecord(t.e[1], t.s[1]));
  o.Call("0's stream waits", cudaStreamWaitEvent(t.s[0], t.e[1], 0));
  cudaGraph_t graph = EndCapture(o, "end", t.s[0]);
  cudaGraphExec_t exec = nullptr;
  o.Call("instantiate", cudaGraphInstantiate(&exec, graph, 0));
  o.Call("launch", cudaGraphLaunch(exec, t.s[0]));
  o.Call("sync", cudaStreamSynchronize(t.s[0]));
  o.Note("value", Format("value=%s", Word(t.d[1]).c_str()));
  o.Call("begin GLOBAL on 0", cudaStreamBeginCapture(t.s[0], cudaStreamCaptureModeGlobal));
  REQUIRE_CUDA(cudaSetDevice(1));
  void* p = nullptr;
  o.Call("cudaMalloc on 1", cudaMalloc(&p, 4096));
  State(o, t.s[0]);
  o.Call("device sync of 1", cudaDeviceSynchronize());
  State(o, t.s[0]);
  REQUIRE_CUDA(cudaSetDevice(0));
  EndCapture(o, "end", t.s[0]);
  REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  REQUIRE_CUDA(cudaGraphDestroy(graph));
}

}  // namespace conformance
