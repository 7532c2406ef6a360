// Copyright the gcap authors. SPDX-License-Identifier: Apache-2.0
//
// During a capture, where the first record is silent: streams, events and kernels.
#include "test/conformance/during_frame.h"

namespace conformance {

namespace {

const std::vector<DuringRow> kRows = {
    {"cudaStreamCreateWithPriority", [](DuringFrame& f) { return cudaStreamCreateWithPriority(&f.out.stream, 1, -1); }},
    {"cudaStreamDestroy_idle",
     [](DuringFrame&) {
       cudaStream_t stream = nullptr;
       const cudaError_t code = cudaStreamCreate(&stream);
       return code != cudaSuccess ? code : cudaStreamDestroy(stream);
     }},
    {"cudaStreamSynchronize_capturing", [](DuringFrame& f) { return cudaStreamSynchronize(f.s); }},
    {"cudaStreamSynchronize_legacy", [](DuringFrame&) { return cudaStreamSynchronize(nullptr); }, DuringRow::kLegacy},
    {"cudaStreamQuery_capturing", [](DuringFrame& f) { return cudaStreamQuery(f.s); }},
    {"cudaStreamQuery_perthread", [](DuringFrame&) { return cudaStreamQuery(cudaStreamPerThread); }},
    {"cudaStreamGetPriority_capturing", [](DuringFrame& f) { return cudaStreamGetPriority(f.s, &f.out.number); }},
    {"cudaStreamGetFlags_other", [](DuringFrame& f) { return cudaStreamGetFlags(f.r.s2, &f.out.word); }},
    {"cudaStreamGetFlags_legacy", [](DuringFrame& f) { return cudaStreamGetFlags(nullptr, &f.out.word); },
     DuringRow::kLegacy},
    {"cudaStreamGetId_other", [](DuringFrame& f) { return cudaStreamGetId(f.r.s2, &f.out.wide); }},
    {"cudaStreamGetDevice_other", [](DuringFrame& f) { return cudaStreamGetDevice(f.r.s2, &f.out.number); }},
    {"cudaStreamGetAttribute_capturing",
     [](DuringFrame& f) { return cudaStreamGetAttribute(f.s, cudaLaunchAttributePriority, &f.out.attribute); }},
    {"cudaStreamCopyAttributes_from_capturing", [](DuringFrame& f) { return cudaStreamCopyAttributes(f.r.s2, f.s); }},
    {"cudaStreamCopyAttributes_to_capturing", [](DuringFrame& f) { return cudaStreamCopyAttributes(f.s, f.r.s2); }},
    {"cudaStreamIsCapturing_capturing", [](DuringFrame& f) { return cudaStreamIsCapturing(f.s, &f.out.status); }},
    {"cudaStreamIsCapturing_NULL_out", [](DuringFrame& f) { return cudaStreamIsCapturing(f.s, nullptr); }},
    {"cudaStreamGetCaptureInfo_NULL_out", [](DuringFrame& f) { return cudaStreamGetCaptureInfo(f.s, nullptr); }},
    {"cudaStreamIsCapturing_legacy", [](DuringFrame& f) { return cudaStreamIsCapturing(nullptr, &f.out.status); },
     DuringRow::kLegacy},
    {"cudaStreamAddCallback_capturing",
     [](DuringFrame& f) { return cudaStreamAddCallback(f.s, NoCallback, nullptr, 0); }},
    {"cudaStreamAddCallback_other",
     [](DuringFrame& f) { return cudaStreamAddCallback(f.r.s2, NoCallback, nullptr, 0); }},
    {"cudaStreamBeginCaptureToGraph_other",
     [](DuringFrame& f) {
       cudaError_t code =
           cudaStreamBeginCaptureToGraph(f.r.s2, f.other, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed);
       if (code == cudaSuccess) code = cudaStreamEndCapture(f.r.s2, &f.out.graph);
       return code;
     }},
    {"cudaStreamBeginCaptureToGraph_the_capturing_graph",
     [](DuringFrame& f) {
       return cudaStreamBeginCaptureToGraph(f.r.s2, f.capturing(), nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed);
     }},
    {"cudaStreamBeginCapture_badmode_other",
     [](DuringFrame& f) { return cudaStreamBeginCapture(f.r.s2, static_cast<cudaStreamCaptureMode>(9)); }},
    {"cudaStreamWaitEvent_badflags_capturing", [](DuringFrame& f) { return cudaStreamWaitEvent(f.s, f.before, 4); }},
    {"cudaStreamWaitEvent_pre_other", [](DuringFrame& f) { return cudaStreamWaitEvent(f.r.s2, f.before, 0); }},
    {"cudaStreamWaitEvent_NULL_capturing", [](DuringFrame& f) { return cudaStreamWaitEvent(f.s, nullptr, 0); }},
    {"cudaThreadExchange_bad",
     [](DuringFrame&) {
       cudaStreamCaptureMode m = static_cast<cudaStreamCaptureMode>(9);
       return cudaThreadExchangeStreamCaptureMode(&m);
     }},
    {"cudaEventCreate", [](DuringFrame& f) { return cudaEventCreate(&f.out.event); }},
    {"cudaEventRecord_other", [](DuringFrame& f) { return cudaEventRecord(f.r.e2, f.r.s2); }},
    {"cudaEventRecord_legacy", [](DuringFrame& f) { return cudaEventRecord(f.r.e2, nullptr); }, DuringRow::kLegacy},
    {"cudaEventRecord_NULL_capturing", [](DuringFrame& f) { return cudaEventRecord(nullptr, f.s); }},
    {"cudaEventRecord_timed_capturing", [](DuringFrame& f) { return cudaEventRecord(f.r.e, f.s); }},
    {"cudaEventElapsedTime_pre", [](DuringFrame& f) { return cudaEventElapsedTime(&f.out.ms, f.before, f.before2); }},
    {"cudaEventElapsedTime_never", [](DuringFrame& f) { return cudaEventElapsedTime(&f.out.ms, f.r.e, f.before2); }},
    {"cudaEventQuery_NULL", [](DuringFrame&) { return cudaEventQuery(nullptr); }},
    {"cudaLaunchKernel_capturing",
     [](DuringFrame& f) { return cudaLaunchKernel(kRelu, dim3(1), dim3(32), f.r.args, 0, f.s); }},
    {"cudaLaunchKernel_other",
     [](DuringFrame& f) { return cudaLaunchKernel(kRelu, dim3(1), dim3(32), f.r.args, 0, f.r.s2); }},
    {"cudaLaunchKernel_legacy",
     [](DuringFrame& f) { return cudaLaunchKernel(kRelu, dim3(1), dim3(32), f.r.args, 0, nullptr); },
     DuringRow::kLegacy},
    {"cudaLaunchKernel_block0_capturing",
     [](DuringFrame& f) { return cudaLaunchKernel(kRelu, dim3(1), dim3(0), f.r.args, 0, f.s); }},
    {"cudaLaunchKernel_block0_other",
     [](DuringFrame& f) { return cudaLaunchKernel(kRelu, dim3(1), dim3(0), f.r.args, 0, f.r.s2); }},
    {"cudaLaunchKernel_grid0_capturing",
     [](DuringFrame& f) { return cudaLaunchKernel(kRelu, dim3(0), dim3(32), f.r.args, 0, f.s); }},
    {"cudaLaunchKernel_shared_capturing",
     [](DuringFrame& f) { return cudaLaunchKernel(kRelu, dim3(1), dim3(32), f.r.args, 1 << 20, f.s); }},
    {"cudaLaunchKernel_NULL_capturing",
     [](DuringFrame& f) { return cudaLaunchKernel(nullptr, dim3(1), dim3(32), f.r.args, 0, f.s); }},
    {"cudaLaunchCooperativeKernel_capturing",
     [](DuringFrame& f) { return cudaLaunchCooperativeKernel(kRelu, dim3(1), dim3(32), f.r.args, 0, f.s); }},
    {"cudaLaunchCooperativeKernel_toolarge_capturing",
     [](DuringFrame& f) { return cudaLaunchCooperativeKernel(kRelu, dim3(100000), dim3(1024), f.r.args, 0, f.s); }},
    {"cudaLaunchKernelExC_capturing",
     [](DuringFrame& f) {
       cudaLaunchConfig_t c = {};
       c.gridDim = dim3(1);
       c.blockDim = dim3(32);
       c.stream = f.s;
       return cudaLaunchKernelExC(&c, kRelu, f.r.args);
     }},
    {"cudaLaunchKernelExC_cluster3of4_capturing",
     [](DuringFrame& f) {
       cudaLaunchAttribute a = {};
       a.id = cudaLaunchAttributeClusterDimension;
       a.val.clusterDim.x = 3;
       a.val.clusterDim.y = a.val.clusterDim.z = 1;
       cudaLaunchConfig_t c = {};
       c.gridDim = dim3(4);
       c.blockDim = dim3(32);
       c.stream = f.s;
       c.attrs = &a;
       c.numAttrs = 1;
       return cudaLaunchKernelExC(&c, kRelu, f.r.args);
     }},
    {"cudaLaunchKernelExC_programmatic_capturing",
     [](DuringFrame& f) {
       cudaLaunchAttribute a = {};
       a.id = cudaLaunchAttributeProgrammaticStreamSerialization;
       a.val.programmaticStreamSerializationAllowed = 1;
       cudaLaunchConfig_t c = {};
       c.gridDim = dim3(1);
       c.blockDim = dim3(32);
       c.stream = f.s;
       c.attrs = &a;
       c.numAttrs = 1;
       return cudaLaunchKernelExC(&c, kRelu, f.r.args);
     }},
    {"cudaLaunchHostFunc_capturing", [](DuringFrame& f) { return cudaLaunchHostFunc(f.s, Nothing, nullptr); }},
    {"cudaFuncGetAttributes", [](DuringFrame& f) { return cudaFuncGetAttributes(&f.out.function, kRelu); }},
    {"cudaFuncSetAttribute",
     [](DuringFrame&) { return cudaFuncSetAttribute(kRelu, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024); },
     DuringRow::kProcess},
    {"cudaFuncSetCacheConfig", [](DuringFrame&) { return cudaFuncSetCacheConfig(kRelu, cudaFuncCachePreferShared); },
     DuringRow::kProcess},
    {"cudaOccupancyMaxActiveBlocks",
     [](DuringFrame& f) { return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&f.out.number, kRelu, 32, 0); }},
    {"cudaStreamUpdateCaptureDependencies_NULL",
     [](DuringFrame& f) {
       return cudaStreamUpdateCaptureDependencies(f.s, nullptr, nullptr, 1, cudaStreamSetCaptureDependencies);
     }},
    {"cudaStreamUpdateCaptureDependencies_foreign",
     [](DuringFrame& f) {
       return cudaStreamUpdateCaptureDependencies(f.s, &f.fill, nullptr, 1, cudaStreamSetCaptureDependencies);
     }},
    {"cudaStreamUpdateCaptureDependencies_other",
     [](DuringFrame& f) {
       return cudaStreamUpdateCaptureDependencies(f.r.s2, nullptr, nullptr, 0, cudaStreamSetCaptureDependencies);
     }},
};

const DuringCases kCases(kRows);

}  // namespace

}  // namespace conformance
