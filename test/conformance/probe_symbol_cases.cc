// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Variables of a device, which the host names by an address of its own.
#include "test/conformance/rig.h"
#include "test/support/kernels/device_kernels.h"

namespace conformance {

namespace {

constexpr size_t kWords = GCAP_TEST_SYMBOL_WORDS, kSymbolBytes = kWords * sizeof(unsigned int);

unsigned int First(const void* symbol) {
  unsigned int word = 0;
  const cudaError_t code = cudaMemcpyFromSymbol(&word, symbol, sizeof(word), 0, cudaMemcpyDeviceToHost);
  return code == cudaSuccess ? word : 0xbad00000u + code;
}

// What the kernel sees of both variables.
std::string Seen(Rig& r) {
  unsigned int* out = reinterpret_cast<unsigned int*>(r.d2);
  void* args[] = {&out};
  unsigned int words[2] = {};
  const void* const kernel = reinterpret_cast<const void*>(gcap_kernel_read_symbols);
  cudaError_t code = cudaLaunchKernel(kernel, dim3(1), dim3(1), args, 0, nullptr);
  if (code == cudaSuccess) code = cudaMemcpy(words, out, sizeof(words), cudaMemcpyDeviceToHost);
  return Format("%d global=%x constant=%x", code, words[0], words[1]);
}

}  // namespace

OBSERVE("probe.symbol.address", Once().InOwnProcess()) {
  Rig r(o);
  const void* const global = gcap_test_symbol_global();
  const void* const constant = gcap_test_symbol_constant();
  void *p = nullptr, *q = nullptr;
  size_t size = 77;
  PROBE_AND(cudaGetSymbolSize(&size, global), "size=%zu", size);
  PROBE_AND(cudaGetSymbolSize(&size, constant), "size=%zu", size);
  PROBE(cudaGetSymbolSize(nullptr, global));
  size = 77;
  PROBE_AND(cudaGetSymbolSize(&size, nullptr), "size=%zu", size);
  PROBE_AND(cudaGetSymbolSize(&size, r.d), "size=%zu", size);
  PROBE_AND(cudaGetSymbolSize(&size, (const char*)global + 4), "size=%zu", size);
  PROBE_AND(cudaGetSymbolAddress(&p, global), "p=%s own=%d", PointerState(p), p != global);
  PROBE_AND(cudaGetSymbolAddress(&q, constant), "q=%s", PointerState(q));
  PROBE(cudaGetSymbolAddress(nullptr, global));
  p = Untouched<void>();
  PROBE_AND(cudaGetSymbolAddress(&p, nullptr), "p=%s", PointerState(p));
  p = Untouched<void>();
  PROBE_AND(cudaGetSymbolAddress(&p, r.d), "p=%s", PointerState(p));
  PROBE_AND(cudaGetSymbolAddress(&p, (const char*)global + 4), "p=%s", PointerState(p));
  PROBE_AND(cudaGetSymbolAddress(&p, kRelu), "p=%s", PointerState(p));
  REQUIRE_CUDA(cudaGetSymbolAddress(&p, global));
  cudaPointerAttributes a = {};
  PROBE_AND(cudaPointerGetAttributes(&a, p), "type=%d device=%d same=%d host=%d", a.type, a.device,
            a.devicePointer == p, a.hostPointer != nullptr);
  PROBE_AND(cudaPointerGetAttributes(&a, q), "type=%d device=%d same=%d host=%d", a.type, a.device,
            a.devicePointer == q, a.hostPointer != nullptr);
  PROBE(cudaMemset(p, 2, 4));
  PROBE(cudaMemset(q, 3, 4));
  o.Note("after fills", Seen(r));
  PROBE(cudaFree(p));
  PROBE(cudaMemcpy(r.d, p, kSymbolBytes, cudaMemcpyDeviceToDevice));
  o.Note("copied", Word(r.d));
  PROBE(cudaMemcpyAsync(p, global, 4, cudaMemcpyHostToDevice, r.s));
  REQUIRE_CUDA(cudaDeviceSynchronize());
  cudaFuncAttributes f;
  PROBE(cudaFuncGetAttributes(&f, global));
}

OBSERVE("probe.symbol.copies", Once().InOwnProcess()) {
  Rig r(o);
  const void* const global = gcap_test_symbol_global();
  const void* const constant = gcap_test_symbol_constant();
  unsigned int words[kWords] = {0x22222222};
  unsigned int back[kWords] = {};
  o.Note("at first", Format("%x %x", First(global), First(constant)));
  o.Note("a kernel at first", Seen(r));
  const auto h2d = cudaMemcpyHostToDevice, d2h = cudaMemcpyDeviceToHost, d2d = cudaMemcpyDeviceToDevice;
  const auto h2h = cudaMemcpyHostToHost, any = cudaMemcpyDefault;
  PROBE(cudaMemcpyToSymbol(global, words, kSymbolBytes, 0, h2d));
  PROBE(cudaMemcpyToSymbol(constant, words, 4, 0, h2d));
  o.Note("a kernel after copies", Seen(r));
  PROBE(cudaMemcpyToSymbol(global, r.d, 4, 0, d2d));
  PROBE(cudaMemcpyToSymbol(global, words, 4, 60, any));
  PROBE(cudaMemcpyToSymbol(global, words, 4, 0, any));
  PROBE(cudaMemcpyToSymbol(global, words, 4, 0, d2h));
  PROBE(cudaMemcpyToSymbol(global, words, 4, 0, h2h));
  PROBE(cudaMemcpyToSymbol(global, words, 4, 0, (cudaMemcpyKind)9));
  PROBE(cudaMemcpyToSymbol(global, words, 4, 61, h2d));
  PROBE(cudaMemcpyToSymbol(global, words, 4, 64, h2d));
  PROBE(cudaMemcpyToSymbol(global, words, 0, 64, h2d));
  PROBE(cudaMemcpyToSymbol(global, words, 0, 65, h2d));
  PROBE(cudaMemcpyToSymbol(global, words, 65, 0, h2d));
  PROBE(cudaMemcpyToSymbol(global, words, 8, SIZE_MAX - 3, h2d));
  PROBE(cudaMemcpyToSymbol(global, nullptr, 4, 0, h2d));
  PROBE(cudaMemcpyToSymbol(global, nullptr, 0, 0, h2d));
  PROBE(cudaMemcpyToSymbol(nullptr, words, 4, 0, h2d));
  PROBE(cudaMemcpyToSymbol(nullptr, words, 0, 0, h2d));
  PROBE(cudaMemcpyToSymbol(r.d, words, 4, 0, h2d));
  PROBE(cudaMemcpyToSymbol(kRelu, words, 4, 0, h2d));
  PROBE(cudaMemcpyToSymbol(nullptr, words, 4, 0, d2h));
  PROBE(cudaMemcpyToSymbol(nullptr, words, 4, 65, h2d));
  PROBE(cudaMemcpyToSymbol(global, r.d, 4, 0, h2d));
  PROBE(cudaMemcpyToSymbol(global, words, 4, 0, d2d));
  PROBE_AND(cudaMemcpyFromSymbol(back, global, kSymbolBytes, 0, d2h), "%x", back[0]);
  PROBE_AND(cudaMemcpyFromSymbol(back, constant, 4, 0, d2h), "%x", back[0]);
  PROBE_AND(cudaMemcpyFromSymbol(back, global, 4, 0, any), "%x", back[0]);
  PROBE(cudaMemcpyFromSymbol(r.d, global, 4, 0, d2d));
  PROBE(cudaMemcpyFromSymbol(back, global, 4, 0, h2d));
  PROBE(cudaMemcpyFromSymbol(back, global, 4, 0, h2h));
  PROBE(cudaMemcpyFromSymbol(back, global, 4, 61, d2h));
  PROBE(cudaMemcpyFromSymbol(nullptr, global, 4, 0, d2h));
  PROBE(cudaMemcpyFromSymbol(back, nullptr, 4, 0, d2h));
  PROBE(cudaMemcpyFromSymbol(back, r.d, 4, 0, d2h));
  PROBE(cudaMemcpyToSymbolAsync(global, words, 4, 0, h2d, r.s));
  PROBE(cudaMemcpyToSymbolAsync(global, words, 4, 61, h2d, r.s));
  PROBE(cudaMemcpyToSymbolAsync(global, words, 4, 0, d2h, r.s));
  PROBE(cudaMemcpyToSymbolAsync(global, words, 4, 0, (cudaMemcpyKind)9, r.s));
  PROBE(cudaMemcpyToSymbolAsync(nullptr, words, 4, 0, h2d, r.s));
  PROBE(cudaMemcpyToSymbolAsync(global, words, 4, 0, h2d, nullptr));
  PROBE(cudaMemcpyFromSymbolAsync(r.h, global, 4, 0, d2h, r.s));
  PROBE(cudaMemcpyFromSymbolAsync(r.h, global, 4, 61, d2h, r.s));
  PROBE(cudaMemcpyFromSymbolAsync(r.h, global, 4, 0, h2d, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("in pinned memory", Format("%x", *reinterpret_cast<unsigned int*>(r.h)));
  unsigned int two = 2;
  void* args[] = {&two};
  REQUIRE_CUDA(cudaLaunchKernel((const void*)gcap_kernel_add_to_symbol, dim3(1), dim3(1), args, 0, r.s));
  REQUIRE_CUDA(cudaStreamSynchronize(r.s));
  o.Note("a kernel added", Format("%x", First(global)));
}

namespace {

struct SymbolNode {
  cudaGraph_t g = nullptr;
  cudaGraphNode_t to = nullptr, from = nullptr, plain = nullptr, fill = nullptr;
};

// An address among the variables of the device, or else: which memory is it?
const char* WhoseAddress(const void* p, const Rig& r) {
  void *global = nullptr, *constant = nullptr;
  (void)cudaGetSymbolAddress(&global, gcap_test_symbol_global());
  (void)cudaGetSymbolAddress(&constant, gcap_test_symbol_constant());
  const auto within = [p](const void* base, size_t bytes) {
    return p >= base && p < static_cast<const char*>(base) + bytes;
  };
  if (p == nullptr) return "NULL";
  if (within(global, kSymbolBytes)) return p == global ? "global" : "in global";
  if (within(constant, kSymbolBytes)) return "constant";
  if (within(r.d, Rig::kBytes)) return "d";
  if (within(r.h, Rig::kBytes)) return "h";
  return "other";
}

void NoteCopy(Observer& o, const Rig& r, const std::string& step, cudaGraphNode_t node) {
  cudaMemcpy3DParms p = {};
  cudaGraphNodeType type = cudaGraphNodeTypeCount;
  if (node == nullptr) return;
  REQUIRE_CUDA(cudaGraphNodeGetType(node, &type));
  PROBE_AS_AND(step, cudaGraphMemcpyNodeGetParams(node, &p), "type=%d from=%s to=%s width=%zu kind=%d pitch=%zu,%zu",
               type, WhoseAddress(p.srcPtr.ptr, r), WhoseAddress(p.dstPtr.ptr, r), p.extent.width, p.kind,
               p.srcPtr.pitch, p.dstPtr.pitch);
}

}  // namespace

OBSERVE("probe.symbol.nodes", Once().InOwnProcess()) {
  Rig r(o);
  const void* const global = gcap_test_symbol_global();
  const void* const constant = gcap_test_symbol_constant();
  const auto h2d = cudaMemcpyHostToDevice, d2h = cudaMemcpyDeviceToHost, d2d = cudaMemcpyDeviceToDevice;
  SymbolNode s;
  cudaGraphNode_t n = nullptr;
  REQUIRE_CUDA(cudaGraphCreate(&s.g, 0));
  reinterpret_cast<unsigned int*>(r.h)[0] = 0x33333333;
  PROBE(cudaGraphAddMemcpyNodeToSymbol(&s.to, s.g, nullptr, 0, global, r.h, 8, 4, h2d));
  NoteCopy(o, r, "to global", s.to);
  PROBE(cudaGraphAddMemcpyNodeFromSymbol(&s.from, s.g, &s.to, 1, r.d, global, 8, 4, d2d));
  NoteCopy(o, r, "from global", s.from);
  PROBE(cudaGraphAddMemcpyNodeToSymbol(&n, s.g, nullptr, 0, constant, r.h, 4, 0, cudaMemcpyDefault));
  NoteCopy(o, r, "to constant", n);
  PROBE(cudaGraphAddMemcpyNodeToSymbol(nullptr, s.g, nullptr, 0, global, r.h, 8, 0, h2d));
  PROBE(cudaGraphAddMemcpyNodeToSymbol(&n, nullptr, nullptr, 0, global, r.h, 8, 0, h2d));
  PROBE(cudaGraphAddMemcpyNodeToSymbol(&n, s.g, nullptr, 1, global, r.h, 8, 0, h2d));
  PROBE(cudaGraphAddMemcpyNodeToSymbol(&n, s.g, nullptr, 0, nullptr, r.h, 8, 0, h2d));
  PROBE(cudaGraphAddMemcpyNodeToSymbol(&n, s.g, nullptr, 0, r.d, r.h, 8, 0, h2d));
  PROBE(cudaGraphAddMemcpyNodeToSymbol(&n, s.g, nullptr, 0, global, nullptr, 8, 0, h2d));
  PROBE(cudaGraphAddMemcpyNodeToSymbol(&n, s.g, nullptr, 0, global, r.h, 65, 0, h2d));
  PROBE(cudaGraphAddMemcpyNodeToSymbol(&n, s.g, nullptr, 0, global, r.h, 8, 57, h2d));
  PROBE(cudaGraphAddMemcpyNodeToSymbol(&n, s.g, nullptr, 0, global, r.h, 0, 0, h2d));
  PROBE(cudaGraphAddMemcpyNodeToSymbol(&n, s.g, nullptr, 0, global, r.h, 8, 0, d2h));
  PROBE(cudaGraphAddMemcpyNodeToSymbol(&n, s.g, nullptr, 0, global, r.h, 8, 0, (cudaMemcpyKind)9));
  PROBE(cudaGraphAddMemcpyNodeFromSymbol(&n, s.g, nullptr, 0, r.h, nullptr, 8, 0, d2h));
  PROBE(cudaGraphAddMemcpyNodeFromSymbol(&n, s.g, nullptr, 0, nullptr, global, 8, 0, d2h));
  PROBE(cudaGraphAddMemcpyNodeFromSymbol(&n, s.g, nullptr, 0, r.h, global, 65, 0, d2h));
  PROBE(cudaGraphAddMemcpyNodeFromSymbol(&n, s.g, nullptr, 0, r.h, global, 8, 0, h2d));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode1D(&s.plain, s.g, &s.from, 1, r.h, r.d, 8, d2h));
  auto fill = r.Fill(1);
  fill.dst = r.d2 + 4096;
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&s.fill, s.g, nullptr, 0, &fill));
  o.Note("nodes", Format("%zu", CountNodes(s.g)));
  cudaGraphExec_t e = nullptr;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, s.g, 0));
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("d", Word(r.d));
  PROBE(cudaGraphExecMemcpyNodeSetParamsToSymbol(e, s.to, global, r.h, 4, 0, h2d));
  PROBE(cudaGraphExecMemcpyNodeSetParamsToSymbol(e, s.to, global, r.d2, 4, 0, d2d));
  PROBE(cudaGraphExecMemcpyNodeSetParamsToSymbol(e, s.to, constant, r.h, 4, 0, h2d));
  PROBE(cudaGraphExecMemcpyNodeSetParamsToSymbol(e, s.to, global, r.h, 65, 0, h2d));
  PROBE(cudaGraphExecMemcpyNodeSetParamsToSymbol(e, s.to, nullptr, r.h, 4, 0, h2d));
  PROBE(cudaGraphExecMemcpyNodeSetParamsToSymbol(e, s.to, global, nullptr, 4, 0, h2d));
  PROBE(cudaGraphExecMemcpyNodeSetParamsToSymbol(e, s.to, global, r.h, 4, 0, d2h));
  PROBE(cudaGraphExecMemcpyNodeSetParamsToSymbol(e, s.fill, global, r.h, 4, 0, h2d));
  PROBE(cudaGraphExecMemcpyNodeSetParamsToSymbol(e, nullptr, global, r.h, 4, 0, h2d));
  PROBE(cudaGraphExecMemcpyNodeSetParamsToSymbol(nullptr, s.to, global, r.h, 4, 0, h2d));
  PROBE(cudaGraphExecMemcpyNodeSetParamsFromSymbol(e, s.from, r.d2, global, 4, 0, d2d));
  PROBE(cudaGraphExecMemcpyNodeSetParamsFromSymbol(e, s.from, r.h, global, 4, 0, d2h));
  PROBE(cudaGraphExecMemcpyNodeSetParamsFromSymbol(e, s.plain, r.h, global, 4, 0, d2h));
  PROBE(cudaGraphExecMemcpyNodeSetParams1D(e, s.to, r.d, r.h, 4, h2d));
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("global", Format("%x", First(global)));
  PROBE(cudaGraphMemcpyNodeSetParamsToSymbol(s.to, constant, r.h, 4, 0, h2d));
  NoteCopy(o, r, "set to constant", s.to);
  PROBE(cudaGraphMemcpyNodeSetParamsToSymbol(s.to, global, r.d, 4, 0, d2d));
  PROBE(cudaGraphMemcpyNodeSetParamsToSymbol(s.to, nullptr, r.h, 4, 0, h2d));
  PROBE(cudaGraphMemcpyNodeSetParamsToSymbol(s.to, global, r.h, 4, 61, h2d));
  PROBE(cudaGraphMemcpyNodeSetParamsToSymbol(s.fill, global, r.h, 4, 0, h2d));
  PROBE(cudaGraphMemcpyNodeSetParamsToSymbol(nullptr, global, r.h, 4, 0, h2d));
  PROBE(cudaGraphMemcpyNodeSetParamsFromSymbol(s.to, r.h, global, 4, 0, d2h));
  NoteCopy(o, r, "turned round", s.to);
  PROBE(cudaGraphMemcpyNodeSetParamsFromSymbol(s.plain, r.h, global, 4, 8, d2h));
  NoteCopy(o, r, "plain one", s.plain);
  PROBE(cudaGraphMemcpyNodeSetParams1D(s.from, r.d, r.h, 4, h2d));
  NoteCopy(o, r, "made plain", s.from);
}

// What nodes of one row tell of themselves, whoever made them.
OBSERVE("probe.symbol.rows", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g = nullptr;
  cudaGraphNode_t nodes[4] = {};
  size_t count = 4;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode1D(&nodes[0], g, nullptr, 0, r.d, r.h, 64, cudaMemcpyHostToDevice));
  NoteCopy(o, r, "made", nodes[0]);
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeThreadLocal));
  REQUIRE_CUDA(cudaMemcpyAsync(r.d, r.h, 64, cudaMemcpyHostToDevice, r.s));
  REQUIRE_CUDA(cudaMemcpy2DAsync(r.d, 128, r.h, 64, 64, 1, cudaMemcpyHostToDevice, r.s));
  REQUIRE_CUDA(cudaMemcpy2DAsync(r.d, 128, r.h, 64, 64, 2, cudaMemcpyHostToDevice, r.s));
  REQUIRE_CUDA(cudaMemcpyToSymbolAsync(gcap_test_symbol_global(), r.h, 8, 4, cudaMemcpyHostToDevice, r.s));
  REQUIRE_CUDA(cudaStreamEndCapture(r.s, &g));
  REQUIRE_CUDA(cudaGraphGetNodes(g, nodes, &count));
  NoteCopy(o, r, "captured", nodes[0]);
  NoteCopy(o, r, "captured, one row of two dimensions", nodes[1]);
  NoteCopy(o, r, "captured, two rows", nodes[2]);
  NoteCopy(o, r, "captured, to a variable", nodes[3]);
}

OBSERVE("probe.symbol.capture", EachThreadAndMode().InOwnProcess()) {
  Rig r(o);
  const void* const global = gcap_test_symbol_global();
  const void* const constant = gcap_test_symbol_constant();
  const auto h2d = cudaMemcpyHostToDevice, d2h = cudaMemcpyDeviceToHost;
  void* p = nullptr;
  size_t size = 0;
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, o.mode()));
  OnActor(o, [&] {
    PROBE_AND(cudaGetSymbolAddress(&p, global), "status=%s", Status(r.s).c_str());
    PROBE_AND(cudaGetSymbolSize(&size, global), "status=%s", Status(r.s).c_str());
    PROBE_AND(cudaMemcpyToSymbolAsync(global, r.h, 4, 0, h2d, r.s), "status=%s", Status(r.s).c_str());
    PROBE_AND(cudaMemcpyToSymbolAsync(constant, r.pageable, 4, 0, h2d, r.s), "status=%s", Status(r.s).c_str());
    PROBE_AND(cudaMemcpyFromSymbolAsync(r.h, global, 4, 0, d2h, r.s), "status=%s", Status(r.s).c_str());
    PROBE_AND(cudaMemcpyToSymbolAsync(global, r.h, 4, 0, h2d, r.s2), "status=%s", Status(r.s).c_str());
    PROBE_AND(cudaMemcpyToSymbolAsync(global, r.h, 4, 61, h2d, r.s), "status=%s", Status(r.s).c_str());
    PROBE_AND(cudaMemcpyToSymbolAsync(nullptr, r.h, 4, 0, h2d, r.s), "status=%s", Status(r.s).c_str());
    PROBE_AND(cudaMemcpyToSymbol(global, r.h, 4, 0, h2d), "status=%s", Status(r.s).c_str());
    PROBE_AND(cudaMemcpyFromSymbol(r.h, global, 4, 0, d2h), "status=%s", Status(r.s).c_str());
  });
  cudaGraph_t g = EndCapture(o, "end", r.s);
  if (g != nullptr) REQUIRE_CUDA(cudaGraphDestroy(g));
}

OBSERVE("probe.symbol.copy_beside_blocking", EachMode().InOwnProcess()) {
  Rig r(o);
  REQUIRE_CUDA(cudaStreamBeginCapture(r.blocking, o.mode()));
  PROBE_AND(cudaMemcpyToSymbol(gcap_test_symbol_global(), r.h, 4, 0, cudaMemcpyHostToDevice), "status=%s",
            Status(r.blocking).c_str());
  cudaGraph_t g = EndCapture(o, "end", r.blocking);
  if (g != nullptr) REQUIRE_CUDA(cudaGraphDestroy(g));
}

}  // namespace conformance
