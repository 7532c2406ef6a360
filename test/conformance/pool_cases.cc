// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// When a pool hands freed memory out again.
#include "test/conformance/rig.h"

namespace conformance {

OBSERVE("pool.reuse", Once().InOwnProcess()) {
  Rig r(o);
  const size_t n = 4 << 20;
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool = nullptr;
  o.Call("pool create", cudaMemPoolCreate(&pool, &props));
  uint64_t all = UINT64_MAX;
  int off = 0;
  o.Call("threshold max", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  o.Call("opportunistic off", cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &off));
  o.Call("internal off", cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &off));
  void *a = nullptr, *b = nullptr, *c = nullptr, *d = nullptr, *e = nullptr;
  REQUIRE_CUDA(cudaMallocFromPoolAsync(&a, n, pool, r.s));
  REQUIRE_CUDA(cudaFreeAsync(a, r.s));
  o.Call("same stream", cudaMallocFromPoolAsync(&b, n, pool, r.s));
  o.Note("reuse", Format("same_stream=%d", a == b));
  Gate gate;
  o.Call("gate", gate.Hold(r.s));
  o.Call("free behind the gate", cudaFreeAsync(b, r.s));
  o.Call("other stream, no dependency", cudaMallocFromPoolAsync(&c, n, pool, r.s2));
  o.Note("reuse", Format("other_stream=%d", b == c));
  REQUIRE_CUDA(cudaEventRecord(r.e, r.s));
  REQUIRE_CUDA(cudaStreamWaitEvent(r.s2, r.e, 0));
  o.Call("other stream, after an event", cudaMallocFromPoolAsync(&d, n, pool, r.s2));
  o.Note("reuse", Format("after_event=%d", b == d));
  gate.Open();
  o.Call("sync", cudaStreamSynchronize(r.s2));
  o.Call("free on a stream that never knew it, after a sync", cudaFreeAsync(c, r.blocking));
  o.Call("free on a third party's stream without a sync", cudaFreeAsync(d, r.s));
  o.Call("alloc on s2", cudaMallocFromPoolAsync(&e, n, pool, r.s2));
  o.Call("free on s without any dependency", cudaFreeAsync(e, r.s));
  o.Call("sync", cudaDeviceSynchronize());
  auto get = [&](cudaMemPoolAttr attribute) {
    unsigned long long value = 77;
    REQUIRE_CUDA(cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
  };
  o.Note("state", Format("used=%llu used_high=%llu reserved=%llu reserved_high=%llu",
                         get(cudaMemPoolAttrUsedMemCurrent), get(cudaMemPoolAttrUsedMemHigh),
                         get(cudaMemPoolAttrReservedMemCurrent), get(cudaMemPoolAttrReservedMemHigh)));
  REQUIRE_CUDA(cudaMemPoolDestroy(pool));
}

}  // namespace conformance
