// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Pools and memory nodes.
#include "test/conformance/rig.h"

#include <string>

namespace conformance {

namespace {
cudaMemPoolProps Props() {
  cudaMemPoolProps p = {};
  p.allocType = cudaMemAllocationTypePinned;
  p.location.type = cudaMemLocationTypeDevice;
  p.location.id = 0;
  return p;
}
unsigned long long Get(cudaMemPool_t p, cudaMemPoolAttr a) {
  unsigned long long v = 0x7777;
  cudaMemPoolGetAttribute(p, a, &v);
  cudaGetLastError();
  return v;
}
std::string State(cudaMemPool_t p) {
  return Format("used=%llu used_high=%llu reserved=%llu reserved_high=%llu", Get(p, cudaMemPoolAttrUsedMemCurrent),
                Get(p, cudaMemPoolAttrUsedMemHigh), Get(p, cudaMemPoolAttrReservedMemCurrent),
                Get(p, cudaMemPoolAttrReservedMemHigh));
}
// How a pool lays out what it reserves is its own affair, but not whether it does.
std::string Life(cudaMemPool_t p) {
  return Format("used=%llu used_high=%llu reserved=%s reserved_high=%s", Get(p, cudaMemPoolAttrUsedMemCurrent),
                Get(p, cudaMemPoolAttrUsedMemHigh), Get(p, cudaMemPoolAttrReservedMemCurrent) > 0 ? ">0" : "0",
                Get(p, cudaMemPoolAttrReservedMemHigh) > 0 ? ">0" : "0");
}
unsigned long long GraphGet(cudaGraphMemAttributeType a) {
  unsigned long long v = 0x7777;
  cudaDeviceGetGraphMemAttribute(0, a, &v);
  return v;
}
std::string GraphState() {
  return Format("used=%llu used_high=%llu reserved=%llu reserved_high=%llu", GraphGet(cudaGraphMemAttrUsedMemCurrent),
                GraphGet(cudaGraphMemAttrUsedMemHigh), GraphGet(cudaGraphMemAttrReservedMemCurrent),
                GraphGet(cudaGraphMemAttrReservedMemHigh));
}
}  // namespace

OBSERVE("pool.arguments", Once().InOwnProcess()) {
  Rig r(o);
  cudaMemPoolProps p = Props();
  cudaMemPool_t pool = nullptr, q = nullptr, def;
  REQUIRE_CUDA(cudaDeviceGetDefaultMemPool(&def, 0));
  unsigned long long v = 0;
  int i = 0;
  PROBE(cudaMemPoolCreate(nullptr, &p));
  PROBE(cudaMemPoolCreate(&q, nullptr));
  p.allocType = cudaMemAllocationTypeInvalid;
  PROBE_AS("create: type invalid", cudaMemPoolCreate(&q, &p));
  p = Props();
  p.location.type = cudaMemLocationTypeInvalid;
  PROBE_AS("create: location invalid", cudaMemPoolCreate(&q, &p));
  p = Props();
  p.location.id = 99;
  PROBE_AS("create: device 99", cudaMemPoolCreate(&q, &p));
  p = Props();
  p.location.id = -1;
  PROBE_AS("create: device -1", cudaMemPoolCreate(&q, &p));
  p = Props();
  p.handleTypes = (cudaMemAllocationHandleType)0x40;
  PROBE_AS("create: handle type 0x40", cudaMemPoolCreate(&q, &p));
  p = Props();
  p.reserved[0] = 1;
  PROBE_AS("create: reserved byte set", cudaMemPoolCreate(&q, &p));
  p = Props();
  p.maxSize = 1 << 20;
  PROBE_AS("create: at most 1 MiB", cudaMemPoolCreate(&q, &p));
  void* big = Untouched<void>();
  PROBE_AS_AND("64 MiB from it", cudaMallocFromPoolAsync(&big, 64 << 20, q, r.s), "p=%s", PointerState(big));
  PROBE_AS("destroy it", cudaMemPoolDestroy(q));
  p = Props();
  PROBE(cudaMemPoolCreate(&pool, &p));
  o.Note("new pool", Format("%s", State(pool).c_str()));
  o.Note("defaults", Format("threshold=%llu", Get(pool, cudaMemPoolAttrReleaseThreshold)));
  for (int a = 1; a <= 3; ++a) {
    i = 77;
    std::string s = Format("get attribute %d", a);
    PROBE_AS_AND(s.c_str(), cudaMemPoolGetAttribute(pool, (cudaMemPoolAttr)a, &i), "v=%d", i);
  }
  PROBE(cudaMemPoolGetAttribute(pool, (cudaMemPoolAttr)0, &v));
  PROBE(cudaMemPoolGetAttribute(pool, (cudaMemPoolAttr)99, &v));
  PROBE(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, nullptr));
  PROBE(cudaMemPoolGetAttribute(nullptr, cudaMemPoolAttrReleaseThreshold, &v));
  PROBE(cudaMemPoolSetAttribute(pool, (cudaMemPoolAttr)0, &v));
  PROBE(cudaMemPoolSetAttribute(pool, (cudaMemPoolAttr)99, &v));
  PROBE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, nullptr));
  PROBE(cudaMemPoolSetAttribute(nullptr, cudaMemPoolAttrReleaseThreshold, &v));
  v = 0;
  PROBE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &v));
  PROBE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &v));
  PROBE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &v));
  PROBE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &v));
  v = 5;
  PROBE_AS("used high to 5", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &v));
  PROBE_AS("reserved high to 5", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &v));
  v = 12345;
  PROBE_AS("threshold 12345", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &v));
  o.Note("threshold", Format("%llu", Get(pool, cudaMemPoolAttrReleaseThreshold)));
  i = 2;
  PROBE_AS("follow dependencies to 2", cudaMemPoolSetAttribute(pool, cudaMemPoolReuseFollowEventDependencies, &i));
  i = 77;
  PROBE_AND(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseFollowEventDependencies, &i), "v=%d", i);
  PROBE(cudaMemPoolTrimTo(nullptr, 0));
  PROBE(cudaMemPoolTrimTo(pool, 0));
  PROBE(cudaMemPoolTrimTo(pool, SIZE_MAX));
  cudaMemAccessDesc d = {};
  d.location.type = cudaMemLocationTypeDevice;
  d.flags = cudaMemAccessFlagsProtReadWrite;
  PROBE(cudaMemPoolSetAccess(pool, &d, 1));
  PROBE(cudaMemPoolSetAccess(pool, &d, 0));
  PROBE(cudaMemPoolSetAccess(pool, nullptr, 1));
  PROBE(cudaMemPoolSetAccess(nullptr, &d, 1));
  d.flags = cudaMemAccessFlagsProtNone;
  PROBE_AS("own device: no access", cudaMemPoolSetAccess(pool, &d, 1));
  d.flags = cudaMemAccessFlagsProtRead;
  PROBE_AS("own device: read", cudaMemPoolSetAccess(pool, &d, 1));
  d.flags = (cudaMemAccessFlags)2;
  PROBE_AS("access flags 2", cudaMemPoolSetAccess(pool, &d, 1));
  d.flags = cudaMemAccessFlagsProtReadWrite;
  d.location.id = 99;
  PROBE_AS("access of device 99", cudaMemPoolSetAccess(pool, &d, 1));
  d.location.type = cudaMemLocationTypeInvalid;
  PROBE_AS("access of an invalid location", cudaMemPoolSetAccess(pool, &d, 1));
  cudaMemAccessFlags fl = (cudaMemAccessFlags)77;
  cudaMemLocation l = {cudaMemLocationTypeDevice, 0};
  PROBE_AND(cudaMemPoolGetAccess(&fl, pool, &l), "flags=%d", fl);
  PROBE(cudaMemPoolGetAccess(nullptr, pool, &l));
  PROBE(cudaMemPoolGetAccess(&fl, nullptr, &l));
  PROBE(cudaMemPoolGetAccess(&fl, pool, nullptr));
  l.id = 99;
  PROBE_AS("get access of device 99", cudaMemPoolGetAccess(&fl, pool, &l));
  PROBE(cudaMemPoolDestroy(nullptr));
  PROBE(cudaMemPoolDestroy(def));
  PROBE(cudaDeviceSetMemPool(0, pool));
  PROBE_AND(cudaDeviceGetMemPool(&q, 0), "own=%d", q == pool);
  PROBE(cudaMemPoolDestroy(pool));
  PROBE_AND(cudaDeviceGetMemPool(&q, 0), "default=%d", q == def);
}

OBSERVE("pool.life", Once().InOwnProcess()) {
  Rig r(o);
  cudaMemPoolProps p = Props();
  cudaMemPool_t pool;
  REQUIRE_CUDA(cudaMemPoolCreate(&pool, &p));
  char *a, *b, *c;
  REQUIRE_CUDA(cudaMallocFromPoolAsync((void**)&a, 100, pool, r.s));
  o.Note("100 bytes", Format("%s", Life(pool).c_str()));
  REQUIRE_CUDA(cudaMallocFromPoolAsync((void**)&b, 513, pool, r.s));
  o.Note("and 513", Format("%s distance=%ld", Life(pool).c_str(), (long)(b - a)));
  REQUIRE_CUDA(cudaMallocFromPoolAsync((void**)&c, 40 << 20, pool, r.s));
  o.Note("and 40 MiB", Format("%s", Life(pool).c_str()));
  PROBE(cudaFreeAsync(c, r.s));
  o.Note("freed, not synchronised", Format("%s", Life(pool).c_str()));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("synchronised", Format("%s", Life(pool).c_str()));
  PROBE(cudaMemPoolTrimTo(pool, 0));
  o.Note("trimmed", Format("%s", Life(pool).c_str()));
  PROBE(cudaFreeAsync(a, r.s));
  PROBE(cudaFreeAsync(b, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("all freed", Format("%s", Life(pool).c_str()));
  PROBE(cudaMemPoolTrimTo(pool, 0));
  o.Note("trimmed", Format("%s", Life(pool).c_str()));
  unsigned long long v = 64ull << 20;
  PROBE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &v));
  REQUIRE_CUDA(cudaMallocFromPoolAsync((void**)&a, 40 << 20, pool, r.s));
  REQUIRE_CUDA(cudaMallocFromPoolAsync((void**)&b, 40 << 20, pool, r.s));
  o.Note("two of 40 MiB, threshold 64 MiB", Format("%s", Life(pool).c_str()));
  PROBE(cudaFreeAsync(a, r.s));
  PROBE(cudaFreeAsync(b, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("freed and synchronised", Format("%s", Life(pool).c_str()));
  PROBE(cudaMemPoolTrimTo(pool, 1));
  o.Note("trimmed to 1", Format("%s", Life(pool).c_str()));
  v = 0;
  PROBE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &v));
  PROBE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &v));
  o.Note("highs reset", Format("%s", Life(pool).c_str()));
  REQUIRE_CUDA(cudaMallocFromPoolAsync((void**)&a, 4096, pool, r.s));
  PROBE_AS("destroy with memory in use", cudaMemPoolDestroy(pool));
  PROBE(cudaMemsetAsync(a, 1, 4096, r.s));
  PROBE(cudaFreeAsync(a, r.s));
  PROBE(cudaStreamSynchronize(r.s));
}

OBSERVE("pool.release_points", Once().InOwnProcess()) {
  Rig r(o);
  cudaMemPoolProps p = Props();
  cudaMemPool_t pool;
  REQUIRE_CUDA(cudaMemPoolCreate(&pool, &p));
  void* a;
  auto fill = [&] {
    REQUIRE_CUDA(cudaMallocFromPoolAsync(&a, 4096, pool, r.s));
    REQUIRE_CUDA(cudaFreeAsync(a, r.s));
  };
  auto reserved = [&] { return Get(pool, cudaMemPoolAttrReservedMemCurrent); };
  fill();
  o.Note("at once", Format("reserved=%llu", reserved()));
  REQUIRE_CUDA(cudaEventRecord(r.e, r.s));
  PROBE(cudaEventSynchronize(r.e));
  o.Note("event synchronised", Format("reserved=%llu", reserved()));
  fill();
  while (cudaStreamQuery(r.s) == cudaErrorNotReady) {
  }
  o.Note("stream queried", Format("reserved=%llu", reserved()));
  fill();
  PROBE(cudaStreamSynchronize(r.s2));
  o.Note("another stream synchronised", Format("reserved=%llu", reserved()));
  fill();
  PROBE(cudaDeviceSynchronize());
  o.Note("device synchronised", Format("reserved=%llu", reserved()));
  fill();
  REQUIRE_CUDA(cudaEventRecord(r.e, r.s));
  while (cudaEventQuery(r.e) == cudaErrorNotReady) {
  }
  o.Note("event queried", Format("reserved=%llu", reserved()));
  fill();
  void* m;
  PROBE(cudaMalloc(&m, 4096));
  o.Note("after cudaMalloc", Format("reserved=%llu", reserved()));
}

OBSERVE("pool.reuse_matrix", Once().InOwnProcess()) {
  for (int follow = 0; follow < 2; ++follow)
    for (int opportunistic = 0; opportunistic < 2; ++opportunistic)
      for (int internal = 0; internal < 2; ++internal) {
        Rig r(o);
        cudaMemPoolProps p = Props();
        cudaMemPool_t pool;
        REQUIRE_CUDA(cudaMemPoolCreate(&pool, &p));
        unsigned long long max = UINT64_MAX;
        REQUIRE_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &max));
        REQUIRE_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseFollowEventDependencies, &follow));
        REQUIRE_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &opportunistic));
        REQUIRE_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &internal));
        const size_t n = 24u << 20;  // more than half of a 32 MiB block
        void *a, *b, *c;
        std::string s = Format("follow=%d opportunistic=%d internal=%d", follow, opportunistic, internal);
        REQUIRE_CUDA(cudaMallocFromPoolAsync(&a, n, pool, r.s));
        Gate gate;
        REQUIRE_CUDA(gate.Hold(r.s));
        REQUIRE_CUDA(cudaFreeAsync(a, r.s));
        REQUIRE_CUDA(cudaMallocFromPoolAsync(&b, n, pool, r.s2));
        int pending = a == b;
        REQUIRE_CUDA(cudaEventRecord(r.e2, r.s));
        int after_event = -1;
        if (!pending) {
          REQUIRE_CUDA(cudaStreamWaitEvent(r.s2, r.e2, 0));
          REQUIRE_CUDA(cudaMallocFromPoolAsync(&c, n, pool, r.s2));
          after_event = a == c;
        }
        cudaError_t q = cudaStreamQuery(r.s2);
        gate.Open();
        REQUIRE_CUDA(cudaDeviceSynchronize());
        cudaGetLastError();
        cudaMemPool_t pool2;
        REQUIRE_CUDA(cudaMemPoolCreate(&pool2, &p));
        REQUIRE_CUDA(cudaMemPoolSetAttribute(pool2, cudaMemPoolAttrReleaseThreshold, &max));
        REQUIRE_CUDA(cudaMemPoolSetAttribute(pool2, cudaMemPoolReuseFollowEventDependencies, &follow));
        REQUIRE_CUDA(cudaMemPoolSetAttribute(pool2, cudaMemPoolReuseAllowOpportunistic, &opportunistic));
        REQUIRE_CUDA(cudaMemPoolSetAttribute(pool2, cudaMemPoolReuseAllowInternalDependencies, &internal));
        REQUIRE_CUDA(cudaMallocFromPoolAsync(&a, n, pool2, r.s));
        REQUIRE_CUDA(cudaFreeAsync(a, r.s));
        while (cudaStreamQuery(r.s) == cudaErrorNotReady) {
        }
        usleep(20000);
        REQUIRE_CUDA(cudaMallocFromPoolAsync(&b, n, pool2, r.s2));
        int done = a == b;
        REQUIRE_CUDA(cudaFreeAsync(b, r.s2));
        REQUIRE_CUDA(cudaStreamSynchronize(r.s2));
        REQUIRE_CUDA(cudaMallocFromPoolAsync(&c, n, pool2, r.s));
        int synced = b == c;
        o.Note(s.c_str(), Format("while_pending=%d after_event=%d other_stream_waits=%d after_query=%d after_sync=%d",
                                 pending, after_event, q == cudaErrorNotReady, done, synced));
      }
}

OBSERVE("pool.default_and_graph", Once().InOwnProcess()) {
  Rig r(o);
  cudaMemPool_t def;
  REQUIRE_CUDA(cudaDeviceGetDefaultMemPool(&def, 0));
  o.Note("default pool", Format("%s threshold=%llu", State(def).c_str(), Get(def, cudaMemPoolAttrReleaseThreshold)));
  void* a;
  REQUIRE_CUDA(cudaMallocAsync(&a, 4096, r.s));
  o.Note("4096 bytes", Format("%s", State(def).c_str()));
  REQUIRE_CUDA(cudaFreeAsync(a, r.s));
  REQUIRE_CUDA(cudaStreamSynchronize(r.s));
  o.Note("freed", Format("%s", State(def).c_str()));
  REQUIRE_CUDA(cudaMallocAsync(&a, 4096, r.s));
  REQUIRE_CUDA(cudaFree(a));
  o.Note("freed by cudaFree", Format("%s", State(def).c_str()));
}

OBSERVE("memnode.numbers", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  void* p = nullptr;
  o.Note("before", Format("%s", GraphState().c_str()));
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeRelaxed));
  REQUIRE_CUDA(cudaMallocAsync(&p, 100, r.s));
  REQUIRE_CUDA(cudaMemsetAsync(p, 1, 64, r.s));
  REQUIRE_CUDA(cudaStreamEndCapture(r.s, &g));
  cudaGraphExec_t e;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, g, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  o.Note("instantiated", Format("%s", GraphState().c_str()));
  REQUIRE_CUDA(cudaGraphUpload(e, r.s));
  REQUIRE_CUDA(cudaStreamSynchronize(r.s));
  o.Note("uploaded", Format("%s", GraphState().c_str()));
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("launched", Format("%s", GraphState().c_str()));
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("launched again", Format("%s", GraphState().c_str()));
  PROBE(cudaDeviceGraphMemTrim(0));
  o.Note("trimmed", Format("%s", GraphState().c_str()));
  PROBE(cudaFreeAsync(p, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  o.Note("freed", Format("%s", GraphState().c_str()));
  PROBE(cudaDeviceGraphMemTrim(0));
  o.Note("trimmed", Format("%s", GraphState().c_str()));
  PROBE(cudaFreeAsync(p, r.s));
  PROBE_AS("launch a third time", cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  PROBE(cudaGraphExecDestroy(e));
  o.Note("executable destroyed", Format("%s", GraphState().c_str()));
  PROBE(cudaMemset(p, 1, 64));
  PROBE(cudaFree(p));
  o.Note("freed", Format("%s", GraphState().c_str()));
  PROBE(cudaGraphDestroy(g));
  PROBE(cudaDeviceGraphMemTrim(0));
  o.Note("trimmed", Format("%s", GraphState().c_str()));
  unsigned long long z = 0;
  PROBE(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &z));
  PROBE(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrReservedMemHigh, &z));
  o.Note("highs reset", Format("%s", GraphState().c_str()));
}

OBSERVE("memnode.no_autofree", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g;
  void* p = nullptr;
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeRelaxed));
  REQUIRE_CUDA(cudaMallocAsync(&p, 4096, r.s));
  REQUIRE_CUDA(cudaStreamEndCapture(r.s, &g));
  cudaGraphExec_t e, e2;
  REQUIRE_CUDA(cudaGraphInstantiate(&e, g, 0));
  PROBE_AS("eager free before the first launch", cudaFreeAsync(p, r.s));
  PROBE_AS("eager memset before the first launch", cudaMemsetAsync(p, 1, 64, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE_AS("second launch", cudaGraphLaunch(e, r.s));
  PROBE(cudaMemsetAsync(p, 1, 4096, r.s));
  PROBE(cudaFreeAsync(p, r.s));
  PROBE_AS("launch after the free", cudaGraphLaunch(e, r.s));
  PROBE(cudaFree(p));
  PROBE_AS("launch after cudaFree", cudaGraphLaunch(e, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  PROBE_AS("free twice, first", cudaFreeAsync(p, r.s));
  PROBE_AS("free twice, second", cudaFreeAsync(p, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  PROBE(cudaGraphExecDestroy(e));
  PROBE_AS("instantiate after the first executable is gone", cudaGraphInstantiate(&e2, g, 0));
  PROBE_AS("launch it", cudaGraphLaunch(e2, r.s));
  PROBE(cudaStreamSynchronize(r.s));
  PROBE_AS("free outside", cudaFreeAsync(p, r.s));
  PROBE_AS("clone", cudaGraphClone(&g, g));
}

OBSERVE("memnode.edits", Once().InOwnProcess()) {
  Rig r(o);
  cudaGraph_t g, parent;
  void* p = nullptr;
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeRelaxed));
  REQUIRE_CUDA(cudaMallocAsync(&p, 4096, r.s));
  REQUIRE_CUDA(cudaMemsetAsync(p, 1, 64, r.s));
  REQUIRE_CUDA(cudaFreeAsync(p, r.s));
  REQUIRE_CUDA(cudaStreamEndCapture(r.s, &g));
  cudaGraphNode_t n[4];
  size_t c = 4;
  REQUIRE_CUDA(cudaGraphGetNodes(g, n, &c));
  PROBE(cudaGraphDestroyNode(n[0]));
  PROBE(cudaGraphDestroyNode(n[2]));
  PROBE_AS("destroy the memset between", cudaGraphDestroyNode(n[1]));
  PROBE(cudaGraphRemoveDependencies(g, &n[0], &n[1], nullptr, 1));
  PROBE_AS("add an edge", cudaGraphAddDependencies(g, &n[0], &n[2], nullptr, 1));
  o.Note("graph", Format("nodes=%zu edges=%zu", CountNodes(g), CountEdges(g)));
  REQUIRE_CUDA(cudaGraphCreate(&parent, 0));
  PROBE_AS("as a child", cudaGraphAddChildGraphNode(n, parent, nullptr, 0, g));
  cudaGraphExec_t e;
  PROBE_AS("device launch", cudaGraphInstantiate(&e, g, cudaGraphInstantiateFlagDeviceLaunch));
  PROBE_AS("plain", cudaGraphInstantiate(&e, g, 0));
  unsigned on;
  PROBE(cudaGraphNodeGetEnabled(e, n[0], &on));
  PROBE_AS("destroy the graph before the launch", cudaGraphDestroy(g));
  PROBE(cudaGraphLaunch(e, r.s));
  PROBE(cudaGraphLaunch(e, r.s2));
  PROBE(cudaStreamSynchronize(r.s));
  PROBE(cudaStreamSynchronize(r.s2));
}

OBSERVE("memnode.addresses", Once().InOwnProcess()) {
  Rig r(o);
  auto make = [&](void** p, bool free_it) {
    cudaGraph_t g;
    REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeRelaxed));
    REQUIRE_CUDA(cudaMallocAsync(p, 4096, r.s));
    REQUIRE_CUDA(cudaMemsetAsync(*p, 1, 64, r.s));
    if (free_it) REQUIRE_CUDA(cudaFreeAsync(*p, r.s));
    REQUIRE_CUDA(cudaStreamEndCapture(r.s, &g));
    return g;
  };
  void *a, *b, *c, *d;
  cudaGraph_t ga = make(&a, true), gb = make(&b, true), gc = make(&c, false), gd = make(&d, false);
  (void)ga;
  (void)gb;
  (void)gc;
  (void)gd;
  o.Note("addresses", Format("two_freed_equal=%d two_unfreed_equal=%d", a == b, c == d));
  cudaGraph_t g;
  void *x, *y;
  REQUIRE_CUDA(cudaStreamBeginCapture(r.s, cudaStreamCaptureModeRelaxed));
  REQUIRE_CUDA(cudaMallocAsync(&x, 4096, r.s));
  REQUIRE_CUDA(cudaFreeAsync(x, r.s));
  REQUIRE_CUDA(cudaMallocAsync(&y, 4096, r.s));
  REQUIRE_CUDA(cudaFreeAsync(y, r.s));
  REQUIRE_CUDA(cudaStreamEndCapture(r.s, &g));
  o.Note("freed and allocated again in one graph", Format("equal=%d nodes=%zu", x == y, CountNodes(g)));
  cudaPointerAttributes at;
  PROBE_AND(cudaPointerGetAttributes(&at, a), "type=%d", at.type);
}

}  // namespace conformance
