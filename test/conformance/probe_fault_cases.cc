// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What every call answers after a kernel has touched memory that it may not, up to the reset of the device.
#include "test/conformance/rig.h"

namespace conformance {

namespace {

// A kernel's launch whose input starts in no allocation. The simulator is told to answer it as a GPU does, instead of
// stopping with a report; a GPU knows nothing of the variable.
class Fault {
 public:
  Fault() { setenv("GCAP_SIM_CHECKS", "all=off,out_of_bounds=error", 1); }
  cudaError_t Launch(float* output, cudaStream_t stream) {
    output_ = output;
    return cudaLaunchKernel(kRelu, dim3(1), dim3(32), args_, 0, stream);
  }

 private:
  const float* input_ = reinterpret_cast<const float*>(0x1000);
  float* output_ = nullptr;
  int64_t count_ = 32;
  void* args_[3] = {&input_, &output_, &count_};
};

}  // namespace

OBSERVE("fault.kernel", Once().InOwnProcess()) {
  Fault fault;
  Rig* r = new Rig(o);  // nothing of it can be freed any more
  PROBE(fault.Launch((float*)r->d, r->s));
  PROBE(cudaStreamSynchronize(r->s));
  NoteLast(o, "last error");
  PROBE(cudaStreamSynchronize(r->s));
  PROBE(cudaStreamQuery(r->s2));
  PROBE(cudaMemsetAsync(r->d2, 0, 16, r->s2));
  PROBE(cudaEventRecord(r->e, r->s2));
  PROBE(cudaEventQuery(r->e));
  PROBE(cudaEventSynchronize(r->e));
  void* p = nullptr;
  PROBE_AND(cudaMalloc(&p, 16), "%s", PointerState(p));
  PROBE(cudaFree(r->d2));
  PROBE(cudaMemcpy(r->h, r->d, 16, cudaMemcpyDeviceToHost));
  int device = 7;
  PROBE_AND(cudaGetDevice(&device), "%d", device);
  PROBE(cudaSetDevice(0));
  PROBE(cudaDeviceSynchronize());
  cudaStreamCaptureStatus state = (cudaStreamCaptureStatus)7;
  PROBE_AND(cudaStreamIsCapturing(r->s, &state), "%d", (int)state);
  PROBE(cudaStreamBeginCapture(r->s, cudaStreamCaptureModeThreadLocal));
  cudaStream_t s;
  PROBE(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  PROBE(cudaStreamDestroy(r->s2));
  PROBE(cudaEventDestroy(r->e2));
  NoteLast(o, "last error after all these");
}

// Which calls never look at the device: what is made before the fault, and each call after it.
OBSERVE("fault.after", Once().InOwnProcess()) {
  Fault fault;
  Rig* r = new Rig(o);
  cudaGraph_t graph = nullptr, other = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t exec = nullptr, new_exec = nullptr;
  cudaMemsetParams fill = r->Fill(1);
  cudaMemPool_t pool = nullptr;
  REQUIRE_CUDA(cudaGraphCreate(&graph, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
  REQUIRE_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  REQUIRE_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  PROBE(fault.Launch((float*)r->d, r->s));
  PROBE(cudaStreamSynchronize(r->s));
  int i = 7;
  size_t n = 7, m = 7;
  void* p = nullptr;
  unsigned int flags = 7;
  unsigned long long id = 7;
  cudaEvent_t e = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaStreamCaptureStatus state = (cudaStreamCaptureStatus)7;
  cudaPointerAttributes attributes = {};
  cudaFuncAttributes function = {};
  cudaUserObject_t object = nullptr;
  cudaGraphInstantiateParams params = {};
  cudaGraphExecUpdateResultInfo info = {};
  PROBE_AND(cudaGetDeviceCount(&i), "%d", i > 0);
  PROBE_AND(cudaDeviceGetAttribute(&i, cudaDevAttrWarpSize, 0), "%d", i);
  PROBE(cudaThreadExchangeStreamCaptureMode(&mode));
  PROBE(cudaThreadExchangeStreamCaptureMode(&mode));
  PROBE(cudaStreamGetFlags(r->s, &flags));
  PROBE(cudaStreamGetPriority(r->s, &i));
  PROBE(cudaStreamGetId(r->s, &id));
  PROBE(cudaStreamGetDevice(r->s, &i));
  PROBE(cudaStreamGetCaptureInfo(r->s, &state, nullptr, nullptr, nullptr, nullptr, nullptr));
  PROBE(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  PROBE(cudaStreamWaitEvent(r->s2, r->e, 0));
  PROBE(cudaMallocHost(&p, 16));
  PROBE(cudaFreeHost(r->h));
  PROBE(cudaMallocAsync(&p, 16, r->s2));
  PROBE(cudaMemPoolTrimTo(pool, 0));
  PROBE(cudaMemGetInfo(&n, &m));
  PROBE(cudaPointerGetAttributes(&attributes, r->d));
  PROBE(cudaFuncGetAttributes(&function, kRelu));
  PROBE(cudaGraphCreate(&other, 0));
  PROBE_AND(cudaGraphGetNodes(graph, nullptr, &n), "%zu", n);
  PROBE(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
  PROBE(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
  PROBE(cudaGraphInstantiate(&new_exec, graph, 0));
  PROBE(cudaGraphInstantiateWithParams(&new_exec, graph, &params));
  PROBE(cudaGraphExecUpdate(exec, graph, &info));
  PROBE(cudaGraphUpload(exec, r->s2));
  PROBE(cudaGraphLaunch(exec, r->s2));
  PROBE(cudaUserObjectCreate(
      &object, nullptr, [](void*) {}, 1, cudaUserObjectNoDestructorSync));
  PROBE(cudaLaunchHostFunc(
      r->s2, [](void*) {}, nullptr));
  PROBE(cudaStreamEndCapture(r->s2, &other));
  PROBE(cudaGraphExecDestroy(exec));
  PROBE(cudaGraphDestroy(graph));
  int driver = 0;
  PROBE_AND(cudaRuntimeGetVersion(&driver), "%d", driver != 0);
  PROBE_AND(cudaDriverGetVersion(&driver), "%d", driver != 0);
  PROBE(cudaMalloc(nullptr, 16));
  PROBE(cudaSetDevice(99));
  OnThread([&] {
    PROBE_AS("another thread's cudaMalloc", cudaMalloc(&p, 16));
    PROBE_AS("another thread's cudaGetDevice", cudaGetDevice(&i));
  });
}

OBSERVE("fault.reset", Once().InOwnProcess()) {
  Fault fault;
  Rig* r = new Rig(o);
  PROBE(fault.Launch((float*)r->d, r->s));
  PROBE(cudaDeviceSynchronize());
  PROBE(cudaDeviceReset());
  NoteLast(o, "last error after the reset");
  void* p = nullptr;
  PROBE(cudaMalloc(&p, 16));
  PROBE(cudaMemset(p, 0, 16));
  PROBE(cudaDeviceSynchronize());
  int i = 7;
  PROBE_AND(cudaGetDevice(&i), "%d", i);
  PROBE(cudaSetDevice(0));
  cudaStream_t s = nullptr;
  PROBE(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  PROBE(cudaDeviceReset());
  PROBE(cudaMalloc(&p, 16));
}

OBSERVE("fault.unnoticed", Once().InOwnProcess()) {
  // No time passes in the simulator while the program sleeps. A device that is always ahead stands for it.
  setenv("GCAP_SIM_SCHEDULE", "eager", 1);
  Fault fault;
  Rig* r = new Rig(o);
  PROBE(fault.Launch((float*)r->d, r->s));
  usleep(200000);  // by now it has happened
  PROBE(cudaEventQuery(r->e));
  PROBE(cudaStreamQuery(r->s));
  PROBE(cudaMemsetAsync(r->d2, 0, 16, r->s2));
  PROBE(cudaPeekAtLastError());
}

OBSERVE("fault.graph", Once().InOwnProcess()) {
  Fault fault;
  Rig* r = new Rig(o);
  PROBE(cudaStreamBeginCapture(r->s, cudaStreamCaptureModeThreadLocal));
  PROBE(fault.Launch((float*)r->d, r->s));
  cudaGraph_t graph = EndCapture(o, "end", r->s);
  cudaGraphExec_t exec = nullptr;
  PROBE(cudaGraphInstantiate(&exec, graph, 0));
  PROBE(cudaGraphLaunch(exec, r->s));
  PROBE(cudaStreamSynchronize(r->s));
  PROBE(cudaGraphLaunch(exec, r->s));
  PROBE(cudaGraphExecDestroy(exec));
  PROBE(cudaGraphDestroy(graph));
}

OBSERVE("fault.beside_capture", Once().InOwnProcess()) {
  Fault fault;
  Rig* r = new Rig(o);
  PROBE(cudaStreamBeginCapture(r->s, cudaStreamCaptureModeRelaxed));
  PROBE(cudaMemsetAsync(r->d2, 0, 16, r->s));
  PROBE(fault.Launch((float*)r->d, r->s2));
  PROBE(cudaStreamSynchronize(r->s2));
  PROBE(cudaMemsetAsync(r->d2, 0, 16, r->s));
  EndCapture(o, "end", r->s);
  NoteLast(o, "last error");
}

}  // namespace conformance
