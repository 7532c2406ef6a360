// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// What tests written for GPUs found the simulator to answer otherwise than a GPU, and what is near. What no recorded
// case asks is in //test/sim:answers_test.
#include <cstring>
#include <string>
#include <vector>

#include "test/conformance/rig.h"

namespace conformance {

// --- Copies and fills -----------------------------------------------------------------------------------------------

namespace {

constexpr size_t kRow = 64, kRows = 4, kSlices = 8;  // 2,048 bytes of the rig's memory

cudaMemcpy3DParms Slices(const Rig& r) {
  cudaMemcpy3DParms p = {};
  p.srcPtr = {r.d, kRow, kRow, kRows};
  p.dstPtr = {r.d2, kRow, kRow, kRows};
  p.extent = {kRow, kRows, kSlices};
  p.kind = cudaMemcpyDeviceToDevice;
  return p;
}

// Every call that takes such parameters.
void ProbeCopies(Observer& o, Rig& r, const std::string& name, const cudaMemcpy3DParms& p) {
  cudaGraph_t g;
  cudaGraphNode_t node, good;
  cudaGraphExec_t e;
  const auto row = r.Copy(r.d2, r.d, kRow, cudaMemcpyDeviceToDevice);
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode(&good, g, nullptr, 0, &row));
  REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
  PROBE_AS(name + ": copy", cudaMemcpy3D(&p));
  PROBE_AS(name + ": copy async", cudaMemcpy3DAsync(&p, r.s));
  PROBE_AS(name + ": add", cudaGraphAddMemcpyNode(&node, g, nullptr, 0, &p));
  PROBE_AS(name + ": set", cudaGraphMemcpyNodeSetParams(good, &p));
  PROBE_AS(name + ": set in the executable", cudaGraphExecMemcpyNodeSetParams(e, good, &p));
  REQUIRE_CUDA(cudaDeviceSynchronize());
  REQUIRE_CUDA(cudaGraphExecDestroy(e));
  REQUIRE_CUDA(cudaGraphDestroy(g));
}

}  // namespace

OBSERVE("probe.answers.copy_slices", Once().InOwnProcess()) {
  Rig r(o);
  const auto probe = [&](const char* name, void (*change)(cudaMemcpy3DParms&)) {
    auto p = Slices(r);
    change(p);
    ProbeCopies(o, r, name, p);
  };
  probe("target pitch too small", [](cudaMemcpy3DParms& p) { p.dstPtr.pitch = kRow - 1; });
  probe("source pitch too small", [](cudaMemcpy3DParms& p) { p.srcPtr.pitch = kRow - 1; });
  probe("target slice too small", [](cudaMemcpy3DParms& p) { p.dstPtr.ysize = kRows - 1; });
  probe("source slice too small", [](cudaMemcpy3DParms& p) { p.srcPtr.ysize = kRows - 1; });
  probe("target position y 1", [](cudaMemcpy3DParms& p) { p.dstPos.y = 1; });
  probe("source position y 1", [](cudaMemcpy3DParms& p) { p.srcPos.y = 1; });
  probe("target position x 1", [](cudaMemcpy3DParms& p) { p.dstPos.x = 1; });
  probe("rows of one slice, pitch too small", [](cudaMemcpy3DParms& p) {
    p.extent.depth = 1;
    p.dstPtr.pitch = kRow - 1;
  });
  probe("one row, pitch too small", [](cudaMemcpy3DParms& p) {
    p.extent.height = p.extent.depth = 1;
    p.dstPtr.pitch = kRow - 1;
  });
  probe("position y 1 and the other pitch too small", [](cudaMemcpy3DParms& p) {
    p.srcPos.y = 1;
    p.dstPtr.pitch = kRow - 1;
  });
}

OBSERVE("probe.answers.copy_from_nowhere", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  cudaGraphNode_t n = nullptr, good;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphAddMemcpyNode1D(&good, g, nullptr, 0, r.d, r.d2, 64, cudaMemcpyDeviceToDevice));
  void* const low = reinterpret_cast<void*>(0x10);
  PROBE(cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, r.d, low, 64, cudaMemcpyDeviceToDevice));
  PROBE(cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, r.d, r.pageable, 64, cudaMemcpyDeviceToDevice));
  PROBE(cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, r.pageable, r.d, 64, cudaMemcpyDeviceToDevice));
  PROBE(cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, r.pageable, r.h, 64, cudaMemcpyHostToDevice));
  PROBE(cudaGraphAddMemcpyNode1D(&n, g, nullptr, 0, r.h, r.pageable, 64, cudaMemcpyDeviceToHost));
  PROBE(cudaGraphMemcpyNodeSetParams1D(good, r.d, low, 64, cudaMemcpyDeviceToDevice));
  auto p = r.Copy(r.d, low, 64, cudaMemcpyDeviceToDevice);
  PROBE_AS("parameters, a low address", cudaGraphAddMemcpyNode(&n, g, nullptr, 0, &p));
  p = r.Copy(r.d, r.pageable, 64, cudaMemcpyDeviceToDevice);
  PROBE_AS("parameters, pageable memory", cudaGraphAddMemcpyNode(&n, g, nullptr, 0, &p));
}

OBSERVE("probe.answers.copy_boxes", EachMode().InOwnProcess()) {
  Rig r(o);
  cudaMemcpy3DBatchOp op = {};
  op.dst.type = op.src.type = cudaMemcpyOperandTypePointer;
  op.dst.op.ptr.ptr = r.d;
  op.src.op.ptr.ptr = r.d2;
  op.extent = {64, 2, 2};
  op.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  PROBE(cudaMemcpy3DBatchAsync(1, &op, 0, r.s));
  PROBE(cudaMemcpy3DBatchAsync(0, &op, 0, r.s));
  PROBE(cudaMemcpy3DBatchAsync(1, nullptr, 0, r.s));
  PROBE(cudaMemcpy3DBatchAsync(1, &op, 1, r.s));
  PROBE(cudaMemcpy3DBatchAsync(1, &op, 0, nullptr));
  auto bad = op;
  bad.src.op.ptr.rowLength = 63;
  PROBE_AS("row too short", cudaMemcpy3DBatchAsync(1, &bad, 0, r.s));
  bad = op;
  bad.src.op.ptr.layerHeight = 1;
  PROBE_AS("layer too low", cudaMemcpy3DBatchAsync(1, &bad, 0, r.s));
  bad = op;
  bad.extent.depth = 0;
  PROBE_AS("depth 0", cudaMemcpy3DBatchAsync(1, &bad, 0, r.s));
  bad = op;
  bad.srcAccessOrder = cudaMemcpySrcAccessOrderInvalid;
  PROBE_AS("no access order", cudaMemcpy3DBatchAsync(1, &bad, 0, r.s));
  REQUIRE_CUDA(cudaStreamSynchronize(r.s));
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, o.mode()));
  PROBE_AS_AND("in a capture", cudaMemcpy3DBatchAsync(1, &op, 0, r.s), "status=%s", Status(r.s).c_str());
  cudaGraph_t g = EndCapture(o, "end", r.s);
  if (g != nullptr) REQUIRE_CUDA(cudaGraphDestroy(g));
}

OBSERVE("probe.answers.fill_slices", Once().InOwnProcess()) {
  Rig r(o);
  const cudaPitchedPtr to = {r.d, 64, 64, 4};
  PROBE(cudaMemset3D(to, 1, {64, 4, 8}));
  PROBE(cudaMemset3DAsync(to, 1, {32, 2, 8}, r.s));
  PROBE(cudaMemset3D(to, 1, {0, 4, 8}));
  PROBE(cudaMemset3D(to, 1, {64, 0, 8}));
  PROBE(cudaMemset3D(to, 1, {64, 4, 0}));
  PROBE(cudaMemset3D(to, 1, {65, 4, 8}));
  PROBE(cudaMemset3D(to, 1, {64, 5, 8}));
  PROBE(cudaMemset3D(to, 1, {64, 4, 33}));
  PROBE(cudaMemset3D({nullptr, 64, 64, 4}, 1, {64, 4, 8}));
  PROBE(cudaMemset3D({r.pageable, 64, 64, 4}, 1, {64, 4, 8}));
  REQUIRE_CUDA(cudaDeviceSynchronize());
  const auto captured = [&](const char* name, cudaExtent extent) {
    cudaGraph_t g = nullptr;
    REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeRelaxed));
    REQUIRE_CUDA(cudaMemset3DAsync(to, 1, extent, r.s));
    REQUIRE_CUDA(cudaStreamEndCapture(r.s, &g));
    o.Note(name, Format("types=%s", NodeTypes(g).c_str()));
    REQUIRE_CUDA(cudaGraphDestroy(g));
  };
  captured("captured, whole slices", {64, 4, 8});
  captured("captured, parts of slices", {32, 2, 3});
}

OBSERVE("probe.answers.fill_of_nothing", EachMode().InOwnProcess()) {
  Rig r(o);
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, o.mode()));
  PROBE_AND(cudaMemsetAsync(nullptr, 1, 64, r.s), "status=%s", Status(r.s).c_str());
  PROBE_AND(cudaMemset2DAsync(nullptr, 64, 1, 64, 2, r.s), "status=%s", Status(r.s).c_str());
  cudaGraph_t g = EndCapture(o, "end", r.s);
  if (g != nullptr) REQUIRE_CUDA(cudaGraphDestroy(g));
}

// --- Nodes ----------------------------------------------------------------------------------------------------------

OBSERVE("probe.answers.window", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  cudaGraphNode_t n;
  const auto k = r.Kernel();
  int most = 0;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphAddKernelNode(&n, g, nullptr, 0, &k));
  REQUIRE_CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxAccessPolicyWindowSize, 0));
  const auto probe = [&](const char* name, size_t bytes, float ratio, cudaAccessProperty hit, cudaAccessProperty miss) {
    cudaLaunchAttributeValue v = {};
    v.accessPolicyWindow = {r.d, bytes, ratio, hit, miss};
    PROBE_AS(name, cudaGraphKernelNodeSetAttribute(n, cudaLaunchAttributeAccessPolicyWindow, &v));
  };
  const auto persist = cudaAccessPropertyPersisting, stream = cudaAccessPropertyStreaming;
  probe("good", 4096, 1.0f, persist, stream);
  probe("too many bytes", static_cast<size_t>(most) + 1, 1.0f, persist, stream);
  probe("ratio 1.1", 4096, 1.1f, persist, stream);
  probe("ratio -0.1", 4096, -0.1f, persist, stream);
  probe("misses persist", 4096, 1.0f, persist, persist);
  probe("hit property 9", 4096, 1.0f, static_cast<cudaAccessProperty>(9), stream);
}

OBSERVE("probe.answers.allocation_access", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  cudaGraphNode_t n = nullptr;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  std::vector<cudaMemAccessDesc> descs(20, {{cudaMemLocationTypeDevice, 0}, cudaMemAccessFlagsProtReadWrite});
  cudaMemAllocNodeParams p = {};
  const auto probe = [&](const char* name, size_t count) {
    p = {};
    p.poolProps.allocType = cudaMemAllocationTypePinned;
    p.poolProps.location = {cudaMemLocationTypeDevice, 0};
    p.bytesize = 4096;
    p.accessDescs = descs.data();
    p.accessDescCount = count;
    PROBE_AS(name, cudaGraphAddMemAllocNode(&n, g, nullptr, 0, &p));
  };
  int devices = 0;
  REQUIRE_CUDA(cudaGetDeviceCount(&devices));
  probe("device 0 for each device", static_cast<size_t>(devices));
  probe("more than devices", descs.size());
  descs[0].flags = cudaMemAccessFlagsProtRead;
  probe("read", 1);
  descs[0].flags = cudaMemAccessFlagsProtNone;
  probe("none", 1);
  descs[0].flags = static_cast<cudaMemAccessFlags>(7);
  probe("flags 7", 1);
  descs[0] = {{cudaMemLocationTypeHost, 0}, cudaMemAccessFlagsProtReadWrite};
  probe("the host", 1);
  descs[0] = {{cudaMemLocationTypeDevice, 99}, cudaMemAccessFlagsProtReadWrite};
  probe("device 99", 1);
  descs[0].location.id = 0;
  probe("good", 1);
  cudaMemAllocNodeParams q = {};
  const auto first = [&] { return q.accessDescCount == 0 ? -1 : static_cast<int>(q.accessDescs[0].flags); };
  descs[0].flags = cudaMemAccessFlagsProtNone;
  PROBE_AND(cudaGraphMemAllocNodeGetParams(n, &q), "count=%zu own=%d flags=%d", q.accessDescCount,
            q.accessDescs != nullptr && q.accessDescs != descs.data(), first());
}

OBSERVE("probe.answers.roots", Once().InOwnProcess()) {
  Rig r(o);
  const auto note = [&](const char* name, cudaGraph_t g) {
    cudaGraphNode_t all[8], roots[8];
    size_t num_all = 8, num_roots = 8;
    REQUIRE_CUDA(cudaGraphGetNodes(g, all, &num_all));
    REQUIRE_CUDA(cudaGraphGetRootNodes(g, roots, &num_roots));
    std::string places;
    for (size_t i = 0; i < num_roots; ++i) {
      for (size_t k = 0; k < num_all; ++k) {
        if (all[k] == roots[i]) places += Format(" %zu", k);
      }
    }
    o.Note(name, "places" + places);
  };
  cudaGraph_t g;
  cudaGraphNode_t n, first;
  const auto k = r.Kernel();
  const auto f = r.Fill(1);
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphAddKernelNode(&first, g, nullptr, 0, &k));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &f));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&n, g, &first, 1, &f));
  REQUIRE_CUDA(cudaGraphAddMemsetNode(&n, g, nullptr, 0, &f));
  note("by hand", g);
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeRelaxed));
  REQUIRE_CUDA(cudaEventRecord(r.e2, r.s));
  REQUIRE_CUDA(cudaStreamWaitEvent(r.s2, r.e2, 0));
  REQUIRE_CUDA(cudaMemsetAsync(r.d, 1, 4, r.s));
  REQUIRE_CUDA(cudaMemsetAsync(r.d2, 1, 8, r.s2));
  REQUIRE_CUDA(cudaEventRecord(r.e2, r.s2));
  REQUIRE_CUDA(cudaStreamWaitEvent(r.s, r.e2, 0));
  REQUIRE_CUDA(cudaStreamEndCapture(r.s, &g));
  note("captured", g);
}

OBSERVE("probe.answers.addresses_again", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  const auto alloc = [&](const std::vector<cudaGraphNode_t>& deps, size_t bytes, void** out) {
    cudaMemAllocNodeParams p = {};
    p.poolProps.allocType = cudaMemAllocationTypePinned;
    p.poolProps.location = {cudaMemLocationTypeDevice, 0};
    p.bytesize = bytes;
    cudaGraphNode_t n = nullptr;
    REQUIRE_CUDA(cudaGraphAddMemAllocNode(&n, g, deps.data(), deps.size(), &p));
    *out = p.dptr;
    return n;
  };
  void *first, *beside, *apart, *larger, *smaller, *again, *twice;
  cudaGraphNode_t a = alloc({}, 4096, &first), freed;
  REQUIRE_CUDA(cudaGraphAddMemFreeNode(&freed, g, &a, 1, first));
  alloc({a}, 4096, &beside);
  alloc({}, 4096, &apart);
  alloc({freed}, size_t{64} << 20, &larger);
  alloc({freed}, 4096, &again);
  alloc({freed}, 4096, &twice);
  alloc({freed}, 512, &smaller);
  o.Note("the same address", Format("beside=%d apart=%d larger=%d again=%d twice=%d smaller=%d", first == beside,
                                    first == apart, first == larger, first == again, first == twice, first == smaller));
}

// --- Executables ----------------------------------------------------------------------------------------------------

OBSERVE("probe.answers.flags_told", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  cudaGraphNode_t n;
  const auto k = r.Kernel();
  REQUIRE_CUDA(cudaGraphCreate(&g, 0));
  REQUIRE_CUDA(cudaGraphAddKernelNode(&n, g, nullptr, 0, &k));
  for (unsigned flags : {0u, 1u, 2u, 3u, 4u, 6u, 8u, 10u, 12u}) {
    cudaGraphInstantiateParams p = {};
    p.flags = flags;
    p.uploadStream = r.s;
    cudaGraphExec_t e = nullptr;
    unsigned long long got = 99;
    PROBE_AS(Format("with params %u", flags), cudaGraphInstantiateWithParams(&e, g, &p));
    if (e == nullptr) continue;
    PROBE_AS_AND(Format("flags of it %u", flags), cudaGraphExecGetFlags(e, &got), "flags=%llu", got);
    PROBE_AS(Format("launch %u", flags), cudaGraphLaunch(e, r.s));
    PROBE_AS(Format("wait %u", flags), cudaStreamSynchronize(r.s));
    REQUIRE_CUDA(cudaGraphExecDestroy(e));
  }
  cudaGraphExec_t e = nullptr;
  PROBE(cudaGraphInstantiate(&e, g, cudaGraphInstantiateFlagDeviceLaunch));
  PROBE(cudaGraphInstantiateWithFlags(&e, g, cudaGraphInstantiateFlagDeviceLaunch));
}

// --- Streams and events ---------------------------------------------------------------------------------------------

OBSERVE("probe.answers.into_no_graph", EachMode().InOwnProcess()) {
  Rig r(o);
  PROBE_AND(cudaStreamBeginCaptureToGraph(r.s, nullptr, nullptr, nullptr, 0, o.mode()), "status=%s",
            Status(r.s).c_str());
}

OBSERVE("probe.answers.elapsed", Once().InOwnProcess()) {
  Rig r(o);
  cudaEvent_t never, start;
  float ms = 0;
  REQUIRE_CUDA(cudaEventCreate(&never));
  REQUIRE_CUDA(cudaEventCreate(&start));
  Gate gate;
  REQUIRE_CUDA(gate.Hold(r.s));
  REQUIRE_CUDA(cudaEventRecord(start, r.s));
  REQUIRE_CUDA(cudaEventRecord(r.e2, r.s));
  PROBE(cudaEventElapsedTime(&ms, start, never));
  PROBE(cudaEventElapsedTime(&ms, start, r.e2));
  PROBE(cudaEventElapsedTime(&ms, start, nullptr));
  PROBE(cudaEventElapsedTime(nullptr, start, never));
  PROBE(cudaEventElapsedTime(&ms, start, start));
  gate.Open();
  PROBE(cudaStreamSynchronize(r.s));
}

OBSERVE("probe.answers.query_legacy", Once().InOwnProcess()) {
  Rig r(o);
  Gate gate;
  REQUIRE_CUDA(gate.Hold(r.blocking));
  PROBE(cudaStreamQuery(nullptr));
  PROBE(cudaStreamQuery(cudaStreamLegacy));
  PROBE(cudaStreamQuery(r.s));
  gate.Open();
  PROBE(cudaDeviceSynchronize());
  PROBE(cudaStreamQuery(nullptr));
}

// --- Devices, pools, host memory ------------------------------------------------------------------------------------

OBSERVE("probe.answers.device", Once().InOwnProcess()) {
  char bus[32];
  int v = 0;
  REQUIRE_CUDA(cudaFree(nullptr));
  for (int room : {1, 6, 12}) {
    memset(bus, 1, sizeof(bus));
    const std::string step = Format("bus id, %d bytes", room);
    PROBE_AS_AND(step, cudaDeviceGetPCIBusId(bus, room, 0), "end=%d behind=%d length=%zu", bus[room - 1], bus[room],
                 strnlen(bus, sizeof(bus)));
  }
  PROBE_AND(cudaDeviceGetAttribute(&v, cudaDevAttrMaxPersistingL2CacheSize, 0), "v=%d", v);
  for (int attribute : {13, 94, 96, 100, 101}) {
    PROBE_AS_AND(Format("attribute %d", attribute),
                 cudaDeviceGetAttribute(&v, static_cast<cudaDeviceAttr>(attribute), 0), "positive=%d", v > 0);
  }
  cudaFuncCache cache = cudaFuncCachePreferEqual;
  PROBE_AND(cudaDeviceGetCacheConfig(&cache), "cache=%d", cache);
  PROBE(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
  PROBE_AND(cudaDeviceGetCacheConfig(&cache), "cache=%d", cache);
  PROBE(cudaDeviceSetCacheConfig(static_cast<cudaFuncCache>(4)));
  PROBE(cudaDeviceGetCacheConfig(nullptr));
}

OBSERVE("probe.answers.pools", Once().InOwnProcess()) {
  Rig r(o);
  const auto props = [](cudaMemLocationType type, int id, unsigned int handles) {
    cudaMemPoolProps p = {};
    p.allocType = cudaMemAllocationTypePinned;
    p.location = {type, id};
    p.handleTypes = static_cast<cudaMemAllocationHandleType>(handles);
    return p;
  };
  cudaMemPool_t pool = nullptr;
  for (unsigned int handles : {1u, 2u, 4u, 8u, 9u}) {
    const auto p = props(cudaMemLocationTypeDevice, 0, handles);
    PROBE_AS(Format("create with handles %u", handles), cudaMemPoolCreate(&pool, &p));
  }
  auto p = props(cudaMemLocationTypeHostNumaCurrent, 0, 0);
  PROBE_AS("create at HostNumaCurrent", cudaMemPoolCreate(&pool, &p));
  p = props(cudaMemLocationTypeHostNuma, 99, 0);
  PROBE_AS("create at HostNuma 99", cudaMemPoolCreate(&pool, &p));
  for (auto type : {cudaMemLocationTypeHost, cudaMemLocationTypeHostNuma}) {
    p = props(type, 0, 0);
    pool = nullptr;
    PROBE_AS(Format("create at %d", type), cudaMemPoolCreate(&pool, &p));
    if (pool == nullptr) continue;
    auto flags = static_cast<cudaMemAccessFlags>(77);
    cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, host = {type, 0};
    PROBE_AS_AND(Format("access of the device to %d", type), cudaMemPoolGetAccess(&flags, pool, &device), "flags=%d",
                 flags);
    PROBE_AS_AND(Format("access of the host to %d", type), cudaMemPoolGetAccess(&flags, pool, &host), "flags=%d",
                 flags);
    void* memory = nullptr;
    cudaPointerAttributes at = {};
    PROBE_AS(Format("memory from %d", type), cudaMallocFromPoolAsync(&memory, 4096, pool, r.s));
    PROBE_AS_AND(Format("its type %d", type), cudaPointerGetAttributes(&at, memory), "type=%d", at.type);
    PROBE_AS(Format("fill %d", type), cudaMemsetAsync(memory, 1, 64, r.s));
    PROBE_AS(Format("free %d", type), cudaFreeAsync(memory, r.s));
    PROBE_AS(Format("wait %d", type), cudaStreamSynchronize(r.s));
  }
  REQUIRE_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
  for (auto type : {cudaMemLocationTypeHost, cudaMemLocationTypeHostNuma}) {
    auto flags = static_cast<cudaMemAccessFlags>(77);
    cudaMemLocation location = {type, 0};
    PROBE_AS_AND(Format("access of the host %d", type), cudaMemPoolGetAccess(&flags, pool, &location), "flags=%d",
                 flags);
  }
}

OBSERVE("probe.answers.host_flags", Once().InOwnProcess()) {
  REQUIRE_CUDA(cudaFree(nullptr));
  void* kept[8] = {};
  for (unsigned int flags = 4; flags < 8; ++flags) {
    unsigned int got = 99;
    REQUIRE_CUDA(cudaHostAlloc(&kept[flags], 4096, flags));
    PROBE_AS_AND(Format("flags of %u beside others", flags), cudaHostGetFlags(&got, kept[flags]), "flags=%u", got);
  }
  for (unsigned int flags = 4; flags < 8; ++flags) REQUIRE_CUDA(cudaFreeHost(kept[flags]));
  for (unsigned int flags = 4; flags < 8; ++flags) {
    unsigned int got = 99;
    void* memory = nullptr;
    REQUIRE_CUDA(cudaHostAlloc(&memory, 4096, flags));
    PROBE_AS_AND(Format("flags of %u alone", flags), cudaHostGetFlags(&got, memory), "flags=%u", got);
    REQUIRE_CUDA(cudaFreeHost(memory));
  }
}

}  // namespace conformance
