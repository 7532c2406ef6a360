// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// Launches and what is known of a kernel.
#include "test/conformance/rig.h"

#include <functional>

#include <cstring>

namespace conformance {

OBSERVE("kernel.launch", Once().InOwnProcess()) {
  Rig r(o);
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), r.args, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(0), dim3(32), r.args, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1, 0), dim3(32), r.args, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(0), r.args, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(1025), r.args, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32, 64), r.args, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(1, 1, 65), r.args, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(1, 1, 64), r.args, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1, 65536), dim3(32), r.args, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1, 1, 65536), dim3(32), r.args, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(0x80000000u), dim3(32), r.args, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), r.args, 48 * 1024, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), r.args, 48 * 1024 + 1, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), r.args, SIZE_MAX, r.s));
  PROBE(cudaLaunchKernel(nullptr, dim3(1), dim3(32), r.args, 0, r.s));
  PROBE(cudaLaunchKernel((const void*)&r, dim3(1), dim3(32), r.args, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), nullptr, 0, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), r.args, 0, nullptr));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), r.args, 0, cudaStreamPerThread));
  PROBE(cudaDeviceSynchronize());
}

OBSERVE("kernel.launch_ex", Once().InOwnProcess()) {
  Rig r(o);
  cudaLaunchAttribute a[2] = {};
  cudaLaunchConfig_t c = {};
  c.gridDim = dim3(4);
  c.blockDim = dim3(32);
  c.stream = r.s;
  PROBE(cudaLaunchKernelExC(nullptr, kRelu, r.args));
  PROBE(cudaLaunchKernelExC(&c, nullptr, r.args));
  PROBE_AS("no attributes", cudaLaunchKernelExC(&c, kRelu, r.args));
  c.numAttrs = 1;
  PROBE_AS("attributes NULL, one of them", cudaLaunchKernelExC(&c, kRelu, r.args));
  c.attrs = a;
  auto one = [&](const char* step, cudaLaunchAttributeID id,
                 const std::function<void(cudaLaunchAttributeValue&)>& set) {
    memset(a, 0, sizeof a);
    a[0].id = id;
    set(a[0].val);
    PROBE_AS(step, cudaLaunchKernelExC(&c, kRelu, r.args));
  };
  one("ignore", cudaLaunchAttributeIgnore, [](cudaLaunchAttributeValue&) {});
  one("id 99", (cudaLaunchAttributeID)99, [](cudaLaunchAttributeValue&) {});
  one("cooperative 1", cudaLaunchAttributeCooperative, [](cudaLaunchAttributeValue& v) { v.cooperative = 1; });
  one("cooperative 0", cudaLaunchAttributeCooperative, [](cudaLaunchAttributeValue& v) { v.cooperative = 0; });
  one("cooperative 2", cudaLaunchAttributeCooperative, [](cudaLaunchAttributeValue& v) { v.cooperative = 2; });
  one("priority -2", cudaLaunchAttributePriority, [](cudaLaunchAttributeValue& v) { v.priority = -2; });
  one("priority -100", cudaLaunchAttributePriority, [](cudaLaunchAttributeValue& v) { v.priority = -100; });
  one("priority 7", cudaLaunchAttributePriority, [](cudaLaunchAttributeValue& v) { v.priority = 7; });
  one("programmatic serialization", cudaLaunchAttributeProgrammaticStreamSerialization,
      [](cudaLaunchAttributeValue& v) { v.programmaticStreamSerializationAllowed = 1; });
  one("synchronization policy", cudaLaunchAttributeSynchronizationPolicy,
      [](cudaLaunchAttributeValue& v) { v.syncPolicy = cudaSyncPolicySpin; });
  one("memory sync domain", cudaLaunchAttributeMemSyncDomain,
      [](cudaLaunchAttributeValue& v) { v.memSyncDomain = cudaLaunchMemSyncDomainRemote; });
  one("memory sync domain 7", cudaLaunchAttributeMemSyncDomain,
      [](cudaLaunchAttributeValue& v) { v.memSyncDomain = (cudaLaunchMemSyncDomain)7; });
  auto cluster = [&](const char* step, unsigned x, unsigned y, unsigned z) {
    one(step, cudaLaunchAttributeClusterDimension, [=](cudaLaunchAttributeValue& v) {
      v.clusterDim.x = x;
      v.clusterDim.y = y;
      v.clusterDim.z = z;
    });
  };
  cluster("cluster 1", 1, 1, 1);
  cluster("cluster 2", 2, 1, 1);
  cluster("cluster 3 of grid 4", 3, 1, 1);
  cluster("cluster 0", 0, 1, 1);
  c.gridDim = dim3(32);
  cluster("cluster 8", 8, 1, 1);
  cluster("cluster 16", 16, 1, 1);
  cluster("cluster 32", 32, 1, 1);
  c.gridDim = dim3(4);
  memset(a, 0, sizeof a);
  a[0].id = a[1].id = cudaLaunchAttributePriority;
  c.numAttrs = 2;
  PROBE_AS("the same attribute twice", cudaLaunchKernelExC(&c, kRelu, r.args));
  c.numAttrs = 0;
  c.gridDim = dim3(0);
  PROBE_AS("grid 0", cudaLaunchKernelExC(&c, kRelu, r.args));
  c.gridDim = dim3(1);
  c.blockDim = dim3(2000);
  PROBE_AS("block 2000", cudaLaunchKernelExC(&c, kRelu, r.args));
  c.blockDim = dim3(32);
  c.dynamicSmemBytes = 1 << 20;
  PROBE_AS("shared memory 1 MiB", cudaLaunchKernelExC(&c, kRelu, r.args));
  PROBE(cudaStreamSynchronize(r.s));
}

OBSERVE("kernel.cooperative", Once().InOwnProcess()) {
  Rig r(o);
  int blocks = 0, sms = 0;
  REQUIRE_CUDA(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  REQUIRE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kRelu, 1024, 0));
  PROBE_AS("as many as fit", cudaLaunchCooperativeKernel(kRelu, dim3(blocks * sms), dim3(1024), r.args, 0, r.s));
  PROBE_AS("one more", cudaLaunchCooperativeKernel(kRelu, dim3(blocks * sms + 1), dim3(1024), r.args, 0, r.s));
  PROBE(cudaLaunchCooperativeKernel(kRelu, dim3(0), dim3(32), r.args, 0, r.s));
  PROBE(cudaLaunchCooperativeKernel(kRelu, dim3(1), dim3(0), r.args, 0, r.s));
  PROBE(cudaLaunchCooperativeKernel(kRelu, dim3(1), dim3(2048), r.args, 0, r.s));
  PROBE(cudaLaunchCooperativeKernel(nullptr, dim3(1), dim3(32), r.args, 0, r.s));
  PROBE(cudaLaunchCooperativeKernel(kRelu, dim3(1), dim3(32), r.args, 1 << 20, r.s));
  PROBE(cudaLaunchCooperativeKernel(kRelu, dim3(1), dim3(32), r.args, 0, nullptr));
  PROBE(cudaStreamSynchronize(r.s));
}

OBSERVE("kernel.occupancy", Once().InOwnProcess()) {
  Rig r(o);
  int v = -7;
  PROBE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, kRelu, 32, 0));
  PROBE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, nullptr, 32, 0));
  PROBE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, (const void*)&v, 32, 0));
  v = -7;
  PROBE_AND(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, kRelu, 0, 0), "v=%d", v);
  v = -7;
  PROBE_AND(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, kRelu, -1, 0), "v=%d", v);
  PROBE_AND(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, kRelu, 1, 0), "v=%d", v);
  PROBE_AND(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, kRelu, 32, 0), "v=%d", v);
  PROBE_AND(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, kRelu, 33, 0), "v=%d", v);
  PROBE_AND(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, kRelu, 128, 0), "v=%d", v);
  PROBE_AND(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, kRelu, 1024, 0), "v=%d", v);
  v = -7;
  PROBE_AND(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, kRelu, 1025, 0), "v=%d", v);
  PROBE_AND(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, kRelu, 32, 48 * 1024), "v=%d", v);
  v = -7;
  PROBE_AND(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, kRelu, 32, 48 * 1024 + 1), "v=%d", v);
  v = -7;
  PROBE_AND(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, kRelu, 32, 1 << 20), "v=%d", v);
  PROBE(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&v, kRelu, 32, 0, 0));
  PROBE(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&v, kRelu, 32, 0, 1));
  PROBE(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&v, kRelu, 32, 0, 2));
  size_t bytes = 7;
  PROBE_AND(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, kRelu, 1, 32), "v=%zu", bytes);
  PROBE(cudaOccupancyAvailableDynamicSMemPerBlock(nullptr, kRelu, 1, 32));
  PROBE(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, kRelu, 0, 32));
}

OBSERVE("kernel.attributes", Once().InOwnProcess()) {
  Rig r(o);
  cudaFuncAttributes a;
  PROBE_AND(cudaFuncGetAttributes(&a, kRelu), "threads=%d shared=%zu dynamic=%d", a.maxThreadsPerBlock,
            a.sharedSizeBytes, a.maxDynamicSharedSizeBytes);
  PROBE(cudaFuncGetAttributes(nullptr, kRelu));
  PROBE(cudaFuncGetAttributes(&a, nullptr));
  PROBE(cudaFuncGetAttributes(&a, (const void*)&a));
  PROBE(cudaFuncSetAttribute(nullptr, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
  PROBE(cudaFuncSetAttribute((const void*)&a, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
  PROBE(cudaFuncSetAttribute(kRelu, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
  PROBE(cudaFuncSetAttribute(kRelu, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));
  PROBE(cudaFuncSetAttribute(kRelu, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 * 1024));
  PROBE_AND(cudaFuncGetAttributes(&a, kRelu), "dynamic=%d", a.maxDynamicSharedSizeBytes);
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), r.args, 227 * 1024, r.s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), r.args, 227 * 1024 + 1, r.s));
  PROBE(cudaFuncSetAttribute(kRelu, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
  PROBE(cudaFuncSetAttribute(kRelu, cudaFuncAttributePreferredSharedMemoryCarveout, -1));
  PROBE(cudaFuncSetAttribute(kRelu, cudaFuncAttributePreferredSharedMemoryCarveout, -2));
  PROBE(cudaFuncSetAttribute(kRelu, cudaFuncAttributePreferredSharedMemoryCarveout, 101));
  PROBE(cudaFuncSetAttribute(kRelu, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  PROBE(cudaFuncSetAttribute(kRelu, cudaFuncAttributeClusterDimMustBeSet, 1));
  PROBE(cudaFuncSetAttribute(kRelu, cudaFuncAttributeRequiredClusterWidth, 2));
  PROBE(cudaFuncSetAttribute(kRelu, (cudaFuncAttribute)0, 1));
  PROBE(cudaFuncSetAttribute(kRelu, (cudaFuncAttribute)99, 1));
  PROBE(cudaFuncSetCacheConfig(kRelu, cudaFuncCachePreferL1));
  PROBE(cudaFuncSetCacheConfig(kRelu, (cudaFuncCache)9));
  PROBE(cudaFuncSetCacheConfig(nullptr, cudaFuncCachePreferL1));
  const char* name = nullptr;
  PROBE_AND(cudaFuncGetName(&name, kRelu), "name=%s", name == nullptr ? "NULL" : name);
  PROBE(cudaFuncGetName(nullptr, kRelu));
  PROBE(cudaFuncGetName(&name, nullptr));
  PROBE(cudaStreamSynchronize(r.s));
}

OBSERVE("kernel.destroyed_stream", Once().InOwnProcess()) {
  Rig r(o);
  cudaStream_t s;
  REQUIRE_CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  REQUIRE_CUDA(cudaStreamDestroy(s));
  PROBE(cudaStreamQuery(s));
  PROBE(cudaStreamSynchronize(s));
  PROBE(cudaMemsetAsync(r.d, 0, 64, s));
  PROBE(cudaLaunchKernel(kRelu, dim3(1), dim3(32), r.args, 0, s));
  PROBE(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  PROBE(cudaEventRecord(r.e, s));
  PROBE(cudaStreamDestroy(s));
}

OBSERVE("kernel.destroyed_event", Once().InOwnProcess()) {
  Rig r(o);
  cudaEvent_t e;
  REQUIRE_CUDA(cudaEventCreate(&e));
  REQUIRE_CUDA(cudaEventDestroy(e));
  PROBE(cudaEventQuery(e));
  PROBE(cudaEventRecord(e, r.s));
  PROBE(cudaStreamWaitEvent(r.s, e, 0));
  PROBE(cudaEventSynchronize(e));
  PROBE(cudaEventDestroy(e));
}

}  // namespace conformance
