// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// The frame of a call during a capture, and what is told of it: the last error on the actor's thread, the capturing
// stream and another one after the call, the next work of the capture, its end, and its nodes.
#include "test/conformance/during_frame.h"

#include <utility>

namespace conformance {

namespace {

void ObserveCall(Observer& o, const DuringRow& row) {
  DuringFrame f(o, o.on_blocking_stream());
  REQUIRE_CUDA(cudaStreamBeginCapture(f.s, o.mode()));
  REQUIRE_CUDA(cudaMemsetAsync(f.r.d, 0, 64, f.s));
  cudaError_t code = cudaSuccess;
  int peek = 0;
  OnActor(o, [&] {
    code = row.call(f);
    peek = cudaGetLastError();
  });
  const std::string status = Status(f.s);
  const std::string status2 = Status(f.r.s2);
  const int next = cudaMemsetAsync(f.r.d, 0, 64, f.s);
  cudaGraph_t graph = nullptr;
  const int end = cudaStreamEndCapture(f.s, &graph);
  (void)cudaGetLastError();
  std::string seen = Format("peek=%d status=%s s2=%s next=%d end=%d", peek, status.c_str(), status2.c_str(), next, end);
  if (graph != nullptr) {
    seen += Format(" nodes=%zu", CountNodes(graph));
    REQUIRE_CUDA(cudaGraphDestroy(graph));
  }
  o.Call("op", code, seen);
}

// Beside a capture on a blocking stream the mode makes no difference to the legacy stream: one is enough.
Blocks BlocksOf(const DuringRow& row) {
  std::vector<std::string> prefixes = EachThreadAndMode().prefixes();
  if (row.kind == DuringRow::kLegacy) prefixes.push_back("blocking GLOBAL");
  Blocks blocks(prefixes);
  return row.kind == DuringRow::kProcess ? std::move(blocks).InOwnProcess() : blocks;
}

}  // namespace

DuringFrame::DuringFrame(Observer& observer, bool blocking) : o(observer), r(observer) {
  s = blocking ? r.blocking : r.s;
  const cudaMemsetParams fill_params = r.Fill(1);
  const cudaKernelNodeParams kernel_params = r.Kernel();
  REQUIRE_CUDA(cudaGraphCreate(&other, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&fill, other, nullptr, 0, &fill_params));
  REQUIRE_CUDA(cudaGraphAddKernelNode(&kernel, other, nullptr, 0, &kernel_params));
  REQUIRE_CUDA(cudaGraphInstantiate(&exec, other, 0));
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  REQUIRE_CUDA(cudaMemPoolCreate(&pool, &props));
  REQUIRE_CUDA(cudaEventCreate(&before));
  REQUIRE_CUDA(cudaEventCreate(&before2));
  REQUIRE_CUDA(cudaUserObjectCreate(&object, nullptr, Nothing, 1, cudaUserObjectNoDestructorSync));
  REQUIRE_CUDA(cudaEventRecord(before, r.s2));
  REQUIRE_CUDA(cudaEventRecord(before2, r.s2));
  REQUIRE_CUDA(cudaDeviceSynchronize());
}

DuringFrame::~DuringFrame() {
  // What the call never made, or has destroyed itself, answers an error, which is of no interest.
  (void)cudaDeviceSynchronize();
  if (out.registered != nullptr) (void)cudaHostUnregister(out.registered);
  (void)cudaFree(out.device);
  (void)cudaFreeHost(out.host);
  if (out.stream != nullptr) (void)cudaStreamDestroy(out.stream);
  if (out.event != nullptr) (void)cudaEventDestroy(out.event);
  if (out.graph != nullptr && out.graph != other) (void)cudaGraphDestroy(out.graph);
  if (out.exec != nullptr) (void)cudaGraphExecDestroy(out.exec);
  if (out.pool != nullptr) (void)cudaMemPoolDestroy(out.pool);
  if (out.object != nullptr) (void)cudaUserObjectRelease(out.object, 1);
  (void)cudaUserObjectRelease(object, 1);
  (void)cudaGraphExecDestroy(exec);
  (void)cudaGraphDestroy(other);
  (void)cudaMemPoolDestroy(pool);
  (void)cudaEventDestroy(before);
  (void)cudaEventDestroy(before2);
  (void)cudaGetLastError();
}

cudaGraph_t DuringFrame::capturing() const {
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  REQUIRE_CUDA(cudaStreamGetCaptureInfo(s, &status, &id, &graph));
  return graph;
}

DuringCases::DuringCases(const std::vector<DuringRow>& rows) {
  for (const DuringRow& row : rows) {
    Cases().push_back({std::string("during.") + row.name, BlocksOf(row), [&row](Observer& o) { ObserveCall(o, row); }});
  }
}

}  // namespace conformance
