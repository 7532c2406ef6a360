// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Two devices.
#include "test/conformance/rig.h"

namespace conformance {

OBSERVE("multi.streams_and_events", Once().InOwnProcess().OnDevices(2)) {
  Two t(o);
  int v = 9;
  float ms;
  cudaPointerAttributes a;
  PROBE(cudaEventRecord(t.e[1], t.s[0]));
  PROBE(cudaEventRecord(t.e[0], t.s[1]));
  PROBE(cudaEventRecord(t.e[1], t.s[1]));
  PROBE(cudaStreamWaitEvent(t.s[0], t.e[1], 0));
  PROBE(cudaEventSynchronize(t.e[1]));
  PROBE(cudaEventRecord(t.e[0], t.s[0]));
  PROBE(cudaEventSynchronize(t.e[0]));
  PROBE(cudaEventElapsedTime(&ms, t.e[0], t.e[1]));
  PROBE(cudaStreamQuery(t.s[1]));
  PROBE(cudaStreamSynchronize(t.s[1]));
  PROBE_AND(cudaStreamGetDevice(t.s[1], &v), "v=%d", v);
  PROBE_AND(cudaPointerGetAttributes(&a, t.d[1]), "type=%d device=%d", a.type, a.device);
  PROBE(cudaSetDevice(1));
  PROBE_AND(cudaPointerGetAttributes(&a, t.h), "type=%d device=%d", a.type, a.device);
  PROBE_AND(cudaStreamGetDevice(nullptr, &v), "v=%d", v);
  PROBE(cudaEventRecord(t.e[0], nullptr));
  PROBE(cudaSetDevice(0));
  Gate gate;
  PROBE(gate.Hold(t.s[1]));
  PROBE(cudaMemsetAsync(t.d[1], 5, 64, t.s[1]));
  PROBE_AS("synchronising device 0 does not wait for 1", cudaDeviceSynchronize());
  PROBE(cudaStreamQuery(t.s[1]));
  PROBE(cudaEventRecord(t.e[1], t.s[1]));
  PROBE(cudaStreamWaitEvent(t.s[0], t.e[1], 0));
  PROBE_AS("0's stream waits for 1's", cudaStreamQuery(t.s[0]));
  gate.Open();
  PROBE(cudaStreamSynchronize(t.s[0]));
  Gate legacy;
  PROBE(legacy.Hold(t.blocking[1]));
  PROBE(cudaMemsetAsync(t.d[0], 1, 64, nullptr));
  PROBE_AS("0's legacy stream beside 1's blocking stream", cudaStreamSynchronize(nullptr));
  legacy.Open();
  PROBE(cudaStreamSynchronize(t.blocking[1]));
  PROBE(cudaStreamDestroy(t.s[1]));
  PROBE(cudaEventDestroy(t.e[1]));
}

OBSERVE("multi.work", Once().InOwnProcess().OnDevices(2)) {
  Two t(o);
  float *x = (float*)t.d[0], *y = (float*)t.d[0];
  int64_t n = 0;
  void* args[3] = {&x, &y, &n};
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), args, 0, t.s[0]));
  PROBE_AS("kernel on 1's stream, current 0", cudaLaunchKernel(kRelu, dim3(1), dim3(32), args, 0, t.s[1]));
  PROBE(cudaLaunchHostFunc(t.s[1], Nothing, nullptr));
  PROBE(cudaMemsetAsync(t.d[1], 1, 64, t.s[1]));
  PROBE(cudaMemsetAsync(t.d[0], 1, 64, t.s[1]));
  PROBE(cudaMemsetAsync(t.d[1], 1, 64, t.s[0]));
  PROBE(cudaMemset(t.d[1], 1, 64));
}

OBSERVE("multi.peers", Once().InOwnProcess().OnDevices(2)) {
  Two t(o);
  int v = 9;
  PROBE_AND(cudaDeviceCanAccessPeer(&v, 0, 1), "v=%d", v);
  PROBE_AND(cudaDeviceCanAccessPeer(&v, 1, 1), "v=%d", v);
  PROBE_AS("disable what is not enabled", cudaDeviceDisablePeerAccess(1));
  PROBE(cudaDeviceEnablePeerAccess(1, 1));
  PROBE(cudaDeviceEnablePeerAccess(1, 0));
  PROBE(cudaDeviceEnablePeerAccess(1, 0));
  PROBE(cudaMemcpyAsync(t.d[1], t.d[0], 64, cudaMemcpyDeviceToDevice, t.s[0]));
  PROBE(cudaStreamSynchronize(t.s[0]));
  PROBE(cudaSetDevice(1));
  PROBE_AS("the other direction is off", cudaDeviceDisablePeerAccess(0));
  PROBE(cudaSetDevice(0));
  PROBE(cudaDeviceDisablePeerAccess(1));
  PROBE(cudaDeviceDisablePeerAccess(1));
}

OBSERVE("multi.graphs", Once().InOwnProcess().OnDevices(2)) {
  Two t(o);
  cudaGraph_t g;
  cudaGraphNode_t n0, n1;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  cudaMemsetParams f = {};
  f.elementSize = 1;
  f.width = 64;
  f.height = 1;
  f.dst = t.d[0];
  PROBE(cudaGraphAddMemsetNode(&n0, g, nullptr, 0, &f));
  f.dst = t.d[1];
  PROBE_AS("memset node of 1's memory, current 0", cudaGraphAddMemsetNode(&n1, g, nullptr, 0, &f));
  PROBE(cudaSetDevice(1));
  PROBE_AS("memset node of 1's memory, current 1", cudaGraphAddMemsetNode(&n1, g, nullptr, 0, &f));
  PROBE(cudaSetDevice(0));
  cudaGraphExec_t e = nullptr;
  cudaGraphInstantiateParams p = {};
  PROBE_AND(cudaGraphInstantiateWithParams(&e, g, &p), "result=%d errNode=%s", p.result_out,
            PointerState(p.errNode_out));
  PROBE(cudaGraphLaunch(e, t.s[0]));
  PROBE(cudaGraphLaunch(e, t.s[1]));
  PROBE(cudaStreamSynchronize(t.s[0]));
  PROBE(cudaStreamSynchronize(t.s[1]));
  cudaGraph_t h;
  REQUIRE_CUDA(cudaGraphCreate(&h, 0));
  PROBE_AS("d2d copy node between devices",
           cudaGraphAddMemcpyNode1D(&n0, h, nullptr, 0, t.d[1], t.d[0], 64, cudaMemcpyDeviceToDevice));
  PROBE_AS("instantiate it", cudaGraphInstantiate(&e, h, 0));
  PROBE(cudaGraphLaunch(e, t.s[0]));
  PROBE(cudaStreamSynchronize(t.s[0]));
  float* x = (float*)t.d[0];
  int64_t n = 8;
  void* args[3] = {&x, &x, &n};
  cudaKernelNodeParams k = {};
  k.func = const_cast<void*>(kRelu);
  k.gridDim = dim3(1);
  k.blockDim = dim3(32);
  k.kernelParams = args;
  cudaGraph_t a, b;
  REQUIRE_CUDA(cudaGraphCreate(&a, 0));
  REQUIRE_CUDA(cudaGraphAddKernelNode(&n0, a, nullptr, 0, &k));
  REQUIRE_CUDA(cudaSetDevice(1));
  REQUIRE_CUDA(cudaGraphCreate(&b, 0));
  REQUIRE_CUDA(cudaGraphAddKernelNode(&n0, b, nullptr, 0, &k));
  REQUIRE_CUDA(cudaSetDevice(0));
  PROBE(cudaGraphInstantiate(&e, a, 0));
  cudaGraphExecUpdateResultInfo i = {};
  PROBE_AS_AND("update to a kernel of the other device", cudaGraphExecUpdate(e, b, &i), "result=%d errorNode=%s",
               i.result, PointerState(i.errorNode));
  PROBE_AS("launch on 1's stream, current 0", cudaGraphLaunch(e, t.s[1]));
  PROBE(cudaSetDevice(1));
  PROBE_AS("launch on 0's stream, current 1", cudaGraphLaunch(e, t.s[0]));
  PROBE_AS("instantiate 0's kernel graph, current 1", cudaGraphInstantiate(&e, a, 0));
  PROBE(cudaStreamSynchronize(t.s[0]));
  PROBE(cudaStreamSynchronize(t.s[1]));
}

OBSERVE("multi.capture_both", Once().InOwnProcess().OnDevices(2)) {
  Two t(o);
  cudaGraph_t g;
  cudaStreamCaptureStatus st;
  PROBE(cudaStreamBeginCapture(t.s[0], cudaStreamCaptureModeGlobal));
  PROBE(cudaSetDevice(1));
  PROBE(cudaStreamBeginCapture(t.s[1], cudaStreamCaptureModeGlobal));
  PROBE(cudaMemsetAsync(t.d[1], 1, 64, t.s[1]));
  PROBE(cudaMemsetAsync(t.d[0], 1, 64, t.s[0]));
  PROBE_AND(cudaStreamEndCapture(t.s[1], &g), "nodes=%zu", CountNodes(g));
  PROBE_AS("legacy stream of device 1", cudaMemsetAsync(t.d[1], 1, 64, nullptr));
  PROBE_AND(cudaStreamIsCapturing(t.s[0], &st), "status=%d", st);
  PROBE_AND(cudaStreamEndCapture(t.s[0], &g), "nodes=%zu", CountNodes(g));
  PROBE(cudaSetDevice(0));
  PROBE(cudaStreamBeginCapture(t.blocking[0], cudaStreamCaptureModeRelaxed));
  PROBE(cudaSetDevice(1));
  PROBE_AS("legacy stream of 1 beside a blocking capture on 0", cudaMemsetAsync(t.d[1], 1, 64, nullptr));
  PROBE_AND(cudaStreamIsCapturing(t.blocking[0], &st), "status=%d", st);
  PROBE_AS("device 1 synchronised beside it", cudaDeviceSynchronize());
  PROBE_AND(cudaStreamIsCapturing(t.blocking[0], &st), "status=%d", st);
  PROBE(cudaStreamSynchronize(t.s[1]));
  PROBE(cudaStreamEndCapture(t.blocking[0], &g));
  PROBE(cudaSetDevice(0));
  PROBE(cudaStreamBeginCapture(t.s[0], cudaStreamCaptureModeGlobal));
  cudaError_t other = cudaSuccess;
  OnThread([&] {
    cudaSetDevice(1);
    void* p;
    other = cudaMalloc(&p, 16);
  });
  o.Note("cudaMalloc of another thread on 1", Format("%d", other));
  PROBE_AND(cudaStreamIsCapturing(t.s[0], &st), "status=%d", st);
  PROBE(cudaStreamEndCapture(t.s[0], &g));
}

OBSERVE("multi.pools", Once().InOwnProcess().OnDevices(2)) {
  Two t(o);
  cudaMemPoolProps p = {};
  p.allocType = cudaMemAllocationTypePinned;
  p.location.type = cudaMemLocationTypeDevice;
  p.location.id = 1;
  cudaMemPool_t pool;
  PROBE(cudaMemPoolCreate(&pool, &p));
  void* a;
  PROBE_AS("from 1's pool on 0's stream", cudaMallocFromPoolAsync(&a, 4096, pool, t.s[0]));
  cudaPointerAttributes at;
  PROBE_AND(cudaPointerGetAttributes(&at, a), "device=%d", at.device);
  cudaMemLocation l = {cudaMemLocationTypeDevice, 0};
  cudaMemAccessFlags fl;
  PROBE_AND(cudaMemPoolGetAccess(&fl, pool, &l), "flags=%d", fl);
  cudaMemAccessDesc d = {};
  d.location = l;
  d.flags = cudaMemAccessFlagsProtReadWrite;
  PROBE(cudaMemPoolSetAccess(pool, &d, 1));
  PROBE_AND(cudaMemPoolGetAccess(&fl, pool, &l), "flags=%d", fl);
  d.flags = cudaMemAccessFlagsProtNone;
  PROBE(cudaMemPoolSetAccess(pool, &d, 1));
  PROBE_AND(cudaMemPoolGetAccess(&fl, pool, &l), "flags=%d", fl);
  PROBE(cudaDeviceSetMemPool(0, pool));
  PROBE(cudaFreeAsync(a, t.s[0]));
  PROBE(cudaStreamSynchronize(t.s[0]));
  PROBE(cudaMemPoolDestroy(pool));
  unsigned long long v = 77;
  PROBE_AND(cudaDeviceGetGraphMemAttribute(1, cudaGraphMemAttrReservedMemCurrent, &v), "v=%llu", v);
  int c = 0;
  PROBE(cudaDeviceGetAttribute(&c, cudaDevAttrWarpSize, 1));
}

}  // namespace conformance
