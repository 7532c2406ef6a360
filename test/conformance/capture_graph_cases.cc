// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// During a capture: other beginnings and ends, the thread's mode, graphs, and questions to the device.
#include "test/conformance/capture_frame.h"

namespace conformance {

namespace {

cudaError_t EndNested(CaptureFrame& f) {
  Observer& o = f.o;
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s2, f.mode));
  REQUIRE_CUDA(cudaMemsetAsync(f.device, 1, kBytes, f.s2));
  return ObserveEnd(o, "other end", f.s2);
}

const std::vector<CaptureRow> kBeginAndEnd = {
    {"begin_again", [](CaptureFrame& f) { return cudaStreamBeginCapture(f.s, f.mode); }},
    {"begin_legacy", [](CaptureFrame& f) { return cudaStreamBeginCapture(cudaStreamLegacy, f.mode); }},
    {"begin_on_joined",
     [](CaptureFrame& f) {
       f.Fork();
       return cudaStreamBeginCapture(f.s2, f.mode);
     }},
    {"nested_begin_end_other", EndNested},
    {"end_other",
     [](CaptureFrame& f) {
       cudaGraph_t graph = f.graph;
       const cudaError_t code = cudaStreamEndCapture(f.s2, &graph);
       f.o.Note("out", Format("graph=%s", SetOrNull(graph)));
       return code;
     }},
    {"end_on_joined",
     [](CaptureFrame& f) {
       f.Fork();
       cudaGraph_t graph = nullptr;
       return cudaStreamEndCapture(f.s2, &graph);
     }},
    {"end_null_out", [](CaptureFrame& f) { return cudaStreamEndCapture(f.s, nullptr); }},
    {"updatedeps_set_none",
     [](CaptureFrame& f) {
       return cudaStreamUpdateCaptureDependencies(f.s, nullptr, nullptr, 0, cudaStreamSetCaptureDependencies);
     }},
    {"updatedeps_badflag",
     [](CaptureFrame& f) { return cudaStreamUpdateCaptureDependencies(f.s, nullptr, nullptr, 0, 7); }},
};
const CaptureCases begin_and_end("cap.", kBeginAndEnd);

// The call with the thread's mode exchanged around it.
cudaError_t WithMode(CaptureFrame& f, cudaStreamCaptureMode mode, const std::function<cudaError_t()>& call) {
  Observer& o = f.o;
  REQUIRE_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  const cudaError_t code = call();
  cudaStreamCaptureMode restored = mode;
  if (cudaThreadExchangeStreamCaptureMode(&restored) != cudaSuccess) o.Note("not observed", "mode not restored");
  return code;
}

cudaError_t Malloc(CaptureFrame& f) {
  Observer& o = f.o;
  void* memory = nullptr;
  const cudaError_t code = cudaMalloc(&memory, kBytes);
  f.cleanup.push_back([&o, memory] { REQUIRE_CUDA(cudaFree(memory)); });
  return code;
}

const std::vector<CaptureRow> kThreadModes = {
    {"cudaThreadExchangeStreamCaptureMode",
     [](CaptureFrame& f) { return WithMode(f, cudaStreamCaptureModeRelaxed, [] { return cudaSuccess; }); }},
    {"relaxed_exchange_cudaMalloc",
     [](CaptureFrame& f) { return WithMode(f, cudaStreamCaptureModeRelaxed, [&] { return Malloc(f); }); }},
    {"threadlocal_exchange_cudaMalloc",
     [](CaptureFrame& f) { return WithMode(f, cudaStreamCaptureModeThreadLocal, [&] { return Malloc(f); }); }},
    {"relaxed_exchange_cudaEventQuery_pre",
     [](CaptureFrame& f) {
       return WithMode(f, cudaStreamCaptureModeRelaxed, [&] { return cudaEventQuery(f.before); });
     }},
    {"relaxed_exchange_cudaDeviceSynchronize",
     [](CaptureFrame& f) { return WithMode(f, cudaStreamCaptureModeRelaxed, cudaDeviceSynchronize); }},
    {"relaxed_exchange_cudaFree",
     [](CaptureFrame& f) {
       return WithMode(f, cudaStreamCaptureModeRelaxed, [&] {
         const cudaError_t code = cudaFree(f.device2);
         if (code == cudaSuccess) f.device2 = nullptr;
         return code;
       });
     }},
};
const CaptureCases thread_modes("cap.", kThreadModes);

cudaGraph_t CapturingGraph(CaptureFrame& f) {
  Observer& o = f.o;
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr;
  REQUIRE_CUDA(cudaStreamGetCaptureInfo(f.s, &status, nullptr, &graph, nullptr, nullptr, nullptr));
  return graph;
}

cudaError_t Instantiate(CaptureFrame& f, cudaGraph_t graph) {
  Observer& o = f.o;
  cudaGraphExec_t exec = nullptr;
  const cudaError_t code = cudaGraphInstantiate(&exec, graph, 0);
  if (exec != nullptr) f.cleanup.push_back([&o, exec] { REQUIRE_CUDA(cudaGraphExecDestroy(exec)); });
  return code;
}

cudaError_t KeepGraph(CaptureFrame& f, cudaError_t code, cudaGraph_t graph) {
  Observer& o = f.o;
  f.cleanup.push_back([&o, graph] { REQUIRE_CUDA(cudaGraphDestroy(graph)); });
  return code;
}

const std::vector<CaptureRow> kGraphs = {
    {"cudaGraphCreate",
     [](CaptureFrame& f) {
       cudaGraph_t graph = nullptr;
       const cudaError_t code = cudaGraphCreate(&graph, 0);
       return KeepGraph(f, code, graph);
     }},
    {"cudaGraphDestroy_other",
     [](CaptureFrame& f) {
       const cudaError_t code = cudaGraphDestroy(f.graph);
       f.graph = nullptr;
       return code;
     }},
    {"cudaGraphInstantiate_other", [](CaptureFrame& f) { return Instantiate(f, f.graph); }},
    {"cudaGraphInstantiate_capturing_graph", [](CaptureFrame& f) { return Instantiate(f, CapturingGraph(f)); }},
    {"cudaGraphClone_other",
     [](CaptureFrame& f) {
       cudaGraph_t graph = nullptr;
       const cudaError_t code = cudaGraphClone(&graph, f.graph);
       return KeepGraph(f, code, graph);
     }},
    {"cudaGraphLaunch_capturing", [](CaptureFrame& f) { return cudaGraphLaunch(f.exec, f.s); }},
    {"cudaGraphUpload_capturing", [](CaptureFrame& f) { return cudaGraphUpload(f.exec, f.s); }},
    {"cudaGraphExecDestroy",
     [](CaptureFrame& f) {
       const cudaError_t code = cudaGraphExecDestroy(f.exec);
       if (code == cudaSuccess) f.exec = nullptr;
       return code;
     }},
    {"cudaGraphDebugDotPrint_capturing_graph",
     [](CaptureFrame& f) { return cudaGraphDebugDotPrint(CapturingGraph(f), "/dev/null", 0); }},
};
const CaptureCases graphs("cap.", kGraphs);

const std::vector<CaptureRow> kDevices = {
    {"cudaSetDevice", [](CaptureFrame&) { return cudaSetDevice(0); }},
    {"cudaRuntimeGetVersion",
     [](CaptureFrame&) {
       int version;
       return cudaRuntimeGetVersion(&version);
     }},
    {"cudaDeviceGetLimit",
     [](CaptureFrame&) {
       size_t value;
       return cudaDeviceGetLimit(&value, cudaLimitStackSize);
     }},
    {"cudaDeviceCanAccessPeer",
     [](CaptureFrame&) {
       int can;
       return cudaDeviceCanAccessPeer(&can, 0, 0);
     }},
    {"cudaCtxResetPersistingL2Cache", [](CaptureFrame&) { return cudaCtxResetPersistingL2Cache(); }},
};

const CaptureCases devices("cap.", kDevices);

}  // namespace

}  // namespace conformance
