// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The frame around one call during a capture. All of it is set up before the capture begins and undone after it, since
// most of that would break it.
#include "test/conformance/capture_frame.h"

#include <cstdlib>

namespace conformance {

namespace {

void MakeMemory(CaptureFrame& f) {
  Observer& o = f.o;
  for (char** memory : {&f.memory, &f.device, &f.device2}) {
    REQUIRE_CUDA(cudaMalloc(reinterpret_cast<void**>(memory), kBytes));
    REQUIRE_CUDA(cudaMemset(*memory, 0, kBytes));
  }
  REQUIRE_CUDA(cudaMallocAsync(reinterpret_cast<void**>(&f.pooled), kBytes, f.s2));
  REQUIRE_CUDA(cudaMallocHost(reinterpret_cast<void**>(&f.pinned), kBytes));
  f.pageable = static_cast<char*>(std::calloc(1, kBytes));
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  REQUIRE_CUDA(cudaMemPoolCreate(&f.pool, &properties));
}

// Calls and looks, as the actor; then captures the second fill, as the main thread.
void Act(CaptureFrame& f, const CaptureCall& call) {
  Observer& o = f.o;
  cudaError_t code = cudaSuccess;
  int peek = 0;
  OnActor(o, [&] {
    code = call(f);
    peek = Peek();
  });
  const int main_peek = Peek();
  const std::string states =
      Format("status=%s s2=%s sb=%s", Status(f.s).c_str(), Status(f.s2).c_str(), Status(f.sb).c_str());
  const int next = cudaMemsetAsync(f.memory, 2, kBytes, f.s);
  o.Call("op", code, Format("%s peek=%d mainpeek=%d next=%d", states.c_str(), peek, main_peek, next));
}

}  // namespace

CaptureFrame::CaptureFrame(Observer& observer) : o(observer), mode(observer.mode()) {
  const unsigned int flags = o.on_blocking_stream() ? cudaStreamDefault : cudaStreamNonBlocking;
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&s, flags));
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&s2, cudaStreamNonBlocking));
  REQUIRE_CUDA(cudaStreamCreate(&sb));
  for (cudaEvent_t* event : {&captured, &before, &never}) REQUIRE_CUDA(cudaEventCreate(event));
  MakeMemory(*this);
  REQUIRE_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t node;
  REQUIRE_CUDA(cudaGraphAddEmptyNode(&node, graph, nullptr, 0));
  REQUIRE_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  REQUIRE_CUDA(cudaEventRecord(before, s2));
  REQUIRE_CUDA(cudaDeviceSynchronize());
}

CaptureFrame::~CaptureFrame() {
  (void)cudaGetLastError();
  REQUIRE_CUDA(cudaDeviceSynchronize());
  for (const auto& undo : cleanup) undo();
  for (char* memory : {this->memory, device, device2, pooled}) REQUIRE_CUDA(cudaFree(memory));
  REQUIRE_CUDA(cudaFreeHost(pinned));
  std::free(pageable);
  if (pool != nullptr) REQUIRE_CUDA(cudaMemPoolDestroy(pool));
  if (exec != nullptr) REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  if (graph != nullptr) REQUIRE_CUDA(cudaGraphDestroy(graph));
  for (cudaEvent_t event : {captured, before, never}) {
    if (event != nullptr) REQUIRE_CUDA(cudaEventDestroy(event));
  }
  for (cudaStream_t stream : {s, s2, sb}) REQUIRE_CUDA(cudaStreamDestroy(stream));
}

void CaptureFrame::Fork() { REQUIRE_CUDA(cudaStreamWaitEvent(s2, captured, 0)); }

void ObserveCaptureCall(Observer& o, const CaptureCall& call) {
  CaptureFrame f(o);
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, f.mode));
  REQUIRE_CUDA(cudaMemsetAsync(f.memory, 1, kBytes, f.s));
  REQUIRE_CUDA(cudaEventRecord(f.captured, f.s));
  Act(f, call);
  ObserveEnd(o, "end", f.s);
  if (f.after_end) f.after_end();
  ObserveAfter(o, "after", f.s, f.memory, f.mode);
}

CaptureCases::CaptureCases(const std::string& prefix, const std::vector<CaptureRow>& rows) {
  for (const CaptureRow& row : rows) {
    const CaptureCall& call = row.call;
    Cases().push_back({prefix + row.name, row.blocking ? EachThreadModeAndBlocking() : EachThreadAndMode(),
                       [call](Observer& o) { ObserveCaptureCall(o, call); }});
  }
}

}  // namespace conformance
