// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Single calls whose answers an independent test suite or the documentation expects otherwise than a GPU gives them.
#include <cstdint>

#include "test/conformance/rig.h"

namespace conformance {

OBSERVE("probe.single.attach", Once().InOwnProcess()) {
  void *m, *mh;
  PROBE(cudaMallocManaged(&m, 4096, cudaMemAttachGlobal));
  PROBE(cudaMallocManaged(&mh, 4096, cudaMemAttachHost));
  PROBE(cudaStreamAttachMemAsync(NULL, m, 0, cudaMemAttachGlobal));
  PROBE(cudaStreamAttachMemAsync(NULL, mh, 0, cudaMemAttachGlobal));
  PROBE(cudaStreamAttachMemAsync(NULL, mh, 0, cudaMemAttachHost));
  PROBE(cudaStreamAttachMemAsync(NULL, mh, 0, cudaMemAttachSingle));
  PROBE(cudaStreamAttachMemAsync(cudaStreamPerThread, mh, 0, cudaMemAttachGlobal));
  PROBE(cudaStreamAttachMemAsync(cudaStreamPerThread, mh, 0, cudaMemAttachSingle));
}

OBSERVE("probe.single.cube", Once().InOwnProcess()) {
  cudaPitchedPtr p;
  PROBE_AS("all", cudaMalloc3D(&p, {SIZE_MAX, SIZE_MAX, SIZE_MAX}));
  PROBE_AS("height and depth", cudaMalloc3D(&p, {1, SIZE_MAX, SIZE_MAX}));
  PROBE_AS("width and height", cudaMalloc3D(&p, {SIZE_MAX, SIZE_MAX, 1}));
  PROBE_AS("height", cudaMalloc3D(&p, {1, SIZE_MAX, 1}));
}

OBSERVE("probe.single.advice", Once().InOwnProcess()) {
  void* m;
  REQUIRE_CUDA(cudaMallocManaged(&m, 4096, cudaMemAttachGlobal));
  for (int advice = 1; advice <= 6; ++advice) {
    for (int id : {-2, -1, 64}) {
      PROBE_AS(Format("advice %d device %d", advice, id),
               cudaMemAdvise(m, 4096, static_cast<cudaMemoryAdvise>(advice), {cudaMemLocationTypeDevice, id}));
    }
  }
}

OBSERVE("probe.single.window", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  cudaGraphNode_t n;
  const auto k = r.Kernel();
  void* large;
  REQUIRE_CUDA(cudaMalloc(&large, 1 << 20));
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphAddKernelNode(&n, g, nullptr, 0, &k));
  const struct {
    const char* name;
    void* base;
    size_t bytes;
    float ratio;
  } windows[] = {{"nothing", nullptr, 0, 0},
                 {"NULL of 1024", nullptr, 1024, 0},
                 {"NULL of 1024, ratio 0.6", nullptr, 1024, 0.6f},
                 {"NULL of 1048576", nullptr, 1 << 20, 0},
                 {"16 of 1024, ratio 0.6", reinterpret_cast<void*>(16), 1024, 0.6f},
                 {"memory of 1024, ratio 0.6", large, 1024, 0.6f}};
  for (const auto& window : windows) {
    cudaLaunchAttributeValue v = {};
    v.accessPolicyWindow.base_ptr = window.base;
    v.accessPolicyWindow.num_bytes = window.bytes;
    v.accessPolicyWindow.hitRatio = window.ratio;
    PROBE_AS(Format("%s: node", window.name),
             cudaGraphKernelNodeSetAttribute(n, cudaLaunchAttributeAccessPolicyWindow, &v));
    PROBE_AS(Format("%s: stream", window.name), cudaStreamSetAttribute(r.s, cudaLaunchAttributeAccessPolicyWindow, &v));
  }
}

OBSERVE("probe.single.carveout", Once().InOwnProcess()) {
  cudaFuncAttributes a = {};
  PROBE(cudaFuncSetAttribute(kRelu, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
  PROBE_AND(cudaFuncGetAttributes(&a, kRelu), "carveout=%d", a.preferredShmemCarveout);
}

// A location of the host that is none.
OBSERVE("probe.single.pool_access", Once().InOwnProcess()) {
  cudaMemPool_t pool;
  REQUIRE_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  for (int id : {-1, 99}) {
    cudaMemLocation location = {cudaMemLocationTypeHostNuma, id};
    auto flags = static_cast<cudaMemAccessFlags>(77);
    PROBE_AS_AND(Format("NUMA node %d", id), cudaMemPoolGetAccess(&flags, pool, &location), "flags=%d", flags);
  }
}

// Is a graph's copy into pageable memory done when the launch returns?
OBSERVE("probe.single.pageable_target", Once().InOwnProcess()) {
  constexpr size_t kLarge = 16 << 20;
  Rig r(o);
  char* const host = static_cast<char*>(std::calloc(1, kLarge));
  void* large;
  cudaGraph_t g;
  cudaGraphNode_t n;
  cudaGraphExec_t e;
  REQUIRE_CUDA(cudaMalloc(&large, kLarge));
  REQUIRE_CUDA(cudaMemset(large, 1, kLarge));
  REQUIRE_CUDA(cudaDeviceSynchronize());
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, host, large, kLarge, cudaMemcpyDeviceToHost));
  REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
  for (cudaStream_t stream : {cudaStream_t{nullptr}, r.s}) {
    std::memset(host, 0, kLarge);
    PROBE_AS_AND(stream == nullptr ? "launch on the legacy stream" : "launch on a stream", cudaGraphLaunch(e, stream),
                 "first=%d last=%d", host[0], host[kLarge - 1]);
    REQUIRE_CUDA(cudaDeviceSynchronize());
  }
  std::free(host);
}

// --- Copies of rows in an executable --------------------------------------------------------------------------------

namespace {

constexpr size_t kPitch = 256, kWidth = 64, kRows = 4;

cudaMemcpy3DParms Rows(void* dst, void* src, size_t rows, cudaMemcpyKind kind = cudaMemcpyDeviceToDevice) {
  cudaMemcpy3DParms p = {};
  p.dstPtr = {dst, kPitch, kWidth, rows};
  p.srcPtr = {src, kPitch, kWidth, rows};
  p.extent = {kWidth, rows, 1};
  p.kind = kind;
  return p;
}

// What the executable copies: the first byte of each row at the target, of a source of ones.
void NoteCopied(Observer& o, const std::string& step, Rig& r, cudaGraphExec_t e, void* dst) {
  REQUIRE_CUDA(cudaMemset(r.d2, 0, Rig::kBytes));
  REQUIRE_CUDA(cudaGraphLaunch(e, r.s));
  REQUIRE_CUDA(cudaStreamSynchronize(r.s));
  char rows[kRows][kPitch];
  REQUIRE_CUDA(cudaMemcpy(rows, dst, sizeof(rows), cudaMemcpyDeviceToHost));
  o.Note(step, Format("%d %d %d %d", rows[0][0], rows[1][0], rows[2][0], rows[3][0]));
}

}  // namespace

// May a copy of several rows be changed in an executable, by whatever call?
OBSERVE("probe.single.rows_in_an_executable", Once().InOwnProcess()) {
  Rig r(o);
  char* const elsewhere = r.d2 + 4096;
  REQUIRE_CUDA(cudaMemset(r.d, 1, Rig::kBytes));
  cudaGraph_t g, other;
  cudaGraphNode_t n, row, changed;
  cudaMemcpy3DParms rows = Rows(r.d2, r.d, kRows);
  const cudaMemcpy3DParms one_row = Rows(r.d2, r.d, 1);
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode(&n, g, nullptr, 0, &rows));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode(&row, g, &n, 1, &one_row));
  cudaGraphExec_t e;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
  NoteCopied(o, "at first", r, e, r.d2);
  PROBE_AS("the same", cudaGraphExecMemcpyNodeSetParams(e, n, &rows));
  rows = Rows(elsewhere, r.d, kRows);
  PROBE_AS("another target", cudaGraphExecMemcpyNodeSetParams(e, n, &rows));
  NoteCopied(o, "another target: copied", r, e, elsewhere);
  rows = Rows(r.d2, r.d + 4096, kRows);
  PROBE_AS("another source", cudaGraphExecMemcpyNodeSetParams(e, n, &rows));
  rows = Rows(r.d2, r.d, kRows - 1);
  PROBE_AS("fewer rows", cudaGraphExecMemcpyNodeSetParams(e, n, &rows));
  rows = Rows(r.d2, r.d, 1);
  PROBE_AS("one row", cudaGraphExecMemcpyNodeSetParams(e, n, &rows));
  PROBE_AS("one row, 1D", cudaGraphExecMemcpyNodeSetParams1D(e, n, r.d2, r.d, kWidth, cudaMemcpyDeviceToDevice));
  rows = Rows(r.d2, r.d, kRows);
  PROBE_AS("rows in place of a row", cudaGraphExecMemcpyNodeSetParams(e, row, &rows));
  rows = Rows(elsewhere, r.d, 1);
  PROBE_AS("a row elsewhere", cudaGraphExecMemcpyNodeSetParams(e, row, &rows));
  cudaGraphNodeParams any = {};
  any.type = cudaGraphNodeTypeMemcpy;
  any.memcpy.copyParams = Rows(elsewhere, r.d, kRows);
  PROBE_AS("another target, any node's call", cudaGraphExecNodeSetParams(e, n, &any));
  // An update of the whole.
  rows = Rows(elsewhere, r.d, kRows);
  REQUIRE_CUDA(cudaGraphCreate(&other, 0));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode(&n, other, nullptr, 0, &rows));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode(&changed, other, &n, 1, &one_row));
  cudaGraphExecUpdateResultInfo info = {};
  PROBE_AS_AND("update with another target", cudaGraphExecUpdate(e, other, &info), "result=%d", info.result);
  NoteCopied(o, "after the update: copied", r, e, elsewhere);
}

// The same of copies that were captured, which is how most come into a graph.
OBSERVE("probe.single.captured_rows_in_an_executable", Once().InOwnProcess()) {
  Rig r(o);
  char* const elsewhere = r.d2 + 4096;
  REQUIRE_CUDA(cudaMemset(r.d, 1, Rig::kBytes));
  const auto capture = [&](const char* name, auto&& copy) {
    cudaGraph_t g;
    cudaGraphNode_t n;
    size_t one = 1;
    cudaGraphExec_t e;
    cudaMemcpy3DParms p = {};
    REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeRelaxed));
    REQUIRE_CUDA(copy());
    REQUIRE_CUDA(cudaStreamEndCapture(r.s, &g));
    REQUIRE_CUDA(cudaGraphGetNodes(g, &n, &one));
    REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
    PROBE_AS_AND(Format("%s: get", name), cudaGraphMemcpyNodeGetParams(n, &p), "extent=%zu %zu %zu kind=%d",
                 p.extent.width, p.extent.height, p.extent.depth, p.kind);
    PROBE_AS(Format("%s: the same", name), cudaGraphExecMemcpyNodeSetParams(e, n, &p));
    p.dstPtr.ptr = elsewhere;
    PROBE_AS(Format("%s: another target", name), cudaGraphExecMemcpyNodeSetParams(e, n, &p));
  };
  capture("rows",
          [&] { return cudaMemcpy2DAsync(r.d2, kPitch, r.d, kPitch, kWidth, kRows, cudaMemcpyDeviceToDevice, r.s); });
  capture("one row",
          [&] { return cudaMemcpy2DAsync(r.d2, kPitch, r.d, kPitch, kWidth, 1, cudaMemcpyDeviceToDevice, r.s); });
  capture("rows without gaps",
          [&] { return cudaMemcpy2DAsync(r.d2, kWidth, r.d, kWidth, kWidth, kRows, cudaMemcpyDeviceToDevice, r.s); });
  capture("rows from the host",
          [&] { return cudaMemcpy2DAsync(r.d2, kPitch, r.h, kPitch, kWidth, kRows, cudaMemcpyHostToDevice, r.s); });
  capture("slices", [&] {
    cudaMemcpy3DParms p = Rows(r.d2, r.d, 2);
    p.extent = {kWidth, 2, 2};
    return cudaMemcpy3DAsync(&p, r.s);
  });
}

// The same of fills.
OBSERVE("probe.single.filled_rows_in_an_executable", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  cudaGraphNode_t n;
  cudaGraphExec_t e;
  cudaMemsetParams p = {};
  p.dst = r.d2;
  p.pitch = kPitch;
  p.value = 1;
  p.elementSize = 1;
  p.width = kWidth;
  p.height = kRows;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &p));
  REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
  PROBE_AS("the same", cudaGraphExecMemsetNodeSetParams(e, n, &p));
  p.dst = r.d2 + 4096;
  PROBE_AS("elsewhere", cudaGraphExecMemsetNodeSetParams(e, n, &p));
  NoteCopied(o, "elsewhere: filled", r, e, p.dst);
  p.height = kRows - 1;
  PROBE_AS("fewer rows", cudaGraphExecMemsetNodeSetParams(e, n, &p));
  p.height = 1;
  PROBE_AS("one row", cudaGraphExecMemsetNodeSetParams(e, n, &p));
}

}  // namespace conformance
