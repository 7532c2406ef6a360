// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// During a capture, where the first record is silent: devices, memory, copies, fills and pools.
#include "test/conformance/during_frame.h"

namespace conformance {

namespace {

const std::vector<DuringRow> kRows = {
    {"cudaGetDeviceCount", [](DuringFrame& f) { return cudaGetDeviceCount(&f.out.number); }},
    {"cudaGetDevice", [](DuringFrame& f) { return cudaGetDevice(&f.out.number); }},
    {"cudaGetDeviceProperties", [](DuringFrame& f) { return cudaGetDeviceProperties(&f.out.properties, 0); }},
    {"cudaDeviceGetAttribute",
     [](DuringFrame& f) { return cudaDeviceGetAttribute(&f.out.number, cudaDevAttrWarpSize, 0); }},
    {"cudaDeviceGetStreamPriorityRange",
     [](DuringFrame& f) { return cudaDeviceGetStreamPriorityRange(&f.out.number, &f.out.number2); }},
    {"cudaDriverGetVersion", [](DuringFrame& f) { return cudaDriverGetVersion(&f.out.number); }},
    {"cudaDeviceGetPCIBusId", [](DuringFrame& f) { return cudaDeviceGetPCIBusId(f.out.text, sizeof(f.out.text), 0); }},
    {"cudaDeviceSynchronize", [](DuringFrame&) { return cudaDeviceSynchronize(); }},
    {"cudaDeviceSetLimit", [](DuringFrame&) { return cudaDeviceSetLimit(cudaLimitStackSize, 2048); },
     DuringRow::kProcess},
    {"cudaDeviceSetLimit_persisting",
     [](DuringFrame&) { return cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0); }, DuringRow::kProcess},
    {"cudaSetDeviceFlags", [](DuringFrame&) { return cudaSetDeviceFlags(4); }, DuringRow::kProcess},
    {"cudaGetDeviceFlags", [](DuringFrame& f) { return cudaGetDeviceFlags(&f.out.word); }},
    {"cudaInitDevice", [](DuringFrame&) { return cudaInitDevice(0, 0, 0); }},
    {"cudaDeviceEnablePeerAccess_self", [](DuringFrame&) { return cudaDeviceEnablePeerAccess(0, 0); }},
    {"cudaDeviceDisablePeerAccess_self", [](DuringFrame&) { return cudaDeviceDisablePeerAccess(0); }},
    {"cudaMemGetInfo", [](DuringFrame& f) { return cudaMemGetInfo(&f.out.size, &f.out.size2); }},
    {"cudaMalloc", [](DuringFrame& f) { return cudaMalloc(&f.out.device, 4096); }},
    {"cudaMalloc_zero", [](DuringFrame& f) { return cudaMalloc(&f.out.device, 0); }},
    {"cudaMalloc_NULL", [](DuringFrame&) { return cudaMalloc(nullptr, 4096); }},
    {"cudaMalloc_too_much", [](DuringFrame& f) { return cudaMalloc(&f.out.device, size_t{1} << 50); }},
    {"cudaMallocHost", [](DuringFrame& f) { return cudaMallocHost(&f.out.host, 4096); }},
    {"cudaHostAlloc", [](DuringFrame& f) { return cudaHostAlloc(&f.out.host, 4096, 0); }},
    {"cudaHostAlloc_badflags", [](DuringFrame& f) { return cudaHostAlloc(&f.out.host, 4096, 0x100); }},
    {"cudaFreeHost_NULL", [](DuringFrame&) { return cudaFreeHost(nullptr); }},
    {"cudaFree_bogus", [](DuringFrame&) { return cudaFree(reinterpret_cast<void*>(0x1000)); }},
    {"cudaMallocManaged", [](DuringFrame& f) { return cudaMallocManaged(&f.out.device, 4096, cudaMemAttachGlobal); }},
    {"cudaHostRegister", [](DuringFrame& f) { return cudaHostRegister(f.out.registered = f.r.pageable, 4096, 0); }},
    {"cudaHostUnregister_not_registered", [](DuringFrame& f) { return cudaHostUnregister(f.r.pageable); }},
    {"cudaHostGetFlags", [](DuringFrame& f) { return cudaHostGetFlags(&f.out.word, f.r.h); }},
    {"cudaPointerGetAttributes", [](DuringFrame& f) { return cudaPointerGetAttributes(&f.out.pointer, f.r.d); }},
    {"cudaMemset", [](DuringFrame& f) { return cudaMemset(f.r.d2, 1, 64); }, DuringRow::kLegacy},
    {"cudaMemset_zero", [](DuringFrame& f) { return cudaMemset(f.r.d2, 1, 0); }, DuringRow::kLegacy},
    {"cudaMemset_NULL", [](DuringFrame&) { return cudaMemset(nullptr, 1, 64); }, DuringRow::kLegacy},
    {"cudaMemset2D", [](DuringFrame& f) { return cudaMemset2D(f.r.d2, 64, 1, 32, 2); }, DuringRow::kLegacy},
    {"cudaMemset2DAsync_capturing", [](DuringFrame& f) { return cudaMemset2DAsync(f.r.d2, 64, 1, 32, 2, f.s); }},
    {"cudaMemset2DAsync_badpitch_capturing",
     [](DuringFrame& f) { return cudaMemset2DAsync(f.r.d2, 16, 1, 32, 2, f.s); }},
    {"cudaMemsetAsync_other", [](DuringFrame& f) { return cudaMemsetAsync(f.r.d2, 1, 64, f.r.s2); }},
    {"cudaMemsetAsync_legacy", [](DuringFrame& f) { return cudaMemsetAsync(f.r.d2, 1, 64, nullptr); },
     DuringRow::kLegacy},
    {"cudaMemsetAsync_pageable_capturing", [](DuringFrame& f) { return cudaMemsetAsync(f.r.pageable, 1, 64, f.s); }},
    {"cudaMemsetAsync_beyond_capturing",
     [](DuringFrame& f) { return cudaMemsetAsync(f.r.d, 1, Rig::kBytes + 512, f.s); }},
    {"cudaMemcpy_h2d", [](DuringFrame& f) { return cudaMemcpy(f.r.d2, f.r.h, 64, cudaMemcpyHostToDevice); },
     DuringRow::kLegacy},
    {"cudaMemcpy_d2h_pageable",
     [](DuringFrame& f) { return cudaMemcpy(f.r.pageable, f.r.d2, 64, cudaMemcpyDeviceToHost); }, DuringRow::kLegacy},
    {"cudaMemcpy_h2h",
     [](DuringFrame& f) { return cudaMemcpy(f.r.pageable, f.r.pageable + 4096, 64, cudaMemcpyHostToHost); },
     DuringRow::kLegacy},
    {"cudaMemcpy_badkind", [](DuringFrame& f) { return cudaMemcpy(f.r.d2, f.r.h, 64, static_cast<cudaMemcpyKind>(9)); },
     DuringRow::kLegacy},
    {"cudaMemcpyAsync_other",
     [](DuringFrame& f) { return cudaMemcpyAsync(f.r.d2, f.r.h, 64, cudaMemcpyHostToDevice, f.r.s2); }},
    {"cudaMemcpyAsync_other_pageable_d2h",
     [](DuringFrame& f) { return cudaMemcpyAsync(f.r.pageable, f.r.d2, 64, cudaMemcpyDeviceToHost, f.r.s2); }},
    {"cudaMemcpyAsync_beyond_capturing",
     [](DuringFrame& f) { return cudaMemcpyAsync(f.r.d, f.r.h, 8 << 20, cudaMemcpyHostToDevice, f.s); }},
    {"cudaMemcpyAsync_h2h_pageable_capturing",
     [](DuringFrame& f) { return cudaMemcpyAsync(f.r.pageable, f.r.pageable + 4096, 64, cudaMemcpyHostToHost, f.s); }},
    {"cudaMemcpy2D", [](DuringFrame& f) { return cudaMemcpy2D(f.r.d2, 64, f.r.h, 64, 32, 2, cudaMemcpyHostToDevice); },
     DuringRow::kLegacy},
    {"cudaMemcpy2DAsync_badpitch_capturing",
     [](DuringFrame& f) { return cudaMemcpy2DAsync(f.r.d2, 16, f.r.h, 64, 32, 2, cudaMemcpyHostToDevice, f.s); }},
    {"cudaMemcpy2DAsync_zero_capturing",
     [](DuringFrame& f) { return cudaMemcpy2DAsync(f.r.d2, 64, f.r.h, 64, 0, 2, cudaMemcpyHostToDevice, f.s); }},
    {"cudaMemcpy3D",
     [](DuringFrame& f) {
       const auto p = f.r.Copy(f.r.d2, f.r.h, 64, cudaMemcpyHostToDevice);
       return cudaMemcpy3D(&p);
     },
     DuringRow::kLegacy},
    {"cudaMemcpy3DAsync_capturing",
     [](DuringFrame& f) {
       const auto p = f.r.Copy(f.r.d2, f.r.h, 64, cudaMemcpyHostToDevice);
       return cudaMemcpy3DAsync(&p, f.s);
     }},
    {"cudaMemcpyPeer_samedev", [](DuringFrame& f) { return cudaMemcpyPeer(f.r.d2, 0, f.r.d, 0, 64); },
     DuringRow::kLegacy},
    {"cudaMemcpyPeerAsync_other", [](DuringFrame& f) { return cudaMemcpyPeerAsync(f.r.d2, 0, f.r.d, 0, 64, f.r.s2); }},
    {"cudaDeviceSetGraphMemAttribute",
     [](DuringFrame& f) { return cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &f.out.zero); }},
    {"cudaDeviceGetMemPool", [](DuringFrame& f) { return cudaDeviceGetMemPool(&f.out.pool, 0); }},
    {"cudaMemPoolCreate",
     [](DuringFrame& f) {
       cudaMemPoolProps p = {};
       p.allocType = cudaMemAllocationTypePinned;
       p.location.type = cudaMemLocationTypeDevice;
       return cudaMemPoolCreate(&f.out.pool, &p);
     }},
    {"cudaMemPoolTrimTo", [](DuringFrame& f) { return cudaMemPoolTrimTo(f.pool, 0); }},
    {"cudaMemPoolGetAttribute_threshold",
     [](DuringFrame& f) { return cudaMemPoolGetAttribute(f.pool, cudaMemPoolAttrReleaseThreshold, &f.out.wide); }},
    {"cudaMemPoolGetAttribute_used",
     [](DuringFrame& f) { return cudaMemPoolGetAttribute(f.pool, cudaMemPoolAttrUsedMemCurrent, &f.out.wide); }},
    {"cudaMallocFromPoolAsync_capturing",
     [](DuringFrame& f) { return cudaMallocFromPoolAsync(&f.out.device, 4096, f.pool, f.s); }},
    {"cudaMallocFromPoolAsync_other",
     [](DuringFrame& f) { return cudaMallocFromPoolAsync(&f.out.device, 4096, f.pool, f.r.s2); }},
    {"cudaMallocAsync_too_much_capturing",
     [](DuringFrame& f) { return cudaMallocAsync(&f.out.device, size_t{1} << 50, f.s); }},
    {"cudaMallocAsync_NULL_capturing", [](DuringFrame& f) { return cudaMallocAsync(nullptr, 4096, f.s); }},
    {"cudaMallocAsync_legacy", [](DuringFrame& f) { return cudaMallocAsync(&f.out.device, 4096, nullptr); },
     DuringRow::kLegacy},
    {"cudaFreeAsync_NULL_capturing", [](DuringFrame& f) { return cudaFreeAsync(nullptr, f.s); }},
    {"cudaFreeAsync_bogus_capturing",
     [](DuringFrame& f) { return cudaFreeAsync(reinterpret_cast<void*>(0x1000), f.s); }},
    {"cudaFreeAsync_twice_capturing",
     [](DuringFrame& f) {
       cudaError_t code = cudaMallocAsync(&f.out.device, 64, f.s);
       if (code != cudaSuccess) return code;
       code = cudaFreeAsync(f.out.device, f.s);
       return code != cudaSuccess ? code : cudaFreeAsync(f.out.device, f.s);
     }},
    {"cudaFree_of_captured_alloc",
     [](DuringFrame& f) {
       cudaError_t code = cudaMallocAsync(&f.out.device, 64, f.s);
       return code != cudaSuccess ? code : cudaFree(f.out.device);
     }},
    {"cudaMemsetAsync_of_captured_alloc_on_other",
     [](DuringFrame& f) {
       cudaError_t code = cudaMallocAsync(&f.out.device, 64, f.s);
       return code != cudaSuccess ? code : cudaMemsetAsync(f.out.device, 0, 64, f.r.s2);
     }},
    {"cudaPointerGetAttributes_of_captured_alloc",
     [](DuringFrame& f) {
       cudaError_t code = cudaMallocAsync(&f.out.device, 64, f.s);
       return code != cudaSuccess ? code : cudaPointerGetAttributes(&f.out.pointer, f.out.device);
     }},
    {"cudaMemcpyBatchAsync_capturing",
     [](DuringFrame& f) {
       void* dsts[1] = {f.r.d};
       const void* srcs[1] = {f.r.h};
       size_t sizes[1] = {64};
       size_t idx[1] = {0};
       cudaMemcpyAttributes a = {};
       a.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
       return cudaMemcpyBatchAsync(dsts, srcs, sizes, 1, &a, idx, 1, f.s);
     }},
    {"cudaCtxResetPersistingL2Cache", [](DuringFrame&) { return cudaCtxResetPersistingL2Cache(); }},
};

const DuringCases kCases(kRows);

}  // namespace

}  // namespace conformance
