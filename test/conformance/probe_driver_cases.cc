// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Functions of the driver that a program gets from the runtime: addresses without memory, and the kernels of a graph.
#include "test/conformance/rig.h"

namespace conformance {

namespace {

constexpr size_t kUnit = size_t{2} << 20;

// CUDA_KERNEL_NODE_PARAMS_v2.
struct Node {
  void* func;
  unsigned int grid[3], block[3], shared;
  void** params;
  void** extra;
  void* kern;
  void* ctx;
};

// By the driver's ABI.
using GetAttribute = int (*)(void*, int, unsigned long long);
using Reserve = int (*)(unsigned long long*, size_t, size_t, unsigned long long, unsigned long long);
using Unreserve = int (*)(unsigned long long, size_t);
using GetNode = int (*)(cudaGraphNode_t, Node*);
using SetNode = int (*)(cudaGraphExec_t, cudaGraphNode_t, const Node*);
using GetParam = int (*)(void*, size_t, size_t*, size_t*);

template <typename Function>
Function Entry(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status;
  (void)cudaGetDriverEntryPointByVersion(name, &function, CUDART_VERSION, cudaEnableDefault, &status);
  return reinterpret_cast<Function>(function);
}

// The node with its first two arguments, which are pointers, set to others.
int Rebind(cudaGraphExec_t exec, cudaGraphNode_t node, const void* x, const void* y) {
  Node told = {};
  const int code = Entry<GetNode>("cuGraphKernelNodeGetParams")(node, &told);
  if (code != 0) return code;
  void* params[] = {&x, &y, told.params[2]};
  told.params = params;
  return Entry<SetNode>("cuGraphExecKernelNodeSetParams")(exec, node, &told);
}

cudaGraphNode_t AddRelu(cudaGraph_t graph, const void* x, const void* y, int64_t count) {
  void* args[] = {&x, &y, &count};
  cudaKernelNodeParams params = {};
  params.func = const_cast<void*>(kRelu);
  params.gridDim = params.blockDim = dim3(1);
  params.kernelParams = args;
  cudaGraphNode_t node = nullptr;
  (void)cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params);
  return node;
}

cudaGraphNode_t OnlyNode(cudaGraph_t graph) {
  cudaGraphNode_t node = nullptr;
  size_t one = 1;
  (void)cudaGraphGetNodes(graph, &node, &one);
  return node;
}

}  // namespace

OBSERVE("probe.driver.entry_points", Once().InOwnProcess()) {
  for (const char* name :
       {"cuGraphKernelNodeGetParams", "cuGraphExecKernelNodeSetParams", "cuFuncGetParamInfo", "cuKernelGetParamInfo",
        "cuMemAddressReserve", "cuMemAddressFree", "cuFuncGetName", "cuKernelGetName"}) {
    for (unsigned int version : {12000u, 12040u, 13000u}) {
      void* f = Untouched<void>();
      cudaDriverEntryPointQueryResult status = static_cast<cudaDriverEntryPointQueryResult>(77);
      PROBE_AS_AND(Format("%s v%u", name, version),
                   cudaGetDriverEntryPointByVersion(name, &f, version, cudaEnableDefault, &status), "f=%s status=%d",
                   PointerState(f), status);
    }
  }
}

OBSERVE("probe.driver.reserve", Once().InOwnProcess()) {
  REQUIRE_CUDA(cudaFree(nullptr));
  for (size_t bytes : {size_t{4096}, size_t{65536}, kUnit, kUnit / 2 * 3, size_t{64} << 30}) {
    for (size_t alignment : {size_t{0}, size_t{4096}, kUnit}) {
      unsigned long long range = 0;
      const int code = Entry<Reserve>("cuMemAddressReserve")(&range, bytes, alignment, 0, 0);
      std::string answer = Format("%d", code);
      if (code == 0) answer += Format(" free %d", Entry<Unreserve>("cuMemAddressFree")(range, bytes));
      o.Note(Format("%zu align %zu", bytes, alignment), answer);
    }
  }
}

OBSERVE("probe.driver.reserved", Once().InOwnProcess()) {
  Rig r(o);
  unsigned long long range = 0;
  REQUIRE_CUDA(static_cast<cudaError_t>(Entry<Reserve>("cuMemAddressReserve")(&range, kUnit, 0, 0, 0)));
  float* const nowhere = reinterpret_cast<float*>(range);
  cudaPointerAttributes attributes = {};
  PROBE_AS_AND("cudaPointerGetAttributes", cudaPointerGetAttributes(&attributes, nowhere),
               "type=%d device=%d pointer=%s", attributes.type, attributes.device,
               PointerState(attributes.devicePointer));
  unsigned long long value = 0;
  const auto get = Entry<GetAttribute>("cuPointerGetAttribute");
  o.Note("attributes",
         Format("id=%d start=%d size=%d", get(&value, 7, range), get(&value, 11, range), get(&value, 12, range)));
  int64_t count = 16;
  void* args[] = {(void*)&nowhere, (void*)&nowhere, &count};
  const auto capture = [&](const char* step, const std::function<cudaError_t()>& call) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
    REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeGlobal));
    const cudaError_t code = call();
    REQUIRE_CUDA(cudaStreamIsCapturing(r.s, &status));
    const cudaError_t end = cudaStreamEndCapture(r.s, &graph);
    (void)cudaGetLastError();
    o.Call(step, code, Format("capture=%d end=%d", status, end));
    if (graph != nullptr) REQUIRE_CUDA(cudaGraphDestroy(graph));
  };
  capture("memcpy device to device", [&] { return cudaMemcpyAsync(nowhere, r.d, 64, cudaMemcpyDeviceToDevice, r.s); });
  capture("memcpy default", [&] { return cudaMemcpyAsync(nowhere, r.d, 64, cudaMemcpyDefault, r.s); });
  capture("memcpy host to device", [&] { return cudaMemcpyAsync(nowhere, r.h, 64, cudaMemcpyHostToDevice, r.s); });
  capture("memcpy 2D device to device",
          [&] { return cudaMemcpy2DAsync(nowhere, 64, r.d, 64, 32, 2, cudaMemcpyDeviceToDevice, r.s); });
  capture("memset", [&] { return cudaMemsetAsync(nowhere, 1, 64, r.s); });
  capture("memset 2D", [&] { return cudaMemset2DAsync(nowhere, 64, 1, 32, 2, r.s); });
  capture("kernel", [&] { return cudaLaunchKernel(kRelu, dim3(1), dim3(1), args, 0, r.s); });
  REQUIRE_CUDA(static_cast<cudaError_t>(Entry<Unreserve>("cuMemAddressFree")(range, kUnit)));
}

OBSERVE("probe.driver.nodes", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t graph = nullptr, inner = nullptr, middle = nullptr, other = nullptr, child = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphNode_t holder = nullptr, nested = nullptr;
  for (cudaGraph_t* g : {&graph, &inner, &middle, &other}) REQUIRE_CUDA(cudaGraphCreate(g, 0));
  cudaGraphNode_t node = AddRelu(graph, r.x, r.d, 1);
  AddRelu(inner, r.x, r.d, 1);
  REQUIRE_CUDA(cudaGraphAddChildGraphNode(&nested, middle, nullptr, 0, inner));
  REQUIRE_CUDA(cudaGraphAddChildGraphNode(&holder, graph, &node, 1, middle));
  Node told = {};
  o.Note("get", Format("%d", Entry<GetNode>("cuGraphKernelNodeGetParams")(node, &told)));
  o.Note("told", Format("func=%s kern=%s ctx=%s params=%s extra=%s grid=%u first=%d", PointerState(told.func),
                        PointerState(told.kern), PointerState(told.ctx), PointerState(told.params),
                        PointerState(told.extra), told.grid[0], *static_cast<void**>(told.params[0]) == r.x));
  for (size_t i = 0; i < 4; ++i) {
    size_t offset = 77, bytes = 77;
    const int by_func = Entry<GetParam>("cuFuncGetParamInfo")(told.func, i, &offset, &bytes);
    const int by_kern = Entry<GetParam>("cuKernelGetParamInfo")(told.kern, i, &offset, &bytes);
    o.Note(Format("parameter %zu", i), Format("func=%d kern=%d offset=%zu bytes=%zu", by_func, by_kern, offset, bytes));
  }
  o.Note("get of nothing", Format("%d", Entry<GetNode>("cuGraphKernelNodeGetParams")(nullptr, &told)));
  o.Note("get of a child", Format("%d", Entry<GetNode>("cuGraphKernelNodeGetParams")(holder, &told)));
  REQUIRE_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  o.Note("set", Format("%d", Rebind(exec, node, r.d, r.d)));
  REQUIRE_CUDA(cudaGraphChildGraphNodeGetGraph(holder, &child));
  REQUIRE_CUDA(cudaGraphChildGraphNodeGetGraph(OnlyNode(child), &child));
  o.Note("set in a child's child", Format("%d", Rebind(exec, OnlyNode(child), r.d, r.d)));
  o.Note("set by the child's source", Format("%d", Rebind(exec, OnlyNode(inner), r.d, r.d)));
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeGlobal));
  o.Note("set in a capture", Format("%d", Rebind(exec, node, r.d, r.d)));
  cudaGraph_t captured = nullptr;
  REQUIRE_CUDA(cudaStreamEndCapture(r.s, &captured));
  REQUIRE_CUDA(cudaGraphDestroy(captured));
  REQUIRE_CUDA(cudaGraphExecDestroy(exec));

  cudaGraphNode_t second = AddRelu(other, r.d, r.d, 1);
  cudaGraph_t single = nullptr;
  REQUIRE_CUDA(cudaGraphCreate(&single, 0));
  cudaGraphNode_t first = AddRelu(single, r.x, r.d, 1);
  REQUIRE_CUDA(cudaGraphInstantiate(&exec, single, 0));
  cudaGraphExecUpdateResultInfo info = {};
  PROBE(cudaGraphExecUpdate(exec, other, &info));
  o.Note("set by the first graph's node", Format("%d", Rebind(exec, first, r.d, r.d)));
  o.Note("set by the second graph's node", Format("%d", Rebind(exec, second, r.d, r.d)));
  REQUIRE_CUDA(cudaGraphExecDestroy(exec));
  for (cudaGraph_t g : {graph, inner, middle, other, single}) REQUIRE_CUDA(cudaGraphDestroy(g));
}

}  // namespace conformance
